"""The state of a bucket in Spark's state store: a snapshot, and a log of what came since.

    base   the operator's snapshot after micro-batch 40, in chunks
    log    41: watermark and rows    42: watermark and rows
    head   which version this is, of which query, and a token

A micro-batch writes what it brought, not the whole state; when the log has outgrown the base, a new base takes
its place, so that everything written stays within a small multiple of what came in.

A Python worker keeps the operators of its buckets from one micro-batch to the next. Whether such a copy is
what the store holds is identified by *tokens*, random names that each version gets: if an attempt failed, or another
worker did the last micro-batches, the copy goes forward by the log from a version whose token the store knows,
or is restored from the base. A copy never goes back.

The base describes its query, and the log is of the same: where a stream is started with another query, the operator of
the old one goes forward by the log, changes, and is written as a new base.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from windrow.errors import StateError
from windrow.spark.buckets import PARTITIONS
from windrow.spark.micro_batch import MicroBatch
from windrow.spark.task import BY_PARTITION, Work

FORMAT = 2
CHUNK = 32 << 20
# Bytes of a log up to which it is not worth a new base.
LIGHT = 1 << 20
# Entries of a log from which on it is worth a new base, however small they are.
LONG = 100
# Bytes of operators that a worker keeps.
KEPT = 512 << 20


@dataclass(frozen=True)
class Head:
    """The columns of the variable; `timer` is when the bucket wants to be woken, 0 if by rows alone."""

    format: int
    plan: str
    stream: str
    version: int
    token: str
    base_version: int
    base_token: str
    base_bytes: int
    chunks: int
    log_bytes: int
    timer: int


@dataclass
class Copy:
    """An operator as it was after a version."""

    version: int
    token: str
    operator: Any


class Worker:
    """The copies that this Python worker keeps, the latest used ones."""

    def __init__(self) -> None:
        self._copies: OrderedDict[tuple[str, int], tuple[Copy, int]] = OrderedDict()

    def take(self, stream: str, bucket: int) -> Copy | None:
        """The copy of a bucket. It is no longer kept: a failed call must not leave it behind."""
        found = self._copies.pop((stream, bucket), None)
        return None if found is None else found[0]

    def keep(self, stream: str, bucket: int, copy: Copy) -> None:
        self._copies[stream, bucket] = copy, copy.operator.metrics().bytes
        while sum(size for _, size in self._copies.values()) > KEPT:
            self._copies.popitem(last=False)


WORKER = Worker()


def _hash(plan: str) -> str:
    """What is computed, without the number of buckets: the first versions had no more."""
    return plan.partition(" ")[0]


def _spread(plan: str) -> str:
    """Over how many buckets keys are spread, and how; nothing in the first versions, which did not say."""
    what, _, buckets = plan.partition(" ")
    return f"{buckets} by partition" if what.endswith(BY_PARTITION) else buckets


def snapshot_of(number: int, head: Head, base: Any) -> bytes:
    """The snapshot that is in the base of a bucket."""
    chunks = [base.getValue((i,)) for i in range(head.chunks)]
    if any(chunk is None for chunk in chunks):
        raise StateError(f"the checkpoint's snapshot of bucket {number} lacks a part")
    packed = b"".join(chunk[0] for chunk in chunks)
    try:
        return pa.decompress(packed[8:], int.from_bytes(packed[:8], "little"), codec="lz4", asbytes=True)
    except (OSError, pa.ArrowException) as problem:
        raise StateError(f"the checkpoint's snapshot of bucket {number} is damaged: {problem}") from None


class Bucket:
    """The state of one bucket, for the time of one call. The variables are Spark's, set to the bucket."""

    def __init__(self, task: Work, plan: str, number: int, head: Any, base: Any, log: Any) -> None:
        self._task = task
        self._plan = plan
        self._number = number
        self._variables = head, base, log
        # Whether the state is of another query than that of now, or has other options.
        self.is_changed = False
        self.head = self._read_head()
        self._copy: Copy | None = None

    def _read_head(self) -> Head | None:
        values = self._variables[0].get()
        if values is None:
            return None
        if values[0] != FORMAT:
            raise StateError(
                f"the checkpoint's state has format {values[0]}; this windrow reads format {FORMAT}"
            )
        head = Head(*values)
        self.is_changed = _hash(head.plan) != _hash(self._plan)
        if self.is_changed:
            self._require_described(head)
        return head

    def _require_described(self, head: Head) -> None:
        """An error unless the state says of which query it is."""
        if not self._task.can_change:
            raise StateError(
                "the checkpoint belongs to another operator: its windows, columns, time, buckets or options differ. Start with a new "
                "checkpoint, or with the operator as it was"
            )
        if not head.chunks:
            raise StateError(
                "the checkpoint belongs to another query, or one with other options, and was written by an earlier version of windrow, which "
                "does not say which. Start once with the query as it was; then it can change"
            )

    def _require_buckets(self, head: Head) -> None:
        """An error if keys would change places."""
        had, has = _spread(head.plan), _spread(self._plan)
        if had and had != has:
            number, blank, how = had.partition(" ")
            said = f"say buckets={number}"
            if how:
                said = (
                    f'leave buckets out, and set "{PARTITIONS}" to {number}, as it was with the first start'
                )
            raise StateError(
                f"the checkpoint has {number} buckets{blank}{how}, and this stream would have {has}: {said}"
            )

    @property
    def operator(self) -> Any:
        """The operator as the store has it; a fresh one in the beginning."""
        if self._copy is None:
            self._copy = self._latest()
        return self._copy.operator

    def _latest(self) -> Copy:
        head = self.head
        if head is None:
            return Copy(0, "", self._task.operator())
        copy = WORKER.take(head.stream, self._number)
        if copy is None or self.is_changed or not self._is_known(copy, head):
            copy = Copy(head.base_version, head.base_token, self._base(head))
            self._require_buckets(head)
        if copy.version < head.version:
            self._task.replay(copy.operator, map(self._batch, range(copy.version + 1, head.version + 1)))
        self._task.go_on(copy.operator, is_changed=self.is_changed)
        return Copy(head.version, head.token, copy.operator)

    def _is_known(self, copy: Copy, head: Head) -> bool:
        """Whether the store's state was this copy's once."""
        if not head.base_version <= copy.version <= head.version:
            return False
        if copy.version == head.version:
            return copy.token == head.token
        known = head.base_token if copy.version == head.base_version else self._entry(copy.version)[0]
        return copy.token == known

    def _entry(self, version: int) -> Any:
        found = self._variables[2].getValue((version,))
        if found is None:
            raise StateError(f"the checkpoint's log lacks version {version} of bucket {self._number}")
        return found

    def _batch(self, version: int) -> MicroBatch:
        try:
            return MicroBatch.from_bytes(self._entry(version)[1])
        except (OSError, pa.ArrowException) as problem:
            raise StateError(
                f"the checkpoint's log of bucket {self._number} is damaged in version {version}: {problem}"
            ) from None

    def _base(self, head: Head) -> Any:
        if not head.chunks:
            return self._task.operator()
        state = snapshot_of(self._number, head, self._variables[1])
        return self._task.restored(state)

    def write(self, batch: MicroBatch, timer: int) -> None:
        """Save that this micro-batch was applied to the operator."""
        assert self._copy is not None
        data, token = batch.to_bytes(), secrets.token_hex(8)
        head = self.head or Head(FORMAT, self._plan, secrets.token_hex(8), 0, "", 0, "", 0, 0, 0, 0)
        version, size = head.version + 1, head.log_bytes + len(data)
        # The base says what the query is, and what the log is of.
        is_new = self.head is None or head.plan != self._plan
        if is_new or size > max(LIGHT, head.base_bytes) or version - head.base_version > LONG:
            head = self._write_base(head, version, token)
        else:
            self._variables[2].updateValue((version,), (token, data))
            head = replace(head, log_bytes=size)
        self.head = replace(head, plan=self._plan, version=version, token=token, timer=timer)
        self._variables[0].update(tuple(vars(self.head).values()))
        WORKER.keep(head.stream, self._number, Copy(version, token, self._copy.operator))

    def _write_base(self, head: Head, version: int, token: str) -> Head:
        _, base, log = self._variables
        state = self.operator.snapshot()
        packed = len(state).to_bytes(8, "little") + pa.compress(state, codec="lz4", asbytes=True)
        chunks = range(0, len(packed), CHUNK)
        for i, begin in enumerate(chunks):
            base.updateValue((i,), (packed[begin : begin + CHUNK],))
        for i in range(len(chunks), head.chunks):
            base.removeKey((i,))
        for old in range(head.base_version + 1, head.version + 1):
            log.removeKey((old,))
        return replace(
            head,
            base_version=version,
            base_token=token,
            base_bytes=len(packed),
            chunks=len(chunks),
            log_bytes=0,
        )

"""What a bucket holds: an operator, and what drives it in the place of a stream.

    by time     an inbox, from which rows come in order of time; the watermark lets them go
    by clock    a clock that stands still between micro-batches; each of them sets it to the time of day

The same micro-batches lead to the same state and to the same results, whenever they are applied: that is what
makes a snapshot and a log of what came since as good as the state itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.engine.intake.columns import whole
from windrow.engine.metrics import Counters
from windrow.engine.snapshot.parts import stream_of, table_of
from windrow.errors import DataError, StateError
from windrow.policies.clock import VirtualClock
from windrow.policies.operators import Join, Operator
from windrow.policies.operators.state import framed, unframed
from windrow.policies.ports import Punctuated
from windrow.policies.window import Window
from windrow.spark.micro_batch import NONE, MicroBatch, ticks
from windrow.spark.payload import unpack
from windrow.spark.policies.inbox import Inbox
from windrow.spark.policies.rows import PUNCTUATION, TAG, TIME, BucketSpec

MILLISECOND = 1_000_000
# Rows that go into an operator at once.
ROWS = 1 << 18


class SteppedClock(VirtualClock):
    """The time of day as micro-batches tell it."""

    @property
    def due(self) -> int | None:
        """The instant of the next call, in nanoseconds; None if there is none."""
        return min((call.deadline for call in self._calls if not call.cancelled), default=None)


@dataclass(frozen=True)
class Size:
    """How much a worker keeps with an operator."""

    bytes: int


class BucketRunner:
    """An operator over the rows of one bucket, and its state as bytes."""

    def __init__(self, task: BucketSpec, state: bytes | None = None) -> None:
        self._task = task
        self._clock = SteppedClock()
        self._operator: Operator = task.made(self._clock)
        self._inbox = None if task.measure is None else Inbox(task.measure, task.schema)
        self._late: list[pa.RecordBatch] = []
        self.counters = Counters()
        if state is not None:
            self._load(state)
        for number, port in enumerate(task.ports):
            self._operator.process(port.schema.empty_table(), number)

    # -- rows ------------------------------------------------------------------------------------

    def apply(self, batch: MicroBatch) -> list[pa.Table]:
        """Take in a micro-batch; what the operator emits."""
        rows = [unpack(payload) for payload in batch.payloads]
        if self._inbox is None:
            return self._by_clock(batch.watermark, rows)
        self._put(self._inbox, rows)
        if batch.watermark == NONE:
            return []
        return self._feed(self._inbox.pass_to(ticks(self._inbox.measure, batch.watermark)))

    def answer(self, rows: Iterable[pa.RecordBatch]) -> list[pa.Table]:
        """What the operator says to bounded data."""
        assert self._inbox is not None
        self._put(self._inbox, rows)
        return [*self._feed(self._inbox.close()), self._operator.finish()[0].table]

    def _put(self, inbox: Inbox, rows: Iterable[pa.RecordBatch]) -> None:
        for batch in rows:
            late = inbox.put(batch)
            counted = late.filter(pa.array(late.column(TAG).to_numpy() <= PUNCTUATION))
            # A late punctuation is counted in one bucket; one in time is no event.
            self.counters.late += counted.num_rows
            self.counters.events += _events(batch) - _events(late)
            if counted.num_rows:
                self._late.append(counted)

    def _by_clock(self, instant: int, rows: list[pa.RecordBatch]) -> list[pa.Table]:
        # The clocks of two drivers may differ.
        self._clock.advance_to(max(self._clock.now(), instant * MILLISECOND))
        emitted = [self._operator.poll()[0].table]
        for batch in rows:
            self.counters.events += _events(batch)
            emitted += self._feed(batch)
        return emitted

    def _feed(self, rows: pa.RecordBatch) -> list[pa.Table]:
        parts = (rows.slice(begin, ROWS) for begin in range(0, rows.num_rows, ROWS))
        return [self._fed(part) for part in parts]

    def _fed(self, rows: pa.RecordBatch) -> pa.Table:
        """Insert rows into the operator, in the order that they have; what it emits."""
        operator, ports, tags = self._operator, self._task.ports, rows.column(TAG).to_numpy()
        try:
            if isinstance(operator, Join):
                places = [np.flatnonzero(tags == side) for side in (0, 1)]
                left, right = (
                    port.table(rows.take(pa.array(p))) for port, p in zip(ports, places, strict=True)
                )
                return operator.process_together((left, right), (places[0], places[1]))[0].table
            ends = tags >= PUNCTUATION
            if not ends.any():
                return operator.process(ports[0].table(rows))[0].table
            kept = ports[0].table(rows.filter(pa.array(~ends)))
            return operator.process(Punctuated(kept, np.cumsum(~ends)[ends]))[0].table
        except DataError as error:
            where = "rows are counted in their bucket, in the order in which they come to the window"
            raise DataError(error.column, error.row, error.value, f"{error.problem} ({where})") from None

    # -- what is reported ----------------------------------------------------------------------------

    @property
    def due(self) -> int:
        """The millisecond at which something happens by itself; 0 if nothing does."""
        due = self._clock.due
        return 0 if due is None else -(-due // MILLISECOND)

    def late(self) -> pa.Table:
        """Late rows since the last call, as they came."""
        late, self._late = self._late, []
        return pa.Table.from_batches(late, self._task.schema).select(self._task.columns.names)

    def bad(self) -> pa.Table:
        """No rows: bad ones are an error."""
        fields = [*self._task.columns, pa.field("bad_reason", pa.string())]
        return pa.schema(fields).empty_table()

    def metrics(self) -> Size:
        """What a worker has to keep, about: rows that wait, and the arrays of windows."""
        waiting = 0 if self._inbox is None else self._inbox.nbytes
        return Size(waiting + sum(map(_size, self._operator.open_windows())))

    # -- state -----------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """The state as bytes."""
        parts = {"operator": self._operator.snapshot()}
        about: dict[str, int | float | None] = {"clock": self._clock.now()}
        if self._inbox is not None:
            about["watermark"] = self._inbox.watermark
            parts["waiting"] = stream_of(pa.Table.from_batches([self._inbox.waiting()]))
        parts["about"] = json.dumps(about).encode()
        return framed(self._task.identity(), parts)

    def _load(self, state: bytes) -> None:
        parts = unframed(self._task.identity(), state)
        try:
            about = json.loads(parts["about"])
            self._clock.advance_to(about["clock"])
            if self._inbox is not None:
                rows = table_of(parts["waiting"])
                if rows.schema != self._task.schema or rows.column(TIME).null_count:
                    raise StateError("the rows that wait in the snapshot are not those of its operator")
                self._inbox.put(whole(rows))
                self._inbox.watermark = about["watermark"]
            self._operator.restore(parts["operator"])
        except (KeyError, ValueError, TypeError) as problem:
            raise StateError(
                f"the snapshot of a bucket lacks a part, or has a wrong one: {problem}"
            ) from None


def _size(window: Window) -> int:
    """The bytes of a window, about: its arrays, and eight for each value that it keeps."""
    arrays = [*window.regions.values(), window.subwindows.table]
    return sum(array.nbytes for array in arrays) + 8 * window.log.rows * len(window.log.schema)


def _events(rows: pa.RecordBatch) -> int:
    """How many are no punctuations."""
    return int(np.count_nonzero(rows.column(TAG).to_numpy() < PUNCTUATION))

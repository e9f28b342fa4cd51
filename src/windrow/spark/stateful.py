"""The stateful stage of a stream: one operator per bucket.

Each micro-batch with data brings every bucket its packed rows, or word that there are none; where no data comes,
a bucket is woken by a timer as soon as the watermark has moved, so that windows end all the same. Spark fires
the timers of instants in (old watermark, new watermark]: a timer one millisecond after the watermark fires with
its next move. So all buckets are there from the first data on, and each knows the watermark of the micro-batch before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from windrow.engine.operator import Operator
from windrow.engine.snapshot.plan import plan_hash
from windrow.spark.micro_batch import MicroBatch, apply
from windrow.spark.payload import pack
from windrow.spark.results import results
from windrow.spark.state import Bucket
from windrow.spark.task import Task

# Events, late and bad rows, and a packed batch of results.
Given = tuple[int, int, int, bytes | None]


class Stateful:
    """The stage in one Python worker; `handle` and the variables are Spark's, set to the bucket in question."""

    def __init__(self, task: Task, handle: Any, head: Any, base: Any, log: Any) -> None:
        self._task = task
        self._plan = identity(task)
        self._handle = handle
        self._variables = head, base, log

    def step(self, number: int, watermark: int, payloads: Sequence[bytes], *, by_timer: bool) -> list[Given]:
        """Take a micro-batch into a bucket; what it gives out. The counts are in the first row."""
        batch = MicroBatch(watermark, payloads)
        bucket = Bucket(self._task, self._plan, number, *self._variables)
        timer, old = watermark + 1, None if bucket.head is None else bucket.head.timer
        if timer == old and not payloads:
            return []  # nothing has changed
        operator = bucket.operator
        before = _counts(operator)
        given = list(results(self._task, apply(self._task, operator, batch), operator))
        counts = [now - then for now, then in zip(_counts(operator), before, strict=True)]
        bucket.write(batch, timer)
        if timer != old:
            if old is not None and not by_timer:  # one that has fired is deleted by Spark
                self._handle.deleteTimer(old)
            self._handle.registerTimer(timer)
        packed: list[bytes | None] = [pack(part) for part in given]
        if not packed and any(counts):
            packed = [None]
        return [(*(counts if i == 0 else (0, 0, 0)), part) for i, part in enumerate(packed)]


def _counts(operator: Operator) -> tuple[int, int, int]:
    seen = operator.counters
    return seen.events, seen.late, seen.bad


def identity(task: Task) -> str:
    """What must not change between two runs on one checkpoint: with other buckets, keys would change places.

    What becomes of bad rows may change: they leave nothing in the state.
    """
    columns = [f"{field.name} {field.type}" for field in (*task.schema, *task.result)]
    settings = [f"{name}={value}" for name, value in vars(task.settings).items() if name != "on_bad"]
    said = "\n".join([plan_hash(task.query).hex(), *columns, *settings, str(task.buckets)])
    return hashlib.sha256(said.encode()).hexdigest()

"""The stateful stage of a stream: one operator per bucket.

Each micro-batch with data brings every bucket its packed rows, or word that there are none; where no data comes,
a bucket is woken by a timer as soon as the watermark has moved, so that windows end all the same. Spark fires
the timers of instants in (old watermark, new watermark]: a timer one millisecond after the watermark fires with
its next move. So all buckets are there from the first data on, and each knows the watermark of the micro-batch before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windrow.spark.micro_batch import MicroBatch
from windrow.spark.payload import pack
from windrow.spark.results import results
from windrow.spark.state import Bucket
from windrow.spark.task import Work

# Events, late and bad rows, and a packed batch of results.
Given = tuple[int, int, int, bytes | None]


class Stateful:
    """The stage in one Python worker; `handle` and the variables are Spark's, set to the bucket in question."""

    def __init__(self, task: Work, handle: Any, head: Any, base: Any, log: Any) -> None:
        self._task = task
        self._plan = task.identity()
        self._handle = handle
        self._variables = head, base, log

    def step(self, number: int, instant: int, payloads: Sequence[bytes], *, by_timer: bool) -> list[Given]:
        """Take a micro-batch into a bucket; what it emits. The counts are in the first row.

        `instant` is the watermark, or the time of day if the task is `clocked`.
        """
        batch = MicroBatch(instant, payloads)
        bucket = Bucket(self._task, self._plan, number, *self._variables)
        old = 0 if bucket.head is None else bucket.head.timer
        if instant < old and not payloads and not bucket.is_changed:
            return []  # nothing is new
        operator = bucket.operator
        before = _counts(operator)
        emitted = list(results(self._task, self._task.apply(operator, batch), operator))
        counts = [now - then for now, then in zip(_counts(operator), before, strict=True)]
        timer = self._task.timer(operator, instant)
        bucket.write(batch, timer)
        if timer != old:
            if old and not by_timer:  # one that has fired is deleted by Spark
                self._handle.deleteTimer(old)
            if timer:
                self._handle.registerTimer(timer)
        packed: list[bytes | None] = [pack(part) for part in emitted]
        if not packed and any(counts):
            packed = [None]
        return [(*(counts if i == 0 else (0, 0, 0)), part) for i, part in enumerate(packed)]


def _counts(operator: Any) -> tuple[int, int, int]:
    seen = operator.counters
    return seen.events, seen.late, seen.bad

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

# Events, late and bad rows, a packed batch of results, and from when on what came later is complete.
Given = tuple[int, int, int, bytes | None, dict[str, Any] | None]


class Stateful:
    """The stage in one Python worker; `handle` and the variables are Spark's, set to the bucket in question."""

    def __init__(self, task: Work, handle: Any, head: Any, base: Any, log: Any) -> None:
        self._task = task
        self._plan = task.identity()
        self._handle = handle
        self._variables = head, base, log

    def step(self, number: int, instant: int, payloads: Sequence[bytes], *, by_timer: bool) -> list[Given]:
        """Take a micro-batch into a bucket; what it emits. All but results is in the first row.

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
        # All buckets say it in the same micro-batches: in those that move the watermark, and where the query changes.
        is_told = instant >= old or bucket.is_changed
        known = (self._task.complete_from(operator) if is_told else None) or None
        timer = self._task.timer(operator, instant)
        bucket.write(batch, timer)
        if timer != old:
            if old and not by_timer:  # one that has fired is deleted by Spark
                self._handle.deleteTimer(old)
            if timer:
                self._handle.registerTimer(timer)
        packed: list[bytes | None] = [pack(part) for part in emitted]
        if not packed and (known or any(counts)):
            packed = [None]
        events, late, bad = counts
        return (
            [(events, late, bad, packed[0], known), *((0, 0, 0, part, None) for part in packed[1:])]
            if packed
            else []
        )


def _counts(operator: Any) -> tuple[int, int, int]:
    seen = operator.counters
    return seen.events, seen.late, seen.bad

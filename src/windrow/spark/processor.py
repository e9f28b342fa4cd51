"""The stateful stage of a stream: one operator per bucket, in Spark's `transformWithState`.

Each micro-batch brings a bucket its packed rows; a bucket without rows is woken by a timer as soon as the
watermark has moved, so that windows end while no data comes. Spark fires the timers of instants in
(old watermark, new watermark]: a timer one millisecond after the watermark fires with its next move.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import Row

from windrow.engine.snapshot.plan import plan_hash
from windrow.spark.micro_batch import MicroBatch, apply
from windrow.spark.payload import pack
from windrow.spark.results import results
from windrow.spark.state import BASE, HEAD, LOG, Bucket
from windrow.spark.task import Task

# A packed batch of results; the counts are those of the call, in its first row.
EMITTED = "events long, late long, bad long, payload binary"


class Processor(StatefulProcessor):
    """See the module."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._head = handle.getValueState("head", HEAD)
        self._base = handle.getMapState("base", "chunk int", BASE)
        self._log = handle.getMapState("log", "version long", LOG)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        arrived = sorted(rows, key=lambda row: (row.part, row.number))
        payloads = [bytes(row.payload) for row in arrived]
        return self._step(key, MicroBatch(timerValues.getCurrentWatermarkInMs(), payloads))

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        return self._step(key, MicroBatch(timerValues.getCurrentWatermarkInMs()))

    def close(self) -> None:
        """Nothing is held open."""

    def _step(self, key: Any, batch: MicroBatch) -> Iterator[Row]:
        bucket = Bucket(self._task, identity(self._task), key[0], self._head, self._base, self._log)
        operator = bucket.operator
        before = operator.counters.events, operator.counters.late, operator.counters.bad
        given = list(results(self._task, apply(self._task, operator, batch), operator))
        after = operator.counters.events, operator.counters.late, operator.counters.bad
        bucket.write(batch, self._wake(bucket, batch))
        counts = [now - then for now, then in zip(after, before, strict=True)]
        rows = []
        for payload in [*map(pack, given), None]:
            if payload is not None or any(counts):
                rows.append(Row(events=counts[0], late=counts[1], bad=counts[2], payload=payload))
                counts = [0, 0, 0]
        return iter(rows)

    def _wake(self, bucket: Bucket, batch: MicroBatch) -> int:
        """Ask to be called when the watermark moves on; when that is."""
        timer = batch.watermark + 1
        old = None if bucket.head is None else bucket.head.timer
        if old == timer:
            return timer
        if old is not None and batch.payloads:  # else it has just fired, and Spark deletes it
            self._handle.deleteTimer(old)
        self._handle.registerTimer(timer)
        return timer


def identity(task: Task) -> str:
    """What must not change between two runs on one checkpoint: with other buckets, keys would change places."""
    parts = [plan_hash(task.query), repr(task.settings).encode(), task.schema.serialize().to_pybytes()]
    parts += [task.result.serialize().to_pybytes(), task.buckets.to_bytes(4)]
    return hashlib.sha256(b"".join(parts)).hexdigest()

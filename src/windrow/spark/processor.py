"""What Spark calls in the stateful stage of a stream: `transformWithState`, a bucket at a time.

Spark also loads this module in a process of its own whenever a stream starts, only to ask which state variables there
are, and does not wait long for it: so nothing here needs the engine before there are rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    Row,
    StringType,
    StructField,
    StructType,
)

from windrow.spark.task import Work

if TYPE_CHECKING:
    from windrow.spark.stateful import Stateful

# A packed batch of results; all else is about the call, in its first row. `{}` is the type of starts of windows.
EMITTED = "events long, late long, bad long, payload binary, complete_from map<string, {}>"


def _columns(**types: DataType) -> StructType:
    """A schema as a value: of one that is text, each task would ask the JVM what it means, more than once."""
    return StructType([StructField(name, type_) for name, type_ in types.items()])


# The state of a bucket, see `state`.
HEAD = _columns(
    format=IntegerType(),
    plan=StringType(),
    stream=StringType(),
    version=LongType(),
    token=StringType(),
    base_version=LongType(),
    base_token=StringType(),
    base_bytes=LongType(),
    chunks=IntegerType(),
    log_bytes=LongType(),
    timer=LongType(),
)
CHUNK, BASE = _columns(chunk=IntegerType()), _columns(data=BinaryType())
VERSION, LOG = _columns(version=LongType()), _columns(token=StringType(), data=BinaryType())


class Processor(StatefulProcessor):
    """The stateful processor of all buckets: state in Spark's store, and the stage that works on it."""

    def __init__(self, task: Work) -> None:
        self._task = task
        self._stage: Stateful | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle, self._stage = handle, None
        self._head = handle.getValueState("head", HEAD)
        self._base = handle.getMapState("base", CHUNK, BASE)
        self._log = handle.getMapState("log", VERSION, LOG)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        arrived = sorted(rows, key=lambda row: (row.part, row.number))
        payloads = [bytes(row.payload) for row in arrived if row.payload is not None]
        return self._step(key, timerValues, payloads, by_timer=False)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        return self._step(key, timerValues, [], by_timer=True)

    def close(self) -> None:
        """Nothing is held open."""

    def _step(
        self, key: Any, timer_values: Any, payloads: Sequence[bytes], *, by_timer: bool
    ) -> Iterator[Row]:
        if self._stage is None:
            from windrow.spark.stateful import Stateful

            self._stage = Stateful(self._task, self._handle, self._head, self._base, self._log)
        if self._task.clocked:
            instant = timer_values.getCurrentProcessingTimeInMs()
        else:
            instant = timer_values.getCurrentWatermarkInMs()
        emitted = self._stage.step(key[0], instant, payloads, by_timer=by_timer)
        return iter(
            [Row(events=e, late=late, bad=bad, payload=p, complete_from=c) for e, late, bad, p, c in emitted]
        )

"""What a micro-batch does to the operator of one bucket.

First its rows come in, judged by the watermark of the micro-batch before, which the operator has; then windows
end at the watermark of this one. Spark's own windows go the same way, and so does a loop around an embedded
operator: `process(rows)`, `advance(watermark)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from windrow.engine.operator import Operator
from windrow.errors import DataError
from windrow.measure import Measure, Point
from windrow.spark.payload import pack, unpack

# What Spark says when there is no watermark yet.
NONE = 0


@dataclass(frozen=True)
class MicroBatch:
    """A watermark in milliseconds, and packed rows in order of arrival."""

    watermark: int
    payloads: Sequence[bytes] = ()

    def to_bytes(self) -> bytes:
        """For the log of a bucket's state."""
        payloads = pa.array([self.watermark.to_bytes(8, "little", signed=True), *self.payloads], pa.binary())
        return pack(pa.record_batch({"payload": payloads}))

    @classmethod
    def from_bytes(cls, data: bytes) -> MicroBatch:
        """The opposite of `to_bytes`."""
        first, *payloads = unpack(data).column(0)
        watermark = int.from_bytes(first.as_py(), "little", signed=True)
        return cls(watermark, [p.as_buffer() for p in payloads])


def apply(
    operator: Operator, batch: MicroBatch, is_sliced: Callable[[pa.RecordBatch], bool]
) -> list[pa.Table]:
    """Take in a micro-batch, some of whose rows may be slices; the windows that it emits."""
    for payload in batch.payloads:
        rows = unpack(payload)
        if is_sliced(rows):
            operator.take_slices(rows)
        else:
            _process(operator, rows)
    if batch.watermark == NONE:
        return [operator.look()]
    return [operator.advance_to(ticks(operator.measure, batch.watermark))]


def _process(operator: Operator, rows: pa.RecordBatch) -> None:
    try:
        operator.take_events(rows)
    except DataError as error:
        where = "rows are counted in what one partition of the source has for the bucket"
        raise DataError(error.column, error.row, error.value, f"{error.problem} ({where})") from None


def ticks(measure: Measure, watermark: int) -> int | float:
    """Spark's milliseconds on the time column; where that is a plain number, one is one."""
    point = Point(number=watermark)
    if measure.tick_nanoseconds is not None:
        point = Point(nanoseconds=watermark * 1_000_000)
    return measure.point(point, what="watermark")

"""Rows that open and close events, in a batch job.

    partition 0     - 14 bob                      rows of a DataFrame have no order ...
    partition 1     3 - ann     8 - bob
    bucket          3 - ann     8 - bob     - 14 bob      ... so they are read in order of time

What is open in the end lasts up to the latest instant that was seen, whatever its key; so each
bucket gets the latest of all, which takes a pass of its own over the rows. A stream needs neither: rows are read
as they come, those of a partition of the source in their order, and no stream comes to its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import DataError
from windrow.span import Span
from windrow.spec import QuerySpec

if TYPE_CHECKING:
    from windrow.engine.operator import Operator
    from windrow.spark.task import Task

# The column, behind those of `scatter`, that tells the latest instant of all buckets, in ticks.
LATEST = "latest"


def opens(query: QuerySpec) -> bool:
    """Whether a row may open an event that another one closes."""
    return isinstance(query.time, Span) and query.time.id is not None


def heard(task: Task, parts: list[pa.RecordBatch]) -> Operator:
    """The operator of a bucket that has taken in all rows."""
    operator = task.operator()
    try:
        operator.take_events(in_order(task.query, pa.Table.from_batches(parts, task.schema)))
    except DataError as error:
        where = "rows are counted in their bucket, in order of time"
        raise DataError(error.column, error.row, error.value, f"{error.problem} ({where})") from None
    return operator


def in_order(query: QuerySpec, table: pa.Table) -> pa.Table:
    """Rows in order of their start, or of their end if they have no start.

    An event may begin where another one of its id ends, so rows that close come first; but not where an event may
    end at its own start.
    """
    span = query.time
    assert isinstance(span, Span)
    start, end = table[span.start], table[span.end]
    opening = pc.is_valid(start).cast(pa.int8())
    if span.on_zero == "point":
        opening = pa.array([0] * len(table), pa.int8())
    moments = pa.table({"moment": pc.coalesce(start, end), "opening": opening})
    return table.take(pc.sort_indices(moments, [("moment", "ascending"), ("opening", "ascending")]))


def answered(operator: Operator, latest: int | None) -> pa.Table:
    """What is left in the end, of a bucket that gets the latest instant of all of them."""
    known = [tick for tick in (operator.highest_time, latest) if tick is not None]
    operator.highest_time = max(known, default=None)
    return operator.finish()


def latest_of(operator: Operator) -> Iterator[pa.RecordBatch]:
    """The latest instant that a bucket has heard of, in the column `LATEST`."""
    yield pa.record_batch({LATEST: pa.array([operator.highest_time], pa.int64())})

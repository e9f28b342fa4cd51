"""Events that the producer sent twice: of those with one id, the first counts.

    event time     0 --------- id a --------------------------------------------------> watermark
                               |--------- horizon ---------|
                                    a again: dropped             a again: a new event

Spark remembers ids with `dropDuplicatesWithinWatermark`, for as long as the watermark's delay; here it gets the
horizon instead, in the column's metadata, and so remembers them for at least that long while windows end as early as
without. Its stage drops rows that come behind the watermark, too. Both are counted in a stream's progress, as
`numDroppedDuplicateRows` and `numRowsDroppedByWatermark`.

Events without an id all go on, and so do those without a time (poison, and events dated too far ahead): they are for the
query to judge and to count, and none of them hides a good event with its id.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from windrow.durations import DurationLike
from windrow.errors import QueryError
from windrow.pipelines.spec import milliseconds
from windrow.schema import no_such_column
from windrow.spark.schema import WATERMARK, named, watermarked

# An event without an id, or without a time, is like no other.
UNLIKE = "windrow unlike"


def dedupe(df: DataFrame, *, id: str, horizon: DurationLike) -> DataFrame:
    """A stream without the events whose `id` was seen within the horizon.

    Parameters
    ----------
    df
        A streaming DataFrame with a watermark.
    id
        The column by which events are recognized; those without one, or without a time, all pass.
    horizon
        For how long an id is remembered at least: a length of time in whole milliseconds.

    Returns
    -------
    DataFrame
        The same columns.

    Raises
    ------
    QueryError
        If there is no watermark, or no such column.

    Examples
    --------
    >>> def payments(events):
    ...     return dedupe(events.withWatermark("ts", "10 seconds"), id="payment", horizon="10 minutes")
    """
    length = milliseconds(horizon, what="horizon")
    known = watermarked(df)
    if not known:
        raise QueryError("dedupe needs a watermark, or it would have to remember all ids for ever")
    if id not in df.columns:
        raise QueryError(f"duplicates cannot be recognized: {no_such_column(id, df.columns)}")
    (time,) = known
    (delay,) = (field.metadata[WATERMARK] for field in df.schema if field.name == time)
    marked = df.withColumn(UNLIKE, sf.when(named(id).isNull() | named(time).isNull(), sf.uuid()))
    remembered = marked.withMetadata(time, {WATERMARK: max(length, delay)})
    first = remembered.dropDuplicatesWithinWatermark([id, UNLIKE]).drop(UNLIKE)
    return first.withMetadata(time, {WATERMARK: delay})

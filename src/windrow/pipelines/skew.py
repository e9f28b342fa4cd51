"""Events dated into the future: separated from the others before the watermark sees them.

Spark's watermark follows the latest event. One event dated 2099 would end every window there is, and make late whatever
comes after it: the stream falls silent, without an error.

    events    12:00  12:01  2099  12:02        watermark without this    ----------------> 2099
                            ^^^^ bad row       watermark with it         12:00 -> 12:02

The clock of the machine is the judge, as of the start of the micro-batch: Spark writes that down, so a micro-batch that
is run again judges alike. An hour of silence, or a source that is a year behind, makes no event bad.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

from windrow.durations import DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.pipelines.spec import AHEAD
from windrow.schema import no_such_column
from windrow.spark.schema import named


def not_ahead(df: DataFrame, *, time: str, max_ahead: DurationLike, on_bad: str = "raise") -> DataFrame:
    """No event is dated more than `max_ahead` after the present; to be called before `withWatermark`.

    `on_bad` "raise" stops the stream with an error that names the time. "divert" takes the time away from such an event,
    and keeps it in the column `ahead`: a query with `on_bad="divert"` then counts the event as bad.

    >>> def windows(events, query):
    ...     possible = not_ahead(events, time="ts", max_ahead="1 hour", on_bad="divert")
    ...     return query.on_spark(possible.withWatermark("ts", "10 seconds"), on_bad="divert")
    """
    if on_bad not in ("raise", "divert"):
        raise QueryError(f"on_bad must be raise or divert, not {on_bad!r}")
    if time not in df.columns:
        raise QueryError(no_such_column(time, df.columns))
    if not isinstance(df.schema[time].dataType, TimestampType | TimestampNTZType | DateType):
        raise QueryError(
            f"max_ahead asks how far a time is ahead of the clock, and column {time!r} is of type "
            f"{df.schema[time].dataType.simpleString()}: leave it out"
        )
    if on_bad == "divert" and AHEAD in df.columns:
        raise QueryError(f"a column called {AHEAD!r} is there already: rename it")
    limit = parse_duration(max_ahead, what="max_ahead")
    if limit.nanoseconds is None or limit.nanoseconds <= 0:
        raise QueryError(f"max_ahead must be a duration longer than zero, not {max_ahead!r}")
    moment = named(time).cast("timestamp")
    is_ahead = sf.unix_micros(moment) > sf.unix_micros(sf.current_timestamp()) + limit.nanoseconds // 1_000
    if on_bad == "divert":
        return df.withColumns(
            {time: sf.when(is_ahead, None).otherwise(named(time)), AHEAD: sf.when(is_ahead, named(time))}
        )
    said = sf.concat(
        sf.lit(f"column {time!r}, value "),
        named(time).cast("string"),
        sf.lit(f": more than {limit} after the present; on_bad='divert' counts such events and goes on"),
    )
    refused = sf.raise_error(said).cast(df.schema[time].dataType)
    return df.withColumn(time, sf.when(is_ahead, refused).otherwise(named(time)))

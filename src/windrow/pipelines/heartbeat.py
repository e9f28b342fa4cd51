"""A source that falls silent: beats of the clock beside it, by which its windows end.

    events      12:00:01  12:00:04                                     nothing more
    beats       11:59:31  11:59:32 ..   one each second, `idle` behind the clock
    watermark   12:00:04 less the delay ..    12:00:05  12:00:06       the beats, from 30 s after the last event on

Spark's watermark follows the newest row, and a topic without rows has no newest one. The beats are rows that only the watermark
sees: they are gone before the query. So the watermark is never further behind the clock than `idle`, and the windows of a silent source
come out that long after their end, and a micro-batch.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from windrow.durations import DurationLike
from windrow.pipelines.spec import milliseconds
from windrow.spark.schema import named

# The column that tells beats from events, between the union and the filter.
BEAT = "windrow beat"


def with_watermark(
    spark: SparkSession, df: DataFrame, *, time: str, delay: str, idle: DurationLike
) -> DataFrame:
    """Events with a watermark that stays at most `delay` behind the newest one, and at most `idle` behind the clock."""
    ahead = milliseconds(delay, what="delay") - milliseconds(idle, what="idle")
    clock = spark.readStream.format("rate").option("rowsPerSecond", 1).option("numPartitions", 1).load()
    moment = sf.timestamp_micros(sf.unix_micros("timestamp") + ahead * 1000)
    columns = [
        (moment if field.name == time else sf.lit(None)).cast(field.dataType).alias(field.name)
        for field in df.schema
    ]
    beats = clock.select(*columns, sf.lit(True).alias(BEAT))
    both = df.withColumn(BEAT, sf.lit(False)).unionByName(beats).withWatermark(time, delay)
    # A condition on the watermark's own column stays behind the watermark; another one would be moved before it.
    return both.filter(sf.when(named(time).isNull(), True).otherwise(~sf.col(f"`{BEAT}`"))).drop(BEAT)

"""The stages around buckets, as DataFrames: rows that know their bucket are scattered and answered.

    batch     rows -> scatter -> shuffle by bucket -> gather -> results
    stream    rows -> scatter -> one stateful call per bucket -> results

Rows come with the columns of the task's schema, by place, and their bucket behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from windrow.errors import QueryError
from windrow.spark.buckets import PARTITIONS
from windrow.spark.compatibility import spark_schema
from windrow.spark.payload import unpacked
from windrow.spark.processor import EMITTED, Processor
from windrow.spark.scatter import SCATTERED, scatter
from windrow.spark.schema import conf, named
from windrow.spark.task import BUCKET, Work

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
# What rows are called where they leave an operator of a stream; no user's table is likely to be called so.
PASSED = "windrow passed"
# Files that are not there, wherever Spark runs.
NOWHERE = "file:///dev/null/*"
APPEND_ONLY = 'Windows are final in outputMode("append") alone. For another mode say path="general"'


def require_streamable(df: DataFrame) -> None:
    """An error unless the state store can hold what buckets keep, and this is the first operator of windrow in a stream.

    Whatever came between two of them, the plan of the second one's input has the name that rows of all of ours get. It is
    that of a node (see `marked`): names of columns are left out where there are many of them.
    """
    with redirect_stdout(StringIO()) as plan:  # the one way to a plan that also declarative pipelines allow
        df.explain("extended")
    if PASSED in plan.getvalue():
        raise QueryError(
            "this stream has been through a query or an operator of windrow already, and a second one would wait for a "
            "watermark that stands still: write the results of the first one to a sink, and read them as a stream of their own"
        )
    if not str(conf(df, PROVIDER)).endswith("RocksDBStateStoreProvider"):
        raise QueryError(
            f'a stream needs the RocksDB state store: spark.conf.set("{PROVIDER}", '
            '"org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")'
        )


def marked(rows: DataFrame) -> DataFrame:
    """The same rows, under the name by which `require_streamable` knows them."""
    return rows.alias(PASSED)


def appended(rows: DataFrame) -> DataFrame:
    """Rows that Spark makes of a stream, in a plan that it refuses in any output mode but "append".

    In other modes Spark gives out windows that are not final. What it refuses are limits in mode "update", and joins in mode
    "complete"; the optimizer sees that there are no rows behind this limit, and nothing of it is left but two sources that
    never have anything. Spark's error shows the plan, and so the name that it has here.
    """
    nothing = rows.sparkSession.readStream.format("text").load(NOWHERE).alias(APPEND_ONLY)
    nulls = [sf.lit(None).cast(field.dataType).alias(field.name) for field in rows.schema]
    # Of a join of nothing Spark would know that it has no rows, and take out the limit in place of the join.
    joined = nothing.crossJoin(nothing).select(sf.explode(sf.array(sf.lit(1))))
    return rows.union(joined.limit(0).select(*nulls))


def bucket_of(keys: Sequence[str | Column], buckets: int) -> Column:
    """The bucket of a row, by the hash of its key."""
    columns = [named(key) if isinstance(key, str) else key for key in keys]
    number = sf.pmod(sf.hash(*columns), sf.lit(buckets)) if columns else sf.lit(0)
    return number.cast("int").alias(BUCKET)


def numbered(rows: DataFrame) -> DataFrame:
    """The same columns, identified by position: `mapInArrow` finds none whose name has a dot in it."""
    return rows.toDF(*[f"column{i}" for i in range(len(rows.columns))])


def by_bucket(rows: DataFrame, name: str, buckets: int) -> DataFrame:
    """All rows of a bucket in one partition. A number of partitions keeps Spark from joining them to one."""
    partitions = min(buckets, int(conf(rows, PARTITIONS)))
    return rows.repartition(partitions, named(name))


def scattered(rows: DataFrame, task: Work) -> DataFrame:
    """The rows of a batch job, packed, those of each bucket in one partition."""
    packed = numbered(rows).mapInArrow(scatter(task, everywhere=False), SCATTERED)
    return by_bucket(packed, "bucket", task.buckets)


def streamed(rows: DataFrame, task: Work, *, metrics: str, counted: Sequence[str]) -> DataFrame:
    """What the operators of all buckets emit in a stream; `counted` are the counts that are observed."""
    # Who goes by the time of day is woken by timers alone, and needs no word of rows that others have got.
    packed = numbered(rows).mapInArrow(scatter(task, everywhere=not task.clocked), SCATTERED)
    mode = "ProcessingTime" if task.clocked else "EventTime"
    result = spark_schema(task.result)
    start = result["start"].dataType.simpleString() if task.can_change else "long"
    # A changelog only grows: in update mode, too, what is emitted is appended.
    emitted = packed.groupBy("bucket").transformWithState(
        Processor(task), EMITTED.format(start), "Append", mode
    )
    told = [sf.coalesce(sf.sum(name), sf.lit(0)).alias(name) for name in counted]
    if task.can_change:
        told.append(_latest("complete_from", start).alias("complete_from"))
    observed = emitted.observe(metrics, *told)
    return marked(observed.select("payload")).mapInArrow(unpacked, result)


def _latest(column: str, type_: str) -> Column:
    """The maps of all rows as one, with the latest value of each name, as text: else Spark reports whole seconds."""

    def both(one: Column, other: Column) -> Column:
        return sf.map_zip_with(one, other, lambda _, x, y: sf.greatest(x, y))

    return sf.aggregate(sf.collect_list(column), sf.expr(f"cast(map() as map<string, {type_}>)"), both).cast(
        "map<string, string>"
    )

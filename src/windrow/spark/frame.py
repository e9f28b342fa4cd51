"""From a DataFrame to the DataFrame of its windows: checks, choice of the path, and the stages of each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from windrow.engine.intake.projection import REASON, projected
from windrow.engine.operator import Operator
from windrow.errors import QueryError
from windrow.options import SparkOptions
from windrow.span import Span, require_one_learner
from windrow.spark import jvm_windows, pushdown
from windrow.spark.buckets import PARTITIONS
from windrow.spark.compatibility import spark_schema
from windrow.spark.expressions import computed, selected
from windrow.spark.gather import gather, gather_latest, gather_slices
from windrow.spark.open_events import LATEST, opens
from windrow.spark.paths import Path, choose
from windrow.spark.schema import (
    arrow_schema,
    conf,
    named,
    require_dataframe,
    require_watermark,
    result_schema,
)
from windrow.spark.stages import (
    appended,
    bucket_of,
    by_bucket,
    marked,
    numbered,
    require_streamable,
    scattered,
    streamed,
)
from windrow.spark.task import BUCKET, Task
from windrow.spec import QuerySpec


@dataclass(frozen=True)
class Plan:
    """A query fitted to a DataFrame."""

    task: Task
    path: Path
    options: SparkOptions
    events: DataFrame


def on_spark(query: QuerySpec, df: DataFrame, options: SparkOptions) -> DataFrame:
    """The windows of a DataFrame, as a DataFrame: the work of `Query.on_spark`."""
    plan = fit(query, df, options)
    df = plan.events
    if plan.path.push_down:
        windows = _pushed_down(df, plan)
    else:
        windows = _stream(df, plan) if plan.path.streaming else _batch(df, plan)
    return selected(query, plan.task.result, windows)


def fit(query: QuerySpec, df: DataFrame, options: SparkOptions) -> Plan:
    """Everything that can be wrong before a row was seen is refused here."""
    settings = options.for_operators
    require_dataframe(df)
    # Rows come from many partitions: no order of theirs can be promised.
    query, given = replace(query, ordered=False), df.columns
    df = computed(query, df, diverts=settings.on_bad == "divert")
    query = projected(query)
    read = [*query.columns, *(name for name in df.columns if name == REASON)]
    names = list(dict.fromkeys([*(given if options.side_rows else ()), *read]))
    schema = arrow_schema(df.schema, names)
    row = pa.schema([schema.field(name) for name in given if name in names])
    if df.isStreaming:
        _check_stream(query, df, options)
    elif settings.trigger is not None:
        raise QueryError(f"early rows ({settings.trigger}) are for streams: in a batch, all events are there")
    elif settings.max_ahead is not None:
        raise QueryError("max_ahead is for streams: in a batch, no watermark says what is too far ahead")
    operator = Operator(query, settings)
    operator.prepare(schema)
    result = result_schema(operator.engines[0].result_schema, row, side_rows=options.side_rows)
    path = choose(
        query,
        settings,
        schema,
        df,
        path=options.path,
        side_rows=options.side_rows,
        watermark=options.watermark or _ending(query),
    )
    buckets, by_partition = options.buckets_of(keyed=bool(query.key)), False
    if df.isStreaming and query.key and options.buckets is None:
        buckets, by_partition = int(conf(df, PARTITIONS)), True
    task = Task(query, settings, schema, result, path.combine, options.side_rows, buckets, by_partition)
    return Plan(task, path, options, df)


def _ending(query: QuerySpec) -> str:
    """The column that the watermark is about: an event is known once it is over."""
    return query.time.end if isinstance(query.time, Span) else query.time


def _check_stream(query: QuerySpec, df: DataFrame, options: SparkOptions) -> None:
    time = _ending(query)
    require_watermark(df, options.watermark or time, time, without="no window would ever end", late="events")
    require_one_learner(query.time, query.key, options.buckets)
    require_streamable(df)


def _batch(df: DataFrame, plan: Plan) -> DataFrame:
    task = plan.task
    rows = scattered(_in_buckets(df, task), task)
    if opens(task.query) and task.buckets > 1:
        latest = rows.mapInArrow(gather_latest(task), f"{LATEST} long").agg(sf.max(LATEST))
        rows = rows.select("*", latest.scalar().alias(LATEST))
    return rows.mapInArrow(gather(task), spark_schema(task.result))


def _pushed_down(df: DataFrame, plan: Plan) -> DataFrame:
    task = plan.task
    if plan.path.without_python:
        found = jvm_windows.windows(task, df)
        return marked(appended(found)) if plan.path.streaming else found
    slices = pushdown.slices(task.query, task.schema, df)
    slices = by_bucket(slices.select("*", bucket_of(task.query.key, task.buckets)), BUCKET, task.buckets)
    return numbered(slices).mapInArrow(gather_slices(task), spark_schema(task.result))


def _stream(df: DataFrame, plan: Plan) -> DataFrame:
    rows = _in_buckets(df, plan.task)
    return streamed(rows, plan.task, metrics=plan.options.metrics, counted=("events", "late", "bad"))


def _in_buckets(df: DataFrame, task: Task) -> DataFrame:
    """The columns that travel, and the bucket of each row."""
    return df.select(*map(named, task.schema.names), bucket_of(task.query.key, task.buckets))

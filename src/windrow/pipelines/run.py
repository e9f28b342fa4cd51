"""A pipeline at work: source -> watermark -> (dedupe) -> query -> sink, as one Spark stream.

    with session(pipeline) as spark:
        start(spark, pipeline).awaitTermination()

State, offsets and what the sink has got are in one checkpoint: a pipeline that was stopped, or killed, goes on from
there, and each window is in the sink once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import TimestampType

from windrow.errors import QueryError
from windrow.options import SparkOptions
from windrow.pipelines.dedupe import dedupe
from windrow.pipelines.heartbeat import with_watermark
from windrow.pipelines.kafka import read_kafka, to_kafka
from windrow.pipelines.skew import not_ahead
from windrow.pipelines.spec import (
    TABLES,
    ConsoleSink,
    DeltaSink,
    FileSource,
    IcebergSink,
    KafkaSink,
    KafkaSource,
    ParquetSink,
    Pipeline,
    PostgresSink,
    ReplaySource,
)
from windrow.spark.frame import on_spark
from windrow.spark.schema import require_names
from windrow.spark.stages import PROVIDER

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from windrow.pipelines.upsert import Target

ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def session(
    pipeline: Pipeline, *, master: str | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session for a pipeline: on `master`, or where Spark is set up to run, which is `local[*]` if nowhere else.

    What a stream of windrow needs is set; `settings` of the pipeline and then those given here have the last word.

    >>> def run(pipeline):
    ...     with session(pipeline, master="local[2]") as spark:
    ...         start(spark, pipeline).awaitTermination()
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers run what we run
    chosen = {
        PROVIDER: ROCKS,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master is None or master.startswith("local"):
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    chosen |= {**pipeline.settings, **(settings or {})}
    uses_kafka = isinstance(pipeline.source, KafkaSource) or isinstance(pipeline.sink, KafkaSink)
    if uses_kafka and not {"spark.jars", "spark.jars.packages"} & set(chosen):
        from windrow.pipelines.jars import spark_jars

        chosen["spark.jars"] = spark_jars()
    builder = SparkSession.builder.appName(pipeline.name)
    builder = builder if master is None else builder.master(master)
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def start(spark: SparkSession, pipeline: Pipeline) -> StreamingQuery:
    """The pipeline as a running stream; whatever can be wrong with it is an error before it starts."""
    writer = _written(windows(spark, pipeline), pipeline).queryName(pipeline.name)
    if pipeline.checkpoint is not None:
        writer = writer.option("checkpointLocation", pipeline.checkpoint)
    if pipeline.trigger == "available_now":
        writer = writer.trigger(availableNow=True)
    elif pipeline.trigger is not None:
        writer = writer.trigger(processingTime=pipeline.trigger)
    return writer.start()


def windows(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """The windows of a pipeline as a stream, before they meet the sink."""
    options = SparkOptions(watermark=_watermark(pipeline), **pipeline.options)
    return on_spark(pipeline.query, events(spark, pipeline), options)


def events(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """The events of a pipeline as a stream: with a watermark, and each once if that was asked for."""
    found = _read(spark, pipeline)
    time, mark = _watermark(pipeline), pipeline.watermark
    require_names(found, [time])
    if not isinstance(found.schema[time].dataType, TimestampType):
        raise QueryError(
            f"a watermark needs a column of type timestamp, and {time!r} is {found.schema[time].dataType.simpleString()}"
        )
    if mark.max_ahead is not None:
        on_bad = pipeline.options.get("on_bad", "raise")
        found = not_ahead(found, time=time, max_ahead=mark.max_ahead, on_bad=on_bad)
    if mark.idle is None:
        marked = found.withWatermark(time, mark.delay)
    else:
        marked = with_watermark(spark, found, time=time, delay=mark.delay, idle=mark.idle)
    if pipeline.dedupe is None:
        return marked
    return dedupe(marked, id=pipeline.dedupe.id, horizon=pipeline.dedupe.horizon)


def _watermark(pipeline: Pipeline) -> str:
    """The column with the watermark: a span event is known when it has ended."""
    time = pipeline.query.time
    return pipeline.watermark.on or (time if isinstance(time, str) else time.end)


def _read(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    source = pipeline.source
    if isinstance(source, KafkaSource):
        return read_kafka(spark, on_bad=pipeline.options.get("on_bad", "raise"), **vars(source))
    if isinstance(source, ReplaySource):
        return _replayed(spark, source)
    return _files(spark, source)


def _replayed(spark: SparkSession, source: ReplaySource) -> DataFrame:
    from windrow.pipelines.replay import NAME, register  # the one part that needs PySpark 4.2

    register(spark)
    given = {name: value for name, value in vars(source).items() if name != "file" and value is not None}
    return spark.readStream.format(NAME).options(**given).load(source.file)


def _files(spark: SparkSession, source: FileSource) -> DataFrame:
    schema: Any = source.schema
    if schema is None:
        try:
            schema = spark.read.parquet(source.folder).schema
        except PySparkException:
            raise QueryError(
                f"{source.folder} holds no Parquet file that tells the columns: give the source a schema"
            ) from None
    reader = spark.readStream.format(source.format).schema(schema).options(**source.options)
    if source.max_files is not None:
        reader = reader.option("maxFilesPerTrigger", source.max_files)
    return reader.load(source.folder)


def _written(found: DataFrame, pipeline: Pipeline) -> DataStreamWriter:
    """The sink; a changelog only grows, so rows are appended in either mode."""
    sink, query = pipeline.sink, pipeline.query
    if isinstance(sink, KafkaSink):
        messages = to_kafka(found, query, topic=sink.topic, bad_topic=sink.bad_topic)
        writer = messages.writeStream.format("kafka").option("kafka.bootstrap.servers", sink.servers)
        return writer.options(**sink.options)
    if isinstance(sink, ParquetSink):
        return found.writeStream.format("parquet").option("path", sink.folder).options(**sink.options)
    if isinstance(sink, TABLES):
        from windrow.pipelines.upsert import upsert

        return found.writeStream.foreachBatch(upsert(query, _target(sink), stream=pipeline.name))
    return found.writeStream.foreachBatch(_printed(sink))


def _target(sink: PostgresSink | DeltaSink | IcebergSink) -> Target:
    """The table of a sink; what writes it is imported where it is asked for."""
    if isinstance(sink, PostgresSink):
        from windrow.pipelines.postgres import Postgres

        return Postgres(dsn=sink.dsn, table=sink.table)
    if isinstance(sink, DeltaSink):
        from windrow.pipelines.delta import Delta

        return Delta(sink.location, sink.options)
    from windrow.pipelines.iceberg import Iceberg

    return Iceberg(sink.table, sink.catalog, sink.options)


def _printed(sink: ConsoleSink) -> Callable[[DataFrame, int], None]:
    """Prints the first rows of each micro-batch that has some."""

    def show(batch: DataFrame, number: int) -> None:
        table = batch.limit(sink.rows).toArrow()
        if table.num_rows:
            print(f"batch {number}", *(_line(row) for row in table.to_pylist()), sep="\n", flush=True)

    return show


def _line(row: Mapping[str, Any]) -> str:
    return "  ".join(f"{name}={value}" for name, value in row.items() if value is not None)

"""Events from Kafka as typed columns, and windows to Kafka as keyed messages.

    topic -> read_kafka -> withWatermark -> query.on_spark -> to_kafka -> topic

*In*: each message is an event, as JSON or as Avro. One that is neither is poison: it stops the stream with an error that
says where it lies, or is set aside, as a row without a time which the query counts as bad. New partitions of a topic
are read from their start.

*Out*: a message's key is the identity of the window (key, window, start, end), its value the row, both JSON. In update mode a
window that is deleted is a tombstone: a message without value. Spark writes to Kafka at least once; a micro-batch that is
written again has the same keys and values, in the same order for each key: so a compacted topic, and any reader that
keeps the last value of each key, has every window exactly once. (Windows that depend on the order of events may share
start and end where their events have equal times; of those, compaction keeps the last.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StringType, StructField, StructType

from windrow.durations import DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.pipelines.columns import avro_columns
from windrow.pipelines.identity import as_json, identity_columns, require_windows
from windrow.pipelines.spec import BAD_JSON, GOOD_AVRO, IN_KAFKA, POISON, SIDE
from windrow.spec import QuerySpec


def read_kafka(
    spark: SparkSession,
    *,
    servers: str,
    topic: str,
    schema: str,
    format: str = "json",
    on_bad: str = "raise",
    starting: str = "earliest",
    max_rows: int | None = None,
    patience: DurationLike = "2 minutes",
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The events of a topic as a stream of the columns of `schema`.

    Parameters
    ----------
    spark
        The session; Spark's connector for Kafka must be among its jars.
    servers
        The brokers: `"host:port,host:port"`.
    topic
        The topic.
    schema
        Columns and their types (`"ts timestamp, user string, amount double"`) for JSON; for Avro an Avro schema.
    format
        "json" (default) or "avro".
    on_bad
        "raise" (default) stops at a message that cannot be read. "divert" makes a row of it in which all columns are null but
        `poison`: a struct of reason, topic, partition, offset, key and value.
    starting
        Where a stream without a checkpoint begins: "earliest" (default) or "latest".
    max_rows
        How many messages a micro-batch has at most; None (default) is no limit.
    patience
        How long a broker that is away is waited for; two minutes by default.
    options
        Options of Spark's own reader, which win over these.

    Returns
    -------
    DataFrame
        A stream.

    Raises
    ------
    QueryError
        If `on_bad`, `format` or `schema` makes no sense.

    Examples
    --------
    >>> def events(spark):
    ...     columns = "ts timestamp, user string, amount double"
    ...     return read_kafka(spark, servers="localhost:9092", topic="orders", schema=columns)
    """
    if on_bad not in ("raise", "divert"):
        raise QueryError(f"on_bad must be raise or divert, not {on_bad!r}")
    read = _reader(format, schema)
    reader = spark.readStream.format("kafka").option("subscribe", topic)
    settings = {**_patient(servers, patience), "startingOffsets": starting, **(options or {})}
    reader = reader.options(**settings)
    if max_rows is not None:
        reader = reader.option("maxOffsetsPerTrigger", str(max_rows))
    return _events(reader.load(), read, on_bad, f"it is not {format} of the schema")


def _patient(servers: str, patience: DurationLike) -> dict[str, str]:
    """Kafka's clients connect again by themselves; these say for how long they try."""
    limit = parse_duration(patience, what="patience").nanoseconds
    if limit is None or limit <= 0:
        raise QueryError(f"patience must be a duration longer than zero, not {patience!r}")
    milliseconds = str(max(1, limit // 1_000_000))
    request = str(min(30_000, limit // 1_000_000))
    return {
        "kafka.bootstrap.servers": servers,
        "kafka.default.api.timeout.ms": milliseconds,
        "kafka.request.timeout.ms": request,
        "kafkaConsumer.pollTimeoutMs": milliseconds,
        "fetchOffset.numRetries": "3",
    }


class _Reader:
    """How a message becomes a struct of the columns in `names`; `is_bad` tells of the struct whether it could."""

    def __init__(self, names: list[str], struct: Column, is_bad: Column) -> None:
        taken = {*IN_KAFKA} & {*names}
        if taken:
            raise QueryError(f"an event cannot have a column called {', '.join(sorted(taken))}")
        self.names = names
        self.struct = struct
        self.is_bad = is_bad


def _reader(format: str, schema: str) -> _Reader:
    if format == "json":
        return _json_reader(schema)
    if format == "avro":
        return _avro_reader(schema)
    raise QueryError(f"format must be json or avro, not {format!r}")


def _json_reader(schema: str) -> _Reader:
    columns = StructType.fromDDL(schema)
    assert isinstance(columns, StructType)
    wanted = StructType([*columns.fields, StructField(BAD_JSON, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD_JSON, "timeZone": "UTC"}
    struct = sf.from_json(sf.col("value").cast("string"), wanted, options)
    return _Reader(columns.names, struct, sf.col(f"event.{BAD_JSON}").isNotNull())


def _avro_reader(schema: str) -> _Reader:
    """Spark reads a bad record as one of nulls: a field with a default, which no writer has, tells the two apart."""
    names, written = avro_columns(schema).names, json.loads(schema)
    mark = {"name": GOOD_AVRO, "type": "boolean", "default": True}
    read = json.dumps({**written, "fields": [*written["fields"], mark]})
    struct = from_avro(sf.col("value"), schema, {"mode": "PERMISSIVE", "avroSchema": read})
    return _Reader(names, struct, sf.col(f"event.{GOOD_AVRO}").isNull())


def _events(messages: DataFrame, read: _Reader, on_bad: str, reason: str) -> DataFrame:
    place = ["topic", "partition", "offset"]
    rows = messages.select(*place, "key", "value", read.struct.alias("event"))
    is_bad = sf.col("event").isNull() | read.is_bad
    reason_ = sf.when(sf.col("value").isNull(), "it has no value").otherwise(reason)
    if on_bad == "raise":
        shown = sf.regexp_replace(sf.col("value").cast("string"), r"\s+", " ")  # an error is one line
        said = sf.concat(
            sf.format_string("topic %s, partition %d, offset %d: this message cannot be read, ", *place),
            reason_,
            sf.lit(": "),
            sf.coalesce(sf.substring(shown, 1, 80), sf.lit("null")),
            sf.lit("; on_bad='divert' counts such messages and goes on"),
        )
        checked = sf.when(is_bad, sf.raise_error(said)).otherwise(sf.col("event"))
        return rows.select(checked.alias("event")).select(*_fields(read))
    poison = sf.struct(reason_.alias("reason"), *place, "key", "value")
    checked = sf.when(~is_bad, sf.col("event"))
    return rows.select(checked.alias("event"), sf.when(is_bad, poison).alias(POISON)).select(
        *_fields(read), POISON
    )


def _fields(read: _Reader) -> list[Column]:
    return [sf.col("event").getField(name).alias(name) for name in read.names]


def to_kafka(df: DataFrame, query: QuerySpec, *, topic: str, bad_topic: str | None = None) -> DataFrame:
    """The windows of a query as messages: columns `topic`, `key` and `value`, for `writeStream.format("kafka")`.

    Parameters
    ----------
    df
        What `query.on_spark` gives.
    query
        The query; the key of a message is the window's identity, so that a topic can be compacted.
    topic
        Where windows go.
    bad_topic
        Where late and bad rows go, which `side_rows=True` adds to the windows; None (default) where there are none.

    Returns
    -------
    DataFrame
        A stream of messages.

    Raises
    ------
    QueryError
        If the columns are not those of the query, or one of `side_rows` and `bad_topic` is missing.

    Examples
    --------
    >>> def start(windows, query):
    ...     messages = to_kafka(windows, query, topic="totals")
    ...     writer = messages.writeStream.format("kafka").option("kafka.bootstrap.servers", "localhost:9092")
    ...     return writer.option("checkpointLocation", "state/").start()
    """
    require_windows(df, query)
    has_sides = "side" in df.columns
    if has_sides != (bad_topic is not None):
        raise QueryError(
            "late and bad rows need side_rows=True in the query and a bad_topic here, or neither"
        )
    names = [name for name in df.columns if name not in SIDE]
    value = as_json(names)
    if "op" in names:
        value = sf.when(sf.col("op") != "delete", value)
    key, target = as_json(identity_columns(query)), sf.lit(topic)
    if has_sides:
        is_side, side = sf.col("side").isNotNull(), as_json(list(SIDE))
        key = sf.when(is_side, sf.sha2(side, 256)).otherwise(key)
        value = sf.when(is_side, side).otherwise(value)
        target = sf.when(is_side, sf.lit(bad_topic)).otherwise(target)
    return df.select(target.alias("topic"), key.alias("key"), value.alias("value"))

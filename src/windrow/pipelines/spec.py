"""A pipeline as a frozen value: where events come from, what is computed of them, where windows go.

    source -> watermark -> (dedupe) -> query -> sink          and a checkpoint that remembers how far it got

A file says it (see `schema.load`), or Python does; `run.start` runs it. Nothing here needs Spark. The classes are also
the schema of the file: the fields of each, their types and their defaults are those of the YAML.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypeAlias

from windrow.durations import DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.spec import QuerySpec

# Columns and their types as Spark SQL writes them: ts timestamp, user string. In a file also as a mapping.
Columns: TypeAlias = str
# Columns that are added: to bad events, to late and bad rows, and to a table of windows.
AHEAD, POISON = "ahead", "poison"
BAD_JSON, GOOD_AVRO = "windrow_bad_json", "windrow_good_avro"
IN_KAFKA = (POISON, BAD_JSON, GOOD_AVRO)
SIDE = ("side", "side_reason", "side_row")
# What a row of a table is known by, as one value: of fixed length, and equal also where keys are null.
IDENTITY, ORDER = "identity", "change_number"
IN_TABLE = (IDENTITY, ORDER, "last")
# A length of time that Spark has to understand, too: a text such as "10 seconds".
Length: TypeAlias = str


@dataclass(frozen=True)
class KafkaSource:
    """Events of a topic, as JSON or Avro."""

    topic: str
    _: KW_ONLY
    servers: str
    schema: Columns
    format: Literal["json", "avro"] = "json"
    starting: Literal["earliest", "latest"] = "earliest"
    max_rows: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FileSource:
    """Files as they appear in a folder; at most `max_files` of them in a micro-batch."""

    folder: str
    _: KW_ONLY
    format: Literal["parquet", "json", "csv"] = "parquet"
    schema: Columns | None = None
    max_files: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.schema is None and self.format != "parquet":
            raise QueryError(f"a {self.format} source needs a schema, such as: ts timestamp, user string")


@dataclass(frozen=True)
class ReplaySource:
    """The rows of one Parquet or CSV file as a stream; see `replay`."""

    file: str
    _: KW_ONLY
    rate: float | None = None
    disorder: float = 0.0
    delay: Length = "0 seconds"
    time: str | None = None
    seed: int = 0
    max_rows: int | None = None
    partitions: int = 2


@dataclass(frozen=True)
class KafkaSink:
    """Windows as JSON messages, with a key by which a topic can be compacted; side rows go to `bad_topic`."""

    topic: str
    _: KW_ONLY
    servers: str
    bad_topic: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ParquetSink:
    """A folder of Parquet files, each window in it once."""

    folder: str
    _: KW_ONLY
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PostgresSink:
    """A table of PostgreSQL in which each window is one row, kept up to date."""

    table: str
    _: KW_ONLY
    dsn: str


@dataclass(frozen=True)
class DeltaSink:
    """A Delta table in which each window is one row, kept up to date; `options` are those of its store of objects."""

    location: str
    _: KW_ONLY
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class IcebergSink:
    """A table in a catalog of Iceberg in which each window is one row, kept up to date; `options` are those of the catalog."""

    table: str
    _: KW_ONLY
    catalog: str = "default"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ConsoleSink:
    """The first rows of each micro-batch, on standard output."""

    rows: int = 20


Source: TypeAlias = KafkaSource | FileSource | ReplaySource
Sink: TypeAlias = KafkaSink | ParquetSink | PostgresSink | DeltaSink | IcebergSink | ConsoleSink
# Sinks whose rows have an `identity`.
TABLES = (PostgresSink, DeltaSink, IcebergSink)


@dataclass(frozen=True)
class Watermark:
    """How late events may be, on the column `on` (the time column unless named).

    Events more than `max_ahead` ahead of the clock are bad rows and do not move the watermark: a single one dated 2099
    would make all others late. With `idle` the watermark stays at most that far behind the clock, though no events come.
    """

    delay: Length
    _: KW_ONLY
    on: str | None = None
    max_ahead: Length | None = "1 day"
    idle: Length | None = None

    def __post_init__(self) -> None:
        if milliseconds(self.delay, what="delay") < 0:
            raise QueryError(f"delay must not be negative, but is {self.delay!r}")
        if self.max_ahead is not None and milliseconds(self.max_ahead, what="max_ahead") <= 0:
            raise QueryError(f"max_ahead must be longer than zero, not {self.max_ahead!r}")
        if self.idle is not None and milliseconds(self.idle, what="idle") <= 0:
            raise QueryError(f"idle must be longer than zero, not {self.idle!r}")


@dataclass(frozen=True)
class Dedupe:
    """Of events with the same `id` within the horizon, the first counts."""

    id: str
    _: KW_ONLY
    horizon: Length

    def __post_init__(self) -> None:
        if milliseconds(self.horizon, what="horizon") <= 0:
            raise QueryError(f"horizon must be longer than zero, not {self.horizon!r}")


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """All of it. `options` are those of `Query.on_spark`, `settings` those of the Spark session.

    `trigger` is None for micro-batches one after the other, "available_now" for all that is there and then the end,
    or how often a micro-batch begins.
    """

    source: Source
    query: QuerySpec
    sink: Sink
    watermark: Watermark
    options: Mapping[str, Any] = field(default_factory=dict)
    dedupe: Dedupe | None = None
    checkpoint: str | None = None
    trigger: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    name: str = "windrow"

    def __post_init__(self) -> None:
        if self.checkpoint is None and not isinstance(self.sink, ConsoleSink):
            raise QueryError("a checkpoint is needed: a folder from which the pipeline goes on after a stop")
        if self.options.get("side_rows") and isinstance(self.sink, KafkaSink) and self.sink.bad_topic is None:
            raise QueryError("side_rows need a bad_topic in the sink, for late and bad rows")
        emit = self.options.get("emit", "close")
        if isinstance(self.sink, TABLES) and not isinstance(emit, str) and emit.discarding:
            raise QueryError(
                "a table has one row for each window, and rows that add up (discarding) are several: use another sink"
            )
        if self.dedupe is not None and parse_duration(self.options.get("lateness", 0)).magnitude:
            raise QueryError(
                "with dedupe, rows behind the watermark are dropped before they can be late: "
                "give the time to the delay of the watermark instead of lateness"
            )
        if self.trigger is not None:
            require_trigger(self.trigger)
        if self.watermark is not None and self.watermark.idle is not None:
            self._require_clock()

    def _require_clock(self) -> None:
        """An error where events are not of the present, and a watermark by the clock would make them late."""
        if self.trigger == "available_now" or isinstance(self.source, ReplaySource):
            what = "a recording" if isinstance(self.source, ReplaySource) else 'trigger "available_now"'
            raise QueryError(
                f"idle goes by the clock, and with {what} events are older than that: all of them would be late. Leave out idle"
            )


SOURCES = {"kafka": KafkaSource, "files": FileSource, "replay": ReplaySource}
SINKS = {
    "kafka": KafkaSink,
    "parquet": ParquetSink,
    "postgres": PostgresSink,
    "delta": DeltaSink,
    "iceberg": IcebergSink,
    "console": ConsoleSink,
}


def require_trigger(trigger: str) -> None:
    """A QueryError unless micro-batches can begin like that."""
    if trigger != "available_now":
        milliseconds(trigger, what="trigger")


def milliseconds(duration: DurationLike, *, what: str) -> int:
    """A length of time as Spark wants it: in whole milliseconds.

    >>> milliseconds("1 minute 30 seconds", what="delay")
    90000
    """
    nanoseconds = parse_duration(duration, what=what).nanoseconds
    if nanoseconds is None or nanoseconds % 1_000_000:
        raise QueryError(
            f'{what} must be a length of time in whole milliseconds, such as "10 seconds", not {duration!r}'
        )
    return nanoseconds // 1_000_000

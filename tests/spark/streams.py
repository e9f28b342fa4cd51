"""Streams for tests: tables become files, each file one micro-batch, each with a watermark of its own.

Spark derives its watermark from a column. Tests want to set it, also where no event comes; so each file has
rows that only carry the watermark, which a filter takes out before the query sees them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tests.referee import Answers, ReferenceOperator
from windrow.query import Query

# All variants of everything, not some of each.
NIGHTLY = os.environ.get("WINDROW_NIGHTLY") == "1"
WATERMARK = "watermark"
REAL = "is_real"


@dataclass(frozen=True)
class Step:
    """A micro-batch: events, and the watermark in milliseconds that holds from the next micro-batch on."""

    events: pa.Table
    watermark: int


@dataclass(frozen=True)
class Output:
    """All that a stream gives out: windows, late rows, and bad rows with their reasons."""

    answers: Answers
    late: pa.Table
    bad: pa.Table

    @property
    def table(self) -> pa.Table:
        """The windows, as the embedded engine would return them."""
        return self.answers.table()


def expected(query: Query, steps: Sequence[Step], **options: Any) -> Output:
    """What the referee gives out if it is driven as Spark drives the operators of a stream.

    The watermark of a micro-batch is what the earlier ones brought, and is applied behind its rows. A micro-batch
    without rows comes last.
    """
    operator = ReferenceOperator(query, **options)
    schema = steps[0].events.schema
    operator.process(schema.empty_table())
    given: list[Answers] = []
    holds = 0
    for step in [*steps, Step(schema.empty_table(), 0)]:
        operator.process(step.events)
        _advance(operator, schema.field(query.time_columns[0]).type, holds, given)
        holds = max(holds, step.watermark)
    rows = [row for answers in given for row in answers]
    if not given:
        operator.finish()
        given = [replace(_answers(operator), rows=[])]
    return Output(replace(given[0], rows=rows), operator.late(), operator.bad())


def _advance(operator: ReferenceOperator, time: pa.DataType, watermark: int, given: list[Answers]) -> None:
    if not watermark:
        return
    point: Any = watermark
    if pa.types.is_temporal(time):
        point = pa.array([watermark], pa.timestamp("ms", getattr(time, "tz", None))).cast(time)[0]
    operator.advance(point)
    given.append(_answers(operator))


def _answers(operator: ReferenceOperator) -> Answers:
    assert operator.answers is not None
    return operator.answers


def write_step(folder: Path, number: int, step: Step) -> None:
    """One file of the source; files are read in the order of their times, which are their numbers."""
    marks = step.events.schema.empty_table()
    marker = pa.table({f.name: pa.nulls(1, f.type) for f in step.events.schema}, schema=marks.schema)
    rows = pa.concat_tables([step.events, marker])
    moment = pa.array([step.watermark] * len(rows), pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
    real = pa.array([True] * len(step.events) + [False])
    rows = rows.append_column(WATERMARK, moment).append_column(REAL, real)
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{number}.draft"
    pq.write_table(rows, draft)
    path = draft.rename(folder / f"{number:05}.parquet")
    stamp = datetime(2024, 1, 1, tzinfo=UTC).timestamp() + number
    os.utime(path, (stamp, stamp))


def source(spark: Any, folder: Path, *, files_per_batch: int = 1) -> Any:
    """The events of the files in a folder as a stream that carries the watermark of the files."""
    from pyspark.sql import functions as sf

    schema = spark.read.parquet(str(folder)).schema
    stream = (
        spark.readStream.schema(schema).option("maxFilesPerTrigger", files_per_batch).parquet(str(folder))
    )
    marked = stream.withWatermark(WATERMARK, "0 seconds")
    # A condition on the watermark's own column stays behind the watermark; others are moved before it.
    return marked.filter(sf.expr(f"if(`{WATERMARK}` is null, false, `{REAL}`)"))


def by_time(stream: Any, time: str) -> Any:
    """A stream whose time column tells the watermark, too, as far as Spark can see."""
    return stream.withMetadata(time, {"spark.watermarkDelayMs": 0})


def run_stream(spark: Any, folder: Path, query: Query, steps: Sequence[Step], **options: Any) -> pa.Table:
    """Everything that a stream over these micro-batches gives out."""
    df = stream_of(spark, folder, steps)
    return drained(query.on_spark(df, watermark=WATERMARK, **options), folder)[0]


def stream_of(spark: Any, folder: Path, steps: Sequence[Step]) -> Any:
    """These micro-batches as a stream."""
    for number, step in enumerate(steps):
        write_step(folder / "source", number, step)
    return source(spark, folder / "source")


def drained(result: Any, folder: Path) -> tuple[pa.Table, list[Any]]:
    """Everything that a stream gives out until its source has no more, and its reports of progress."""
    spark = result.sparkSession
    name = "result_" + folder.name.replace("-", "_")
    writer = result.writeStream.format("memory").queryName(name).outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    running = writer.trigger(availableNow=True).start()
    try:
        running.awaitTermination()
        progress = list(running.recentProgress)
    finally:
        running.stop()
    table = spark.table(name).toArrow()
    spark.catalog.dropTempView(name)
    return table, progress


def like(expected: pa.Table, got: pa.Table) -> pa.Table:
    """What Spark gave in the types of an embedded result: it knows no dictionaries, and labels zones itself."""
    assert got.column_names == expected.column_names
    columns = [
        column.dictionary_encode() if pa.types.is_dictionary(field.type) else column.cast(field.type)
        for field, column in zip(expected.schema, got.columns, strict=True)
    ]
    return pa.table(columns, schema=expected.schema)


def apart(got: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Windows, late rows, and bad rows with their reasons, of a result with side rows."""
    side = got["side"]
    windows = got.filter(pc.is_null(side)).drop_columns(["side", "side_reason", "side_row"])
    rows = [got.filter(pc.equal(side, which)) for which in ("late", "bad")]
    names = got.schema.field("side_row").type.names
    late, bad = (
        pa.table([pc.struct_field(found["side_row"], name) for name in names], names=names) for found in rows
    )
    return windows, late, bad.append_column("bad_reason", rows[1]["side_reason"])


def plain_rows(table: pa.Table) -> list[str]:
    """Rows to compare, in any order, nan with nan; Spark labels instants with a zone of its own."""
    fields = [
        field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return sorted(map(repr, table.cast(pa.schema(fields)).to_pylist()))

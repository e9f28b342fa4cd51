"""A pipeline whose source falls silent gives its windows out by the clock, and goes on when events come again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from patience import PATIENCE

import windrow as wr
from windrow.errors import QueryError
from windrow.pipelines.run import start
from windrow.pipelines.spec import FileSource, ParquetSink, Pipeline, ReplaySource, Watermark

QUERY = wr.query(time="ts", key="user", windows={"w": wr.tumbling("1 second")}, aggregates={"n": wr.count()})


def write(folder: Path, name: str, moment: datetime, *users: str) -> None:
    """Events of one instant, as a file that appears at once."""
    columns = {"ts": pa.array([moment] * len(users), pa.timestamp("us", "UTC")), "user": list(users)}
    draft = folder.parent / name
    pq.write_table(pa.table(columns), draft)
    draft.rename(folder / name)


def pipeline(folder: Path, **options: Any) -> Pipeline:
    return Pipeline(
        source=FileSource(str(folder / "in"), schema="ts timestamp, user string"),
        query=QUERY,
        sink=ParquetSink(str(folder / "out")),
        watermark=Watermark("0 seconds", idle="2 seconds"),
        checkpoint=str(folder / "checkpoint"),
        options={"buckets": 2},
        **options,
    )


def until(running: Any, found: Callable[[], set[tuple[str, int]]], wanted: set[tuple[str, int]]) -> None:
    """Wait for windows, as long as the stream runs."""
    end = monotonic() + PATIENCE
    while found() != wanted:
        assert monotonic() < end
        assert not running.awaitTermination(1)


def test_windows_of_a_silent_source_come_out(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    now = datetime.now(UTC)
    write(tmp_path / "in", "1.parquet", now, "ann", "ann", "bob")

    def found() -> set[tuple[str, int]]:
        out = tmp_path / "out"
        if not (out / "_spark_metadata").exists():
            return set()
        rows = spark.read.schema("user string, n long").parquet(str(out)).collect()
        return {(row["user"], row["n"]) for row in rows}

    running = start(spark, pipeline(tmp_path))
    try:
        until(running, found, {("ann", 2), ("bob", 1)})
        write(tmp_path / "in", "2.parquet", now + timedelta(hours=1), "cyd")
        write(tmp_path / "in", "3.parquet", now + timedelta(hours=2), "dan")
        until(running, found, {("ann", 2), ("bob", 1), ("cyd", 1)})
    finally:
        running.stop()


def test_idle_is_refused_where_events_are_of_the_past(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="all of them would be late"):
        pipeline(tmp_path, trigger="available_now")
    with pytest.raises(QueryError, match="a recording"):
        Pipeline(
            source=ReplaySource("flights.parquet"),
            query=QUERY,
            sink=ParquetSink("out"),
            watermark=Watermark("0 seconds", idle="2 seconds"),
            checkpoint="checkpoint",
        )
    with pytest.raises(QueryError, match="idle must be longer than zero"):
        Watermark("0 seconds", idle="0 seconds")

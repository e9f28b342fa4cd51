"""The table of an upsert sink is what its changelog says, whatever is applied twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from changelogs import NAMES, TYPES, Row, changelogs, changes
from hypothesis import given
from hypothesis import strategies as st
from jobs import COLUMNS, QUERY, Job, answer, counted, last, messages, orders, stored
from pyspark.sql.types import DoubleType
from servers import Kafka, PostgresServer

from windrow.errors import QueryError, StateError
from windrow.pipelines.postgres import Postgres
from windrow.pipelines.upsert import Batch, Changes, upsert
from windrow.testing import replay

UNIQUE = count()


@pytest.fixture(scope="module")
def database(postgres_server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        yield connection


def rows_of(database: psycopg.Connection[Any], table: str, columns: list[str]) -> list[str]:
    names = ", ".join(f'"{name}"' for name in columns)
    return sorted(map(repr, database.execute(f"SELECT {names} FROM {table}").fetchall()))


@given(log=changelogs(), cuts=st.lists(st.integers(0, 30), max_size=3), data=st.data())
def test_a_table_is_what_its_changelog_says_also_where_batches_are_applied_twice(
    database: psycopg.Connection[Any],
    postgres_server: PostgresServer,
    log: list[Row],
    cuts: list[int],
    data: Any,
) -> None:
    name = f"random_{next(UNIQUE)}"
    target = Postgres(postgres_server.dsn, table=name)
    edges = [0, *sorted(min(cut, len(log)) for cut in cuts), len(log)]
    for number, (begin, end) in enumerate(pairwise(edges)):
        for _ in range(data.draw(st.integers(1, 2), label="how often")):
            target.apply(Batch(name, number, "c"), changes(log[begin:end]))
    stored = [n for n in NAMES if n != "revision"]
    wanted = replay(changes(log).rows.select(list(TYPES)))
    assert rows_of(database, name, stored) == sorted(
        map(repr, zip(*wanted.select(stored).to_pydict().values(), strict=True))
    )


def test_a_batch_that_cannot_follow_is_refused_and_changes_nothing(
    database: psycopg.Connection[Any], postgres_server: PostgresServer
) -> None:
    target = Postgres(postgres_server.dsn, table="refused")
    row = {"k": "a", "window": "w", "start": 0, "end": 5, "x": 1.0, "op": "insert", "revision": 0}
    target.apply(Batch("refused", 0, "one"), changes([row]))
    for number, checkpoint in ((0, "two"), (2, "one"), (1, "two")):
        with pytest.raises(StateError, match="stream 'refused' has applied micro-batches up to 0"):
            target.apply(Batch("refused", number, checkpoint), changes([row]))
    lacks = Changes(
        changes([row]).rows.append_column("y", pa.array([1.0])), None, {**TYPES, "y": DoubleType()}
    )
    with pytest.raises(QueryError, match="is there and has no column y"):
        target.apply(Batch("refused", 1, "one"), lacks)
    assert rows_of(database, "refused", ["k", "x"]) == ["('a', 1.0)"]
    assert rows_of(database, "windrow_batches WHERE stream = 'refused'", ["batch"]) == ["(0,)"]


def test_windows_that_are_of_no_stream_are_refused(spark: Any, postgres_server: PostgresServer) -> None:
    """Without a checkpoint nobody can say whether a batch was applied."""
    windows = QUERY.on_spark(spark.createDataFrame(orders(3).to_pylist(), COLUMNS))
    with pytest.raises(QueryError, match="only a stream can be applied"):
        upsert(QUERY, Postgres(postgres_server.dsn, table="none"), stream="none")(windows, 0)


def test_a_stream_keeps_the_table_equal_to_its_windows(
    spark: Any,
    kafka_server: Kafka,
    postgres_server: PostgresServer,
    database: psycopg.Connection[Any],
    tmp_path: Path,
) -> None:
    """In update mode, over orders in disorder, with a poison message; the last micro-batch is run twice."""
    events = orders(90, disorder=20)
    kafka_server.create("orders")
    kafka_server.produce("orders", [*messages(events)[:50], b"poison", *messages(events)[50:]])
    job = Job(
        kafka_server.servers,
        "orders",
        str(tmp_path),
        sink="postgres",
        target=postgres_server.dsn,
        delay="0 seconds",
        options={"mode": "update", "lateness": "1 hour", "on_bad": "divert", "side_rows": True},
        reading={"max_rows": 40, "on_bad": "divert"},
    )
    reports = job.run(spark)
    job.forget(job.commits()[-1])
    kafka_server.produce("orders", messages(last()))
    reports += job.run(spark)
    found = stored(database, "totals_orders")
    assert found == answer(events)
    sides = database.execute(
        "SELECT side, side_row -> 'poison' ->> 'offset' FROM totals_orders_side"
    ).fetchall()
    assert sides == [("bad", "50")]
    assert counted(reports, "bad") == 1
    known = database.execute("SELECT checkpoint FROM windrow_batches WHERE stream = 'orders'").fetchone()
    assert known == (json.loads((tmp_path / "checkpoint" / "metadata").read_text())["id"],)

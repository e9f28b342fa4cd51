"""Our sessions and Spark's own `session_window` over the same rows, edges included."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

import windrow as wr
from tests.referee import assert_same, oracle
from windrow.query import Query

SECOND = 1_000_000
Rows = Sequence[tuple[int, Any, int, int]]  # time in microseconds, key, gap in seconds, value


def drawn(seed: int, keys: Sequence[Any], *, size: int = 300, span: int = 400) -> Rows:
    """Rows on whole seconds, so that many lie exactly one gap apart and many at the same time."""
    luck = random.Random(seed)
    return [
        (luck.randrange(-span // 2, span) * SECOND, luck.choice(keys), luck.choice([1, 2, 5, 9]), i)
        for i in range(size)
    ]


STRINGS = ("anna", "bert", "", None)
FLOATS = (0.0, -0.0, math.nan, 1.5, None)
CASES: dict[str, tuple[Rows, pa.DataType]] = {
    "dense": (drawn(1, STRINGS), pa.string()),
    "sparse": (drawn(2, STRINGS, span=3_000), pa.string()),
    "float keys": (drawn(3, FLOATS), pa.float64()),
    "exactly the gap": ([(0, "a", 5, 1), (5 * SECOND, "a", 5, 2), (10 * SECOND, "a", 5, 3)], pa.string()),
    "one tick more": ([(0, "a", 5, 1), (5 * SECOND + 1, "a", 5, 2), (-1, "a", 5, 3)], pa.string()),
    "equal times": ([(7, "a", 5, i) for i in range(9)] + [(7, None, 5, 9)], pa.string()),
    "a long gap bridges short ones": (
        [(0, "a", 9, 1), (1 * SECOND, "a", 1, 2), (9 * SECOND, "a", 1, 3), (11 * SECOND, "a", 1, 4)],
        pa.string(),
    ),
}


def embedded(query: Query, table: pa.Table) -> pa.Table:
    return query.run(table)


def columns(rows: Rows, key: pa.DataType) -> pa.Table:
    time, keys, gaps, values = zip(*rows, strict=True)
    return pa.table(
        {
            "ts": pa.array(time, pa.timestamp("us", "UTC")),
            "key": pa.array(keys, key),
            "gap": pa.array([gap * SECOND for gap in gaps], pa.int64()),
            "x": pa.array(values, pa.int64()),
        }
    )


@pytest.fixture(scope="module", params=["5 seconds", None], ids=["static", "from a column"])
def gap(request: pytest.FixtureRequest) -> Any:
    """The gap of all sessions, or None where each row has its own."""
    return request.param


@pytest.fixture(scope="module")
def sparks_answers(spark: Any, gap: str | None) -> dict[str, pa.Table]:
    """What Spark says to each case; those with keys of one type are asked at once."""
    answers: dict[str, pa.Table] = {}
    for key in (pa.string(), pa.float64()):
        named = {name: rows for name, (rows, type_) in CASES.items() if type_ == key}
        result = ask_spark(spark, [(name, *row) for name, rows in named.items() for row in rows], key, gap)
        for name in named:
            answers[name] = as_table([row[1:] for row in result if row[0] == name], key)
    return answers


def ask_spark(spark: Any, rows: list[tuple[Any, ...]], key: pa.DataType, gap: str | None) -> list[Any]:
    from pyspark.sql import functions as sf

    kind = "double" if pa.types.is_floating(key) else "string"
    frame = spark.createDataFrame(rows, f"name string, us long, key {kind}, gap int, x long")
    frame = frame.withColumn("ts", sf.timestamp_micros("us"))
    length = sf.concat(sf.col("gap"), sf.lit(" seconds")) if gap is None else gap
    grouped = frame.groupBy("name", "key", sf.session_window("ts", length).alias("session"))
    result = grouped.agg(sf.count("*").alias("n"), sf.sum("x").alias("total"), sf.min("x").alias("low"))
    edges = sf.unix_micros("session.start"), sf.unix_micros("session.end")
    return [tuple(row) for row in result.select("name", "key", *edges, "n", "total", "low").collect()]


def as_table(rows: list[tuple[Any, ...]], key: pa.DataType) -> pa.Table:
    moment, number = pa.timestamp("us", "UTC"), pa.int64()
    types = {"key": key, "start": moment, "end": moment, "n": number, "total": number, "low": number}
    found = zip(*rows, strict=True)
    named = {
        name: pa.array(values, type_) for (name, type_), values in zip(types.items(), found, strict=True)
    }
    window = pa.array(["s"] * len(rows), pa.string()).dictionary_encode()
    return pa.table({"key": named.pop("key"), "window": window, **named})


@pytest.mark.parametrize("answer", [oracle, embedded], ids=["oracle", "embedded"])
@pytest.mark.parametrize("name", CASES)
def test_sessions_are_sparks_sessions(
    sparks_answers: dict[str, pa.Table],
    name: str,
    gap: str | None,
    answer: Callable[[Query, pa.Table], pa.Table],
) -> None:
    rows, key = CASES[name]
    query = wr.query(
        time="ts",
        key="key",
        windows={"s": wr.session("gap" if gap is None else gap)},
        aggregates={"n": wr.count(), "total": wr.sum("x"), "low": wr.min("x")},
    )
    assert_same(sparks_answers[name], answer(query, columns(rows, key)))

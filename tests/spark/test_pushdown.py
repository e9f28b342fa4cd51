"""Slices made by the JVM give the same answers as events; what it cannot make is named."""

from __future__ import annotations

import math
import random
import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import types as st

import windrow as wr
from tests.referee import assert_same
from tests.referee.strategies import in_ticks
from windrow.engine.exchange import slice_schema
from windrow.engine.intake.bad_rows import NO_EDGES, NO_TIME
from windrow.query import Query
from windrow.spark import pushdown

HIGH, LOW = 2**63 - 1, -(2**63)
SECOND = 1_000_000
ODD = "a.b `c` #n"
UTC = pa.timestamp("us", "UTC")


def pushed(query: Query, table: pa.Table, spark: Any) -> pa.Table:
    """The answer from slices that Spark made; fed in two parts, as if from two partitions."""
    df = spark.createDataFrame(table)
    assert pushdown.obstacle(query, table.schema, df.schema) is None
    wanted = slice_schema(query, table.schema)
    found = pushdown.slices(query, table.schema, df).toArrow().combine_chunks()
    assert found.column_names == wanted.names
    for column in found.columns:
        if pa.types.is_floating(column.type):
            values = column.drop_null().to_numpy()
            assert not np.signbit(values[values == 0]).any(), "a zero is negative"
    operator = query.operator()
    operator.prepare(table.schema)
    for part in (found.slice(0, len(found) // 2), found.slice(len(found) // 2)):
        for batch in part.cast(wanted).combine_chunks().to_batches():
            operator.take_slices(batch)
    return operator.finish()


def pairs(luck: random.Random, size: int, extremes: list[Any], other: Any) -> list[Any]:
    """Values of which each second one takes back most of the one before, so that windows do not overflow."""
    chosen = (luck.choice([None, *extremes, luck.randrange(-100, 100)]) for _ in range(size // 2))
    return [x for value in chosen for x in (value, None if value is None else other(value))]


def drawn(seed: int, *, size: int = 400, span: int = 500) -> pa.Table:
    """Events in pairs of equal times and keys, a part of them before 1970, with every odd value there is."""
    luck = random.Random(seed)
    half = range(size // 2)
    times = [luck.randrange(-span * SECOND, span * SECOND) for _ in half]
    names = [luck.choice(["anna", "", "Anna", None]) for _ in half]
    floats = [luck.choice([0.0, -0.0, math.nan, 1.5, None]) for _ in half]
    weights = [0.0, -0.0, math.nan, math.inf, -math.inf, 2.5, -1e300, None]
    prices = [Decimal(10**18 - 1), Decimal(-(10**18) + 1), Decimal(7)]
    columns = {
        "ts": pa.array([t for t in times for _ in "ab"], UTC),
        ODD: pa.array([n for n in names for _ in "ab"], pa.string()),
        "float key": pa.array([f for f in floats for _ in "ab"], pa.float64()),
        "x": pa.array(pairs(luck, size, [HIGH, LOW, 0, -1], lambda v: -1 - v), pa.int64()),
        "i": pa.array(pairs(luck, size, [2**31 - 1, -(2**31)], lambda v: -1 - v), pa.int32()),
        "b": pa.array(pairs(luck, size, [127, -128], lambda v: v), pa.int8()),
        "weight": pa.array([luck.choice(weights) for _ in range(size)], pa.float64()),
        "light": pa.array([luck.choice(weights[:6]) for _ in range(size)], pa.float32()),
        "price": pa.array([luck.choice([None, *prices]) for _ in range(size)], pa.decimal128(18, 0)),
        "cents": pa.array([luck.choice([None, Decimal("-0.07"), Decimal("9.99")]) for _ in range(size)]),
        "flag": pa.array([luck.choice([True, False, None]) for _ in range(size)], pa.bool_()),
        "day": pa.array([luck.choice([None, date(1, 1, 1), date(9999, 12, 31)]) for _ in range(size)]),
        "when": pa.array([luck.choice([None, -5, 5]) for _ in range(size)], UTC),
        "none": pa.array([None] * size, pa.int64()),
        "no float": pa.array([None] * size, pa.float64()),
    }
    rows = list(range(size))
    luck.shuffle(rows)
    return pa.table(columns).take(pa.array(rows))


AGGREGATES = {"n": wr.count(), "names": wr.count(ODD), "mean": wr.mean("x")}
AGGREGATES |= {f"sum of {c}": wr.sum(c) for c in ("x", "i", "b", "price", "cents", "none")}
AGGREGATES |= {
    f"{which.__name__} of {c}": which(c)
    for which in (wr.min, wr.max)
    for c in ("x", "b", "weight", "light", "price", "cents", "flag", "day", "when", "none", "no float")
}
AGGREGATES |= {"all": wr.all("flag"), "any": wr.any("flag")}
AGGREGATES |= {"how many": wr.sum("flag"), "share": wr.mean("flag")}
WINDOWS: dict[str, dict[str, Any]] = {
    "context free": {
        "offset": wr.tumbling("60 seconds", offset="-7 seconds"),
        "no multiple": wr.sliding("25 seconds", every="10 seconds", offset="3 microseconds"),
        "cumulate": wr.cumulate("2 minutes", step="30 seconds"),
    },
    "with sessions": {
        "short": wr.session("1500 milliseconds"),
        "long": wr.session("9 seconds"),
        "sliding": wr.sliding("25 seconds", every="10 seconds"),
    },
}


@pytest.mark.parametrize(("name", "ansi"), [("context free", "true"), ("with sessions", "false")])
def test_slices_of_the_jvm_give_the_answers_of_events(spark: Any, name: str, ansi: str) -> None:
    query = wr.query(time="ts", key=[ODD, "float key"], windows=WINDOWS[name], aggregates=AGGREGATES)
    table = drawn(3)
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        assert_same(query.run(table), pushed(query, table, spark), ulps=0)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


PRIMES = (7, 11, 13, 17, 19, 23, 29, 31, 37)
MEASURES: dict[str, tuple[dict[str, Any], pa.DataType, dict[str, Any]]] = {
    "many progressions share a grid": (
        {str(p): wr.tumbling(3 * p, offset=2) for p in PRIMES},
        pa.int32(),
        {"n": wr.count()},
    ),
    "windows with gaps": ({"w": wr.sliding(3, every=10)}, pa.int64(), {"total": wr.sum("x")}),
    "sessions alone": ({"s": wr.session(3)}, pa.int64(), {"low": wr.min("x")}),
    "a gap of one tick": ({"s": wr.session(1)}, pa.int16(), {"low": wr.min("x")}),
    "dates": ({"w": wr.sliding("1 week", every="3 days")}, pa.date32(), {"high": wr.max("x")}),
}


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_is_cut_as_the_engine_cuts_it(spark: Any, name: str) -> None:
    windows, type_, aggregates = MEASURES[name]
    luck = random.Random(5)
    ticks = pa.array([luck.randrange(-400, 400) for _ in range(200)], pa.int32())
    table = pa.table({"t": ticks.cast(type_), "x": pa.array(range(200), pa.int64())})
    query = wr.query(time="t", windows=windows, aggregates=aggregates)
    assert_same(query.run(table), pushed(query, table, spark))


def test_no_event_gives_no_slice(spark: Any) -> None:
    query = wr.query(time="ts", key=ODD, windows=WINDOWS["context free"], aggregates=AGGREGATES)
    assert pushed(query, drawn(1).slice(0, 0), spark).num_rows == 0


BAD: dict[str, tuple[int | None, pa.DataType, str]] = {
    "none": (None, UTC, f"column 'the time', value None: {NO_TIME}"),
    "too late": (HIGH - 5, UTC, NO_EDGES),
    "too early": (-(2**31), pa.int32(), f"column 'the time', value -2147483648: {NO_EDGES}"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_time_is_an_error_whatever_is_asked_of_the_slices(spark: Any, name: str) -> None:
    value, type_, message = BAD[name]
    table = pa.table({"the time": pa.array([0, value], type_), "x": [1, 2]})
    query = wr.query(time="the time", windows={"w": wr.tumbling(10)}, aggregates={"total": wr.sum("x")})
    query = in_ticks(query, type_)
    made = pushdown.slices(query, table.schema, spark.createDataFrame(table))
    with pytest.raises(PySparkException) as problem:
        made.select("#n").count()
    assert message in str(problem.value)
    assert "column 'the time', value " in str(problem.value)


def schemas(**types: tuple[pa.DataType, st.DataType]) -> tuple[pa.Schema, st.StructType]:
    """The same columns for Arrow and for Spark."""
    arrow = pa.schema([pa.field(name, kind) for name, (kind, _) in types.items()])
    return arrow, st.StructType([st.StructField(name, kind) for name, (_, kind) in types.items()])


MOMENT = (UTC, st.TimestampType())
NUMBER = (pa.int64(), st.LongType())
FLOAT = (pa.float64(), st.DoubleType())
ARROW, SPARK = schemas(
    ts=MOMENT,
    naive=(pa.timestamp("us"), st.TimestampNTZType()),
    f=FLOAT,
    x=NUMBER,
    gap=NUMBER,
    name=(pa.string(), st.StringType()),
    city=(pa.string(), st.StringType("UTF8_LCASE")),
    amount=(pa.decimal128(19, 2), st.DecimalType(19, 2)),
    wait=(pa.duration("us"), st.DayTimeIntervalType()),
)
TUMBLING = {"w": wr.tumbling("1 minute")}
OBSTACLES: dict[str, tuple[dict[str, Any], str]] = {
    "a float measure": ({"time": "f", "windows": {"w": wr.tumbling(1.5)}}, r"column 'f' \(double\)"),
    "a time without a zone": ({"time": "naive"}, r"column 'naive' \(timestamp_ntz\)"),
    "a calendar window": ({"windows": {"day": wr.calendar("1 day")}}, "window 'day' .* fixed period"),
    "a band": (
        {"windows": {"b": wr.band(datetime(2024, 1, 1), length="1 day")}},
        "window 'b' .* fixed period",
    ),
    "a gap from a column": ({"windows": {"s": wr.session("gap")}}, ""),
    "a window placed by events": ({"windows": {"d": wr.slide_by_rows("1 hour", every_rows=3)}}, ""),
    "a key that is not compared by bytes": (
        {"key": "city"},
        r"key column 'city' \(string collate UTF8_LCASE\)",
    ),
    "a float sum": ({"aggregates": {"a": wr.sum("f")}}, "keeps compensated sum"),
    "a variance": ({"aggregates": {"a": wr.variance("x")}}, "exactly as the engine"),
    "how often the least": ({"aggregates": {"a": wr.min_count("x")}}, "keeps min and how often"),
    "a decimal of many digits": (
        {"aggregates": {"a": wr.sum("amount")}},
        r"'a' \(sum\(amount\)\) .* decimal\(19,2\)",
    ),
    "an interval": ({"aggregates": {"a": wr.max("wait")}}, "interval day to second"),
    "a text": ({"aggregates": {"a": wr.max("name")}}, ""),
    "a quantile": ({"aggregates": {"a": wr.median("x")}}, ""),
    "the first value": ({"aggregates": {"a": wr.first("x")}}, ""),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_what_the_jvm_cannot_make_is_named(name: str) -> None:
    parts, reason = OBSTACLES[name]
    whole = {"time": "ts", "windows": TUMBLING, "aggregates": {"n": wr.count()}, **parts}
    found = pushdown.obstacle(wr.query(**whole), ARROW, SPARK)
    assert found is not None
    assert re.search(reason, found), found

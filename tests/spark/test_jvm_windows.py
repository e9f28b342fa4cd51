"""Windows that the JVM makes alone are those of the embedded engine, in the same types, and no Python runs."""

from __future__ import annotations

import random
from contextlib import redirect_stdout
from datetime import timedelta
from io import StringIO
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from streams import NIGHTLY, like
from test_batch import KEYS as KINDS_OF_KEYS
from test_batch import PUSHED, TABLE
from test_pushdown import AGGREGATES, HIGH, LOW, ODD, UTC, drawn

import windrow as wr
from tests.referee import assert_same
from windrow.query import Query

KEYS = [ODD, "float key"]
MINUTE = {"w": wr.tumbling("1 minute", offset="-7 seconds")}
WINDOWS: dict[str, dict[str, wr.Window]] = {
    "tumbling": MINUTE,
    "sliding, edges of two kinds": {
        "w": wr.sliding("15 seconds", every="10 seconds", offset="3 microseconds")
    },
    "sliding, with gaps": {"w": wr.sliding("3 seconds", every="10 seconds")},
    "steps": {"c": wr.cumulate("1 minute", step="30 seconds")},
    "no overlap": {
        "d": wr.sliding("10 seconds", every="10 seconds"),
        "n": wr.sliding("7 seconds", every="10 seconds"),
    },
}


def plan_of(df: Any) -> str:
    with redirect_stdout(StringIO()) as text:
        df.explain("extended")
    return text.getvalue()


def agrees(query: Query, table: pa.Table, spark: Any) -> None:
    """In rows and, as far as Spark sees, in types; the plan has no node of Python's."""
    df = spark.createDataFrame(table).repartition(3)
    found = query.on_spark(df)
    physical = plan_of(found).partition("== Physical Plan ==")[2]
    assert physical
    assert not [word for word in ("Python", "Arrow", "Pandas") if word in physical]
    assert found.schema == query.on_spark(df, path="general").schema
    wanted = query.run(table)
    assert_same(wanted, like(wanted, found.toArrow()), ulps=0)


@pytest.mark.parametrize(("name", "ansi"), [*zip(WINDOWS, ["true", "false"] * 3, strict=False)])
def test_windows_of_the_jvm_are_those_of_the_engine(spark: Any, name: str, ansi: str) -> None:
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        agrees(wr.query(time="ts", key=KEYS, windows=WINDOWS[name], aggregates=AGGREGATES), drawn(3), spark)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.parametrize("seed", range(20 if NIGHTLY else 3))
def test_windows_of_any_lengths_are_those_of_the_engine(spark: Any, seed: int) -> None:
    luck = random.Random(seed)
    alone = luck.random() < 0.5

    def window() -> wr.Window:
        every = luck.randrange(1, 90)
        offset = timedelta(seconds=luck.randrange(-100, 100))
        length = timedelta(seconds=luck.randrange(1, 2 * every + 1 if alone else every + 1))
        return wr.sliding(length, every=timedelta(seconds=every), offset=offset)

    windows = {str(i): window() for i in range(1 if alone else 2)}
    names = luck.sample(sorted(AGGREGATES), 4)
    aggregates = {name: AGGREGATES[name] for name in names}
    keys = luck.choice([[], [ODD], KEYS])
    agrees(wr.query(time="ts", key=keys, windows=windows, aggregates=aggregates), drawn(seed), spark)


TYPED: dict[str, tuple[wr.Window, pa.DataType]] = {
    "numbers": (wr.sliding(3, every=10), pa.int16()),
    "dates": (wr.sliding("1 week", every="4 days"), pa.date32()),
}


@pytest.mark.parametrize("name", TYPED)
def test_edges_have_the_type_of_the_time(spark: Any, name: str) -> None:
    window, type_ = TYPED[name]
    luck = random.Random(5)
    ticks = pa.array([luck.randrange(-400, 400) for _ in range(200)], pa.int32())
    table = pa.table({"t": ticks.cast(type_), "x": pa.array(range(200), pa.int64())})
    agrees(wr.query(time="t", windows={"w": window}, aggregates={"high": wr.max("x")}), table, spark)


def test_means_beyond_64_bits_are_rounded_as_the_engine_rounds(spark: Any) -> None:
    luck = random.Random(2)
    ends = [HIGH, LOW, LOW + 1, 2**62 + 2**9 + 1]
    table = pa.table(
        {
            "ts": pa.array([luck.randrange(600) * 10**6 for _ in range(300)], UTC),
            "x": pa.array([luck.choice(ends) for _ in range(300)], pa.int64()),
        }
    )
    agrees(wr.query(time="ts", windows=MINUTE, aggregates={"mean": wr.mean("x")}), table, spark)


def test_a_sum_that_does_not_fit_is_an_error_whatever_is_read_of_the_result(spark: Any) -> None:
    table = pa.table({"ts": pa.array([0, 1, 2], UTC), "x": [LOW, LOW, LOW]})
    query = wr.query(time="ts", windows=MINUTE, aggregates={"total": wr.sum("x"), "n": wr.count()})
    message = f"column 'total', value {3 * LOW}: the sum of window 'w' [1969-12-31 23:59:53, 1970-01-01 00:00:53) overflows int64"
    with pytest.raises(PySparkException) as problem:
        query.on_spark(spark.createDataFrame(table)).select("n").collect()
    assert message in str(problem.value)
    fits = table.set_column(1, "x", pa.array([LOW, -1, 1], pa.int64()))
    assert query.on_spark(spark.createDataFrame(fits)).collect()[0]["total"] == LOW


def test_an_event_without_a_time_is_an_error_whatever_is_read_of_the_result(spark: Any) -> None:
    table = pa.table({"ts": pa.array([0, None], UTC), "x": [1, 2]})
    query = wr.query(time="ts", windows=MINUTE, aggregates={"n": wr.count()})
    with pytest.raises(PySparkException, match="column 'ts', value None: an event needs a time"):
        query.on_spark(spark.createDataFrame(table)).count()


def test_no_event_gives_no_window(spark: Any) -> None:
    empty = drawn(1).slice(0, 0)
    for windows in (MINUTE, WINDOWS["steps"]):
        agrees(wr.query(time="ts", windows=windows, aggregates=AGGREGATES), empty, spark)


def test_keys_of_every_type_come_back_as_they_were(spark: Any) -> None:
    keys = [f"a {kind}" for kind in KINDS_OF_KEYS]
    agrees(wr.query(time="time", key=keys, windows=MINUTE, aggregates=PUSHED), TABLE, spark)


PYTHON: dict[str, tuple[dict[str, Any], str]] = {
    "many windows": ({"w": wr.sliding("1 hour", every="1 second")}, "an event is in up to 3,600 windows"),
    "a session": ({"s": wr.session("9 seconds")}, "window 's' (session gap 9 seconds) costs less"),
}
JVM = {
    "tumbling": "an event is in one window",
    "steps": "an event is in no more than 2 windows",
}


@pytest.mark.parametrize("name", [*PYTHON, *JVM])
def test_explain_says_who_makes_the_windows_of_slices(spark: Any, name: str) -> None:
    windows, reason = PYTHON[name] if name in PYTHON else (WINDOWS[name], JVM[name])
    query = wr.query(time="ts", windows=windows, aggregates={"n": wr.count()})
    df = spark.createDataFrame(drawn(1))
    text = query.explain(engine="spark", df=df)
    assert text.startswith("on Spark, batch: pushed down\n")
    assert reason in text
    assert ("no Python runs" in text) is (name in JVM)
    assert ("MapInArrow" in plan_of(query.on_spark(df))) is (name in PYTHON)


def test_an_aggregate_that_only_the_engine_knows_is_named(spark: Any) -> None:
    spans = wr.query(time=wr.span("ts", "when"), windows=MINUTE, aggregates={"n": wr.count()})
    text = spans.explain(engine="spark", df=spark.createDataFrame(drawn(1)))
    assert (
        "Python makes windows of slices\n  because Spark can make all partials exactly, and what events"
        in text
    )

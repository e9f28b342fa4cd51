"""Batch DataFrames: every aggregate, keys and values of every type, both paths, against the oracle."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as sf
from specimens import AGGREGATES, SEQUENCES, WINDOWS, fixed_stream
from streams import apart, like, plain_rows

import windrow as wr
from tests.referee import answers, assert_same
from windrow.query import Query

UTC = pa.timestamp("us", "UTC")
SECOND = 1_000_000
GROUPS: dict[str, dict[str, wr.Window]] = {
    "context free": {
        name: WINDOWS[name].window
        for name in ("tumbling", "sliding by no divisor", "cumulate with offset", "band")
    },
    "sessions": {
        name: SEQUENCES[name]
        for name in ("session", "session with gaps from a column", "landmark", "snapshot")
    },
    "order based": {
        name: SEQUENCES[name]
        for name in (
            "count sliding",
            "on a column",
            "marks at both ends",
            "threshold",
            "latest",
            "slide by rows",
            "deterministic",
            "nondeterministic with a state",
        )
    },
}


def of_kinds() -> tuple[dict[str, wr.Aggregate], dict[str, str]]:
    """All aggregates at once: each reads columns that are named after the kinds of their values."""
    aggregates, columns = {}, {}
    for name, (aggregate, kinds) in AGGREGATES.items():
        names = {column: f"a.{kind}" for column, kind in kinds.items()}
        aggregates[name] = replace(aggregate, columns=tuple(names.get(c, c) for c in aggregate.columns))
        columns |= {names[column]: kind for column, kind in kinds.items()}
    return aggregates, columns


def drawn_of_kinds(columns: dict[str, str], *, size: int) -> pa.Table:
    """Events with a column of each kind; Spark's timestamps count microseconds."""
    table = fixed_stream(columns, size=size, span=45, seed=1)
    times = [name for name, kind in columns.items() if kind == "time"]
    fields = [f.with_type(UTC) if f.name in times else f for f in table.schema]
    ticks = pa.schema([f.with_type(pa.int64()) if f.name in times else f for f in table.schema])
    return table.cast(ticks).cast(pa.schema(fields))


def agrees(query: Query, table: pa.Table, df: Any, **options: Any) -> None:
    wanted = answers(query, table)
    assert_same(wanted, like(wanted.table(), query.on_spark(df, **options).toArrow()), note=str(options))


@pytest.mark.parametrize("group", GROUPS)
def test_every_aggregate_in_every_group_of_windows(spark: Any, group: str) -> None:
    aggregates, columns = of_kinds()
    table = drawn_of_kinds(columns, size=60)
    query = wr.query(time="time", key="key0", windows=GROUPS[group], aggregates=aggregates)
    agrees(query, table, spark.createDataFrame(table))


LUCK = random.Random(7)
SIZE = 90
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "string": (pa.string(), ["anna", "", "Änna", None]),
    "int": (pa.int32(), [-1, 0, 2**31 - 1, None]),
    "float": (pa.float64(), [0.0, -0.0, math.nan, math.inf, None]),
    "decimal": (pa.decimal128(20, 2), [Decimal("0.10"), Decimal("-99999999.99"), None]),
    "date": (pa.date32(), [date(1969, 12, 31), date(2024, 2, 29), None]),
    "timestamp": (UTC, [-1, 0, 2**40, None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "binary": (pa.binary(), [b"", b"\0", b"\xff", None]),
}


def drawn() -> pa.Table:
    """Events of ten minutes around 1970, no two at the same time, with a key of every type."""
    times = LUCK.sample(range(-300 * SECOND, 300 * SECOND), SIZE)
    columns = {name: pa.array(LUCK.choices(pool, k=SIZE), type_) for name, (type_, pool) in KEYS.items()}
    return pa.table(
        {
            "time": pa.array(times, UTC),
            "x": pa.array(LUCK.choices([None, -5, 7, 2**55, -(2**55)], k=SIZE), pa.int64()),
            "f": pa.array(LUCK.choices([None, 0.1, -2.5, 1e16, math.nan], k=SIZE), pa.float64()),
            **{f"a {name}": column for name, column in columns.items()},
        }
    )


TABLE = drawn()
PUSHED = {
    "n": wr.count(),
    "total": wr.sum("x"),
    "low": wr.min("f"),
    "bytes": wr.count("a binary"),
    "yes": wr.max("a boolean"),
    "when": wr.min("a timestamp"),
    "day": wr.max("a date"),
}
NOT_PUSHED = PUSHED | {"float total": wr.sum("f"), "middle": wr.median("x"), "name": wr.last("a string")}
TIMED = {
    "minute": wr.tumbling("1 minute"),
    "sliding": wr.sliding("25 seconds", every="10 seconds"),
    "session": wr.session("9 seconds"),
}
BY: dict[str, list[str]] = {name: [f"a {name}"] for name in KEYS} | {
    "two": ["a string", "a float"],
    "none": [],
}


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    """`TABLE` in several partitions, so that order of arrival and place of a row tell nothing."""
    return spark.createDataFrame(TABLE).repartition(3).cache()


@pytest.mark.parametrize("key", BY)
def test_keys_of_every_type_on_both_paths(frame: Any, key: str) -> None:
    query = wr.query(time="time", key=BY[key], windows=TIMED, aggregates=PUSHED)
    assert "pushed down" in query.explain(engine="spark", df=frame).splitlines()[0]
    results = [query.on_spark(frame, path=path, buckets=4) for path in ("auto", "general")]
    pushed, general = (result.select(sf.lit(i).alias("#path"), "*") for i, result in enumerate(results))
    both, wanted = pushed.union(general).toArrow(), answers(query, TABLE)
    for path in (0, 1):
        got = both.filter(pc.equal(both["#path"], path)).drop_columns(["#path"])
        assert_same(wanted, like(wanted.table(), got), note=("pushed down", "general")[path])


def test_windows_that_need_order_do_not_care_for_partitions(frame: Any) -> None:
    windows = TIMED | {"rows": wr.sliding(rows=4, every_rows=3), "waves": wr.delta("x", by=3)}
    query = wr.query(time="time", key="a string", windows=windows, aggregates=NOT_PUSHED)
    agrees(query, TABLE, frame)


@pytest.mark.parametrize("aggregates", [PUSHED, NOT_PUSHED], ids=["pushed", "not pushed"])
def test_no_event_gives_no_window(spark: Any, aggregates: dict[str, wr.Aggregate]) -> None:
    query = wr.query(time="time", key="a string", windows=TIMED, aggregates=aggregates)
    empty = TABLE.slice(0, 0)
    got = spark.createDataFrame(empty).transform(query.on_spark).toArrow()
    assert got.num_rows == 0
    assert got.column_names == query.run(empty).column_names


def test_the_result_has_sparks_types(spark: Any) -> None:
    aggregates, columns = of_kinds()
    table = drawn_of_kinds(columns, size=1)
    query = wr.query(time="time", key="key0", windows={"w": wr.tumbling(7)}, aggregates=aggregates)
    result = query.on_spark(spark.createDataFrame(table), mode="update")
    types = {field.name: field.dataType.simpleString() for field in result.schema}
    assert list(types) == ["key0", "window", "start", "end", *aggregates, "op", "revision"]
    wanted = {
        "key0": "bigint",
        "window": "string",
        "start": "bigint",
        "count": "bigint",
        "sum of small integers": "bigint",
        "sum of decimals": "decimal(38,2)",
        "mean of decimals": "double",
        "max of singles": "float",
        "max of times": "timestamp",
        "min of booleans": "boolean",
        "first of dates": "date",
        "collect strings": "array<string>",
        "top k": "array<struct<value:string,count:bigint>>",
        "bloom filter": "binary",
        "op": "string",
        "revision": "bigint",
    }
    assert {name: types[name] for name in wanted} == wanted


def test_bad_rows_are_diverted_into_side_rows(spark: Any) -> None:
    table = pa.table(
        {
            "t": pa.array([1.0, None, 2.0, math.nan, 9.0], pa.float64()),
            "gap": pa.array([2.0, 2.0, -1.0, 2.0, 2.0], pa.float64()),
            "k": pa.array(["a", "b", None, "a", "b"]),
            "note": pa.array(["good", "no time", "no gap", "nan", "good"]),
        }
    )
    query = wr.query(time="t", key="k", windows={"s": wr.session("gap")}, aggregates={"n": wr.count()})
    df = spark.createDataFrame(table)
    windows, late, bad = apart(query.on_spark(df, on_bad="divert", side_rows=True).toArrow())
    operator = query.operator(on_bad="divert")
    operator.process(table)
    wanted = operator.finish()
    assert_same(wanted, like(wanted, windows))
    assert plain_rows(bad) == plain_rows(operator.bad())
    assert bad.num_rows == 3
    assert late.num_rows == 0
    assert_same(wanted, like(wanted, query.on_spark(df, on_bad="divert").toArrow()))


def test_bad_rows_of_one_partition_do_not_disturb_the_others(spark: Any) -> None:
    clean = spark.range(40).selectExpr("timestamp_seconds(id + 1) as ts", "id as x").coalesce(1)
    dirty = clean.selectExpr("if(x = 7, null, ts) as ts", "x")
    query = wr.query(time="ts", windows={"w": wr.tumbling("1 minute")}, aggregates={"n": wr.count()})
    result = query.on_spark(clean.union(dirty), on_bad="divert", side_rows=True).toArrow()
    assert pc.sum(result["n"]).as_py() == 79
    assert [row["x"] for row in result["side_row"].to_pylist() if row is not None] == [7]


def test_side_rows_keep_parts_that_are_null_although_spark_says_they_cannot_be(spark: Any) -> None:
    """A struct, a list and a map that are null in some rows, with fields that are null in none where they are there."""
    some = "if(x = 2, null, {})"
    made = {"s": "struct(1 as a, struct(2 as c) as b)", "l": "array(struct(3 as d))", "m": "map('k', 4)"}
    columns = [f"{some.format(made)} as {name}" for name, made in made.items()]
    df = spark.range(3).selectExpr("id as x").selectExpr("if(x > 0, null, x) as t", "x", *columns)
    query = wr.query(time="t", windows={"w": wr.tumbling(10)}, aggregates={"n": wr.count()})
    rows = query.on_spark(df, on_bad="divert", side_rows=True).toArrow()["side_row"].to_pylist()
    found = {row["x"]: (row["s"], row["l"], row["m"]) for row in rows if row is not None}
    assert found == {1: ({"a": 1, "b": {"c": 2}}, [{"d": 3}], [("k", 4)]), 2: (None, None, None)}


def test_events_between_windows_leave_nothing(spark: Any) -> None:
    df = spark.range(40).selectExpr("timestamp_seconds(id * 10 + 5) as ts", "id % 3 as k")
    query = wr.query(
        time="ts",
        key="k",
        windows={"w": wr.sliding("1 second", every="10 seconds")},
        aggregates={"n": wr.count()},
    )
    assert query.on_spark(df, path="general").count() == 0
    assert query.on_spark(df).count() == 0


def test_explain_says_which_way_and_why(spark: Any, frame: Any) -> None:
    pushed = wr.query(time="time", windows=TIMED, aggregates=PUSHED)
    text = pushed.explain(engine="spark", df=frame)
    assert text.startswith("on Spark, batch: pushed down\n")
    assert pushed.explain(TABLE.schema) in text

    general = wr.query(time="time", windows={"rows": wr.tumbling(rows=3)}, aggregates=PUSHED)
    text = general.explain(engine="spark", df=frame)
    assert text.startswith("on Spark, batch: general\n  not pushed down, because ")
    assert "events are shuffled as they are, because " in text

    ticks = spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")
    stream = wr.query(time="timestamp", windows=TIMED, aggregates={"total": wr.sum("value")})
    text = stream.explain(engine="spark", df=ticks)
    assert text.startswith(
        "on Spark, streaming: general\n  not pushed down, because Spark drops each late event"
    )
    assert "a snapshot and a log" in text
    only = wr.query(time="timestamp", windows={"w": TIMED["minute"]}, aggregates={"total": wr.sum("value")})
    text = only.explain(engine="spark", df=ticks, path="general")
    assert "events are made into slices before the shuffle" in text
    text = only.explain(engine="spark", df=ticks)
    assert text.startswith("on Spark, streaming: pushed down\n")

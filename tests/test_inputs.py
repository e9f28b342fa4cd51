"""The same events in every form that speaks Arrow give the same answer."""

from __future__ import annotations

from decimal import Decimal
from functools import cache

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pytest

import windrow as wr
from tests.referee import assert_same

SIZE = 400
RNG = np.random.default_rng(7)
TIMES = RNG.integers(-50_000, 50_000, SIZE)
EVENTS = pa.table(
    {
        "ts": pa.array(TIMES * 1000, pa.int64()).cast(pa.timestamp("ms")),
        "k": pa.array([None if i % 17 == 0 else f"key {i % 5}" for i in range(SIZE)]),
        "x": pa.array([None if i % 13 == 0 else i for i in range(SIZE)], pa.int64()),
        "s": pa.array([None if i % 11 == 0 else f"text {i % 7}" for i in range(SIZE)]),
    }
)
QUERY = wr.query(
    time="ts",
    key="k",
    windows={"w": wr.tumbling("1 hour"), "s": wr.sliding("90 minutes", every="20 minutes")},
    aggregates={
        "n": wr.count(),
        "total": wr.sum("x"),
        "low": wr.min("s"),
        "last": wr.last("s"),
        "kinds": wr.distinct("s"),
        "middle": wr.median("x"),
        "all": wr.concat("s"),
    },
)


@cache
def plain():
    return QUERY.run(EVENTS)


def agrees(result):
    """Strings may come back as large strings or views: the values count."""
    wanted = plain()
    assert_same(wanted, result.cast(wanted.schema) if result.schema != wanted.schema else result)


def chunked(table, size=37):
    return pa.concat_tables([table.slice(i, size) for i in range(0, table.num_rows, size)])


def with_column(name, array):
    return EVENTS.set_column(EVENTS.schema.get_field_index(name), name, array)


FORMS = {
    "chunked table": lambda: chunked(EVENTS),
    "record batch": lambda: EVENTS.combine_chunks().to_batches()[0],
    "reader": lambda: chunked(EVENTS).to_reader(),
    "sliced": lambda: pa.concat_tables([EVENTS.slice(0, 9), EVENTS]).combine_chunks().slice(9),
    "polars": lambda: polars.from_arrow(EVENTS),
    "polars in chunks": lambda: polars.concat(
        [polars.from_arrow(EVENTS.slice(i, 100)) for i in range(0, SIZE, 100)], rechunk=False
    ),
    "pandas": lambda: EVENTS.to_pandas().astype({"x": "Int64"}),
    "duckdb": lambda: duckdb.from_arrow(EVENTS),
    "list": lambda: chunked(EVENTS).to_batches(),
    "iterator of tables": lambda: iter([EVENTS.slice(0, 100), EVENTS.slice(100)]),
    "generator of frames": lambda: (polars.from_arrow(EVENTS.slice(i, 80)) for i in range(0, SIZE, 80)),
    "large strings": lambda: with_column("s", EVENTS["s"].cast(pa.large_string())),
    "string views": lambda: with_column("s", EVENTS["s"].cast(pa.string_view())),
    "dictionary values": lambda: with_column("s", EVENTS["s"].dictionary_encode()),
    "dictionary keys": lambda: with_column("k", EVENTS["k"].dictionary_encode()),
    "dictionary in chunks": lambda: with_column("s", chunked(EVENTS)["s"].dictionary_encode()),
    "small integers": lambda: with_column("x", EVENTS["x"].cast(pa.int16())),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_answer(name):
    agrees(QUERY.run(FORMS[name]()))


@pytest.mark.parametrize("name", FORMS)
def test_every_form_streams(name):
    operator = QUERY.operator()
    operator.process(FORMS[name]())
    agrees(operator.finish())


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "+05:30"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_every_unit_and_zone_gives_the_same_windows(unit, zone):
    type_ = pa.timestamp(unit, zone)
    result = QUERY.run(with_column("ts", EVENTS["ts"].cast(pa.timestamp(unit)).cast(pa.int64()).cast(type_)))
    assert result.schema.field("start").type == type_
    for name in ("start", "end"):
        ticks = result[name].cast(pa.int64()).cast(pa.timestamp(unit)).cast(pa.timestamp("ms"))
        result = result.set_column(result.schema.get_field_index(name), name, ticks)
    agrees(result)


@pytest.mark.parametrize("type_", [pa.date32(), pa.date64()], ids=str)
def test_dates(type_):
    days = pa.array([0, 1, 1, 9], pa.int32()).cast(pa.date32()).cast(type_)
    query = wr.query(time="d", windows={"w": wr.tumbling("2 days")}, aggregates={"n": wr.count()})
    assert query.run(pa.table({"d": days}))["n"].to_pylist() == [3, 1]


@pytest.mark.parametrize(
    "type_", [pa.float32(), pa.float64(), pa.decimal128(12, 2), pa.int8(), pa.uint64()], ids=str
)
def test_numbers_of_every_type_add_up(type_):
    values = [Decimal(v) if pa.types.is_decimal(type_) else v for v in (1, 2, 3)]
    table = pa.table({"ts": [1, 2, 3], "x": pa.array(values, type_)})
    query = wr.query(
        time="ts",
        windows={"w": wr.tumbling(10)},
        aggregates={"t": wr.sum("x"), "m": wr.mean("x"), "h": wr.max("x")},
    )
    (row,) = query.run(table).to_pylist()
    assert (row["t"], row["m"], row["h"]) == (6, 2.0, 3)


def test_booleans_as_keys_and_values():
    table = pa.table({"ts": [1, 2, 3], "b": [True, None, False]})
    query = wr.query(time="ts", key="b", windows={"w": wr.tumbling(10)}, aggregates={"a": wr.max("b")})
    assert [(r["b"], r["a"]) for r in query.run(table).to_pylist()] == [
        (True, True),
        (None, None),
        (False, False),
    ]


def test_a_null_inside_a_dictionary_is_a_null():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1]), pa.array(["b", None]))
    query = wr.query(
        time="ts", windows={"w": wr.tumbling(10)}, aggregates={"n": wr.count("s"), "l": wr.last("s")}
    )
    (row,) = query.run(pa.table({"ts": [1, 2, 3], "s": column})).to_pylist()
    assert (row["n"], row["l"]) == (1, "b")


@pytest.mark.parametrize(
    "names", [("a b", "ü", "n"), ("f0", "x0", "cell"), ('"', "'", "\\"), ("time", "t", "s")]
)
def test_columns_may_have_any_name(names):
    time, key, value = names
    table = pa.table({time: [1, 2], key: ["a", "a"], value: [1, 2]})
    query = wr.query(time=time, key=key, windows={"w": wr.tumbling(10)}, aggregates={"total": wr.sum(value)})
    assert query.run(table)["total"].to_pylist() == [3]
    operator = query.operator()
    operator.process(table)
    assert query.restore(operator.snapshot()).finish()["total"].to_pylist() == [3]


def test_the_time_may_be_a_key_and_a_value_too():
    table = pa.table({"ts": [1, 1, 2]})
    query = wr.query(
        time="ts", key="ts", windows={"w": wr.tumbling(10)}, aggregates={"h": wr.max("ts"), "n": wr.count()}
    )
    assert [(r["ts"], r["h"], r["n"]) for r in query.run(table).to_pylist()] == [(1, 1, 2), (2, 2, 1)]


def test_columns_of_nulls_alone():
    table = pa.table(
        {
            "ts": [1, 2],
            "k": pa.nulls(2, pa.string()),
            "x": pa.nulls(2, pa.float64()),
            "s": pa.nulls(2, pa.string()),
        }
    )
    aggregates = {
        "t": wr.sum("x"),
        "m": wr.median("x"),
        "f": wr.first("s"),
        "d": wr.distinct("s"),
        "c": wr.concat("s"),
    }
    query = wr.query(time="ts", key="k", windows={"w": wr.tumbling(10)}, aggregates=aggregates)
    (row,) = query.run(table).to_pylist()
    assert [row[n] for n in aggregates] == [None, None, None, 0, None]

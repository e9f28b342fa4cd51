"""The same questions put to pandas, polars and DuckDB, on random data with ties, nulls and NaN."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr

FEW = settings(max_examples=40, deadline=None, database=None, derandomize=True, print_blob=False)
CLOSED = ("left", "right", "both", "neither")
VALUES = st.sampled_from([None, -2.5, 0.0, 0.1, 3.0, 3.0, 7.25])


@st.composite
def events(draw: Any, *, ties: bool = True, nan: bool = False) -> pa.Table:
    """Events in order of time; without ties, all times are different."""
    steps = draw(st.lists(st.integers(0 if ties else 1, 4), max_size=25))
    values = [draw(VALUES | st.just(math.nan) if nan else VALUES) for _ in steps]
    times = pa.array(np.cumsum(np.array(steps, np.int64)) * 1_000_000, pa.timestamp("us"))
    return pa.table({"t": times, "x": pa.array(values, pa.float64())})


def same(ours: list[Any], theirs: list[Any]) -> None:
    """Equal but for rounding; nothing is null, and null is NaN to pandas."""
    assert len(ours) == len(theirs)
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        missing = a is None or (isinstance(a, float) and math.isnan(a))
        other = b is None or (isinstance(b, float) and math.isnan(b))
        assert missing == other, (i, a, b)
        assert missing or a == pytest.approx(b, rel=1e-9, abs=1e-9), (i, a, b)


def asked(table: pa.Table, window: wr.Window, aggregate: wr.Aggregate, **options: Any) -> list[Any]:
    query = wr.query(time="t", windows={"w": window}, aggregates={"a": aggregate})
    return query.at(table, **options)["a"].to_pylist()


OURS = {"sum": wr.sum, "mean": wr.mean, "max": wr.max, "min": wr.min, "std": wr.stddev, "median": wr.median}


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("name", OURS)
def test_pandas_rolls_over_time_alike(name: str, closed: Any) -> None:
    @FEW
    @given(events(ties=False), st.integers(1, 9))
    def check(table: pa.Table, seconds: int) -> None:
        frame = table.to_pandas().set_index("t")
        rolling = frame["x"].rolling(f"{seconds}s", closed=closed, min_periods=2 if name == "std" else 1)
        theirs = getattr(rolling, name)().tolist()
        same(asked(table, wr.trailing(f"{seconds} seconds", closed=closed), OURS[name]("x")), theirs)

    check()


@FEW
@given(events(ties=False), st.integers(1, 4))
def test_pandas_centers_alike(table: pa.Table, seconds: int) -> None:
    frame = table.to_pandas().set_index("t")
    rolling = frame["x"].rolling(f"{2 * seconds}s", center=True, closed="both", min_periods=1)
    window = wr.around(before=f"{seconds} seconds", after=f"{seconds} seconds")
    same(asked(table, window, wr.max("x")), rolling.max().tolist())


@FEW
@given(events(), st.integers(1, 6), st.integers(0, 4))
def test_pandas_rolls_over_rows_alike(table: pa.Table, rows: int, least: int) -> None:
    counted = pd.Series(np.arange(len(table), dtype=float))
    for closed in ("left", "right"):
        theirs = counted.rolling(rows, closed=closed, min_periods=min(least, rows)).count().tolist()
        ours = asked(table, wr.trailing(rows=rows, closed=closed), wr.count(), min_rows=min(least, rows))
        same([None if a is None else float(a) for a in ours], theirs)


@pytest.mark.parametrize("closed", CLOSED)
def test_polars_rolls_alike(closed: Any) -> None:
    @FEW
    @given(events(), st.integers(1, 9))
    def check(table: pa.Table, seconds: int) -> None:
        frame = pl.DataFrame(pl.from_arrow(table))
        rolled = frame.rolling("t", period=f"{seconds}s", closed="none" if closed == "neither" else closed)
        theirs = rolled.agg(n=pl.len(), low=pl.col("x").min(), all=pl.col("x"))
        window = wr.trailing(f"{seconds} seconds", closed=closed)
        assert asked(table, window, wr.count()) == theirs["n"].to_list()
        same(asked(table, window, wr.min("x")), theirs["low"].to_list())
        lists = [[v for v in held if v is not None] or None for held in theirs["all"].to_list()]
        assert asked(table, window, wr.collect("x")) == lists

    check()


@FEW
@given(events(nan=True), st.integers(0, 5), st.integers(0, 5))
def test_duckdb_has_the_same_frames(table: pa.Table, before: int, after: int) -> None:
    query = f"""
        select count(*) over w as n, max(x) over w as high, quantile_cont(x, 0.5) over w as middle, count(distinct x) over w as different
        from t window w as (order by t range between interval {before} seconds preceding and interval {after} seconds following)
        order by t
    """
    theirs = duckdb.sql(query, connection=_with(t=table)).fetchall()
    window = wr.around(before=f"{before} seconds", after=f"{after} seconds")
    kinds = wr.count(), wr.max("x"), wr.median("x"), wr.distinct("x")
    for column, aggregate in enumerate(kinds):
        same([*map(_plain, asked(table, window, aggregate))], [_plain(row[column]) for row in theirs])


@FEW
@given(events(ties=False), events())
def test_the_last_event_before_a_point_is_that_of_an_asof_join(table: pa.Table, points: pa.Table) -> None:
    query = "select t.x from p asof left join t on p.t >= t.t order by p.t, p.rowid"
    points = points.drop_columns("x")
    theirs = [
        row[0]
        for row in duckdb.sql(query.replace("p.rowid", "1"), connection=_with(t=table, p=points)).fetchall()
    ]
    asked_at = wr.query(
        time="t", windows={"w": wr.trailing(rows=1, closed="right")}, aggregates={"a": wr.last("x")}
    ).at(points, table)
    same(asked_at["a"].to_pylist(), theirs)


def _with(**tables: pa.Table) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    return connection


def _plain(value: Any) -> Any:
    return None if value is None else float(value)

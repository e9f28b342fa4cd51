"""Rows in order, rows for empty windows, and windows as columns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.referee import answers, assert_same
from tests.referee.strategies import KEYS, queries, streams
from windrow.testing.compare import plain_values

EVENTS = pa.table({"t": [1, 12, 3, 38, 5], "k": ["b", "b", None, "b", "a"], "x": [1, 2, 3, 4, None]})
WINDOWS = {"long": wr.tumbling(20), "ten": wr.tumbling(10)}
AGGREGATES = {"n": wr.count(), "total": wr.sum("x"), "first": wr.first("k")}
QUERY = wr.query(time="t", key="k", windows=WINDOWS, aggregates=AGGREGATES)


def test_rows_come_by_key_window_start_and_end():
    rows = QUERY.run(EVENTS, sort=True).select(["k", "window", "start"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("a", "long", 0), ("a", "ten", 0),
        ("b", "long", 0), ("b", "long", 20), ("b", "ten", 0), ("b", "ten", 10), ("b", "ten", 30),
        (None, "long", 0), (None, "ten", 0),
    ]  # fmt: skip


@given(data=st.data())
def test_order_is_that_of_arrow_and_loses_nothing(data):
    key = data.draw(st.sampled_from(KEYS))
    table = data.draw(streams(time=pa.int64(), key=key))
    query = data.draw(queries(time=pa.int64(), key=key))
    found = query.run(table, sort=True)
    assert_same(query.run(table), found)
    names = list(query.windows)
    places = pa.array([names.index(w) for w in found["window"].to_pylist()], pa.int64())
    order = [(name, "ascending") for name in (*query.key, "place", "start", "end")]
    plain = found.append_column("place", places)
    assert plain.select(["start", "end", "place"]).equals(
        plain.sort_by(order).select(["start", "end", "place"])
    )


@pytest.mark.parametrize(
    ("fill", "totals"), [(None, [2, None, 4]), (0, [2, 0, 4]), ("previous", [2, 2, 4])], ids=repr
)
def test_empty_windows_have_rows(fill, totals):
    result = QUERY.run(EVENTS, fill=fill, sort=True).to_pylist()
    rows = [row for row in result if row["k"] == "b" and row["window"] == "ten"]
    assert [(row["start"], row["end"]) for row in rows] == [(0, 10), (10, 20), (20, 30), (30, 40)]
    assert [row["total"] for row in rows] == [1, *totals]
    assert rows[2]["n"] == {None: None, 0: 0, "previous": 1}[fill]
    assert rows[2]["first"] == ("b" if fill == "previous" else None)
    (other,) = [row for row in result if row["k"] == "a" and row["window"] == "ten"]
    assert other["total"] is None  # of a window that is not empty


FILLS = st.sampled_from([None, 0, "previous"])


@given(data=st.data())
def test_fill_makes_the_rows_that_are_missing_and_no_others(data):
    """By definition: window after window from the first of a key to its last, of those that the referee knows."""
    key = data.draw(st.sampled_from(KEYS))
    type_ = data.draw(st.sampled_from([pa.int64(), pa.timestamp("us"), pa.float64()]))
    table = data.draw(streams(time=type_, key=key, columns={"x": "int"}))
    size, every = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    scale = 0.25 if pa.types.is_floating(type_) else 1
    measure = wr.measure.Measure("time", type_)
    window = wr.sliding(measure.duration(size * scale), every=measure.duration(every * scale))
    query = wr.query(
        time="time",
        key=[f"key{i}" for i in range(len(key))],
        windows={"w": window},
        aggregates={"n": wr.count(), "top": wr.max("x")},
    )
    fill = data.draw(FILLS)
    there: dict = {}
    wanted = answers(query, table).table()
    columns = [plain_values(wanted[name]) for name in (*query.key, "start", "end", "n", "top")]
    for *group, start, end, n, top in zip(*columns, strict=True):
        there.setdefault(repr(group), {})[start] = (end, n, top)
    expected = []
    for group, rows in there.items():
        at, last = min(rows), max(rows)
        said = None
        while at <= last:
            known = rows.get(at)
            if known is not None:
                said = known[1:]
            numbers = said if known is not None or fill == "previous" else (fill, fill)
            expected.append((group, at, at + size * scale, *map(repr, numbers)))
            at += every * scale
    found = query.run(table, fill=fill)
    columns = [plain_values(found[name]) for name in (*query.key, "start", "end", "n", "top")]
    got = [(repr(group), a, b, repr(n), repr(top)) for *group, a, b, n, top in zip(*columns, strict=True)]
    assert sorted(got) == sorted(expected)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"])
@pytest.mark.parametrize("period", ["1 day", "1 week", "1 month"])
def test_fill_of_calendars_is_polars_upsample(zone, period):
    days = [datetime(2011, 12, 20) + timedelta(days=3 * i * i, hours=5 * i) for i in range(9)]
    table = pa.table({"t": pa.array(days, pa.timestamp("us", zone)), "x": range(9)})
    query = wr.query(time="t", windows={"w": wr.calendar(period)}, aggregates={"total": wr.sum("x")})
    found = query.run(table, fill=0, sort=True)
    every = {"1 day": "1d", "1 week": "1w", "1 month": "1mo"}[period]
    frame = pl.from_arrow(table).sort("t").group_by_dynamic("t", every=every).agg(pl.col("x").sum())
    filled = frame.upsample("t", every=every).with_columns(pl.col("x").fill_null(0))
    assert pl.from_arrow(found)["start"].to_list() == filled["t"].to_list()
    assert found["total"].to_pylist() == filled["x"].to_list()


@pytest.mark.parametrize(
    "window",
    [
        wr.session(3),
        wr.tumbling(rows=2),
        wr.cumulate(10, step=5),
        wr.band(0, length=5),
        wr.landmark(since=0, every=5),
        wr.snapshot(),
    ],
    ids=str,
)
def test_windows_without_a_next_one_are_refused(window):
    query = wr.query(time="t", windows={"w": window}, aggregates={"n": wr.count()})
    with pytest.raises(wr.QueryError, match=r"window 'w' .* has no empty windows between others"):
        query.run(EVENTS, fill=0)


@pytest.mark.parametrize("fill", [True, 1, "next", 0.5], ids=repr)
def test_other_fills_are_refused(fill):
    with pytest.raises(wr.QueryError, match='fill must be None, 0 or "previous"'):
        QUERY.run(EVENTS, fill=fill)


def test_too_many_empty_windows_are_refused():
    query = wr.query(time="t", windows={"w": wr.tumbling(1)}, aggregates={"n": wr.count()})
    with pytest.raises(wr.LimitError, match=r"the empty windows of 'w' would make 1,000,000,000,001 rows"):
        query.run({"t": [0, 10**12]}, fill=0)


def test_an_answer_without_rows_stays_one():
    for options in ({"fill": 0}, {"sort": True}, {"wide": True}):
        assert len(QUERY.run(EVENTS.slice(0, 0), **options)) == 0


def test_windows_become_columns():
    rows = QUERY.run(EVENTS, wide=True).to_pylist()
    assert rows[2:5] == [
        {"k": "b", "end": 10, "long_n": None, "long_total": None, "long_first": None, "ten_n": 1, "ten_total": 1, "ten_first": "b"},
        {"k": "b", "end": 20, "long_n": 2, "long_total": 3, "long_first": "b", "ten_n": 1, "ten_total": 2, "ten_first": "b"},
        {"k": "b", "end": 40, "long_n": 1, "long_total": 4, "long_first": "b", "ten_n": 1, "ten_total": 4, "ten_first": "b"},
    ]  # fmt: skip


@given(data=st.data())
def test_windows_as_columns_are_polars_pivot(data):
    table = data.draw(streams(time=pa.int64(), key=["int"], columns={"x": "int"}, min_size=1))
    windows = {"a": wr.tumbling(5), "b": wr.sliding(15, every=5)}
    query = wr.query(
        time="time", key="key0", windows=windows, aggregates={"n": wr.count(), "top": wr.max("x")}
    )
    found = pl.from_arrow(query.run(table, wide=True)).sort("key0", "end")
    frame = pl.from_arrow(query.run(table)).with_columns(pl.col("window").cast(pl.String))
    wanted = frame.pivot("window", index=["key0", "end"], values=["n", "top"]).sort("key0", "end")
    for aggregate in ("n", "top"):
        for window in windows:
            name = f"{aggregate}_{window}"
            if name in wanted.columns:
                assert found[f"{window}_{aggregate}"].to_list() == wanted[name].to_list()


def test_what_cannot_be_columns_is_refused():
    twice = wr.query(
        time="t",
        windows={"a": wr.tumbling(5), "a_b": wr.tumbling(6)},
        aggregates={"b_c": wr.count(), "c": wr.count()},
    )
    with pytest.raises(wr.QueryError, match="wide=True would make two columns 'a_b_c'"):
        twice.run(EVENTS, wide=True)
    many = wr.query(
        time="t",
        windows={"w": wr.snapshot(), "l": wr.slide_by_rows(100, every_rows=1)},
        aggregates={"n": wr.count()},
    )
    assert "w_n" in many.run(EVENTS, wide=True).column_names


def test_the_answer_of_a_query_is_input_of_another():
    """By the end of the windows: what is known at a time counts from then on."""
    first = wr.query(time="t", key="k", windows={"w": wr.tumbling(10)}, aggregates={"n": wr.count()})
    second = wr.query(
        time="end", windows={"w": wr.tumbling(20)}, aggregates={"most": wr.max("n"), "rows": wr.count()}
    )
    whole = second.run(first.run(EVENTS), sort=True)
    assert [tuple(row.values())[1:] for row in whole.to_pylist()] == [
        (0, 20, 1, 3),
        (20, 40, 1, 1),
        (40, 60, 1, 1),
    ]
    one, two = first.operator(), second.operator()
    parts = []
    for batch, watermark in ((EVENTS.slice(0, 3), 5), (EVENTS.slice(3), 45)):
        one.process(batch)
        two.process(one.advance(watermark))
        parts.append(two.advance(watermark))
    two.process(one.finish())
    assert_same(whole, pa.concat_tables([*parts, two.finish()]))


def test_answers_are_frames_of_pandas_and_polars():
    result = QUERY.run(EVENTS, sort=True)
    assert result.to_pandas()["n"].tolist() == pl.from_arrow(result)["n"].to_list() == result["n"].to_pylist()


def test_a_day_that_a_zone_left_out_is_no_window():
    days = [datetime(2011, 12, 29, 12, tzinfo=UTC), datetime(2012, 1, 2, 12, tzinfo=UTC)]
    times = pa.array(days, pa.timestamp("us", "Pacific/Apia"))
    q = wr.query(time="t", windows={"d": wr.calendar("day")}, aggregates={"n": wr.count()})
    found = q.run(pa.table({"t": times}), fill=0)
    assert all(
        start < end for start, end in zip(found["start"].to_pylist(), found["end"].to_pylist(), strict=True)
    )
    assert found["n"].to_pylist() == [1, 0, 0, 0, 1]  # 29, 31, 1, 2, 3


def test_decimals_are_filled_with_zero():
    events = pa.table({"t": [1, 21], "x": pa.array([Decimal("1.50"), Decimal("2.50")], pa.decimal128(5, 2))})
    q = wr.query(time="t", windows={"w": wr.tumbling(10)}, aggregates={"low": wr.min("x")})
    assert q.run(events, fill=0)["low"].to_pylist() == [Decimal("1.50"), Decimal("0.00"), Decimal("2.50")]

"""Queries asked at points agree with looking at all events for each point."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow as wr
from tests.referee.points import assert_answers
from tests.referee.strategies import TIMES, length, streams, value_type
from tests.specimens import AGGREGATES, SEQUENCES, WINDOWS
from windrow.windows import Window

FEW = settings(max_examples=15, deadline=None, database=None, derandomize=True, print_blob=False)
CLOSED = ("left", "right", "both", "neither")


def distances(type_: pa.DataType) -> st.SearchStrategy[Any]:
    """Lengths in ticks of a time, or quarters of a float measure."""
    least = st.integers(1, 40)
    return (least.map(lambda n: n / 4) if pa.types.is_floating(type_) else least).map(
        lambda n: length(n, type_)
    )


def asked_windows(type_: pa.DataType) -> st.SearchStrategy[Window]:
    """Trailing windows and windows around points."""
    size, lag = distances(type_), distances(type_) | st.just(length(0, type_))
    closed = st.sampled_from(CLOSED)
    return st.one_of(
        st.builds(lambda n, c, g: wr.trailing(n, closed=c, lag=g), size, closed, lag),
        st.builds(
            lambda n, c, g: wr.trailing(rows=n, closed=c, lag=g),
            st.integers(1, 6),
            st.sampled_from(CLOSED[:2]),
            lag,
        ),
        st.builds(lambda b, a, c: wr.around(before=b, after=a, closed=c), size, lag, closed),
    )


@st.composite
def points(draw: Any, events: pa.Table, keys: list[str], *, reach: int = 12) -> pa.Table:
    """Points near events, in any order, of their keys and of others, with a column of their own."""
    chosen = draw(
        st.lists(st.tuples(st.integers(0, max(0, len(events) - 1)), st.integers(-reach, reach)), max_size=12)
    )
    rows = [i for i, _ in chosen] if len(events) else []
    named = events.select(["time", *keys]).take(pa.array(rows, pa.int64()))
    type_ = named["time"].type
    plain = (
        pa.int32()
        if pa.types.is_date32(type_)
        else pa.float64()
        if pa.types.is_floating(type_)
        else pa.int64()
    )
    moved = [t + d for t, (_, d) in zip(named["time"].cast(plain).to_pylist(), chosen, strict=False)]
    named = named.set_column(0, "time", pa.array(moved, plain).cast(type_))
    return named.append_column("label", pa.array([f"label {i}" for i in range(len(named))]))


@pytest.mark.parametrize("name", AGGREGATES)
def test_any_aggregate_over_trailing_windows_is_what_the_events_say(name: str) -> None:
    aggregate, columns = AGGREGATES[name]

    @FEW
    @given(st.data())
    def check(data: Any) -> None:
        events = data.draw(streams(time=pa.int64(), key=["int"], columns=columns))
        windows = {"w": data.draw(asked_windows(pa.int64()))}
        query = wr.query(time="time", key="key0", windows=windows, aggregates={"a": aggregate})
        assert_answers(query, None, events, query.at(events))
        given_points = data.draw(points(events, ["key0"]))
        assert_answers(query, given_points, events, query.at(given_points, events))

    check()


@pytest.mark.parametrize("type_", TIMES, ids=str)
def test_any_time_and_any_key_can_be_asked_at(type_: pa.DataType) -> None:
    @FEW
    @given(st.data())
    def check(data: Any) -> None:
        events = data.draw(streams(time=type_, columns={"x": "int"}))
        keys = [name for name in events.column_names if name.startswith("key")]
        window = data.draw(asked_windows(type_))
        query = wr.query(
            time="time", key=keys, windows={"w": window}, aggregates={"n": wr.count(), "s": wr.sum("x")}
        )
        least = data.draw(st.integers(0, 3))
        assert_answers(query, None, events, query.at(events, min_rows=least), min_rows=least)
        given_points = data.draw(points(events, keys))
        assert_answers(query, given_points, events, query.at(given_points, events))

    check()


ASKED = {name: (w.window, w.time, w.days) for name, w in WINDOWS.items()}
ASKED |= {name: (SEQUENCES[name], pa.int64(), False) for name in ("session", "count tumbling", "landmark")}


@pytest.mark.parametrize("name", ASKED)
def test_windows_with_edges_are_asked_as_far_as_the_point(name: str) -> None:
    window, type_, days = ASKED[name]

    @FEW
    @given(st.data())
    def check(data: Any) -> None:
        events = data.draw(streams(time=type_, key=["string"], columns={"x": "int"}, days=days))
        query = wr.query(
            time="time",
            key="key0",
            windows={"w": window},
            aggregates={"n": wr.count(), "m": wr.max("x"), "f": wr.first("x")},
        )
        assert_answers(query, None, events, query.at(events))
        given_points = data.draw(points(events, ["key0"]))
        assert_answers(query, given_points, events, query.at(given_points, events))

    check()


@pytest.mark.parametrize("name", [name for name in SEQUENCES if name not in ASKED])
def test_a_window_that_cannot_be_asked_is_refused_by_name(name: str) -> None:
    query = wr.query(time="time", windows={"w": SEQUENCES[name]}, aggregates={"n": wr.count()})
    with pytest.raises(wr.QueryError, match=r"window 'w' .* cannot be asked at a point in time"):
        query.at(
            pa.table(
                {"time": [1], **{c: pa.array([1.0], value_type("level")) for c in SEQUENCES[name].columns}}
            )
        )

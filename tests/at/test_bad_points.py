"""Points and windows that make no sense, or lie where nothing is."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

import windrow as wr

EVENTS = pa.table({"t": [1, 5, 9], "k": ["a", "b", "a"], "x": [1, 2, 3]})
COUNT = wr.query(
    time="t", key="k", windows={"w": wr.trailing(5)}, aggregates={"n": wr.count(), "s": wr.sum("x")}
)


def test_points_before_all_events_and_behind_them_have_empty_windows() -> None:
    points = pa.table({"t": [-100, 100, 0], "k": ["a", "a", "b"]})
    assert COUNT.at(points, EVENTS).select(["n", "s"]).to_pydict() == {
        "n": [0, 0, 0],
        "s": [None, None, None],
    }


def test_a_key_without_events_has_empty_windows() -> None:
    points = pa.table({"t": [9, 9], "k": ["nobody", None]})
    assert COUNT.at(points, EVENTS)["n"].to_pylist() == [0, 0]


def test_no_points_and_no_events_are_tables_without_rows_or_with_empty_windows() -> None:
    nobody = EVENTS.slice(0, 0)
    assert COUNT.at(nobody.select(["t", "k"]), EVENTS).column_names == ["t", "k", "n", "s"]
    assert COUNT.at(nobody).num_rows == 0
    assert COUNT.at(EVENTS.select(["t", "k"]), nobody)["n"].to_pylist() == [0, 0, 0]


def test_points_come_back_as_they_were_in_their_order() -> None:
    points = pa.table({"label": [True, None, False], "k": ["a", "b", "a"], "t": [10, 6, 2]})
    found = COUNT.at(points, EVENTS)
    assert found.select(points.column_names) == points
    assert found["s"].to_pylist() == [3, 2, 1]


def test_a_point_without_a_time_is_named() -> None:
    with pytest.raises(wr.DataError, match="column 't', row 1, value None: a point needs a time"):
        COUNT.at(pa.table({"t": [1, None], "k": ["a", "a"]}), EVENTS)


def test_an_event_without_a_time_is_named_or_left_out() -> None:
    events = pa.table({"t": [1, None, 9], "k": ["a", "b", "a"], "x": [1, 2, 3]})
    with pytest.raises(wr.DataError, match="column 't', row 1, value None"):
        COUNT.at(events)
    assert COUNT.at(events, on_bad="divert")["t"].to_pylist() == [1, 9]


def test_a_sum_that_does_not_fit_names_the_point() -> None:
    events = pa.table({"t": [1, 2, 3], "x": [2**62, 2**62, 1]})
    query = wr.query(time="t", windows={"w": wr.trailing(2)}, aggregates={"s": wr.sum("x")})
    with pytest.raises(wr.DataError, match=f"column 'x', row 2, value {2**63}: .* overflows int64"):
        query.at(events)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (pa.table({"k": ["a"]}), "no column 't'"),
        (pa.table({"t": [1]}), "no column 'k'"),
        (pa.table({"t": ["now"], "k": ["a"]}), "column 't' of the points is string"),
        (pa.table({"t": [1.5], "k": ["a"]}), "column 't' of the points is double"),
        (pa.table({"t": [1], "k": ["a"], "n": [0]}), "the points have a column 'n'"),
    ],
)
def test_points_that_do_not_fit_are_refused(points: pa.Table, message: str) -> None:
    with pytest.raises(wr.QueryError, match=message):
        COUNT.at(points, EVENTS)


def test_points_with_a_zone_are_not_compared_with_events_without_one() -> None:
    events = pa.table({"t": pa.array([datetime(2024, 1, 1)], pa.timestamp("us"))})
    points = pa.table({"t": pa.array([datetime(2024, 1, 1)], pa.timestamp("us", "UTC"))})
    query = wr.query(time="t", windows={"w": wr.trailing("1 day")}, aggregates={"n": wr.count()})
    with pytest.raises(wr.QueryError, match="one of them has a zone"):
        query.at(points, events)


def test_points_of_another_unit_and_of_another_kind_of_string_are_the_same_points() -> None:
    moments = [datetime(2024, 1, 1), datetime(2024, 1, 2)]
    events = pa.table({"t": pa.array(moments, pa.timestamp("us")), "k": ["a", "b"]})
    points = pa.table(
        {"t": pa.array(moments, pa.timestamp("s")), "k": pa.array(["b", "b"]).dictionary_encode()}
    )
    query = wr.query(
        time="t", key="k", windows={"w": wr.trailing("2 days", closed="right")}, aggregates={"n": wr.count()}
    )
    assert query.at(points, events)["n"].to_pylist() == [0, 1]


def test_times_at_the_ends_of_int64_are_asked_without_overflow() -> None:
    ends = [-(2**63) + 1, 0, 2**63 - 2]
    query = wr.query(
        time="t",
        windows={
            "t": wr.trailing(2**62, closed="both"),
            "a": wr.around(before=2**62, after=2**62),
            "l": wr.trailing(5, lag=2**62),
        },
        aggregates={"n": wr.count()},
    )
    found = query.at(pa.table({"t": ends})).to_pydict()
    assert (found["n_t"], found["n_a"], found["n_l"]) == ([1, 1, 1], [1, 1, 1], [0, 0, 0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wr.trailing("0 seconds"), "longer than zero"),
        (lambda: wr.trailing(-5), "longer than zero"),
        (lambda: wr.trailing(5, lag=-1), "lag must not be negative"),
        (lambda: wr.trailing(), "one of the two"),
        (lambda: wr.trailing(5, rows=3), "one of the two"),
        (lambda: wr.trailing(rows=0), "between 1 and"),
        (lambda: wr.trailing(rows=3, closed="both"), 'closed is "left" or "right"'),
        (lambda: wr.trailing(5, closed="middle"), "closed must be left, right, both or neither"),
        (lambda: wr.trailing("1 day", lag=5), "both as durations or both as plain numbers"),
        (lambda: wr.around(before=-1, after=0), "before must not be negative"),
        (lambda: wr.around(before=0, after=0, closed="left"), "holds nothing"),
        (lambda: wr.around(before="1 day", after=5), "both as durations or both as plain numbers"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(wr.QueryError, match=message):
        make()


def test_a_trailing_window_is_refused_where_windows_are_emitted() -> None:
    for refused in (lambda: COUNT.run(EVENTS), COUNT.operator, COUNT.explain):
        with pytest.raises(wr.QueryError, match=r"has no end of its own .* query\.at"):
            refused()
    other = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()}).operator()
    with pytest.raises(wr.QueryError, match=r"query\.at"):
        other.add_window("trailing", wr.trailing(5))


def test_events_with_a_duration_are_refused() -> None:
    query = wr.query(time=wr.span("t", "u"), windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
    with pytest.raises(wr.QueryError, match="events with a duration"):
        query.at(pa.table({"t": [1], "u": [2]}))


def test_two_answers_of_one_name_are_refused() -> None:
    windows = {"b_c": wr.trailing(1), "c": wr.trailing(2)}
    query = wr.query(time="t", windows=windows, aggregates={"a": wr.count(), "a_b": wr.count()})
    with pytest.raises(wr.QueryError, match="would both be called 'a_b_c'"):
        query.at(EVENTS)


def test_fewer_rows_than_asked_for_have_no_answer() -> None:
    found = COUNT.at(pa.table({"t": [10, 4], "k": ["a", "a"]}), EVENTS, min_rows=1)
    assert found["n"].to_pylist() == [1, 1]
    assert COUNT.at(EVENTS, min_rows=2)["n"].to_pylist() == [None, None, None]
    with pytest.raises(wr.QueryError, match="min_rows must be a whole number"):
        COUNT.at(EVENTS, min_rows=-1)


def test_a_function_of_the_users_own_that_fails_names_the_row() -> None:
    bad = wr.aggregate(lift=lambda x: 1 // x, combine=lambda a, b: a + b, identity=0, name="bad")
    query = wr.query(time="t", windows={"w": wr.trailing(5)}, aggregates={"a": bad})
    with pytest.raises(wr.UserFunctionError, match="row 1"):
        query.at(pa.table({"t": [1, 2, 3], "x": [1, 0, 1]}))


def test_expressions_and_filters_are_those_of_run() -> None:
    events = pa.table(
        {
            "t": [1, 2, 3, 4],
            "price": [1.0, 2.0, 3.0, 4.0],
            "n": [1, 10, 100, 0],
            "ok": [True, False, True, True],
        }
    )
    query = wr.query(
        time="t",
        windows={"w": wr.trailing(10, closed="right")},
        aggregates={"total": wr.sum(wr.col("price") * wr.col("n"))},
        where="ok",
    )
    assert query.at(events).select(["t", "total"]).to_pydict() == {
        "t": [1, 3, 4],
        "total": [1.0, 301.0, 301.0],
    }
    assert query.at(pa.table({"t": [2, 3]}), events)["total"].to_pylist() == [1.0, 301.0]


def test_sessions_at_the_ends_of_int64_do_not_meet() -> None:
    query = wr.query(time="t", windows={"s": wr.session(5)}, aggregates={"n": wr.count()})
    ends = pa.table({"t": [-85 * 10**17, 85 * 10**17, 85 * 10**17 + 1]})
    assert query.at(ends)["n"].to_pylist() == [0, 0, 1]
    assert query.at(ends.slice(1), ends.slice(0, 1))["n"].to_pylist() == [0, 0]


def asked(points: pa.Array, events: pa.Array) -> list[int]:
    """How many events the key of each point has, later than all of them."""
    query = wr.query(time="t", key="k", windows={"w": wr.trailing(10)}, aggregates={"n": wr.count()})
    of_points = pa.table({"t": [9] * len(points), "k": points})
    return query.at(of_points, pa.table({"t": [1] * len(events), "k": events}))["n"].to_pylist()


@pytest.mark.parametrize(
    ("points", "type_", "events", "other"),
    [
        ([1, 2**40, None, -1], pa.int64(), [1, 0, None], pa.int32()),
        ([1, 255, None, 9], pa.uint8(), [1, -1, None], pa.int8()),
        ([1, 2**64 - 1, None, 2**63], pa.uint64(), [1, -1, None], pa.int64()),
        ([1, -1, None, 7], pa.int64(), [1, 2**64 - 1, None], pa.uint64()),
    ],
)
def test_a_key_that_the_events_cannot_have_has_no_events(points, type_, events, other) -> None:
    assert asked(pa.array(points, type_), pa.array(events, other)) == [1, 0, 1, 0]


def test_a_key_that_a_running_operator_cannot_have_has_no_events() -> None:
    query = wr.query(time="t", key="k", windows={"w": wr.tumbling(10)}, aggregates={"n": wr.count()})
    operator = query.operator()
    operator.process(pa.table({"t": [1, 2], "k": pa.array([0, 0], pa.int32())}))
    points = pa.table({"t": [5, 5], "k": pa.array([2**40, 0])})
    assert operator.at(points)["n"].to_pylist() == [0, 2]


def test_a_time_that_the_events_cannot_have_is_named() -> None:
    query = wr.query(time="t", windows={"w": wr.trailing(10)}, aggregates={"n": wr.count()})
    with pytest.raises(wr.DataError, match=f"column 't', row 1, value {2**40}"):
        query.at(pa.table({"t": [1, 2**40]}), pa.table({"t": pa.array([1], pa.int32())}))


@pytest.mark.parametrize(
    ("points", "events"),
    [
        (pa.array([7]), pa.array([True])),
        (pa.array(["01"]), pa.array([1])),
        (pa.array([1]), pa.array(["1"])),
        (pa.array([0.1]), pa.array([0.1], pa.float32())),
        (pa.array([0]), pa.array([datetime(1970, 1, 1)])),
    ],
)
def test_keys_of_different_kinds_are_not_compared(points: pa.Array, events: pa.Array) -> None:
    with pytest.raises(wr.QueryError, match=r"column 'k' of the points is .* cannot be compared"):
        asked(points, events)


def test_numbers_are_no_times_of_a_calendar() -> None:
    query = wr.query(time="t", windows={"w": wr.trailing("1 day")}, aggregates={"n": wr.count()})
    with pytest.raises(wr.QueryError, match="column 't' of the points is int64, which cannot be compared"):
        query.at(pa.table({"t": [0]}), pa.table({"t": [datetime(2024, 1, 1)]}))

"""What a technique cannot do is refused in a sentence: at once, or at the row that shows it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from techniques.support import ANY_ORDER, IN_ORDER, KEEPING

import windrow as wr
from benchmarks import techniques


def query(**changes):
    given = {"time": "time", "windows": {"w": wr.tumbling(5)}, "aggregates": {"n": wr.count()}}
    return wr.query(**{**given, **changes})


@pytest.mark.parametrize("technique", IN_ORDER)
def test_a_late_event_is_refused_by_its_row_where_order_is_needed(technique):
    ours = technique(query())
    with pytest.raises(wr.DataError, match=r"column 'time', row 2, value 3: .* in order only"):
        ours.process(pa.table({"time": [1, 4, 3, 6]}))
    ours.process(pa.table({"time": [1, 4, 4, 6]}))
    with pytest.raises(wr.DataError, match=r"row 0, value 5: .* in order only"):
        ours.process(pa.table({"time": [5]}))
    ours.advance(9)
    with pytest.raises(wr.DataError, match=r"row 1, value 8: .* in order only"):
        ours.process(pa.table({"time": [9, 8]}))
    assert ours.finish()["n"].to_pylist() == [1]


@pytest.mark.parametrize("technique", [*ANY_ORDER, *IN_ORDER])
def test_windows_that_are_neither_periodic_nor_sessions_are_refused(technique):
    for window in (wr.band(0, length=9), wr.calendar("1 day"), wr.tumbling(rows=3)):
        with pytest.raises(wr.QueryError, match=f"window 'w' cannot be answered by {technique.__name__}"):
            technique(query(windows={"w": window}))


@pytest.mark.parametrize("technique", IN_ORDER)
def test_sessions_are_refused_where_time_is_cut_by_the_windows_alone(technique):
    why = "each key has sessions of its own" if technique is techniques.Cutty else "the events say"
    with pytest.raises(wr.QueryError, match=f"by {technique.__name__}: .*{why}, and this is session gap 4"):
        technique(query(windows={"w": wr.session(4)}))


@pytest.mark.parametrize("technique", ANY_ORDER)
def test_sessions_whose_gap_comes_from_a_column_are_refused(technique):
    with pytest.raises(
        wr.QueryError, match="the same for all events, and this is session gap from column 'g'"
    ):
        technique(query(windows={"w": wr.session("g")}))


@pytest.mark.parametrize("technique", [t for t in (*ANY_ORDER, *IN_ORDER) if t not in KEEPING])
def test_aggregates_whose_partials_grow_are_refused_where_no_event_is_kept(technique):
    with pytest.raises(wr.QueryError, match=r"aggregate 'm' .* its partial grows with the events"):
        technique(query(aggregates={"m": wr.median("x")}))


def test_aggregate_buckets_refuse_an_aggregate_that_depends_on_order():
    ordered = wr.aggregate(
        lift=lambda x: x, combine=lambda a, b: b, identity=0.0, commutative=False, columns=["x"]
    )
    with pytest.raises(wr.QueryError, match=r"aggregate 'a' .* depends on the order of events"):
        techniques.AggregateBuckets(query(aggregates={"a": ordered}))


def test_panes_refuse_a_measure_without_whole_ticks():
    ours = techniques.Panes(query())
    with pytest.raises(wr.QueryError, match="no whole ticks, and panes need a common divisor"):
        ours.process(pa.table({"time": [0.5]}))


def test_a_leap_over_more_windows_than_there_is_room_for_is_a_limit():
    ours = techniques.AggregateBuckets(query(windows={"w": wr.tumbling(1)}))
    ours.process(pa.table({"time": [1]}))
    with pytest.raises(wr.LimitError, match="nothing of this batch was taken"):
        ours.process(pa.table({"time": [10**12]}))
    assert ours.finish()["n"].to_pylist() == [1]


@pytest.mark.parametrize("technique", [*ANY_ORDER, *IN_ORDER])
def test_a_negative_lateness_is_refused(technique):
    with pytest.raises(wr.QueryError, match="lateness must not be negative"):
        technique(query(), lateness=-1)


@pytest.mark.parametrize("technique", [*ANY_ORDER, *IN_ORDER])
def test_nothing_comes_from_nothing(technique):
    ours = technique(query())
    assert ours.advance(3).num_rows == 0
    ours.process(pa.table({"time": pa.array([], pa.int64())}))
    assert ours.finish().num_rows == 0
    assert ours.counters == techniques.Counters(0, 0, 0)


def _lift(x):
    if x == 7:
        raise ValueError("seven")
    return x


def _larger(a, b):
    return max(a, b)


@pytest.mark.parametrize("technique", [techniques.ReactiveAggregator, techniques.AggregateBuckets])
def test_a_function_that_raises_ends_the_operator_as_nothing_can_be_taken_back(technique):
    mine = wr.aggregate(lift=_lift, combine=_larger, identity=0, columns=["x"], name="mine")
    ours = technique(query(aggregates={"a": mine}))
    with pytest.raises(wr.UserFunctionError, match="a function of 'mine' raised ValueError: seven"):
        ours.process(pa.table({"time": [1, 2, 3], "x": [1, 7, 2]}))
    for _ in range(2):
        with pytest.raises(wr.StateError, match="ended with an error, and cannot go on: seven"):
            ours.process(pa.table({"time": [4], "x": [1]}))

"""Windows that depend on the events, on sequences that were worked out by hand."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windrow as wr
from tests.referee import oracle
from windrow.errors import DataError, QueryError, UserFunctionError


def found(window: wr.Window, t: list[object], **columns: list[object]) -> list[tuple[object, ...]]:
    """(start, end, letters) of every window; the events are a, b, c, ... in order of arrival."""
    letters = [chr(ord("a") + i) for i in range(len(t))]
    table = pa.table({"t": t, "letter": letters, **columns})
    query = wr.query(time="t", windows={"w": window}, aggregates={"all": wr.concat("letter")})
    result = oracle(query, table)
    rows = zip(*(result[name].to_pylist() for name in ("start", "end", "all")), strict=True)
    return sorted(rows, key=lambda row: (row[2], row[:2]))


def after(t: float) -> float:
    return math.nextafter(t, math.inf)


def test_an_event_exactly_one_gap_later_belongs_to_the_session():
    assert found(wr.session(5), [0, 5, 11]) == [(0, 10, "ab"), (11, 16, "c")]


def test_an_event_between_two_sessions_joins_them():
    assert found(wr.session(5), [0, 10, 5]) == [(0, 15, "acb")]


def test_a_session_lasts_as_long_as_its_longest_gap_says():
    window = wr.session("gap")
    assert found(window, [0, 2, 9, 11], gap=[10, 1, 1, 3]) == [(0, 10, "abc"), (11, 14, "d")]


def test_a_gap_may_be_a_duration_in_another_unit():
    moments = [datetime(2024, 1, 1, 0, 0, second) for second in (0, 10, 12, 14)]
    table = pa.table(
        {
            "t": pa.array(moments[:3], pa.timestamp("us")),
            "gap": pa.array([timedelta(seconds=s) for s in (10, 1, 2)], pa.duration("s")),
        }
    )
    query = wr.query(time="t", windows={"w": wr.session("gap")}, aggregates={"n": wr.count()})
    result = oracle(query, table)
    assert result["start"].to_pylist() == [moments[0], moments[2]]
    assert result["end"].to_pylist() == [datetime(2024, 1, 1, 0, 0, 11), moments[3]]


@pytest.mark.parametrize("gap", [None, 0, -1])
def test_a_gap_that_is_no_length_makes_the_row_bad(gap):
    with pytest.raises(DataError, match=f"column 'gap', row 1, value {gap}"):
        found(wr.session("gap"), [0, 1], gap=[1, gap])


def test_a_gap_of_nan_makes_the_row_bad():
    with pytest.raises(DataError, match="column 'gap', row 0, value nan"):
        found(wr.session("gap"), [0.0], gap=[math.nan])


def test_count_windows_count_in_order_of_time_and_arrival():
    assert found(wr.tumbling(rows=2), [3, 1, 3, 2, 9]) == [(3, 4, "ac"), (1, 3, "bd"), (9, 10, "e")]
    assert found(wr.sliding(rows=3, every_rows=2), [1, 2, 3, 4]) == [(1, 4, "abc"), (3, 5, "cd")]
    assert found(wr.sliding(rows=1, every_rows=3), [1, 2, 3, 4]) == [(1, 2, "a"), (4, 5, "d")]


def test_count_windows_over_equal_times_share_their_edges():
    assert found(wr.tumbling(rows=1), [7, 7]) == [(7, 8, "a"), (7, 8, "b")]


def test_after_a_float_comes_the_next_float():
    assert found(wr.tumbling(rows=2), [0.5, 0.75, 1.0]) == [(0.5, after(0.75), "ab"), (1.0, after(1.0), "c")]


def test_windows_on_a_column_end_with_the_first_event_beyond_them():
    window = wr.tumbling(5, on="km")
    assert found(window, [0, 1, 2, 3], km=[1, 4, 5, 12]) == [(0, 2, "ab"), (2, 3, "c"), (3, 4, "d")]


def test_a_reading_that_goes_back_counts_at_the_highest_so_far():
    assert found(wr.tumbling(5, on="km"), [0, 1, 2], km=[4, 6, 3]) == [(0, 1, "a"), (1, 3, "bc")]


def test_windows_on_a_column_slide_and_have_an_offset():
    window = wr.sliding(10, every=5, on="km")
    assert found(window, [0, 1, 2], km=[3, 6, 11]) == [
        (0, 1, "a"),  # [-5, 5)
        (0, 2, "ab"),  # [0, 10)
        (1, 3, "bc"),  # [5, 15)
        (2, 3, "c"),  # [10, 20)
    ]
    shifted = wr.tumbling(5, on="km", offset=1)
    assert found(shifted, [0, 1, 2], km=[0, 1, 6]) == [(0, 1, "a"), (1, 2, "b"), (2, 3, "c")]
    sparse = wr.sliding(2, every=5, on="km")
    assert found(sparse, [0, 1, 2, 3], km=[0, 2, 6, 13]) == [(0, 1, "a"), (2, 3, "c")]


@pytest.mark.parametrize("reading", [None, math.nan, math.inf])
def test_a_window_on_a_column_needs_a_reading(reading):
    with pytest.raises(DataError, match=f"column 'km', row 0, value {reading}"):
        found(wr.tumbling(5, on="km"), [0, 1], km=[reading, 1.0])


def test_a_mark_begins_a_window_and_ends_the_one_before():
    window = wr.punctuated(where="mark")
    marks = [False, True, None, True]
    assert found(window, [1, 2, 3, 5], mark=marks) == [(1, 2, "a"), (2, 5, "bc"), (5, 6, "d")]


def test_two_marks_at_once_bound_a_window_of_no_length():
    window = wr.punctuated(where="mark")
    assert found(window, [1, 1, 1], mark=[True, True, True]) == [(1, 1, "a"), (1, 1, "b"), (1, 2, "c")]


def test_start_and_end_marks_belong_to_their_window():
    window = wr.punctuated(start=pc.field("x") == 1, end=pc.field("x") == 2)
    assert found(window, [0, 1, 2, 3, 4, 5], x=[0, 1, 1, 2, 2, 1]) == [(1, 4, "bcd"), (5, 6, "f")]


def test_an_event_may_be_start_and_end_at_once():
    window = wr.punctuated(start=lambda x: x > 0, end=lambda x: x > 1)
    assert found(window, [0, 1, 2], x=[2, 1, None]) == [(0, 1, "a"), (1, 3, "bc")]


def test_a_predicate_that_is_not_boolean_is_an_error():
    with pytest.raises(QueryError, match="x is int64, not boolean"):
        found(wr.punctuated(where="x"), [0], x=[1])
    with pytest.raises(QueryError, match="not boolean"):
        found(wr.threshold(pc.field("x") + 1), [0], x=[1])
    with pytest.raises(QueryError, match="not true or false"):
        found(wr.threshold(lambda x: x), [0], x=[1])


def test_a_delta_window_ends_where_the_value_has_moved_by_more_than_that():
    window = wr.delta("x", by=2)
    assert found(window, [0, 1, 2, 3, 4], x=[10, 12, 13, 11, 10]) == [(0, 2, "ab"), (2, 4, "cd"), (4, 5, "e")]


def test_a_delta_window_over_several_moves_overlaps_the_next():
    window = wr.delta("x", by=0, moves=2)
    assert found(window, [0, 1, 2, 3], x=[1, 2, 3, 4]) == [
        (0, 2, "ab"),
        (1, 3, "bc"),
        (2, 4, "cd"),
        (3, 4, "d"),
    ]


def test_events_without_a_value_move_nothing():
    window = wr.delta("x", by=1)
    values = [None, 1.0, math.nan, None, 5.0]
    assert found(window, [0, 1, 2, 3, 4], x=values) == [(1, 4, "bcd"), (4, 5, "e")]


def test_a_threshold_window_is_a_longest_run():
    window = wr.threshold("hot")
    hot = [True, True, None, True, False, True]
    assert found(window, [0, 1, 2, 3, 4, 5], hot=hot) == [(0, 2, "ab"), (3, 4, "d"), (5, 6, "f")]


def test_short_runs_are_left_out_by_time_or_by_rows():
    hot = [True, True, False, True, False]
    times = [0, 1, 2, 5, 9]
    assert found(wr.threshold("hot", at_least=4), times, hot=hot) == [(5, 9, "d")]
    assert found(wr.threshold("hot", at_least_rows=2), times, hot=hot) == [(0, 2, "ab")]
    assert found(wr.threshold("hot", at_least=4, at_least_rows=2), times, hot=hot) == []


def test_landmark_windows_reach_from_one_point_to_each_step_with_an_event():
    window = wr.landmark(since=10, every=5)
    assert found(window, [9, 10, 14, 26]) == [(10, 15, "bc"), (10, 30, "bcd")]


def test_a_snapshot_window_is_one_instant():
    assert found(wr.snapshot(), [4, 2, 4]) == [(4, 5, "ac"), (2, 3, "b")]
    assert found(wr.snapshot(), [0.25]) == [(0.25, after(0.25), "a")]


def test_a_window_that_slides_by_rows_looks_back_in_time():
    window = wr.slide_by_rows(3, every_rows=2)
    assert found(window, [0, 1, 2, 4, 9]) == [(-1, 2, "ab"), (2, 5, "cd")]


def test_a_window_that_slides_by_rows_takes_later_events_of_the_same_time_and_comes_once():
    window = wr.slide_by_rows(3, every_rows=2)
    assert found(window, [0, 5, 5, 5, 5]) == [(3, 6, "bcde")]


def test_a_window_of_floats_that_slides_by_rows_is_open_to_the_left():
    window = wr.slide_by_rows(1.0, every_rows=2)
    assert found(window, [0.0, 1.0]) == [(after(0.0), after(1.0), "b")]


def test_the_latest_events_at_every_look_since_which_one_came():
    window = wr.latest(rows=2, every=10)
    assert found(window, [1, 2, 3, 25, 30]) == [(2, 10, "bc"), (3, 30, "cd"), (25, 40, "de")]
    assert found(wr.latest(rows=2, every=10, offset=3), [2, 3]) == [(2, 3, "a"), (2, 13, "ab")]


def every_other(seen, t):
    """A window from every second event to the second one after it."""
    begins = 1 if seen % 2 == 0 else 0
    return seen + 1, begins, begins if seen else 0


def test_a_function_says_what_begins_and_what_ends():
    window = wr.deterministic(every_other, state=0)
    assert found(window, [1, 3, 5, 8]) == [(1, 5, "ab"), (5, 9, "cd")]


def test_a_function_may_begin_two_windows_at_once():
    window = wr.deterministic(lambda n, x: (n + 1, 2 * int(n == 0), int(n > 0)), state=0)
    assert found(window, [1, 2, 3], x=[0, 0, 0]) == [(1, 2, "a"), (1, 3, "ab")]


def test_a_function_cannot_end_more_than_is_open():
    with pytest.raises(UserFunctionError, match="0 begin and 1 end, but 0 are open"):
        found(wr.deterministic(lambda state, x: (state, 0, 1), state=0), [1], x=[1])


def test_null_is_nothing_that_a_function_can_read():
    with pytest.raises(DataError, match="column 'x', row 1, value None"):
        found(wr.deterministic(lambda state, x: (state, 0, 0), state=0), [1, 2], x=[1, None])


def test_eviction_comes_before_the_trigger():
    window = wr.nondeterministic(evict=lambda rows: int(rows > 2), trigger=lambda x: x == 1)
    assert found(window, [1, 2, 3, 4], x=[1, 0, 1, 1]) == [(1, 2, "a"), (2, 4, "bc"), (3, 5, "cd")]


def test_eviction_by_time_and_a_state_of_its_own():
    window = wr.nondeterministic(
        evict=lambda oldest, t: int(oldest <= t - 3),
        trigger=lambda state: state % 2 == 1,
        update=lambda state: state + 1,
    )
    assert found(window, [0, 1, 5, 6]) == [(0, 2, "ab"), (5, 7, "cd")]


def test_what_is_evicted_in_full_triggers_nothing():
    window = wr.nondeterministic(evict=lambda rows: rows, trigger=lambda x: True)
    assert found(window, [0, 1], x=[1, 1]) == []


def test_a_function_cannot_evict_more_than_there_is():
    window = wr.nondeterministic(evict=lambda rows: rows + 1, trigger=lambda x: True)
    with pytest.raises(UserFunctionError, match="2 of 1 events cannot leave"):
        found(window, [0], x=[1])


def test_every_key_has_a_sequence_of_its_own():
    table = pa.table({"t": [1, 2, 3, 4], "k": ["a", "b", "a", None], "x": [1, 2, 3, 4]})
    query = wr.query(time="t", key="k", windows={"w": wr.tumbling(rows=2)}, aggregates={"x": wr.sum("x")})
    assert sorted(oracle(query, table)["x"].to_pylist()) == [2, 4, 4]

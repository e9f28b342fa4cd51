"""Windows against the naive model of Tables I and II."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies.compared import SPECS, run_naive, run_window, steps
from profiles import examples

from windrow import policies as wp


@examples(120)
@given(SPECS, steps(), st.booleans())
def test_events_on_the_tape_are_those_of_the_naive_model(spec, made, partial):
    assert run_window(spec, made, partial=partial) == run_naive(spec, made, partial=partial)


@examples(60)
@given(SPECS, steps(), st.booleans())
def test_handlers_see_the_same_events_with_the_same_content(spec, made, partial):
    assert run_window(spec, made, handlers=True, partial=partial) == run_naive(spec, made, partial=partial)


@examples(60)
@given(SPECS, steps())
def test_batches_make_no_difference(spec, made):
    assert run_window(spec, made, one_by_one=True) == run_window(spec, made)


@examples(60)
@given(SPECS, steps())
def test_a_clock_that_is_read_late_is_caught_up_with_in_succession(spec, made):
    told = run_window(spec, made, late=True)
    expected = run_naive(spec, made)
    # What nobody waited for on the clock's side is told by the next insertion, in the same order.
    assert told == expected


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 30))
def test_count_is_delta_of_a_counter_one_row_later(n, m, rows):
    """Figure 2 of the paper."""

    def processed(spec, count):
        table = pa.table({"id": list(range(count))})
        window = wp.SlidingWindow(spec, table.schema, partial_windows=False)
        window.record("trigger")
        tape = window.insert(table)
        return [tape.content(k)["id"].to_pylist() for k in range(len(tape))]

    by_count = processed(f"sliding, count({n}), count({m})", rows)
    by_delta = processed(f"sliding, delta(id, {n - 1}), delta(id, {m - 1})", rows + 1)
    assert by_count == by_delta


def test_a_window_of_no_rows_triggers_and_keeps_nothing():
    table = pa.table({"x": [1, 2, 3]})
    window = wp.SlidingWindow("sliding, count(0), count(1)", table.schema)
    window.record("trigger")
    tape = window.insert(table)
    assert tape.row.tolist() == [0, 1, 2]
    assert len(window) == 0


def test_columns_that_nobody_needs_are_not_kept():
    table = pa.table({"x": [1, 2, 3], "y": ["a", "b", "c"]})
    window = wp.SlidingWindow("sliding, count(2), count(1)", table.schema, columns=["y"])
    window.insert(table)
    assert window.content().to_pydict() == {"y": ["b", "c"]}


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_a_log_forgets_rows_that_no_subwindow_holds(rows):
    schema = pa.schema([("k", pa.int64()), ("x", pa.int64())])
    window = wp.SlidingWindow("sliding, count(3), count(1), partitioned", schema, partition_by="k")
    moved = []
    window.log.on_moved(moved.append)
    total = 20_000 if rows > 7 else 9_000
    for begin in range(0, total, rows):
        ids = list(range(begin, min(begin + rows, total)))
        window.insert(pa.table({"k": [i % 5 for i in ids], "x": ids}))
    assert moved
    assert window.log.rows <= 2 * 4096 + 2 * rows
    for k in range(5):
        last = [i for i in range(total) if i % 5 == k][-3:]
        assert window.content(k)["x"].to_pylist() == last


def test_numbers_of_partitions_that_are_gone_are_used_again():
    schema = pa.schema([("k", pa.int64())])
    window = wp.TumblingWindow("tumbling, count(2), partitioned", schema, partition_by="k")
    renumbered = []
    window.subwindows.on_renumbered(renumbered.append)
    for begin in range(0, 6000, 500):
        keys = [k for k in range(begin, begin + 500) for _ in range(2)]
        window.insert(pa.table({"k": [*keys, -begin - 1]}))
    assert renumbered
    assert window.subwindows.known < 2000
    assert sorted(window.partitions()["k"].to_pylist()) == sorted(-b - 1 for b in range(0, 6000, 500))

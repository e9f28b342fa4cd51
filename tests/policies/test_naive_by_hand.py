"""The naive windows and operators against answers that a person has worked out, most of them the paper's."""

from __future__ import annotations

import pytest

import windrow as wr
from tests.referee.policies import (
    ORDERS,
    PUNCTUATION,
    NaiveAggregate,
    NaiveDeduplicate,
    NaiveJoin,
    NaiveSort,
    NaiveWindow,
)
from windrow.policies import spec as sp

SECOND = 1_000_000_000


def heard(spec, rows, *, names=("trigger", "before_flush"), by=(), partial=True):
    """What is told of some events while rows come: at which row, and the ids in the window."""
    told = []
    coming = [0]
    window = NaiveWindow(
        spec, lambda e: told.append((e.name, coming[0], ids(e))), partition_by=by, partial=partial
    )
    for coming[0], row in enumerate(rows):
        window.insert(row)
    return [(at, content) for name, at, content in told if name in names]


def ids(event):
    return [row["id"] for row in event.content]


def numbered(count, **columns):
    return [{"id": i, **{name: values[i] for name, values in columns.items()}} for i in range(count)]


# -- Figure 2 ------------------------------------------------------------------------------------------


def test_figure_2_on_the_left_the_second_tuple_triggers_with_itself_in_the_window():
    found = heard(sp.sliding(sp.count(2), sp.count(1)), numbered(4), partial=False)
    assert found == [(1, [0, 1]), (2, [1, 2]), (3, [2, 3])]


def test_figure_2_on_the_right_the_third_tuple_triggers_and_is_not_in_the_window():
    found = heard(sp.sliding(sp.delta("id", 1), sp.delta("id", 0)), numbered(5), partial=False)
    assert found == [(2, [0, 1]), (3, [1, 2]), (4, [2, 3])]


# -- Table I -------------------------------------------------------------------------------------------


def test_a_tumbling_count_window_holds_the_tuple_that_fills_it():
    assert heard(sp.tumbling(sp.count(2)), numbered(5)) == [(1, [0, 1]), (3, [2, 3])]


def test_a_tumbling_delta_window_is_flushed_before_the_tuple_that_breaks_the_invariant():
    rows = numbered(5, t=[0, 1, 10, 11, 21])
    # 10 - 0 is not more than 10, so 0, 1 and 10 are one window; 11 breaks it; 21 - 11 does not.
    assert heard(sp.tumbling(sp.delta("t", 10)), rows) == [(3, [0, 1, 2])]


def test_a_tumbling_window_of_punctuations_is_flushed_by_them_alone():
    told = []
    window = NaiveWindow(sp.tumbling(sp.punct()), told.append)
    for row in numbered(3):
        window.insert(row)
    window.punctuate()
    window.punctuate()
    window.insert({"id": 3})
    window.punctuate()
    assert [ids(e) for e in told if e.name == "before_flush"] == [[0, 1, 2], [3]]


def test_a_tumbling_window_of_time_is_flushed_a_period_after_its_first_tuple_and_every_period_after_that():
    told = []
    window = NaiveWindow(
        sp.tumbling(sp.time(10)), lambda e: told.append((e.name, window.now // SECOND, ids(e)))
    )
    window.advance(3 * SECOND)
    window.insert({"id": 0})
    window.advance(15 * SECOND)
    window.insert({"id": 1})
    window.advance(40 * SECOND)
    window.insert({"id": 2})
    window.advance(100 * SECOND)
    flushed = [(at, content) for name, at, content in told if name == "before_flush"]
    # 3 + 10; 13 + 10; at 33 it is empty and discarded, so the next one begins at 40.
    assert flushed == [(13, [0]), (23, [1]), (50, [2])]


# -- Table II ------------------------------------------------------------------------------------------

POLICIES = {sp.Count: sp.count(2), sp.Delta: sp.delta("t", 1), sp.Time: sp.time(10)}
EVERY = {sp.Count: sp.count(1), sp.Delta: sp.delta("t", 0), sp.Time: sp.time(10)}
LETTERS = {"before_evict": "E", "after_insert": "I", "trigger": "T"}


@pytest.mark.parametrize(("eviction", "trigger"), ORDERS, ids=lambda kind: kind.__name__.lower())
def test_the_steps_of_a_tuple_into_a_full_window_are_those_of_table_2(eviction, trigger):
    told = []
    window = NaiveWindow(sp.sliding(POLICIES[eviction], EVERY[trigger]), told.append)
    for row in numbered(3, t=[0, 1, 2]):
        del told[:]
        window.insert(row)
    assert "".join(LETTERS[e.name] for e in told if e.name in LETTERS) == ORDERS[eviction, trigger]


def test_a_count_trigger_counts_tuples_since_the_last_one():
    found = heard(sp.sliding(sp.count(3), sp.count(2)), numbered(6))
    assert found == [(1, [0, 1]), (3, [1, 2, 3]), (5, [3, 4, 5])]


def test_a_delta_trigger_compares_with_the_last_tuple_that_triggered_even_after_it_was_evicted():
    rows = numbered(6, t=[0, 4, 5, 6, 9, 12])
    # 0 is the reference; 6 is more than 5 away; then 12 is more than 5 away from 6.
    found = heard(sp.sliding(sp.count(1), sp.delta("t", 5)), rows)
    assert found == [(3, [2]), (5, [4])]


def test_tuples_older_than_the_period_leave_by_themselves_and_at_one_instant_before_the_trigger():
    told = []
    spec = sp.sliding(sp.time(10), sp.time(5))
    window = NaiveWindow(spec, lambda e: told.append((e.name, window.now, ids(e))))
    window.insert({"id": 0})
    window.advance(5 * SECOND)
    window.insert({"id": 1})
    window.advance(15 * SECOND)
    triggers = [(at // SECOND, content) for name, at, content in told if name == "trigger"]
    assert triggers == [(5, [0]), (10, [0, 1]), (15, [1])]
    assert [at for name, at, _ in told if name == "before_evict"] == [10 * SECOND + 1]


def test_partial_windows_trigger_or_not():
    spec = sp.sliding(sp.count(3), sp.count(1))
    assert [at for at, _ in heard(spec, numbered(4))] == [0, 1, 2, 3]
    assert [at for at, _ in heard(spec, numbered(4), partial=False)] == [2, 3]


def test_a_window_of_time_is_full_once_it_is_as_old_as_its_period():
    told = []
    window = NaiveWindow(sp.sliding(sp.time(10), sp.count(1)), told.append, partial=False)
    window.insert({"id": 0})
    window.advance(9 * SECOND)
    window.insert({"id": 1})
    window.advance(10 * SECOND)
    window.insert({"id": 2})
    assert [ids(e) for e in told if e.name == "trigger"] == [[0, 1, 2]]


# -- partitions ----------------------------------------------------------------------------------------


def test_each_partition_is_a_window_of_its_own():
    rows = numbered(6, k=["a", "b", "a", "b", "b", "b"])
    spec = sp.tumbling(sp.count(2), partitioned=True)
    assert heard(spec, rows, by=["k"]) == [(2, [0, 2]), (3, [1, 3]), (5, [4, 5])]


def evicted(spec, rows, by=("k",)):
    told = []
    window = NaiveWindow(spec, told.append, partition_by=by)
    for row in rows:
        window.insert(row)
    return [(e.partition[0], ids(e)) for e in told if e.name == "partition_eviction"]


@pytest.mark.parametrize(
    ("selection", "gone"),
    [("least recently updated", "b"), ("least frequently updated", "b"), ("oldest", "a")],
)
def test_a_partition_is_evicted_to_make_space_by_selection(selection, gone):
    limited = sp.sliding(
        sp.count(9),
        sp.count(1),
        partitioned=True,
        partition_eviction=sp.partition_count(2),
        selection=selection,
    )
    rows = numbered(4, k=["a", "b", "a", "c"])
    assert [partition for partition, _ in evicted(limited, rows)] == [gone]


def test_partitions_are_removed_until_the_next_tuple_fits():
    spec = sp.sliding(sp.count(9), sp.count(1), partitioned=True, partition_eviction=sp.tuple_count(3))
    rows = numbered(8, k=["a", "b", "c", "d", "d", "d", "d", "d"])
    # d makes a leave; the second d makes b leave, then c; the fourth finds d alone, which begins anew.
    assert evicted(spec, rows) == [("a", [0]), ("b", [1]), ("c", [2]), ("d", [3, 4, 5])]


def test_an_old_partition_is_removed_at_the_next_insertion():
    told = []
    spec = sp.sliding(sp.count(9), sp.count(1), partitioned=True, partition_eviction=sp.partition_age(10))
    window = NaiveWindow(spec, told.append, partition_by=["k"])
    window.insert({"id": 0, "k": "a"})
    window.advance(30 * SECOND)
    assert [e for e in told if e.name == "partition_eviction"] == []
    window.insert({"id": 1, "k": "b"})
    assert [e.partition for e in told if e.name == "partition_eviction"] == [("a",)]


# -- operators -----------------------------------------------------------------------------------------


def test_listing_2_sums_each_group_of_a_full_window():
    naive = NaiveAggregate(sp.tumbling(sp.count(3)), {"total": wr.sum("value")}, group_by=["tid"])
    naive.process([{"tid": t, "value": v} for t, v in [("x", 1), ("y", 2), ("x", 4), ("y", 8)]])
    assert naive.given == [{"tid": "x", "total": 5}, {"tid": "y", "total": 2}, PUNCTUATION]


def test_a_join_gives_matches_oldest_first_and_rows_that_leave_alone():
    everything = sp.sliding(sp.count(2), sp.count(1))
    join = NaiveJoin(everything, everything, lambda a, b: a["k"] == b["k"], outer=["left"], separate=True)
    join.process([{"k": 1}, {"k": 2}], "left")
    join.process([{"k": 1}, {"k": 1}], "right")
    join.process([{"k": 1}, {"k": 3}], "left")
    one = ({"k": 1}, {"k": 1})
    assert join.given["matches"] == [one, PUNCTUATION, one, PUNCTUATION, one, one, PUNCTUATION]
    assert join.given["left"] == [({"k": 2}, None)]


def test_a_one_sided_join_looks_up_and_keeps_nothing_of_one_side():
    join = NaiveJoin(
        sp.sliding(sp.count(2), sp.count(1)),
        sp.sliding(sp.count(0), sp.count(1)),
        lambda a, b: a["k"] == b["k"],
    )
    join.process([{"k": 1}], "right")
    join.process([{"k": 1}], "left")
    assert join.given["matches"] == []
    join.process([{"k": 1}], "right")
    assert join.given["matches"] == [({"k": 1}, {"k": 1}), PUNCTUATION]


def test_a_progressive_sort_gives_the_first_in_order_for_each_tuple_that_comes_to_a_full_window():
    naive = NaiveSort(sp.sliding(sp.count(2), sp.count(1)), [("x", "ascending")])
    naive.process([{"x": x} for x in (3, 1, 2, 5, 4)])
    naive.finish()
    assert [row["x"] for row in naive.given if row is not PUNCTUATION] == [1, 2, 3, 4, 5]


def test_a_batch_sort_sorts_each_window():
    naive = NaiveSort(sp.tumbling(sp.count(2)), [("x", "descending")])
    naive.process([{"x": x} for x in (1, 3, 4, 2, 7)])
    assert [row["x"] for row in naive.given if row is not PUNCTUATION] == [3, 1, 4, 2]
    naive.finish()
    assert naive.given[-2:] == [{"x": 7}, PUNCTUATION]


def test_a_row_passes_once_in_as_many_rows_as_are_remembered():
    naive = NaiveDeduplicate(sp.sliding(sp.count(2), sp.count(1)), ["x"])
    naive.process([{"x": x} for x in (1, 1, 2, 3, 1, 1)])
    assert [row["x"] for row in naive.given] == [1, 2, 3, 1]

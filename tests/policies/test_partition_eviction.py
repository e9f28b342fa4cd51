"""Partition eviction: who goes, when, and who selects. All of it also against the naive model in `test_windows`."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from tests.referee.policies import NaiveWindow
from windrow import policies as wp
from windrow.errors import DataError, UserFunctionError
from windrow.policies import spec as specs

SCHEMA = pa.schema([("k", pa.int64()), ("id", pa.int64())])


def rows(keys, begin=0):
    return pa.table({"k": keys, "id": list(range(begin, begin + len(keys)))}, SCHEMA)


def window_with(evicting, clock=None, **options):
    spec = wp.sliding(wp.count(10), wp.count(1), partitioned=True, partition_eviction=evicting, **options)
    return wp.SlidingWindow(spec, SCHEMA, partition_by="k", clock=clock)


@pytest.mark.parametrize(
    ("selection", "gone"),
    [("least recently updated", 2), ("least frequently updated", 3), ("oldest", 1)],
)
def test_selections_select_what_they_say(selection, gone):
    window, evicted = window_with(wp.partition_count(3), selection=selection), []
    window.on_partition_eviction(
        lambda event: evicted.append((event.partition, event.content["id"].to_pylist()))
    )
    window.insert(rows([1, 2, 2, 2, 3, 1, 1, 9]))
    assert [key for key, _ in evicted] == [gone]
    assert sorted(window.partitions()["k"].to_pylist()) == sorted({1, 2, 3, 9} - {gone})


def test_tuples_are_evicted_by_whole_subwindows_until_the_next_fits():
    window, evicted = window_with(wp.tuple_count(5)), []
    window.on_partition_eviction(lambda event: evicted.append((event.partition, event.size)))
    window.insert(rows([1, 1, 1, 2, 3, 3, 3, 3, 3, 3]))
    assert evicted == [(1, 3), (2, 1), (3, 5)]
    assert window.partitions()["size"].to_pylist() == [1]


def test_old_partitions_go_at_the_next_insertion_into_any():
    clock = wp.VirtualClock()
    window, evicted = window_with(wp.partition_age("10 seconds"), clock), []
    window.on_partition_eviction(lambda event: evicted.append(event.partition))
    window.insert(rows([1, 2]))
    clock.advance("6 seconds")
    window.insert(rows([2]))
    clock.advance("5 seconds")
    assert evicted == []
    window.insert(rows([3]))
    assert evicted == [1]
    clock.advance("1 minute")
    window.insert(rows([3]))
    assert evicted == [1, 2, 3]
    assert window.content(3).num_rows == 1


def test_a_function_selects_from_a_table_of_partitions():
    seen = []

    def largest(table):
        seen.append(table.column_names)
        return int(np.argmax(table["size"].to_numpy()))

    window, evicted = window_with(wp.partition_count(2), selection=largest), []
    window.on_partition_eviction(lambda event: evicted.append(event.partition))
    asked = []
    window.on_partition_selection(lambda event: asked.append((event.row, event.partition)))
    window.insert(rows([1, 2, 2, 3, 1, 4]))
    assert evicted == [2, 1]
    assert asked == [(3, 3), (5, 4)]
    assert seen[0] == ["k", "size", "updates", "created", "updated", "age"]


def test_a_function_may_select_several_by_a_mask():
    window = window_with(wp.tuple_count(4), selection=lambda table: np.ones(len(table), bool))
    window.insert(rows([1, 2, 3, 4, 5]))
    assert window.partitions()["k"].to_pylist() == [5]


@pytest.mark.parametrize("answer", [[], [7], [-1], ["a"], [[0]], None, 0.5])
def test_a_function_that_selects_nothing_that_is_there_is_named(answer):
    def strange(table):
        return answer

    window = window_with(wp.partition_count(2), selection=strange)
    with pytest.raises(UserFunctionError, match="'strange' must return rows of the table") as raised:
        window.insert(rows([1, 2, 3, 3]))
    assert "3 of 4 rows were taken" in raised.value.__notes__[0]
    assert sorted(window.partitions()["k"].to_pylist()) == [2, 3]


@pytest.mark.parametrize("selection", specs.SELECTIONS)
@pytest.mark.parametrize("evicting", [wp.partition_count(40), wp.tuple_count(150)])
def test_many_partitions_come_and_go_as_in_the_naive_model(selection, evicting):
    chance = random.Random(3)
    window = window_with(evicting, selection=selection)
    window.record("partition_eviction", "trigger")
    told = []
    naive = NaiveWindow(window.spec, told.append, partition_by=["k"])
    found = []
    for begin in range(0, 6000, 500):
        keys = [int(chance.paretovariate(0.7)) % 3000 for _ in range(500)]
        tape = window.insert(rows(keys, begin))
        found += [(tape.event(j).kind, tape.event(j).partition) for j in range(len(tape))]
        for i, key in enumerate(keys):
            naive.insert({"k": key, "id": begin + i})
    wanted = ("partition_eviction", "trigger")
    assert found == [(event.name, event.partition[0]) for event in told if event.name in wanted]


def by_delta(eviction, clock=None, **options):
    spec = wp.sliding(wp.delta("d", 3), wp.count(1), partitioned=True, partition_eviction=eviction, **options)
    schema = pa.schema([("k", pa.string()), ("d", pa.int64())])
    window = wp.SlidingWindow(spec, schema, partition_by="k", clock=clock)
    window.record("partition_eviction")
    return window


def test_a_partition_evicted_by_count_may_begin_anew_with_any_value():
    window = by_delta(wp.partition_count(2))
    tape = window.insert(pa.table({"k": ["a", "b", "c", "a"], "d": [9, 1, 1, 2]}))
    assert [window.key_of(p) for p in tape.partition] == ["a", "b"]
    assert window.content("a")["d"].to_pylist() == [2]


def test_a_partition_evicted_for_its_rows_may_begin_anew_with_any_value():
    window = by_delta(wp.tuple_count(2))
    window.insert(pa.table({"k": ["a", "a"], "d": [8, 9]}))
    window.insert(pa.table({"k": ["b", "a"], "d": [1, 2]}))
    assert window.content("a")["d"].to_pylist() == [2]


def test_a_row_that_evicts_its_own_partition_is_compared_before():
    window = by_delta(wp.tuple_count(2))
    window.insert(pa.table({"k": ["a", "a"], "d": [8, 9]}))
    with pytest.raises(DataError, match="this comes after 9"):
        window.insert(pa.table({"k": ["a"], "d": [2]}))


def test_a_partition_evicted_for_its_age_may_begin_anew_with_any_value():
    clock = wp.VirtualClock()
    window = by_delta(wp.partition_age(5), clock)
    window.insert(pa.table({"k": ["a"], "d": [9]}))
    clock.advance(6)
    window.insert(pa.table({"k": ["b", "a"], "d": [1, 2]}))
    assert window.content("a")["d"].to_pylist() == [2]


def test_a_partition_evicted_by_a_function_may_begin_anew_with_any_value():
    window = by_delta(wp.partition_count(2), selection=lambda subwindows: [0])
    window.insert(pa.table({"k": ["a", "b", "c", "a"], "d": [9, 1, 1, 2]}))
    assert window.partitions()["k"].to_pylist() == ["c", "a"]


def test_values_that_go_back_where_nothing_was_evicted_are_refused_and_nothing_has_changed():
    window = by_delta(wp.partition_count(2))
    window.insert(pa.table({"k": ["a", "b"], "d": [5, 6]}))
    with pytest.raises(DataError, match="this comes after 3") as raised:
        window.insert(pa.table({"k": ["b", "c", "c"], "d": [6, 3, 2]}))
    assert raised.value.row == 2
    assert window.partitions()["k"].to_pylist() == ["a", "b"]
    assert window.content("b")["d"].to_pylist() == [6]
    assert window.taken == 2
    assert len(window) == 2

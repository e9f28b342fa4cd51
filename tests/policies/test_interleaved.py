"""Rows of both sides of a join taken together give what they give row by row, and what the naive model gives."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies.support import SCHEMA, HeldUpClock, flat, stream, table_of
from policies.test_join import CONDITIONS, KEPT, OUTER, SIDES, paired

from tests.referee.policies import NaiveJoin
from windrow import policies as wp
from windrow.errors import DataError

EVICTIONS = ["", ", partitioned", ", partitioned, partitionCount(2)", ", partitioned, tupleCount(4)"]


@given(
    left=st.sampled_from(KEPT),
    right=st.sampled_from(KEPT),
    condition=st.sampled_from(sorted(CONDITIONS)),
    how=st.sampled_from(sorted(OUTER)),
    evicted=st.sampled_from(EVICTIONS),
    apart=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_any_join_of_rows_in_one_order_agrees_with_the_model(
    left, right, condition, how, evicted, apart, seed
):
    options, match = CONDITIONS[condition]
    columns = ["k"] if evicted else []
    specs = wp.parse(left + evicted), wp.parse(right + evicted)
    unmatched = "apart" if apart else "together"
    join = wp.Join(*specs, how=how, unmatched=unmatched, partition_by=columns, **options)
    naive = NaiveJoin(*specs, match, outer=OUTER[how], partition_by=(columns, columns), separate=apart)
    ports = ["matches", *(OUTER[how] if apart else [])]
    found = {port: [] for port in ports}
    chance = random.Random(seed)
    for rows in [thing for what, thing in stream(seed, 60) if what == "rows"]:
        sides = np.array([chance.randrange(2) for _ in rows])
        places = tuple(np.flatnonzero(sides == side) for side in (0, 1))
        tables = tuple(table_of(rows).take(pa.array(p)) for p in places)
        for port, stretch in zip(ports, join.process_together(tables, places), strict=True):
            found[port] += flat(stretch)
        for row, side in zip(rows, sides, strict=True):
            naive.process([row], SIDES[side])
    expected = {"matches": [paired(item) for item in naive.given["matches"]]}
    expected |= {
        side: [pair[i] for pair in naive.given[side]] for i, side in enumerate(SIDES) if side in ports
    }
    assert found == expected


def test_rows_that_left_by_the_clock_are_not_met():
    clock = HeldUpClock()
    window = "sliding, time(2), count(1)"
    join = wp.Join(window, window, on="g", how="full", clock=clock)
    row = {"id": 0, "t": 0, "k": "a", "g": "u", "x": 1}
    one, none = table_of([row]), SCHEMA.empty_table()
    at = np.array([0]), np.array([], np.int64)
    assert len(join.process_together((one, none), at)[0]) == 0
    clock.skip_to(3_000_000_000)
    (given,) = join.process_together((none, one), at[::-1])
    assert [(r["id"], r["id_right"]) for r in given.table.to_pylist()] == [(0, None)]


@pytest.mark.parametrize("wrong", [0, 1])
def test_rows_that_are_refused_change_neither_side(wrong):
    window = "sliding, delta(t, 9), count(1)"
    join = wp.Join(window, window, on="g")
    rows = [table_of([{"id": i, "t": 5, "k": "a", "g": "u", "x": 1}]) for i in range(2)]
    places = np.array([0]), np.array([1])
    assert len(join.process_together(tuple(rows), places)[0]) == 1
    back = list(rows)
    back[wrong] = table_of([{"id": 2, "t": 3, "k": "a", "g": "u", "x": 1}])
    with pytest.raises(DataError, match="column 't', row 0, value 3"):
        join.process_together(tuple(back), places)
    assert len(join.process_together(tuple(rows), places)[0]) == 3


def test_a_predicate_that_raises_changes_neither_side():
    failing = []

    def near(left, right):
        if failing:
            raise ZeroDivisionError
        return np.ones(len(left), np.bool_)

    window = "sliding, count(2), count(1)"
    joins = [wp.Join(window, window, match=near, how="full") for _ in range(2)]
    steps = [[{"id": 10 * n + i, "t": 0, "k": "a", "g": "u", "x": 1} for i in range(5)] for n in range(4)]
    places = np.array([0, 2, 3]), np.array([1, 4])
    for n, rows in enumerate(steps):
        tables = tuple(table_of(rows).take(pa.array(p)) for p in places)
        if n == 2:
            failing.append(True)
            with pytest.raises(ZeroDivisionError):
                joins[0].process_together(tables, places)
            failing.clear()
        one, other = (join.process_together(tables, places)[0] for join in joins)
        assert flat(one) == flat(other)
        assert len(one)

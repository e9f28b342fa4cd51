"""Sort: batch and progressive, against the naive model, for columns of all kinds."""

from __future__ import annotations

import math
from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies.support import ONE_BY_ONE, flat, run, stream, table_of

from tests.referee.policies import PUNCTUATION, NaiveSort
from windrow import policies as wp
from windrow.errors import DataError, QueryError, StateError

ORDERS = st.lists(
    st.tuples(st.sampled_from(["x", "g", "t", "k"]), st.sampled_from(["ascending", "descending"])),
    min_size=1,
    max_size=3,
    unique_by=lambda order: order[0],
)
WINDOWS = [
    *ONE_BY_ONE,
    "tumbling, count(4)",
    "tumbling, delta(t, 6), partitioned, partitionAge(2)",
    "tumbling, punct(), partitioned",
]


@given(window=st.sampled_from(WINDOWS), order=ORDERS, seed=st.integers(0, 10**6), last=st.booleans())
def test_any_order_over_any_window_agrees_with_the_model(window, order, seed, last):
    spec = wp.parse(window)
    by = ["k"] if spec.partitioned else []
    found, expected = run(
        lambda clock: wp.Sort(spec, order, partition_by=by, clock=clock, partial=last),
        NaiveSort(spec, order, partition_by=by, partial=last),
        stream(seed),
    )
    assert found == expected


@given(window=st.sampled_from(WINDOWS), seed=st.integers(0, 10**6), cut=st.integers(0, 10))
def test_a_sort_that_is_restored_goes_on_as_if_nothing_had_been(window, seed, cut):
    spec = wp.parse(window)
    clock = wp.VirtualClock()
    first, second = (
        wp.Sort(spec, ["g", "x"], partition_by=["k"] if spec.partitioned else [], clock=clock)
        for _ in range(2)
    )
    batches = [table_of(thing) for what, thing in stream(seed) if what == "rows"]
    for batch in batches[:cut]:
        first.process(batch)
    second.restore(first.snapshot())
    for batch in batches[cut:]:
        assert flat(first.process(batch)[0]) == flat(second.process(batch)[0])
    assert flat(first.finish()[0]) == flat(second.finish()[0])


def values(operator, column, name="x"):
    out = operator.process(pa.table({name: column}))[0].table.to_pylist()
    return [row[name] for row in out + operator.finish()[0].table.to_pylist()]


@pytest.mark.parametrize("window", ["sliding, count(9), count(1)", "tumbling, count(9)"])
@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([3, None, 1, 2], [1, 2, 3, None]),
        ([2.5, math.nan, -0.0, None, -math.inf], [-math.inf, -0.0, 2.5, "nan", None]),
        (["b", "a", None, "c"], ["a", "b", "c", None]),
        ([True, False], [False, True]),
        ([datetime(2026, 1, 2), datetime(2026, 1, 1)], [datetime(2026, 1, 1), datetime(2026, 1, 2)]),
    ],
)
def test_columns_of_all_kinds_have_an_order_and_null_comes_last(window, column, expected):
    last = [v for v in expected if v in ("nan", None)]
    for direction in ("ascending", "descending"):
        found = ["nan" if v != v else v for v in values(wp.Sort(window, ("x", direction)), column)]
        known = [v for v in expected if v not in ("nan", None)]
        assert found == (known if direction == "ascending" else known[::-1]) + last


def test_a_stream_that_is_out_of_order_by_a_bound_comes_out_in_order():
    rng = np.random.default_rng(3)
    late = np.arange(20_000) + rng.integers(0, 500, 20_000)
    order = np.argsort(late, kind="stable")
    operator = wp.Sort("sliding, count(600), count(1)", "x")
    found = []
    for part in np.array_split(order, 37):
        found += operator.process(pa.table({"x": part}))[0].table["x"].to_pylist()
    found += operator.finish()[0].table["x"].to_pylist()
    assert found == list(range(20_000))


def test_new_strings_fall_between_old_ones():
    operator = wp.Sort("sliding, count(4), count(1)", ("x", "descending"))
    found = []
    for letters in (["m", "c"], ["x", "a"], ["z", "b"], ["y", "n"]):
        found += operator.process(pa.table({"x": letters}))[0].table["x"].to_pylist()
    assert found == ["x", "z", "m", "y"]


def test_equal_rows_stay_in_the_order_in_which_they_came():
    operator = wp.Sort("sliding, count(2), count(1)", "x")
    out = operator.process(pa.table({"x": [1, 1, 1, 1], "id": [0, 1, 2, 3]}))[0]
    assert out.table["id"].to_pylist() == [0, 1]


def test_a_progressive_sort_punctuates_what_one_row_makes_leave():
    operator = wp.Sort("sliding, delta(x, 1), count(1)", "x")
    out = flat(operator.process(pa.table({"x": [1, 2, 9]}))[0])
    assert out == [{"x": 1}, {"x": 2}, PUNCTUATION]


def test_what_cannot_be_sorted_is_refused():
    with pytest.raises(QueryError, match="a window of no rows sorts nothing"):
        wp.Sort("sliding, count(0), count(1)", "x")
    with pytest.raises(QueryError, match="a direction is 'ascending' or 'descending', not 'up'"):
        wp.Sort("tumbling, count(2)", [("x", "up")])
    with pytest.raises(QueryError, match="say by which columns"):
        wp.Sort("tumbling, count(2)", [])
    with pytest.raises(QueryError, match="Sort by 'x' cannot work on a column of type list"):
        wp.Sort("tumbling, count(2)", "x").process(pa.table({"x": [[1]]}))
    huge = pa.table({"x": pa.array([1, 2**64 - 1], pa.uint64())})
    with pytest.raises(DataError, match="column 'x', row 1"):
        wp.Sort("sliding, count(2), count(1)", "x").process(huge)


def test_a_snapshot_whose_rows_are_not_those_of_its_window_is_refused():
    operator = wp.Sort("sliding, count(3), count(1)", "x")
    operator.process(pa.table({"x": [1, 2]}))
    other = wp.Sort("sliding, count(3), count(1)", ("x", "descending"))
    with pytest.raises(StateError, match="belongs to another operator"):
        other.restore(operator.snapshot())


@pytest.mark.parametrize("direction", ["ascending", "descending"])
def test_a_progressive_sort_forgets_strings_that_have_left(direction):
    sort, given = wp.Sort("sliding, count(50), count(1)", ("s", direction)), []
    words = [f"{i * 7919 % 100_003:06d}" for i in range(12_000)]
    for begin in range(0, len(words), 1000):
        given += sort.process(pa.table({"s": words[begin : begin + 1000]}))[0].table["s"].to_pylist()
    assert len(sort._held._ordering._coders[0].dictionary) < 6000
    held, expected = [], []
    for word in words:
        if len(held) == 50:
            leaves = (min if direction == "ascending" else max)(held)
            held.remove(leaves)
            expected.append(leaves)
        held.append(word)
    assert given == expected

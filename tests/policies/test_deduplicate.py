"""Deduplicate: against the naive model, and over streams longer than a log is kept."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies.support import ONE_BY_ONE, run, stream, table_of

from tests.referee.policies import NaiveDeduplicate
from windrow import policies as wp
from windrow.errors import QueryError

WINDOWS = [
    *ONE_BY_ONE,
    "sliding, time(2), count(1), partitioned, partitionAge(2)",
    "tumbling, count(4)",
    "tumbling, delta(t, 6), partitioned",
    "tumbling, time(4)",
    "tumbling, punct()",
]


@given(
    window=st.sampled_from(WINDOWS),
    by=st.sampled_from([["g"], ["x"], ["g", "x"], ["k"]]),
    seed=st.integers(0, 10**6),
)
def test_any_window_agrees_with_the_model(window, by, seed):
    spec = wp.parse(window)
    partition_by = ["k"] if spec.partitioned else []
    found, expected = run(
        lambda clock: wp.Deduplicate(spec, by, partition_by=partition_by, clock=clock),
        NaiveDeduplicate(spec, by, partition_by=partition_by),
        stream(seed),
    )
    assert [row for row in found if isinstance(row, dict)] == expected


@given(window=st.sampled_from(WINDOWS), seed=st.integers(0, 10**6), cut=st.integers(0, 10))
def test_one_that_is_restored_goes_on_as_if_nothing_had_been(window, seed, cut):
    spec = wp.parse(window)
    clock = wp.VirtualClock()
    first, second = (
        wp.Deduplicate(spec, "g", partition_by=["k"] if spec.partitioned else [], clock=clock)
        for _ in range(2)
    )
    batches = [table_of(thing) for what, thing in stream(seed) if what == "rows"]
    for batch in batches[:cut]:
        first.process(batch)
    second.restore(first.snapshot())
    for batch in batches[cut:]:
        assert first.process(batch)[0].table == second.process(batch)[0].table


def test_values_are_forgotten_and_remembered_over_a_long_stream():
    rng = np.random.default_rng(5)
    values = rng.integers(0, 3_000, 60_000)
    operator = wp.Deduplicate("sliding, count(1000), count(1)", "x")
    found = []
    for part in np.array_split(np.arange(len(values)), 40):
        out = operator.process(pa.table({"x": values[part], "row": part}))[0]
        found += out.table["row"].to_pylist()
    last, expected = {}, []
    for row, value in enumerate(values.tolist()):
        # The window holds the 999 rows before: the oldest of 1000 has made place.
        if row - last.get(value, -math.inf) > 999:
            expected.append(row)
        last[value] = row
    assert found == expected


def test_without_columns_rows_are_compared_as_a_whole():
    rows = pa.table({"a": [1, 1, 1], "b": [1.5, math.nan, math.nan]})
    assert len(wp.Deduplicate("tumbling, count(9)").process(rows)[0]) == 2


def test_punctuations_pass_between_the_rows_that_they_stood_between():
    rows = wp.Punctuated.of(pa.table({"x": [1, 1, 2, 2]}), [1, 2, 4])
    out = wp.Deduplicate("sliding, count(9), count(1)", "x").process(rows)[0]
    assert (out.table["x"].to_pylist(), out.marks.tolist()) == ([1, 2], [1, 1, 2])


def test_what_remembers_nothing_is_refused():
    with pytest.raises(QueryError, match="a window of no rows remembers nothing"):
        wp.Deduplicate("sliding, count(0), count(1)", "x")
    with pytest.raises(QueryError, match="the trigger is count\\(1\\)"):
        wp.Deduplicate("sliding, count(5), count(2)", "x")

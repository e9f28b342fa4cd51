"""What must not change the answer: batches, arrival order, restarts, the mode, and earlier data."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

import windrow as wr
from tests.referee import answers, assert_same
from tests.referee.strategies import batchings, length, queries, schedules, streams
from windrow.query import Query
from windrow.testing import replay

COLUMNS = {"x": "float", "s": "string"}
EXACT = {"x": "int", "s": "string"}


@st.composite
def cases(draw, columns=EXACT, **options):  # type: ignore[no-untyped-def]
    """A table and a query that fits it."""
    time = draw(st.sampled_from([pa.int64(), pa.timestamp("ms", "UTC"), pa.float64()]))
    table = draw(streams(time=time, key=["int"], columns=columns, **options))
    return table, draw(queries(time=time, key=["int"], columns=columns))


def streamed(
    query: Query, steps: list[tuple[str, Any]], *, mode: str, lateness: int, restart_at: int = -1
) -> pa.Table:
    """All rows of a schedule; at step `restart_at` the operator is saved and restored."""
    type_ = steps[0][1].schema.field("time").type
    operator = query.operator(mode=mode, lateness=length(lateness, type_))
    parts = []
    for number, (step, argument) in enumerate(steps):
        if number == restart_at:
            operator = query.restore(operator.snapshot())
        if step == "process":
            operator.process(argument)
        else:
            parts.append(operator.advance(argument))
    parts.append(operator.finish())
    return pa.concat_tables([p for p in parts if p.num_columns] or parts[-1:])


@examples(40)
@given(cases(COLUMNS), st.data())
def test_any_batching_gives_the_same_answer(case, data):
    table, query = case
    batches = data.draw(batchings(table))
    assert_same(answers(query, table), query.run(iter(batches)))


@examples(40)
@given(cases(), st.data())
def test_any_order_within_the_lateness_gives_the_same_answer(case, data):
    table, query = case
    order = data.draw(st.permutations(range(table.num_rows)))
    shuffled = table.take(pa.array(order, pa.int64()))
    operator = query.operator()
    for batch in data.draw(batchings(shuffled)):
        operator.process(batch)
    assert_same(answers(query, shuffled), operator.finish())
    assert operator.late().num_rows == 0


@examples(40)
@given(cases(COLUMNS), st.data())
def test_a_restart_at_any_point_changes_nothing(case, data):
    table, query = case
    steps = data.draw(schedules(table))
    mode = data.draw(st.sampled_from(["append", "update"]))
    restart_at = data.draw(st.integers(1, max(1, len(steps) - 1)))
    straight = streamed(query, steps, mode=mode, lateness=5)
    restarted = streamed(query, steps, mode=mode, lateness=5, restart_at=restart_at)
    assert_same(straight, restarted, ulps=0)


@examples(40)
@given(cases(), st.data())
def test_replaying_the_changelog_gives_the_append_result(case, data):
    table, query = case
    steps = data.draw(schedules(table))
    appended = streamed(query, steps, mode="append", lateness=5)
    changed = streamed(query, steps, mode="update", lateness=5)
    assert_same(appended, replay(changed))


@examples(40)
@given(st.data())
def test_the_bits_of_a_window_do_not_depend_on_earlier_data(data):
    query = wr.query(
        time="time",
        windows={"w": wr.sliding(12, every=4)},
        aggregates={
            "total": wr.sum("x"),
            "mean": wr.mean("x"),
            "spread": wr.variance("x"),
            "high": wr.max("x"),
        },
    )
    value = st.sampled_from([1e300, 1e16, 1.0, 0.1, -3.7, math.inf, math.nan]) | st.floats(-1e6, 1e6)
    after = data.draw(st.lists(value, min_size=1, max_size=24))
    before = data.draw(st.lists(value, max_size=24))
    kept = pa.table({"time": list(range(100, 100 + len(after))), "x": after})
    both = pa.table(
        {"time": [*range(50, 50 + len(before)), *range(100, 100 + len(after))], "x": before + after}
    )
    alone = query.run(kept)
    together = query.run(both)
    later = together.filter(pc.greater_equal(together["start"], 88))
    assert_same(alone, later, ulps=0)


@pytest.mark.parametrize("aggregate", [wr.variance("x"), wr.stddev("x", ddof=0)], ids=str)
@given(st.floats(-1e150, 1e150), st.integers(2, 3000), st.integers(1, 50))
def test_equal_values_have_a_variance_of_exactly_zero(aggregate, value, size, slide):
    table = pa.table({"time": list(range(size)), "x": [value] * size})
    query = wr.query(time="time", windows={"w": wr.sliding(50, every=slide)}, aggregates={"a": aggregate})
    assert set(query.run(table)["a"].to_pylist()) <= {0.0, None}


@examples(40)
@given(st.lists(st.floats(-1e300, 1e300) | st.floats(-10, 10), min_size=1, max_size=200))
def test_float_sums_are_within_two_ulp_of_the_exact_sum(values):
    table = pa.table({"time": list(range(len(values))), "x": values})
    query = wr.query(time="time", windows={"w": wr.sliding(60, every=7)}, aggregates={"a": wr.sum("x")})
    assert_same(answers(query, table), query.run(table))

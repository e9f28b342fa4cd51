"""What must not change the answer of windows that depend on the events: deterministic on disorder.

Batches, arrival order, restarts and the mode; and the changelog, replayed, is the append result,
which is the answer over all events.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from specimens import SEQUENCES

import windrow as wr
from tests.referee import answers, assert_same
from tests.referee.strategies import SIGNALS, batchings, mixed_queries, punctual, schedules, streams
from windrow.query import Query
from windrow.testing import replay
from windrow.testing.compare import rows_of

COLUMNS = {"x": "int", "s": "string"}
FEW = {"n": wr.count(), "total": wr.sum("x"), "letters": wr.concat("s"), "last": wr.last("x")}


@st.composite
def cases(draw, **options):  # type: ignore[no-untyped-def]
    """A table, and a query of several kinds of windows that fits it."""
    time = draw(st.sampled_from([pa.int64(), pa.float64()]))
    table = draw(
        streams(time=time, key=["bool"], columns=SIGNALS | COLUMNS, spread=9, max_size=20, **options)
    )
    return table, draw(mixed_queries(time=time, key=["bool"], columns=COLUMNS))


def streamed(
    query: Query, steps: list[tuple[str, object]], *, mode: str, lateness: int, restart_at: int = -1
) -> tuple[pa.Table, list[dict[str, object]]]:
    """All rows of a schedule, and all late ones; at `restart_at` the operator is saved and restored."""
    operator = query.operator(mode=mode, lateness=lateness)
    parts: list[pa.Table] = []
    late: list[dict[str, object]] = []
    for number, (step, argument) in enumerate(steps):
        if number == restart_at:
            operator = query.restore(operator.snapshot())
        if step == "process":
            operator.process(argument)
            late += rows_of(operator.late())
        else:
            parts.append(operator.advance(argument))
    parts.append(operator.finish())
    return pa.concat_tables([p for p in parts if p.num_columns] or parts[-1:]), late


@examples(40)
@given(cases(), st.data())
def test_any_batching_gives_the_same_answer(case, data):
    table, query = case
    assert_same(answers(query, table), query.run(iter(data.draw(batchings(table)))))


@examples(40)
@given(cases(), st.data())
def test_any_order_of_arrival_gives_the_same_answer(case, data):
    table, query = case
    order = data.draw(st.permutations(range(table.num_rows)))
    shuffled = table.take(pa.array(order, pa.int64()))
    operator = query.operator()
    for batch in data.draw(batchings(shuffled)):
        operator.process(batch)
    assert_same(answers(query, shuffled), operator.finish())
    assert operator.late().num_rows == 0


@examples(60)
@given(cases(min_size=4), st.data())
def test_a_restart_at_any_point_changes_nothing(case, data):
    table, query = case
    steps = data.draw(schedules(table, behind=3, eager=True))
    mode = data.draw(st.sampled_from(["append", "update"]))
    lateness = data.draw(st.sampled_from([0, 5, 20]))
    restart_at = data.draw(st.integers(1, max(1, len(steps) - 1)))
    straight, late = streamed(query, steps, mode=mode, lateness=lateness)
    restarted, late_too = streamed(query, steps, mode=mode, lateness=lateness, restart_at=restart_at)
    assert_same(straight, restarted, ulps=0)
    assert repr(late) == repr(late_too)


@examples(60)
@given(cases(min_size=4), st.data())
def test_replaying_the_changelog_gives_the_append_result(case, data):
    table, query = case
    steps = data.draw(schedules(table, behind=3, eager=True))
    lateness = data.draw(st.sampled_from([0, 5, 20]))
    appended, late = streamed(query, steps, mode="append", lateness=lateness)
    changed, late_too = streamed(query, steps, mode="update", lateness=lateness)
    assert_same(appended, replay(changed))
    assert repr(late) == repr(late_too)


@pytest.mark.parametrize("name", SEQUENCES)
@examples(20)
@given(data=st.data())
def test_every_window_is_a_function_of_the_events_alone(name, data):
    """Changelog replayed = append result = the oracle's answer, whatever came when, if nothing is late."""
    table = data.draw(
        streams(
            time=pa.int64(),
            key=["bool"],
            columns=SIGNALS | COLUMNS,
            spread=9,
            min_size=4,
            max_size=20,
        )
    )
    query = wr.query(time="time", key="key0", windows={"w": SEQUENCES[name]}, aggregates=FEW)
    lateness = data.draw(st.sampled_from([0, 6, 20]))
    steps = punctual(data.draw(schedules(table, behind=4, eager=True)), lateness)
    events = pa.concat_tables([argument for step, argument in steps if step == "process"])
    expected = answers(query, events)
    appended, late = streamed(query, steps, mode="append", lateness=lateness)
    changed, _ = streamed(query, steps, mode="update", lateness=lateness)
    assert not late
    assert_same(expected, appended, note="append")
    assert_same(expected, replay(changed), note="changelog")

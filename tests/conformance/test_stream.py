"""The embedded operator and the reference operator, step by step on the same schedule."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specimens import AGGREGATES, WINDOWS

import windrow as wr
from windrow.query import Query
from windrow.testing import ReferenceOperator, assert_same
from windrow.testing.compare import rows_of
from windrow.testing.strategies import queries, schedules, streams

MODES = ("append", "update")


def assert_in_step(query: Query, steps: list[tuple[str, object]], *, mode: str, lateness: int) -> None:
    """Run both operators; after each step their rows and late rows agree."""
    reference = ReferenceOperator(query, mode=mode, lateness=lateness)
    operator = query.operator(mode=mode, lateness=lateness)
    for number, (step, argument) in enumerate([*steps, ("finish", None)]):
        note = f"step {number} ({step} {argument if step == 'advance' else ''})"
        if step == "process":
            reference.process(argument)
            operator.process(argument)
            late, expected = rows_of(operator.late()), rows_of(reference.late())
            assert repr(late) == repr(expected), f"{note}: late rows {late}, expected {expected}"
            continue
        if step == "advance":
            reference.advance(argument)
            emitted = operator.advance(argument)
        else:
            reference.finish()
            emitted = operator.finish()
        assert reference.answers is not None
        assert_same(reference.answers, emitted, note=note)


@pytest.mark.parametrize("mode", MODES)
@given(data=st.data())
@settings(max_examples=60)
def test_random_queries_on_random_schedules_agree_step_by_step(mode, data):
    columns = {"x": "int", "s": "string"}
    time = data.draw(st.sampled_from([pa.int64(), pa.timestamp("us"), pa.float64(), pa.date32()]))
    table = data.draw(streams(time=time, key=["string"], columns=columns))
    query = data.draw(queries(time=time, key=["string"], columns=columns))
    steps = data.draw(schedules(table))
    lateness = data.draw(st.sampled_from([0, 3, 12]))
    steps = [
        (s, pa.scalar(int(a), pa.int64()) if s == "advance" and not pa.types.is_floating(time) else a)
        for s, a in steps
    ]
    assert_in_step(query, steps, mode=mode, lateness=lateness)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WINDOWS)
@settings(max_examples=8)
@given(data=st.data())
def test_every_window_agrees_step_by_step(name, mode, data):
    case = WINDOWS[name]
    table = data.draw(streams(time=case.time, key=["int"], columns={"x": "int"}, days=case.days))
    query = wr.query(
        time="time",
        key="key0",
        windows={"w": case.window},
        aggregates={"n": wr.count(), "total": wr.sum("x"), "last": wr.last("x")},
    )
    assert_in_step(query, data.draw(schedules(table)), mode=mode, lateness=3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", AGGREGATES)
@settings(max_examples=8)
@given(data=st.data())
def test_every_aggregate_agrees_step_by_step(name, mode, data):
    aggregate, kinds = AGGREGATES[name]
    table = data.draw(streams(time=pa.int64(), key=["int"], columns={"z": "bool", **kinds}))
    windows = {"tumbling": wr.tumbling(9), "sliding": wr.sliding(17, every=5)}
    query = wr.query(time="time", key="key0", windows=windows, aggregates={"a": aggregate})
    assert_in_step(query, data.draw(schedules(table)), mode=mode, lateness=6)

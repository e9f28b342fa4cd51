"""The embedded operator and the reference operator, step by step on the same schedule."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from specimens import AGGREGATES, WINDOWS

import windrow as wr
from tests.referee import check_steps
from tests.referee.strategies import length, queries, schedules, streams

MODES = ("append", "update")


@pytest.mark.parametrize("mode", MODES)
@given(data=st.data())
@examples(60)
def test_random_queries_on_random_schedules_agree_step_by_step(mode, data):
    columns = {"x": "int", "s": "string"}
    time = data.draw(st.sampled_from([pa.int64(), pa.timestamp("us"), pa.float64(), pa.date32()]))
    table = data.draw(streams(time=time, key=["string"], columns=columns))
    query = data.draw(queries(time=time, key=["string"], columns=columns))
    steps = data.draw(schedules(table))
    lateness = data.draw(st.sampled_from([0, 3, 12]))
    check_steps(query, steps, mode=mode, lateness=length(lateness, time))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WINDOWS)
@examples(8)
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
    check_steps(query, data.draw(schedules(table)), mode=mode, lateness=length(3, case.time))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", AGGREGATES)
@examples(8)
@given(data=st.data())
def test_every_aggregate_agrees_step_by_step(name, mode, data):
    aggregate, kinds = AGGREGATES[name]
    table = data.draw(streams(time=pa.int64(), key=["int"], columns={"z": "bool", **kinds}))
    windows = {"tumbling": wr.tumbling(9), "sliding": wr.sliding(17, every=5)}
    query = wr.query(time="time", key="key0", windows=windows, aggregates={"a": aggregate})
    check_steps(query, data.draw(schedules(table)), mode=mode, lateness=6)

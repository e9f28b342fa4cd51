"""Landmark windows beside windows of time, which share their slices: step by step, in either mode."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

import windrow as wr
from tests.referee import answers, assert_same, check_steps
from tests.referee.strategies import in_ticks, length, schedules, streams
from windrow.testing import replay

MODES = ("append", "update")
TIMES = (pa.int64(), pa.timestamp("us", "UTC"), pa.float64())
OTHERS = {
    "none": {},
    "a finer one": {"t": wr.tumbling(3)},
    "a longer one": {"s": wr.sliding(20, every=5)},
    "another landmark": {"l": wr.landmark(since=4, every=9)},
    "a gap": {"b": wr.band(2, length=5)},
}
AGGREGATES = {
    "n": wr.count(),
    "total": wr.sum("x"),
    "letters": wr.concat("s"),
    "middle": wr.quantile("x", 0.5),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("other", OTHERS)
@examples(25)
@given(data=st.data())
def test_landmarks_agree_step_by_step(other, mode, data):
    time = data.draw(st.sampled_from(TIMES))
    key = data.draw(st.sampled_from([[], ["bool"]]))
    table = data.draw(streams(time=time, key=key, columns={"x": "int", "s": "string"}, spread=9, min_size=4))
    landmark = wr.landmark(since=data.draw(st.integers(-3, 8)), every=data.draw(st.sampled_from([1, 4, 7])))
    windows = {name: in_ticks(w, time) for name, w in {"w": landmark, **OTHERS[other]}.items()}
    names = [f"key{i}" for i in range(len(key))]
    query = wr.query(time="time", key=names, windows=windows, aggregates=AGGREGATES)
    steps = data.draw(schedules(table, behind=3, eager=data.draw(st.booleans())))
    check_steps(query, steps, mode=mode, lateness=length(data.draw(st.sampled_from([0, 3, 15])), time))


@pytest.mark.parametrize("mode", MODES)
def test_slices_since_a_landmark_are_joined_and_lose_nothing(mode):
    times = list(range(0, 9_000, 3))
    table = pa.table({"t": times, "k": [t % 7 for t in times], "x": [t % 11 for t in times]})
    query = wr.query(
        time="t", key="k", windows={"w": wr.landmark(since=5, every=10)}, aggregates={"total": wr.sum("x")}
    )
    operator = query.operator(mode=mode, lateness=25)
    found = []
    for begin in range(0, len(times), 100):
        operator.process(table.slice(begin, 100))
        found.append(operator.advance(times[begin]))
        assert operator.metrics().live_slices < 200
    found.append(operator.finish())
    rows = pa.concat_tables(found)
    assert_same(answers(query, table), replay(rows) if mode == "update" else rows)


def test_a_landmark_is_added_only_before_events_have_passed_it():
    query = wr.query(time="t", windows={"w": wr.tumbling(10)}, aggregates={"n": wr.count()})
    operator = query.operator()
    operator.process(pa.table({"t": [1, 12]}))
    with pytest.raises(
        wr.QueryError, match="window 'l' cannot be added: events since its landmark have passed"
    ):
        operator.add_window("l", wr.landmark(since=12, every=10))
    assert operator.add_window("l", wr.landmark(since=13, every=10)) == 13
    operator.process(pa.table({"t": [14, 40]}))
    rows = [(r["start"], r["end"], r["n"]) for r in operator.finish().to_pylist() if r["window"] == "l"]
    assert rows == [(13, 23, 1), (13, 43, 2)]

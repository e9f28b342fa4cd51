"""A window that goes takes with it what it asked of events: that they wait for their order, and when they are late."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from specimens import SEQUENCES

import windrow as wr
from tests.referee import check_steps
from tests.referee.strategies import SIGNALS, schedules, streams

MODES = ("append", "update")
AGGREGATES = {"n": wr.count(), "total": wr.sum("x"), "letters": wr.concat("s"), "last": wr.last("x")}
IN_ORDER = sorted(name for name, window in SEQUENCES.items() if window.layout == "ordered")
SESSIONS = {"gap": wr.session(4), "gaps": wr.session("gap")}
OTHERS = {
    "long": wr.tumbling(40),
    "slides": wr.sliding(9, every=4),
    "landmark": wr.landmark(since=-1_000, every=10),
    "snapshot": wr.snapshot(),
    **SESSIONS,
}


def events(*times: int, **columns: list) -> pa.Table:
    return pa.table({"t": list(times), "x": list(times), **columns})


def asked(windows, aggregates=None):
    return wr.query(time="t", windows=windows, aggregates=aggregates or {"n": wr.count()})


def test_windows_of_time_do_not_wait_beside_a_window_of_order_and_events_wait_no_longer_once_it_is_gone():
    operator = asked({"r": wr.tumbling(rows=2), "w": wr.tumbling(100)}).operator()
    operator.process(events(1, 2, 3))
    assert (operator.metrics().pending, operator.metrics().live_slices) == (3, 1)
    operator.remove_window("r")
    assert (operator.metrics().pending, operator.metrics().live_slices) == (0, 1)
    operator.process(events(4))
    assert operator.metrics().pending == 0
    assert operator.finish()["n"].to_pylist() == [4]


@pytest.mark.parametrize("strict", [wr.tumbling(rows=2), wr.session(3)], ids=["rows", "session"])
def test_an_event_that_is_late_for_one_window_counts_in_the_others_and_is_late_for_the_query_without_them(
    strict,
):
    operator = asked({"strict": strict, "w": wr.tumbling(100)}).operator()
    operator.process(events(50))
    operator.advance(60)
    operator.process(events(10))
    assert operator.late().num_rows == 0
    assert operator.metrics().partly_late == 1
    operator.remove_window("w")
    operator = operator.query.restore(operator.snapshot())
    operator.process(events(20))
    assert operator.late()["t"].to_pylist() == [20]


def test_order_stays_as_long_as_another_window_depends_on_it():
    windows = {"r": wr.tumbling(rows=2), "d": wr.delta("x", by=5), "w": wr.tumbling(100)}
    operator = asked(windows).operator()
    operator.process(events(1, 2))
    operator.remove_window("r")
    assert operator.metrics().pending == 2
    operator.remove_window("d")
    assert operator.metrics().pending == 0


def test_windows_of_order_that_were_added_can_go_before_they_have_seen_an_event():
    operator = asked({"w": wr.tumbling(100)}).operator()
    operator.process(events(1, 2))
    operator.add_window("d", wr.delta("x", by=5))
    operator.add_window("r", wr.tumbling(rows=2))
    operator.remove_window("r")
    operator.process(events(3, 9))
    assert [row["window"] for row in operator.finish().to_pylist()] == ["w", "d", "d"]


def test_what_was_given_out_is_not_given_out_again_when_order_ends():
    operator = asked({"r": wr.tumbling(rows=2), "w": wr.tumbling(10)}).operator(mode="update", lateness=50)
    operator.process(events(1, 2, 11, 12))
    assert operator.advance(25).num_rows == 4
    operator.remove_window("r")
    operator.process(events(3))
    (row,) = operator.advance(26).to_pylist()
    assert (row["start"], row["op"], row["revision"], row["n"]) == (0, "update", 1, 3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("left", OTHERS)
@examples(25)
@given(data=st.data())
def test_an_operator_without_its_window_of_order_is_that_of_a_query_without_it(left, mode, data):
    gone = {
        name: SEQUENCES[name]
        for name in data.draw(st.lists(st.sampled_from(IN_ORDER), min_size=1, max_size=2))
    }
    run_without(gone, {left: OTHERS[left], "tumbling": wr.tumbling(6)}, mode, data)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("left", ["long", "slides", "landmark", "snapshot", "rows"])
@examples(25)
@given(data=st.data())
def test_an_operator_without_its_sessions_is_that_of_a_query_without_them(left, mode, data):
    gone = {name: SESSIONS[name] for name in data.draw(st.sampled_from([["gap"], ["gaps"], ["gap", "gaps"]]))}
    kept = {**OTHERS, "rows": wr.tumbling(rows=3)}[left]
    run_without(gone, {left: kept}, mode, data)


def run_without(gone, kept, mode, data):
    """Windows go one by one in the middle of a stream, with restarts; the referee sees the same."""
    key = data.draw(st.sampled_from([[], ["bool"]]))
    table = data.draw(
        streams(time=pa.int64(), key=key, columns=SIGNALS | {"x": "int", "s": "string"}, spread=9, min_size=6)
    )
    windows = {**gone, **kept} if data.draw(st.booleans()) else {**kept, **gone}
    names = [f"key{i}" for i in range(len(key))]
    query = wr.query(time="time", key=names, windows=windows, aggregates=AGGREGATES)
    steps = list(data.draw(schedules(table, behind=4, eager=data.draw(st.booleans()))))
    first = next(i for i, (step, _) in enumerate(steps) if step == "process")
    for name in gone:
        first = data.draw(st.integers(first + 1, len(steps)))
        steps.insert(first, ("remove_window", name))
        if data.draw(st.booleans()):
            steps.insert(first + 1, ("restart", None))
    check_steps(query, steps, mode=mode, lateness=data.draw(st.sampled_from([0, 4, 15])))

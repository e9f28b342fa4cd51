"""What README, docs/windows.md and docs/spark.md say of late events and sessions."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow as wr
from tests.referee import check_steps


def test_an_event_whose_own_session_would_be_final_is_late_though_it_touches_a_live_one() -> None:
    q = wr.query(time="t", windows={"s": wr.session(5)}, aggregates={"n": wr.count()})
    op = q.operator()
    op.process(pa.table({"t": [10, 14]}))
    op.advance(16)  # the session [10, 19) is live: an event at 10 would be in it
    op.process(pa.table({"t": [10]}))
    assert op.late()["t"].to_pylist() == [10]
    assert op.finish().to_pylist() == [{"window": "s", "start": 10, "end": 19, "n": 2}]


def test_an_event_whose_own_session_is_not_final_joins_the_live_one() -> None:
    q = wr.query(time="t", windows={"s": wr.session(5)}, aggregates={"n": wr.count()})
    op = q.operator()
    op.process(pa.table({"t": [10, 14]}))
    op.advance(16)
    op.process(pa.table({"t": [11]}))  # alone it would be [11, 16), which an event at 16 would still join
    assert op.late().num_rows == 0
    assert op.finish()["n"].to_pylist() == [3]


def test_an_event_that_one_window_has_no_place_for_is_not_partly_late():
    windows = {"w": wr.sliding(2, every=10), "s": wr.session(100)}
    op = wr.query(time="t", windows=windows, aggregates={"n": wr.count()}).operator()
    op.process(pa.table({"t": [51]}))
    op.advance(50)
    op.process(pa.table({"t": [45]}))
    assert op.metrics().partly_late == 0


def test_events_of_a_final_session_are_not_collected_again_by_one_that_lasts_across_it():
    q = wr.query(
        time=wr.span("a", "b"),
        windows={"s": wr.session(5)},
        aggregates={"n": wr.count(), "all": wr.collect("x")},
    )
    op = q.operator()
    op.process(pa.table({"a": [0, *[1000] * 10], "b": [10, *[1010] * 10], "x": [1, *[2] * 10]}))
    op.advance(500)
    op.process(pa.table({"a": [-100], "b": [600], "x": [7]}))
    (row,) = op.advance(700).to_pylist()
    assert (row["n"], row["all"]) == (1, [7])


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("window", [wr.snapshot(), wr.tumbling(1.0)], ids=str)
def test_a_window_is_final_when_it_ends_by_the_watermark_less_the_lateness(window, mode):
    """The window of the event at -1.0 ends a step of floating point behind it, and that plus 3.0 is rounded to 2.0."""
    query = wr.query(time="time", windows={"w": window}, aggregates={"n": wr.count()})
    first, late = (pa.table({"time": [time]}) for time in (2.0, -1.0))
    steps = [("process", first), ("advance", 2.0), ("process", late), ("advance", 2.0)]
    check_steps(query, steps, mode=mode, lateness=3.0)

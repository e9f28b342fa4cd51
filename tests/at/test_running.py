"""A running operator asked at points says what `Query.at` says of the events that it has taken in, and goes on as if nobody had asked."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import windrow as wr
from tests.referee.points import assert_answers
from tests.specimens import AGGREGATES, fixed_stream

WINDOWS = {
    "tumbling": wr.tumbling(10),
    "sliding": wr.sliding(25, every=5),
    "cumulate": wr.cumulate(20, step=5),
    "landmark": wr.landmark(since=0, every=5),
}


@pytest.mark.parametrize("name", AGGREGATES)
def test_any_aggregate_is_that_of_the_events_so_far(name: str) -> None:
    aggregate, kinds = AGGREGATES[name]
    events = fixed_stream(kinds, size=60, span=50, seed=7)
    query = wr.query(time="time", key="key0", windows=WINDOWS, aggregates={"a": aggregate})
    operator = query.operator(lateness=100)
    operator.process(events.slice(0, 30))
    operator.process(events.slice(30))
    points = pa.table(
        {"time": [50, 55, 60, 70, 20, 25], "key0": pa.array([1, None, 1, 1, None, 1], pa.int64())}
    )
    before = operator.snapshot()
    found = operator.at(points)
    assert operator.snapshot() == before
    assert_answers(query, points, events, found)


def test_a_key_that_has_not_come_has_empty_windows_and_is_not_remembered() -> None:
    operator = wr.query(
        time="t", key="k", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()}
    ).operator()
    operator.process(pa.table({"t": [1], "k": ["a"]}))
    points = pa.table({"t": [3, 3], "k": ["a", "b"]})
    assert operator.at(points)["n"].to_pylist() == [1, 0]
    operator.process(pa.table({"t": [2], "k": ["b"]}))
    assert operator.at(points)["n"].to_pylist() == [1, 1]
    assert operator.finish().num_rows == 2


def test_asking_between_batches_changes_nothing_that_comes_later() -> None:
    luck = random.Random(5)
    query = wr.query(time="t", windows=WINDOWS, aggregates={"n": wr.count(), "m": wr.median("x")})
    asked, other = query.operator(), query.operator()
    for step in range(10):
        batch = pa.table(
            {"t": [10 * step + luck.randrange(10) for _ in range(5)], "x": [luck.random() for _ in range(5)]}
        )
        asked.process(batch)
        other.process(batch)
        asked.at(pa.table({"t": [10 * step + 10]}))
        assert asked.advance(10 * step) == other.advance(10 * step)
    assert asked.finish() == other.finish()


def test_a_point_that_divides_a_slice_is_refused() -> None:
    operator = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()}).operator()
    operator.process(pa.table({"t": [1, 3, 7]}))
    with pytest.raises(
        wr.DataError, match="column 't', row 0, value 2: window 'w' would divide a slice at 2"
    ):
        operator.at(pa.table({"t": [2]}))
    assert operator.at(pa.table({"t": [5, 8]}))["n"].to_pylist() == [0, 1]


def test_a_window_that_was_let_go_is_refused() -> None:
    operator = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()}).operator()
    operator.process(pa.table({"t": [1, 13]}))
    operator.advance(12)
    with pytest.raises(
        wr.DataError, match="window 'w' begins at 0 there, and the operator holds nothing from before 10"
    ):
        operator.at(pa.table({"t": [3]}))
    assert operator.at(pa.table({"t": [14]}))["n"].to_pylist() == [1]


def test_what_cannot_be_asked_of_an_operator_is_refused() -> None:
    query = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
    with pytest.raises(wr.QueryError, match="no event has come yet"):
        query.operator().at(pa.table({"t": [1]}))
    sessions = wr.query(time="t", windows={"s": wr.session(5)}, aggregates={"n": wr.count()}).operator()
    sessions.process(pa.table({"t": [1]}))
    with pytest.raises(wr.QueryError, match="window 's' cannot be asked while the operator runs"):
        sessions.at(pa.table({"t": [2]}))

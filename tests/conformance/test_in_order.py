"""Streams that are in order: the watermark follows the events, and `process` returns what they complete."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

import windrow as wr
from tests.referee import oracle
from tests.referee.strategies import SIGNALS, batchings, mixed_queries, streams
from windrow.testing import assert_same, replay

COUNT = {"n": wr.count()}


@pytest.mark.parametrize("mode", ["append", "update"])
@examples(30)
@given(data=st.data())
def test_what_process_returns_is_the_whole_answer(mode, data):
    columns = SIGNALS | {"x": "int"}
    table = data.draw(streams(time=pa.int64(), key=["bool"], columns=columns, ordered=True))
    drawn = data.draw(mixed_queries(time=pa.int64(), key=["bool"]))
    query = wr.query(
        time="time", key=drawn.key, windows=drawn.windows, aggregates=drawn.aggregates, ordered=True
    )
    operator = query.operator(mode=mode, lateness=5)
    parts = [operator.process(batch) for batch in data.draw(batchings(table)) if batch.num_rows]
    rows = pa.concat_tables([*parts, operator.finish()]) if parts else operator.finish()
    if parts:
        assert_same(oracle(query, table), replay(rows) if mode == "update" else rows)


def test_a_window_is_returned_by_the_call_that_completes_it():
    windows = {"w": wr.tumbling(5), "s": wr.session(2), "r": wr.tumbling(rows=2)}
    operator = wr.query(time="t", windows=windows, aggregates=COUNT, ordered=True).operator(lateness=100)
    assert operator.process(pa.table({"t": [1, 2]})).num_rows == 0
    rows = operator.process(pa.table({"t": [4, 5]})).to_pylist()
    assert [(row["window"], row["start"], row["end"]) for row in rows] == [("w", 0, 5), ("r", 1, 3)]


def test_a_watermark_that_events_have_passed_completes_nothing_more_and_must_not_go_back():
    operator = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates=COUNT, ordered=True).operator()
    operator.process(pa.table({"t": [1, 12]}))
    assert operator.advance(8).num_rows == 0
    assert operator.advance(15).to_pylist() == [{"window": "w", "start": 10, "end": 15, "n": 1}]
    with pytest.raises(wr.QueryError, match="the watermark went back from 15 to 14"):
        operator.advance(14)


def test_without_the_promise_process_returns_no_rows():
    operator = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates=COUNT).operator()
    assert operator.process(pa.table({"t": [1, 12]})).num_rows == 0
    assert operator.process(pa.table({"t": [13]})).schema == operator.advance(20).schema

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


def test_windows_of_batches_before_one_that_fails_come_with_the_next_call_also_after_a_restart():
    query = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates=COUNT, ordered=True)
    operator = query.operator()
    with pytest.raises(wr.DataError, match="column 't', row 0, value 3"):
        operator.process(iter([pa.table({"t": [1, 2, 7]}), pa.table({"t": [3]})]))
    operator = query.restore(operator.snapshot())
    assert operator.advance(7).to_pylist() == [{"window": "w", "start": 0, "end": 5, "n": 2}]
    assert query.restore(operator.snapshot()).finish()["n"].to_pylist() == [1]


def test_a_watermark_does_not_go_back_after_a_restart():
    query = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates=COUNT, ordered=True)
    operator = query.operator()
    operator.process(pa.table({"t": [30]}))
    operator.advance(20)
    with pytest.raises(wr.QueryError, match="the watermark went back from 20 to 10"):
        query.restore(operator.snapshot()).advance(10)

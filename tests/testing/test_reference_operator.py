"""The reference operator against the oracle, and the transcripts on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from functions import FUNCTIONS
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

import windrow as wr
from tests.referee import ReferenceEngine, ReferenceOperator, answers, assert_same
from tests.referee.strategies import SIGNALS, length, mixed_queries, punctual, queries, schedules, streams
from windrow.errors import QueryError
from windrow.query import Query
from windrow.testing import replay, run_transcript

TRANSCRIPTS = sorted((Path(__file__).parent.parent / "transcripts").glob("*.yaml"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_reference_operator_follows_the_transcript(path):
    run_transcript(path, ReferenceEngine(), functions=FUNCTIONS)


@given(st.data())
def test_without_late_events_the_reference_operator_gives_the_oracles_answer(data):
    table = data.draw(streams(time=pa.int64(), key=["int"], columns={"x": "int"}, ordered=True))
    query = data.draw(queries(time=pa.int64(), key=["int"], columns={"x": "int"}))
    operator = ReferenceOperator(query)
    parts = []
    for step, argument in data.draw(schedules(table, behind=0)):
        if step == "process":
            operator.process(argument)
        else:
            parts.append(operator.advance(argument))
    parts.append(operator.finish())
    if not operator.late().num_rows:
        assert_same(answers(query, table), pa.concat_tables(parts))


@given(st.data())
def test_replaying_the_reference_changelog_gives_the_append_result(data):
    table = data.draw(streams(time=pa.int64(), key=["int"], columns={"x": "int"}))
    query = data.draw(queries(time=pa.int64(), key=["int"], columns={"x": "int"}))
    steps = data.draw(schedules(table))
    append, update = (ReferenceOperator(query, mode=mode, lateness=4) for mode in ("append", "update"))
    appended, changed = [], []
    for step, argument in steps:
        for operator, parts in ((append, appended), (update, changed)):
            if step == "process":
                operator.process(argument)
            else:
                parts.append(operator.advance(argument))
    appended.append(append.finish())
    changed.append(update.finish())
    assert_same(pa.concat_tables(appended), replay(pa.concat_tables(changed)))
    assert append.late() == update.late()


def run(query: Query, steps: list[tuple[str, Any]], *, mode: str, lateness: int) -> tuple[pa.Table, int]:
    """All rows that the reference operator emits, and how many were late."""
    type_ = steps[0][1].schema.field("time").type
    operator = ReferenceOperator(query, mode=mode, lateness=length(lateness, type_))
    parts = []
    for step, argument in steps:
        if step == "process":
            operator.process(argument)
        else:
            parts.append(operator.advance(argument))
    parts.append(operator.finish())
    return pa.concat_tables([p for p in parts if p.num_columns]), operator.late().num_rows


@st.composite
def mixtures(draw, **options):  # type: ignore[no-untyped-def]
    """A table, and a query of several kinds of windows that fits it."""
    time = draw(st.sampled_from([pa.int64(), pa.timestamp("s"), pa.float64()]))
    columns = {"x": "int", "s": "string"}
    table = draw(
        streams(
            time=time, key=["bool"], columns=SIGNALS | columns, spread=9, min_size=6, max_size=20, **options
        )
    )
    return table, draw(mixed_queries(time=time, key=["bool"], columns=columns))


@examples(40)
@given(mixtures(), st.data())
def test_changelogs_of_all_kinds_of_windows_replay_to_the_append_result(case, data):
    table, query = case
    steps = data.draw(schedules(table, behind=2, eager=True))
    lateness = data.draw(st.sampled_from([0, 4, 15]))
    appended, late = run(query, steps, mode="append", lateness=lateness)
    changed, late_too = run(query, steps, mode="update", lateness=lateness)
    assert_same(appended, replay(changed))
    assert late == late_too


@examples(40)
@given(mixtures(), st.data())
def test_all_kinds_of_windows_are_a_function_of_the_events_alone(case, data):
    """Whatever the order and the watermarks: if nothing is late, it is the answer over all events."""
    table, query = case
    lateness = data.draw(st.sampled_from([0, 6, 20]))
    steps = punctual(data.draw(schedules(table, behind=4, eager=True)), lateness)
    events = pa.concat_tables([argument for step, argument in steps if step == "process"])
    for mode in ("append", "update"):
        result, late = run(query, steps, mode=mode, lateness=lateness)
        assert_same(answers(query, events), replay(result) if mode == "update" else result)
        assert not late


def test_a_watermark_that_goes_back_is_an_error():
    query = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
    operator = ReferenceOperator(query)
    operator.process(pa.table({"t": [1]}))
    operator.advance(3)
    with pytest.raises(QueryError, match="cannot go back from 3 to 2"):
        operator.advance(2)


def test_a_transcript_that_differs_says_in_which_step():
    transcript = {
        "query": {"time": "t", "windows": {"w": "tumbling(5)"}, "aggregates": {"n": "count()"}},
        "columns": {"t": "int64"},
        "steps": [{"events": "t\n1"}, {"watermark": "5", "expect": "window start end n\nw 0 5 2"}],
    }
    with pytest.raises(AssertionError, match="step 2: n should be 2, not 1"):
        run_transcript(transcript, ReferenceEngine())


def test_a_transcript_must_raise_the_error_that_it_announces():
    transcript = {
        "query": {"time": "t", "windows": {"w": "tumbling(5)"}, "aggregates": {"n": "count()"}},
        "columns": {"t": "int64"},
        "steps": [{"events": "t\n1", "error": "something"}],
    }
    with pytest.raises(AssertionError, match="step 1: no error, but expected one with 'something'"):
        run_transcript(transcript, ReferenceEngine())

"""Events that last: the engine and the referee, over bounded data, step by step, and what must not matter.

whole        every aggregate, every window of time, sessions
prorated     count, sum and mean by shares
start, end   every window, at one instant of each event
two rows     events that are open, closed in time, late or never
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from specimens import AGGREGATES, WINDOWS, fixed_stream

import windrow as wr
from tests.referee import answers, assert_same, check_steps
from tests.referee.span_strategies import (
    ENDS,
    TICKS,
    TIMES,
    releases,
    span_queries,
    span_streams,
    two_row_streams,
    with_bad_rows,
    with_changes,
)
from tests.referee.strategies import KEYS, SIGNALS, batchings, in_ticks, length, schedules, windows
from windrow.errors import DataError, QueryError
from windrow.query import Query
from windrow.testing import replay
from windrow.testing.compare import rows_of

MODES = ("append", "update")
MOMENTS = ("start", "end")
COLUMNS = {"x": "int", "s": "string"}
FLOATS = {"x": "float", "i": "int"}
WHOLE = wr.span("since", "until")
SHARES = wr.span("since", "until", contributes="prorated")
TWO_ROWS = wr.span("since", "until", id="who")
FEW = {"n": wr.count(), "total": wr.sum("x"), "high": wr.max("x"), "letters": wr.concat("s")}
IN_SHARES = {"n": wr.count(), "total": wr.sum("x"), "mean": wr.mean("x")}
OF_TIME = {
    "tumbling": wr.tumbling(9),
    "sliding": wr.sliding(17, every=5),
    "apart": wr.sliding(3, every=8),
    "growing": wr.cumulate(12, step=4),
}


def fixed_spans(kinds: dict[str, str]) -> pa.Table:
    """A disordered stream that is drawn once and for all: one tick, equal, nested, across many windows."""
    table = fixed_stream(kinds, size=30, span=45, seed=3)
    since = table["time"].to_pylist()
    lengths = [(1, 4, 1, 9, 30, 2)[row % 6] for row in range(len(since))]
    until = pa.array([start + length for start, length in zip(since, lengths, strict=True)], pa.int64())
    return table.rename_columns({"time": "since"}).append_column("until", until)


@pytest.mark.parametrize("name", AGGREGATES)
def test_every_aggregate_agrees_with_the_oracle(name):
    aggregate, kinds = AGGREGATES[name]
    table = fixed_spans({"z": "bool", **kinds})
    # Functions of the user's own are compiled anew for each engine, and one is enough.
    windows = OF_TIME if name.startswith("user") else OF_TIME | {"session": wr.session(1)}
    query = wr.query(time=WHOLE, key="key0", windows=windows, aggregates={"a": aggregate})
    assert_same(answers(query, table), query.run(table))


@pytest.mark.parametrize("span", [WHOLE, SHARES], ids=["whole", "prorated"])
@pytest.mark.parametrize("name", WINDOWS)
@examples(4)
@given(data=st.data())
def test_every_window_agrees_with_the_oracle(name, span, data):
    case = WINDOWS[name]
    table = data.draw(span_streams(time=case.time, columns=COLUMNS, days=case.days))
    aggregates = IN_SHARES if span is SHARES else FEW
    query = wr.query(time=span, key="key0", windows={"w": case.window}, aggregates=aggregates)
    assert_same(answers(query, table), query.run(table))


@pytest.mark.parametrize("time", TIMES, ids=str)
@examples(15)
@given(data=st.data())
def test_random_queries_agree_with_the_oracle(time, data):
    span = data.draw(st.sampled_from([WHOLE, SHARES]))
    table = data.draw(span_streams(time=time, columns=FLOATS))
    query = data.draw(span_queries(time=time, span=span, columns=FLOATS))
    assert_same(answers(query, table), query.run(table))


@pytest.mark.parametrize("contributes", MOMENTS)
@examples(15)
@given(data=st.data())
def test_one_instant_of_each_event_agrees_with_the_oracle(contributes, data):
    time = data.draw(st.sampled_from(TIMES))
    span = wr.span("since", "until", contributes=contributes)
    table = data.draw(span_streams(time=time, columns=SIGNALS | COLUMNS, spread=12))
    query = data.draw(span_queries(time=time, span=span, columns=COLUMNS))
    assert_same(answers(query, table), query.run(table))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: "-".join(key) or "none")
@examples(4)
@given(data=st.data())
def test_every_type_of_key_agrees_with_the_oracle(key, data):
    table = data.draw(span_streams(time=pa.int64(), key=key, columns=COLUMNS))
    names = [f"key{i}" for i in range(len(key))]
    windows = {"w": wr.sliding(20, every=10), "session": wr.session(4)}
    query = wr.query(time=WHOLE, key=names, windows=windows, aggregates=FEW)
    assert_same(answers(query, table), query.run(table))


@examples(20)
@given(data=st.data())
def test_open_events_agree_with_the_oracle(data):
    time = data.draw(st.sampled_from(TICKS))
    table = data.draw(two_row_streams(time=time, columns=COLUMNS))
    query = data.draw(span_queries(time=time, span=TWO_ROWS, columns=COLUMNS))
    try:
        expected = answers(query, table)
    except DataError as problem:
        with pytest.raises(DataError, match=f"row {problem.row}"):
            query.run(table)
    else:
        assert_same(expected, query.run(table))


def drawn_steps(data: Any, table: pa.Table) -> list[tuple[str, Any]]:
    return data.draw(schedules(table, behind=6, eager=data.draw(st.booleans()), times=ENDS))


@pytest.mark.parametrize("mode", MODES)
@examples(20)
@given(data=st.data())
def test_random_queries_agree_step_by_step(mode, data):
    time = data.draw(st.sampled_from(TIMES))
    contributes = data.draw(st.sampled_from(["whole", "whole", "whole", "prorated"]))
    release = data.draw(releases(floating=time == pa.float64()))
    span = in_ticks(wr.span("since", "until", contributes=contributes, release=release), time)
    table = data.draw(span_streams(time=time, columns=COLUMNS, spread=15, min_size=3))
    query = data.draw(span_queries(time=time, span=span, columns=COLUMNS))
    lateness = length(data.draw(st.sampled_from([0, 4, 20])), time)
    check_steps(query, drawn_steps(data, table), mode=mode, lateness=lateness)


@pytest.mark.parametrize("mode", MODES)
@examples(15)
@given(data=st.data())
def test_one_instant_of_each_event_agrees_step_by_step(mode, data):
    time = data.draw(st.sampled_from(TIMES))
    contributes = data.draw(st.sampled_from(MOMENTS))
    release = data.draw(releases(floating=time == pa.float64()))
    span = in_ticks(wr.span("since", "until", contributes=contributes, release=release), time)
    table = data.draw(span_streams(time=time, columns=SIGNALS | COLUMNS, spread=12, min_size=3))
    query = data.draw(span_queries(time=time, span=span, columns=COLUMNS))
    lateness = length(data.draw(st.sampled_from([0, 4, 20])), time)
    check_steps(query, drawn_steps(data, table), mode=mode, lateness=lateness)


@pytest.mark.parametrize("mode", MODES)
@examples(20)
@given(data=st.data())
def test_open_events_agree_step_by_step(mode, data):
    time = data.draw(st.sampled_from(TICKS))
    span = in_ticks(wr.span("since", "until", id="who", release=data.draw(releases())), time)
    table = data.draw(two_row_streams(time=time, columns=COLUMNS))
    query = data.draw(span_queries(time=time, span=span, columns=COLUMNS))
    lateness = length(data.draw(st.sampled_from([0, 4, 20])), time)
    check_steps(query, drawn_steps(data, table), mode=mode, lateness=lateness, on_bad="divert")


@pytest.mark.parametrize("kind", ["whole", "two rows", "prorated", "start", "end"])
@examples(20)
@given(data=st.data())
def test_windows_and_aggregates_that_come_and_go_agree_step_by_step(kind, data):
    two_rows = kind == "two rows"
    time = data.draw(st.sampled_from(TICKS if two_rows else TIMES))
    contributes = "whole" if two_rows else kind
    span = wr.span("since", "until", id="who" if two_rows else None, contributes=contributes)
    table = data.draw((two_row_streams if two_rows else span_streams)(time=time, columns=COLUMNS, spread=15))
    placed = data.draw(st.lists(windows(time), min_size=1, max_size=2))
    query = replace(
        data.draw(
            span_queries(time=time, span=SHARES if contributes == "prorated" else WHOLE, columns=COLUMNS)
        ),
        time=span,
        windows=MappingProxyType({f"w{i}": window for i, window in enumerate(placed)}),
    )
    steps = data.draw(with_changes(drawn_steps(data, table), query, time=time, columns=COLUMNS))
    mode, lateness = data.draw(st.sampled_from(MODES)), length(data.draw(st.sampled_from([0, 4, 20])), time)
    check_steps(query, steps, mode=mode, lateness=lateness, on_bad="divert")


@pytest.mark.parametrize("two_rows", [False, True], ids=["one row", "two rows"])
@examples(20)
@given(data=st.data())
def test_bad_rows_agree_step_by_step(two_rows, data):
    time = data.draw(st.sampled_from(TICKS if two_rows else TIMES))
    span = wr.span(
        "since",
        "until",
        id="who" if two_rows else None,
        on_zero=data.draw(st.sampled_from(["raise", "point"])),
        longest=data.draw(st.sampled_from([None, length(5, time)])),
    )
    table = data.draw((two_row_streams if two_rows else span_streams)(time=time, columns=COLUMNS))
    table = data.draw(with_bad_rows(table))
    query = data.draw(span_queries(time=time, span=span, columns=COLUMNS))
    mode = data.draw(st.sampled_from(MODES))
    check_steps(query, drawn_steps(data, table), mode=mode, lateness=length(4, time), on_bad="divert")


@examples(12)
@given(data=st.data())
def test_calendars_agree_step_by_step(data):
    time = data.draw(st.sampled_from([pa.timestamp("s", "Europe/Berlin"), pa.timestamp("ms"), pa.date32()]))
    span = data.draw(st.sampled_from([WHOLE, SHARES]))
    table = data.draw(span_streams(time=time, columns=COLUMNS, days=True))
    query = data.draw(span_queries(time=time, span=span, columns=COLUMNS, days=True))
    check_steps(query, drawn_steps(data, table), mode=data.draw(st.sampled_from(MODES)))


@st.composite
def cases(draw, *, two_rows: bool = True):  # type: ignore[no-untyped-def]
    """A table and a query of spans that fits it."""
    spans = [WHOLE, WHOLE, wr.span("since", "until", release=3), SHARES]
    span = draw(st.sampled_from([*spans, TWO_ROWS, TWO_ROWS] if two_rows else spans))
    time = draw(st.sampled_from(TIMES if span.id is None else TICKS))
    made = two_row_streams if span.id is not None else span_streams
    table = draw(made(time=time, columns=COLUMNS, spread=15))
    return table, draw(span_queries(time=time, span=in_ticks(span, time), columns=COLUMNS))


def streamed(
    query: Query, steps: list[tuple[str, Any]], *, mode: str, lateness: int, restart_at: int = -1
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """All rows of a schedule, and all late and bad ones; at `restart_at` the operator is saved and restored."""
    type_ = steps[0][1].schema.field("since").type
    operator = query.operator(mode=mode, lateness=length(lateness, type_), on_bad="divert")
    parts: list[pa.Table] = []
    aside: list[dict[str, Any]] = []
    for number, (step, argument) in enumerate(steps):
        if number == restart_at:
            operator = query.restore(operator.snapshot())
        if step == "process":
            operator.process(argument)
            aside += rows_of(operator.late()) + rows_of(operator.bad())
        else:
            parts.append(operator.advance(argument))
    parts.append(operator.finish())
    return pa.concat_tables([p for p in parts if p.num_columns] or parts[-1:]), aside


@examples(20)
@given(cases(two_rows=False), st.data())
def test_any_batching_gives_the_same_answer(case, data):
    table, query = case
    assert_same(answers(query, table), query.run(iter(data.draw(batchings(table)))))


@examples(20)
@given(cases(two_rows=False), st.data())
def test_any_order_of_arrival_gives_the_same_answer(case, data):
    table, query = case
    order = data.draw(st.permutations(range(table.num_rows)))
    shuffled = table.take(pa.array(order, pa.int64()))
    operator = query.operator()
    for batch in data.draw(batchings(shuffled)):
        operator.process(batch)
    assert_same(answers(query, shuffled), operator.finish())
    assert operator.late().num_rows == 0


@examples(20)
@given(cases(), st.data())
def test_a_restart_at_any_point_changes_nothing(case, data):
    table, query = case
    steps = drawn_steps(data, table)
    mode = data.draw(st.sampled_from(MODES))
    lateness = data.draw(st.sampled_from([0, 5, 20]))
    restart_at = data.draw(st.integers(1, max(1, len(steps) - 1)))
    straight, aside = streamed(query, steps, mode=mode, lateness=lateness)
    restarted, aside_too = streamed(query, steps, mode=mode, lateness=lateness, restart_at=restart_at)
    assert_same(straight, restarted, ulps=0)
    assert repr(aside) == repr(aside_too)


@examples(20)
@given(cases(), st.data())
def test_replaying_the_changelog_gives_the_append_result(case, data):
    """For open events without a lateness: an end may be too late for a changelog and in time for final windows."""
    table, query = case
    steps = drawn_steps(data, table)
    lateness = 0 if query.time.id is not None else data.draw(st.sampled_from([0, 5, 20]))
    appended, aside = streamed(query, steps, mode="append", lateness=lateness)
    changed, aside_too = streamed(query, steps, mode="update", lateness=lateness)
    assert_same(appended, replay(changed), ulps=64)
    assert repr(aside) == repr(aside_too)


def test_an_event_too_far_ahead_at_either_end_is_bad():
    query = wr.query(time=WHOLE, windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
    operator = query.operator(on_bad="divert", max_ahead=100)
    operator.process(pa.table({"since": [1], "until": [2]}))
    operator.advance(2)
    operator.process(pa.table({"since": [3, 3, 500], "until": [90, 500, 501]}))
    assert operator.bad().select(["since", "until"]).to_pylist() == [
        {"since": 3, "until": 500},
        {"since": 500, "until": 501},
    ]
    assert operator.finish().num_rows == 18


@examples(10)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=20), st.sampled_from([0.5, 0.9, 1.0]))
def test_a_learned_release_waits_for_as_many_events_as_it_should_and_hardly_longer(lengths, quantile):
    span = wr.span("since", "until", release=wr.learned(quantile))
    query = wr.query(time=span, windows={"w": wr.tumbling(10)}, aggregates={"n": wr.count()})
    operator = query.operator()
    operator.process(pa.table({"since": [0] * len(lengths), "until": lengths}))
    least = sorted(lengths)[math.ceil(quantile * len(lengths)) - 1]
    given_out = next(tick for tick in range(10, 300) if operator.advance(tick).num_rows)
    assert 10 + least <= given_out <= 10 + least * 17 / 16 + 1


def test_a_batch_with_a_bad_row_leaves_the_operator_as_it_was():
    query = wr.query(time=TWO_ROWS, windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
    operator = query.operator()
    nothing = pa.array([None, None], pa.int64())
    operator.process(pa.table({"since": [1, 2], "until": nothing, "who": [1, 2]}))
    before = operator.snapshot()
    bad = pa.table({"since": nothing, "until": [7, 8], "who": [1, 1]})
    with pytest.raises(DataError, match="row 1"):
        operator.process(bad)
    assert operator.snapshot() == before


@pytest.mark.parametrize(
    ("span", "window", "aggregate"),
    [
        (SHARES, wr.tumbling(5), wr.max("x")),
        (SHARES, wr.tumbling(5), wr.median("x")),
        (WHOLE, wr.session(5.0), wr.count()),
    ],
    ids=["a share of a maximum", "a share of a median", "a session of floats"],
)
def test_what_makes_no_sense_is_refused_with_the_name_of_it(span, window, aggregate):
    table = pa.table({"since": [1.0], "until": [2.0], "x": [1]})
    with pytest.raises(QueryError, match=str(aggregate).partition("(")[0] if span is SHARES else "w"):
        wr.query(time=span, windows={"w": window}, aggregates={"a": aggregate}).run(table)

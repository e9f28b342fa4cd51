"""The referee on events that last: cases that were worked out by hand, and what must hold for any of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

import windrow as wr
from tests.referee import ReferenceOperator, answers, assert_same, oracle, windows_of
from tests.referee.placement import windows_over
from tests.referee.span_strategies import ENDS, span_queries, span_streams, two_row_streams
from tests.referee.strategies import aggregates, schedules, windows
from windrow.errors import DataError, QueryError
from windrow.measure import Measure
from windrow.query import Query
from windrow.testing import replay

INTEGERS = Measure("since", pa.int64())
COLUMNS = {"x": "int", "s": "string"}
WHOLE = wr.span("since", "until")
LETTERS = {"all": wr.concat("x")}


def asked(window: wr.Window, span: wr.Span = WHOLE, **aggregates: wr.Aggregate) -> Query:
    return wr.query(time=span, windows={"w": window}, aggregates=aggregates or {"n": wr.count()})


def rows(query: Query, **columns: list[object]) -> list[dict[str, object]]:
    """The oracle's rows by start, without the name of the only window."""
    return oracle(query, pa.table(columns)).drop_columns(["window"]).sort_by("start").to_pylist()


@pytest.mark.parametrize(
    ("window", "span", "expected"),
    [
        (wr.tumbling(5), (4, 5), [(0, 5)]),
        (wr.tumbling(5), (4, 6), [(0, 5), (5, 10)]),
        (wr.tumbling(5), (5, 10), [(5, 10)]),
        (wr.tumbling(5), (-6, -4), [(-10, -5), (-5, 0)]),
        (wr.sliding(4, every=2), (5, 7), [(2, 6), (4, 8), (6, 10)]),
        (wr.sliding(5, every=3), (2, 4), [(0, 5), (3, 8)]),
        (wr.sliding(2, every=5), (2, 5), []),
        (wr.sliding(2, every=5), (1, 6), [(0, 2), (5, 7)]),
        (wr.cumulate(6, step=2), (3, 7), [(0, 4), (0, 6), (6, 8), (6, 10), (6, 12)]),
        (wr.band(2, length=4), (0, 2), []),
        (wr.band(2, length=4), (0, 3), [(2, 6)]),
        (wr.band(2, length=4), (6, 9), []),
    ],
)
def test_windows_hold_some_of_a_lifespan_by_definition(window, span, expected):
    assert windows_over(window, INTEGERS, *span) == expected


@examples(50)
@given(windows(pa.int64()), st.integers(-50, 50), st.integers(1, 60))
def test_windows_of_a_lifespan_are_those_of_its_instants(window, start, length):
    instants = {w for tick in range(start, start + length) for w in windows_of(window, INTEGERS, tick)}
    assert windows_over(window, INTEGERS, start, start + length) == sorted(instants)


def test_days_of_a_lifespan_are_those_that_the_clock_showed():
    measure = Measure("since", pa.timestamp("s", "Europe/Berlin"))
    days = windows_over(wr.calendar("1 day"), measure, 0, 3 * 86_400)
    assert days == [(-3_600, 82_800), (82_800, 169_200), (169_200, 255_600), (255_600, 342_000)]


def test_an_event_counts_once_in_each_window_that_it_overlaps():
    query = asked(wr.tumbling(5), n=wr.count(), total=wr.sum("x"))
    assert rows(query, since=[1, 4], until=[4, 11], x=[1, 10]) == [
        {"start": 0, "end": 5, "n": 2, "total": 11},
        {"start": 5, "end": 10, "n": 1, "total": 10},
        {"start": 10, "end": 15, "n": 1, "total": 10},
    ]


def test_shares_are_parts_of_the_whole_duration():
    query = asked(
        wr.sliding(4, every=2, offset=1),
        wr.span("since", "until", contributes="prorated"),
        n=wr.count(),
        m=wr.mean("x"),
        known=wr.count("x"),
    )
    assert rows(query, since=[1, 2], until=[5, 3], x=[3, None]) == [
        {"start": -1, "end": 3, "n": 1.5, "m": 3.0, "known": 0.5},
        {"start": 1, "end": 5, "n": 2.0, "m": 3.0, "known": 1.0},
        {"start": 3, "end": 7, "n": 0.5, "m": 3.0, "known": 0.5},
    ]


def test_shares_of_infinity_are_infinite():
    query = asked(wr.tumbling(5), wr.span("since", "until", contributes="prorated"), total=wr.sum("x"))
    got = rows(query, since=[1, 6], until=[9, 7], x=[float("inf"), 2.0])
    assert [row["total"] for row in got] == [float("inf"), float("inf")]


def test_a_session_reaches_a_gap_beyond_the_last_instant():
    query = asked(wr.session(3), **LETTERS)
    assert rows(query, since=[0, 12, 1, 17], until=[10, 13, 2, 18], x=list("acbd")) == [
        {"start": 0, "end": 15, "all": "abc"},
        {"start": 17, "end": 20, "all": "d"},
    ]


def test_open_events_end_with_the_last_that_was_heard_of():
    query = asked(wr.tumbling(5), wr.span("since", "until", id="who"), n=wr.count())
    got = rows(query, since=[1, 2, None, 8], until=[None, None, 4, None], who=[1, 2, 2, 2])
    assert got == [{"start": 0, "end": 5, "n": 2}, {"start": 5, "end": 10, "n": 2}]
    alone = rows(query, since=[9], until=pa.array([None], pa.int64()), who=[1])
    assert alone == [{"start": 5, "end": 10, "n": 1}]


def test_an_id_may_be_taken_again_once_its_event_has_ended():
    query = asked(wr.tumbling(5), wr.span("since", "until", id="who"), **LETTERS)
    got = rows(query, since=[1, None, 3, None], until=[None, 2, None, 7], who=[1] * 4, x=list("a-b-"))
    assert got == [{"start": 0, "end": 5, "all": "ab"}, {"start": 5, "end": 10, "all": "b"}]


@pytest.mark.parametrize(
    ("since", "until", "who", "column"),
    [
        (None, None, 1, "since"),
        (1, None, None, "who"),
        (None, 1, None, "who"),
        (None, 9, 7, "who"),
        (3, 3, 1, "until"),
        (3, 1, 1, "until"),
        (3, 14, 1, "until"),
    ],
)
def test_a_bad_row_is_an_error_that_names_it(since, until, who, column):
    query = asked(wr.tumbling(5), wr.span("since", "until", id="who", longest=10))
    with pytest.raises(DataError, match=f"column '{column}', row 1"):
        rows(query, since=[0, since], until=[1, until], who=[None, who])


def test_what_makes_no_sense_is_refused():
    table = {"since": pa.array([1.0]), "until": pa.array([2.0]), "x": pa.array([1])}
    with pytest.raises(QueryError, match="float measure"):
        oracle(asked(wr.session(1)), pa.table(table))
    with pytest.raises(QueryError, match="one type"):
        oracle(asked(wr.tumbling(5)), pa.table({"since": [1], "until": [2.0]}))
    shares = wr.span("since", "until", contributes="prorated")
    with pytest.raises(QueryError, match="max"):
        oracle(asked(wr.tumbling(5), shares, a=wr.max("x")), pa.table(table))


@st.composite
def cases(draw, **options):  # type: ignore[no-untyped-def]
    """A table of events that last, and windows and aggregates that take them and points alike."""
    table = draw(span_streams(time=pa.int64(), columns=COLUMNS, **options))
    taken = draw(
        st.lists(windows(pa.int64()) | st.builds(wr.session, st.integers(1, 5)), min_size=1, max_size=2)
    )
    computed = draw(st.lists(aggregates(COLUMNS), min_size=1, max_size=2))
    named = {
        "key": "key0",
        "windows": {f"w{i}": window for i, window in enumerate(taken)},
        "aggregates": {f"a{i}": aggregate for i, aggregate in enumerate(computed)},
    }
    return table, named


@given(cases())
def test_events_of_one_tick_are_events_at_an_instant(case):
    table, named = case
    short = table.set_column(1, "until", pc.add(table["since"], 1))
    points = oracle(wr.query(time="since", **named), table)
    for contributes in ("whole", "start", "end"):
        span = wr.span("since", "until", contributes=contributes)
        assert_same(points, oracle(wr.query(time=span, **named), short), note=contributes)


@given(cases())
def test_what_counts_at_one_instant_is_an_event_there(case):
    table, named = case
    last = table.append_column("last", pc.subtract(table["until"], 1))
    for contributes, column in (("start", "since"), ("end", "last")):
        span = wr.span("since", "until", contributes=contributes)
        points = oracle(wr.query(time=column, **named), last)
        assert_same(points, oracle(wr.query(time=span, **named), last), note=contributes)


@given(span_streams(time=pa.int64(), columns={"x": "int"}), st.integers(1, 15), st.integers(-5, 5))
def test_the_shares_of_an_event_in_windows_side_by_side_add_up_to_one(table, length, offset):
    shares = wr.span("since", "until", contributes="prorated")
    query = asked(wr.tumbling(length, offset=offset), shares, n=wr.count(), total=wr.sum("x"))
    got = oracle(query, table)
    assert sum(got["n"].to_pylist()) == pytest.approx(table.num_rows)
    total = pc.sum(pc.fill_null(table["x"], 0)).as_py() or 0
    size = pc.sum(pc.abs(pc.fill_null(table["x"], 0))).as_py() or 0
    assert sum(x or 0 for x in got["total"].to_pylist()) == pytest.approx(total, abs=1e-9 * size)


def run(query: Query, steps: list[tuple[str, object]], **options: object) -> tuple[pa.Table, int]:
    """All rows that the reference operator emits, and how many were late."""
    operator = ReferenceOperator(query, on_bad="divert", **options)  # type: ignore[arg-type]
    parts = []
    for step, argument in steps:
        if step == "process":
            operator.process(argument)  # type: ignore[arg-type]
        else:
            parts.append(operator.advance(argument))  # type: ignore[arg-type]
    parts.append(operator.finish())
    return pa.concat_tables([p for p in parts if p.num_columns]), operator.late().num_rows


@examples(15)
@given(st.data())
def test_without_late_events_the_reference_operator_gives_the_oracles_answer(data):
    span = data.draw(st.sampled_from([WHOLE, wr.span("since", "until", contributes="prorated")]))
    table = data.draw(span_streams(time=pa.int64(), columns=COLUMNS))
    query = data.draw(span_queries(time=pa.int64(), span=span, columns=COLUMNS))
    steps = data.draw(schedules(table, behind=60, times=ENDS))
    expected = answers(query, table)
    for mode in ("append", "update"):
        result, late = run(query, steps, mode=mode, lateness=300)
        assert not late
        assert_same(expected, replay(result) if mode == "update" else result, note=mode)


@examples(15)
@given(st.data())
def test_changelogs_replay_to_the_append_result(data):
    span = wr.span("since", "until", release=data.draw(st.sampled_from([0, 4])))
    table = data.draw(span_streams(time=pa.int64(), columns=COLUMNS, spread=15))
    query = data.draw(span_queries(time=pa.int64(), span=span, columns=COLUMNS))
    steps = data.draw(schedules(table, behind=6, eager=True, times=ENDS))
    lateness = data.draw(st.sampled_from([0, 4, 15]))
    appended, late = run(query, steps, mode="append", lateness=lateness)
    changed, late_too = run(query, steps, mode="update", lateness=lateness)
    assert_same(appended, replay(changed))
    assert late == late_too


@examples(15)
@given(st.data())
def test_changelogs_of_open_events_replay_to_the_append_result(data):
    """Without a lateness: with one, an end may be too late for a changelog and in time for final windows."""
    span = wr.span("since", "until", id="who")
    table = data.draw(two_row_streams(time=pa.int64(), columns=COLUMNS))
    query = data.draw(span_queries(time=pa.int64(), span=span, columns=COLUMNS))
    steps = data.draw(schedules(table, behind=6, eager=True, times=ENDS))
    appended, late = run(query, steps, mode="append", lateness=0)
    changed, late_too = run(query, steps, mode="update", lateness=0)
    assert_same(appended, replay(changed))
    assert late == late_too

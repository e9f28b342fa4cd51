"""Windows that depend on the events, under attack: bad specs, bad rows, bad functions, errors, limits.

Every refusal names what was wrong, and leaves the operator as it was; what never ends stays small;
and a stream of some thousand events, cut into many small batches, gives what the oracle gives.
"""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from specimens import SEQUENCES

import windrow as wr
from windrow.engine.compiler import InterpretedWarning
from windrow.testing import answers, assert_same, replay
from windrow.testing.stream import ReferenceOperator

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def query(window, *, aggregates=None, **parts):
    """A query over `t` with one window, or several by name, that counts events and lists their `i`."""
    windows = window if isinstance(window, dict) else {"w": window}
    computed = aggregates or {"n": wr.count(), "ids": wr.collect("i")}
    return wr.query(time="t", windows=windows, aggregates=computed, **parts)


def events(t, **columns):
    """Events at these times; `i` numbers them from 0 unless it is given."""
    return pa.table({"t": t, "i": list(range(len(t))), **columns})


def content(table):
    """(start, end, events) of each row, sorted."""
    return sorted((row["start"], row["end"], tuple(row["ids"])) for row in table.to_pylist())


# -- specs ---------------------------------------------------------------------------------------


def stay(state, i):
    """A step that never begins a window."""
    return state, 0, 0


SPECS = {
    "gap of zero": (lambda: wr.session(0), "gap of a session must be longer than zero"),
    "negative gap": (lambda: wr.session("-5 seconds"), "gap of a session must be longer than zero"),
    "gap of no time": (lambda: wr.session(timedelta(0)), "gap of a session must be longer than zero"),
    "NaN as a gap": (lambda: wr.session(math.nan), "gap must be finite"),
    "infinite gap": (lambda: wr.session(math.inf), "gap must be finite"),
    "boolean gap": (lambda: wr.session(True), "not the boolean True"),
    "no gap": (lambda: wr.session(None), "gap must be a string, a timedelta or a number"),
    "empty gap": (lambda: wr.session(""), "duration or the name of a column"),
    "unknown unit": (lambda: wr.session("5 bananas"), "unknown unit 'bananas'"),
    "no rows": (lambda: wr.tumbling(rows=0), "rows must be between 1 and"),
    "more rows than can be": (lambda: wr.tumbling(rows=2**70), "rows must be between 1 and"),
    "half a row": (lambda: wr.tumbling(rows=1.5), "rows must be a whole number"),
    "rows as a boolean": (lambda: wr.tumbling(rows=True), "rows must be a whole number"),
    "rows and a length": (lambda: wr.tumbling(5, rows=3), "either a length .* or rows"),
    "rows and an offset": (lambda: wr.tumbling(rows=3, offset=2), "takes no offset"),
    "rows without a slide": (lambda: wr.sliding(rows=5), "needs every_rows"),
    "no slide": (lambda: wr.sliding(rows=5, every_rows=0), "every_rows must be between 1 and"),
    "a slide without rows": (lambda: wr.sliding(every_rows=5), "every_rows goes with rows"),
    "a duration on a column": (lambda: wr.tumbling("5 seconds", on="km"), "must be a plain number"),
    "no length on a column": (lambda: wr.tumbling(0, on="km"), "greater than zero"),
    "NaN on a column": (lambda: wr.tumbling(math.nan, on="km"), "must be finite"),
    "too many at once": (lambda: wr.sliding(2**60, every=1, on="km"), "slide by more"),
    "no marks": (lambda: wr.punctuated(), "needs where=..., or both"),
    "a start without an end": (lambda: wr.punctuated(start="b"), "needs where=..., or both"),
    "too many marks": (lambda: wr.punctuated(where="a", start="b"), "not both"),
    "a number as a mark": (lambda: wr.punctuated(where=5), "must be the name of a boolean column"),
    "a mark of any columns": (lambda: wr.punctuated(where=lambda *a: True), r"has the parameter '\*a'"),
    "a mark of no column": (lambda: wr.punctuated(where=lambda: True), "reads no column"),
    "a constant mark": (lambda: wr.punctuated(where=pc.scalar(True)), "reads no column"),
    "negative move": (lambda: wr.delta("x", by=-1), "must not be negative"),
    "NaN as a move": (lambda: wr.delta("x", by=math.nan), "must be finite"),
    "move as text": (lambda: wr.delta("x", by="3"), "must be a plain number"),
    "no moves": (lambda: wr.delta("x", by=1, moves=0), "moves of a delta window must be between"),
    "negative least": (lambda: wr.threshold("b", at_least=-1), "longer than zero"),
    "no least rows": (lambda: wr.threshold("b", at_least_rows=0), "at_least_rows must be between"),
    "landmark without steps": (lambda: wr.landmark(since=0, every=0), "longer than zero"),
    "landmark at no time": (lambda: wr.landmark(since=math.nan, every=1), "not a point in time"),
    "looking back by nothing": (lambda: wr.slide_by_rows(0, every_rows=1), "longer than zero"),
    "looking back never": (lambda: wr.slide_by_rows(5, every_rows=0), "every_rows must be between"),
    "the latest none": (lambda: wr.latest(rows=0, every=5), "rows must be between"),
    "the latest at once": (lambda: wr.latest(rows=1, every=0), "longer than zero"),
    "two measures": (lambda: wr.latest(rows=1, every="5 seconds", offset=1), "both as durations"),
    "a step that is none": (lambda: wr.deterministic(5, state=0), "step must be a function, not int"),
    "a step without a state": (lambda: wr.deterministic(lambda: 0, state=0), "needs a parameter"),
    "a state that is text": (lambda: wr.deterministic(stay, state="a"), "integers and floats only"),
    "a state that is empty": (lambda: wr.deterministic(stay, state=()), "not an empty tuple"),
    "a state that is nested": (lambda: wr.deterministic(stay, state=((1,),)), "integers and floats only"),
    "a state too large": (lambda: wr.deterministic(stay, state=2**63), "beyond 64-bit integers"),
    "columns too many": (lambda: wr.deterministic(stay, state=0, columns=["a", "b"]), "columns names 2"),
    "an eviction that is none": (
        lambda: wr.nondeterministic(evict=5, trigger=lambda i: True),
        "evict must be a function",
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_a_window_that_makes_no_sense_is_refused_at_once(name):
    make, message = SPECS[name]
    with pytest.raises(wr.QueryError, match=message):
        make()


# -- columns and their types ---------------------------------------------------------------------

FOUR = [0, 10, 20, 30]
SECONDS = pa.array(FOUR, pa.timestamp("s"))
TYPES = {
    "gaps of text": (wr.session("g"), {"g": list("abcd")}, "column 'g' is of type string; gaps are"),
    "gaps of booleans": (wr.session("g"), {"g": [True] * 4}, "column 'g' is of type bool"),
    "gaps of floats": (wr.session("g"), {"g": [1.5] * 4}, "integers .ticks. or durations"),
    "gaps of decimals": (wr.session("g"), {"g": [Decimal(1)] * 4}, "is of type decimal"),
    "gaps of time": (wr.session("g"), {"g": pa.array([1] * 4, pa.duration("s"))}, "is not a time"),
    "gaps from nowhere": (wr.session("nowhere"), {}, "unknown column 'nowhere'"),
    "a gap of seconds": (wr.session("5 seconds"), {}, "is a length of time, but column 't'"),
    "a gap of half a tick": (wr.session(2.5), {}, "not a whole number of ticks"),
    "a gap beyond the type": (wr.session(2**70), {}, "overflow column 't'"),
    "a gap too fine": (wr.session("5 nanoseconds"), {"t": SECONDS}, "finer than the ticks"),
    "marks of integers": (wr.punctuated(where="i"), {}, "'i' is of type int64; a boolean column is needed"),
    "marks of nulls": (wr.punctuated(where="b"), {"b": pa.nulls(4)}, "'b' is of type null"),
    "an expression of integers": (wr.threshold(pc.field("i") + 1), {}, "gives int64; a boolean is needed"),
    "an expression over nothing": (wr.threshold(pc.field("zz") > 1), {}, "unknown column 'zz'"),
    "an expression over text": (wr.threshold(pc.field("s") > 1), {"s": list("abcd")}, "no kernel matching"),
    "a condition of integers": (wr.threshold(lambda i: i), {}, "returns int64; a boolean is needed"),
    "a condition of none": (wr.threshold(lambda i: None), {}, "returns none; a boolean is needed"),
    "a condition sometimes": (wr.threshold(lambda i: None if i else True), {}, "a boolean is needed"),
    "a condition over text": (wr.threshold(lambda s: True), {"s": list("abcd")}, "reads column 's' of type"),
    "moves of text": (wr.delta("s", by=1), {"s": list("abcd")}, "an integer or floating-point column"),
    "moves of booleans": (wr.delta("s", by=1), {"s": [True] * 4}, "an integer or floating-point column"),
    "moves of times": (wr.delta("s", by=1), {"s": SECONDS}, "an integer or floating-point column"),
    "advancing on text": (wr.tumbling(5, on="s"), {"s": list("abcd")}, "an integer or floating-point"),
    "looking back too far": (wr.slide_by_rows(2**65, every_rows=1), {}, "overflow column 't'"),
    "lasting too long": (wr.threshold("b", at_least=2**65), {"b": [True] * 4}, "longer than column 't'"),
    "looking in seconds": (wr.latest(rows=2, every="5 seconds"), {}, "is a length of time, but column 't'"),
    "a step over text": (
        wr.deterministic(lambda state, s: (state, 0, 0), state=0),
        {"s": list("abcd")},
        "can read numbers, times and booleans",
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_a_column_of_a_type_that_a_window_cannot_read_is_refused(name):
    window, columns, message = TYPES[name]
    table = events(columns.get("t", FOUR), **{n: c for n, c in columns.items() if n != "t"})
    with pytest.raises(wr.QueryError, match=message):
        query(window).run(table)


def ns(values, unit="ns"):
    return pa.array(values, pa.duration(unit))


# name: (window, time, column, values, bad row, reason)
BAD_ROWS = {
    "null gap": (wr.session("g"), FOUR, [1, None, 3, 4], 1, "is null, and a session needs its gap"),
    "gap of zero": (wr.session("g"), FOUR, [1, 0, 3, 4], 1, "must be longer than zero"),
    "negative gap": (wr.session("g"), FOUR, [1, -5, 3, 4], 1, "must be longer than zero"),
    "gap beyond the type": (wr.session("g"), FOUR, [1, INT64_MAX - 5, 3, 4], 1, "ends the session beyond"),
    "gap beyond 64 bits": (
        wr.session("g"),
        FOUR,
        pa.array([1, 2**64 - 5, 3, 4], pa.uint64()),
        1,
        "too large",
    ),
    "gap finer than ticks": (
        wr.session("g"),
        SECONDS,
        ns([10**9, 1, 10**9, 10**9]),
        1,
        "finer than the ticks",
    ),
    "gap that overflows": (
        wr.session("g"),
        pa.array(FOUR, pa.timestamp("ns")),
        ns([1, 2**62, 1, 1], "s"),
        1,
        "ends the session beyond",
    ),
    "NaN gap": (wr.session("g"), [0.0, 10.0, 20.0, 30.0], [1.0, math.nan, 1.0, 1.0], 1, "not a finite gap"),
    "infinite gap": (wr.session("g"), [0.0, 10.0, 20.0, 30.0], [1.0, math.inf, 1.0, 1.0], 1, "not a finite"),
    "null reading": (wr.tumbling(5, on="g"), FOUR, [1, None, 2, 3], 1, "is null, and a window advances"),
    "NaN reading": (wr.tumbling(5, on="g"), FOUR, [1, math.nan, 2, 3], 1, "is not a finite number"),
    "infinite reading": (wr.tumbling(5, on="g"), FOUR, [1, math.inf, 2, 3], 1, "is not a finite number"),
    "reading too large": (wr.tumbling(0.1, on="g"), FOUR, [1.0, 1e300, 2, 3], 1, "is too large for windows"),
    "value too large": (
        wr.delta("g", by=1),
        FOUR,
        pa.array([0, 2**64 - 1, 5, 6], pa.uint64()),
        1,
        "too large",
    ),
    "null in a step": (
        wr.deterministic(lambda state, g: (state, 1, 0), state=0),
        FOUR,
        [1, None, 2, 3],
        1,
        "is null, and a window reads it",
    ),
    "null in a trigger": (
        wr.nondeterministic(evict=lambda rows: 0, trigger=lambda g: g > 0),
        FOUR,
        [1, None, 2, 3],
        1,
        "is null, and a window reads it",
    ),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_row_that_a_window_cannot_take_is_named_or_diverted(name):
    window, times, values, row, reason = BAD_ROWS[name]
    table = events(times, g=values)
    operator = query(window).operator()
    operator.process(table.slice(0, row))
    before = operator.snapshot()
    with pytest.raises(wr.DataError, match=f"column 'g', row 0.*{reason}"):
        operator.process(table.slice(row))
    assert operator.snapshot() == before

    operator = query(window).operator(on_bad="divert")
    operator.process(table)
    bad = operator.bad()
    assert bad["i"].to_pylist() == [row]
    assert reason in bad["bad_reason"][0].as_py()
    assert operator.metrics().bad == 1
    kept = table.filter(pc.not_equal(table["i"], row))
    assert content(operator.finish()) == content(query(window).run(kept))


def test_a_condition_that_is_null_does_not_hold():
    table = events(FOUR, b=[True, None, True, False])
    assert content(query(wr.threshold("b")).run(table)) == [(0, 10, (0,)), (20, 30, (2,))]
    assert content(query(wr.threshold(pc.field("b"))).run(table)) == [(0, 10, (0,)), (20, 30, (2,))]


def test_values_at_the_ends_of_their_type_move_without_wrapping():
    integers = events(FOUR, v=[INT64_MAX, INT64_MIN, INT64_MAX, 0])
    floats = events(FOUR, v=[math.inf, -math.inf, math.inf, 0.0])
    for table in (integers, floats):
        assert query(wr.delta("v", by=1)).run(table).num_rows == 4
    far = query(wr.tumbling(5, on="v")).run(events(FOUR, v=[INT64_MIN, INT64_MAX, 2, 3]))
    assert content(far) == [(0, 10, (0,)), (10, 31, (1, 2, 3))]


@pytest.mark.parametrize(
    "window",
    [wr.tumbling(rows=2**53), wr.sliding(rows=2**53, every_rows=2**53), wr.delta("i", by=10, moves=2**53)],
    ids=str,
)
def test_a_window_of_more_events_than_there_will_ever_be_waits_for_the_end(window):
    assert content(query(window).run(events(FOUR))) == [(0, 31, (0, 1, 2, 3))]


# -- times ---------------------------------------------------------------------------------------

AT_THE_ENDS = [INT64_MIN + 10**6, -5, 0, 4, INT64_MAX - 10**6]
NO_GRID = [
    wr.tumbling(rows=2),
    wr.delta("v", by=1),
    wr.slide_by_rows(10, every_rows=1),
    wr.latest(rows=2, every=10),
    wr.threshold("b", at_least=100),
    wr.session(10),
    wr.session("v"),
    wr.snapshot(),
    wr.landmark(since=INT64_MAX - 10**7, every=10),
]


@pytest.mark.parametrize("key", [(), "k"], ids=["one key", "keys"])
@pytest.mark.parametrize("window", NO_GRID, ids=str)
def test_times_at_both_ends_of_int64_do_not_wrap(window, key):
    table = events(AT_THE_ENDS, k=[1] * 5, v=[1, 5, 1, 9, 1], b=[True, True, True, False, True])
    asked = query(window, key=key)
    assert_same(answers(asked, table), asked.run(table))


@pytest.mark.parametrize("key", [(), "k"], ids=["one key", "keys"])
def test_events_at_opposite_ends_of_int64_are_not_one_session(key):
    asked = query(wr.session(10), key=key)
    table = events([AT_THE_ENDS[0], AT_THE_ENDS[-1]], k=[1, 1])
    operator = asked.operator()
    operator.process(table.slice(0, 1))
    operator.process(table.slice(1))
    assert_same(answers(asked, table), operator.finish())


def test_a_landmark_at_the_other_end_of_int64_does_not_wrap():
    asked = query(wr.landmark(since=INT64_MIN + 100, every=10))
    table = events([0, INT64_MAX - 10**6])
    assert_same(answers(asked, table), asked.run(table))


@pytest.mark.parametrize("type_", [pa.int8(), pa.uint8(), pa.int32()], ids=str)
def test_an_event_whose_session_would_leave_the_type_is_a_bad_row(type_):
    highest = {"int8": 2**7, "uint8": 2**8, "int32": 2**31}[str(type_)] - 1
    operator = query(wr.session(5)).operator(on_bad="divert")
    operator.process(events(pa.array([3, highest], type_)))
    assert operator.bad()["i"].to_pylist() == [1]
    assert content(operator.finish()) == [(3, 8, (0,))]


@pytest.mark.parametrize("type_", [pa.uint8(), pa.uint64()], ids=str)
@pytest.mark.parametrize("window", [wr.session(5), wr.tumbling(rows=2), wr.snapshot()], ids=str)
def test_an_unsigned_time_may_begin_at_zero(window, type_):
    found = query(window).run(events(pa.array([0, 1], type_)))
    assert_same(answers(query(window), events(pa.array([0, 1], type_))), found)


@pytest.mark.parametrize(
    "type_",
    [
        pa.float32(),
        pa.date32(),
        pa.date64(),
        pa.timestamp("s"),
        pa.timestamp("ms", "Europe/Berlin"),
        pa.timestamp("ns"),
        pa.int8(),
        pa.uint64(),
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["append", "update"])
def test_every_kind_works_on_every_type_of_time(type_, mode):
    ticks = pa.array([51, 59, 53, 53, 70, 71], pa.int32())
    column = (
        ticks.cast(pa.date32()).cast(type_) if pa.types.is_date(type_) else ticks.cast(pa.int64()).cast(type_)
    )
    since = datetime(1970, 1, 1, tzinfo=UTC) if pa.types.is_temporal(type_) else 50
    windows = SEQUENCES | {"landmark": wr.landmark(since=since, every=7)}
    table = signals(column)
    asked = wr.query(time="time", key="key0", windows=windows, aggregates={"ids": wr.collect("i")})
    operator = asked.operator(mode=mode, lateness=6)
    operator.process(table.slice(0, 2))
    found = [operator.advance(column[0])]
    operator = asked.restore(operator.snapshot())
    operator.process(table.slice(2))
    together = pa.concat_tables([*found, operator.finish()])
    assert_same(answers(asked, table), replay(together) if mode == "update" else together)


def signals(times):
    """Six events of two keys with all columns that `SEQUENCES` read."""
    return pa.table(
        {
            "time": times,
            "key0": [1, 1, 2, 1, 1, 2],
            "i": range(6),
            "gap": [2, 4, 4, 3, 2, 5],
            "km": [0, 3, 1, 5, 9, 9],
            "mark": [True, False, None, True, False, True],
            "level": [1.0, -1.0, 0.0, 3.0, None, 2.0],
            "v": [1, 0, -1, 2, 1, 1],
        }
    )


# -- functions of the user's own -----------------------------------------------------------------


def own(step, state=0):
    return wr.deterministic(step, state=state)


def asked_by(evict=lambda rows: 0, trigger=lambda i: True, update=None):
    return wr.nondeterministic(evict=evict, trigger=trigger, update=update)


NONSENSE = {
    "negative begins": (own(lambda s, i: (s, -1, 0)), "returned a negative number of windows at time 0"),
    "negative ends": (own(lambda s, i: (s, 0, -1)), "returned a negative number of windows at time 0"),
    "an end without a begin": (own(lambda s, i: (s, 0, 1)), "ended more windows than were open at time 0"),
    "two numbers": (own(lambda s, i: (s, 0)), r"\(state, begins, ends\) is needed"),
    "four numbers": (own(lambda s, i: (s, 0, 0, 0)), r"\(state, begins, ends\) is needed"),
    "half a window": (own(lambda s, i: (s, 0.5, 0)), "float64 for begins, which is not a whole number"),
    "nothing": (own(lambda s, i: None), "returns none"),
    "an array": (own(lambda s, i: np.array([0, 1, 0])), r"\(state, begins, ends\) is needed"),
    "a number for a tuple": (own(lambda s, i: (0, 1, 0), (0, 0)), "a tuple of 2 numbers is needed"),
    "a tuple for a number": (own(lambda s, i: ((0, 1), 1, 0)), "as the state; a number is needed"),
    "text as a state": (own(lambda s, i: ("a", 1, 0)), "as the state; a number is needed"),
    "an error for one event": (own(lambda s, i: (s, 0 * (4 // (i - 2)), 0)), "ZeroDivisionError at time 20"),
    "negative eviction": (asked_by(lambda rows: -1), "evicted a negative number of events at time 0"),
    "too much eviction": (asked_by(lambda rows: rows + 1), "evicted more events than there are at time 0"),
    "half an eviction": (asked_by(lambda rows: 0.5), "a whole number of events is needed"),
    "an integer trigger": (asked_by(trigger=lambda i: i), "returns int64; a boolean is needed"),
    "a trigger that fails": (asked_by(trigger=lambda i: 1 // (i - 2) > 0), "ZeroDivisionError at time 20"),
    "an update to a tuple": (asked_by(update=lambda state: (1, 2)), "as the state; a number is needed"),
    "an update that fails": (asked_by(update=lambda i: 1 // (i - 1)), "ZeroDivisionError at time 10"),
    "a condition that fails": (wr.threshold(lambda i: 1 // (i - 2) > 0), "ZeroDivisionError at time 20"),
    "an expression that fails": (wr.threshold(pc.divide(pc.scalar(4), pc.field("i")) > 0), "divide by zero"),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_a_function_that_returns_nonsense_is_named(name):
    window, message = NONSENSE[name]
    with pytest.raises(wr.UserFunctionError, match=message):
        query(window).run(events(FOUR))


def opaque(value):
    """A value that Numba cannot follow."""
    return eval("value")


INTERPRETED = {
    "negative begins": (own(lambda s, i: (s, opaque(-1), 0)), "returned a negative number of windows"),
    "half a window": (own(lambda s, i: (s, opaque(0.5), 0)), "for begins, which is not a whole number"),
    "a state too large": (own(lambda s, i: (s + opaque(10**30), 1, 0)), "beyond 64-bit integers"),
    "two numbers": (own(lambda s, i: (s, opaque(0))), r"\(state, begins, ends\) is needed"),
    "nothing": (own(lambda s, i: opaque(None)), r"\(state, begins, ends\) is needed"),
    "too deep": (own(lambda s, i: (deeper(s), 1, 0)), "raised RecursionError at time 0"),
    "no eviction": (asked_by(lambda rows: opaque(None)), "not a whole number"),
    "an integer trigger": (asked_by(trigger=lambda i: opaque(1)), "which is not a boolean"),
    "an update to text": (asked_by(update=lambda state: opaque("a")), "which is not a number"),
}


def deeper(s):
    return deeper(s + 1) + 1


@pytest.mark.parametrize("name", INTERPRETED)
@pytest.mark.filterwarnings("ignore::windrow.engine.compiler.InterpretedWarning")
def test_a_function_that_cannot_be_compiled_is_held_to_the_same(name):
    window, message = INTERPRETED[name]
    with pytest.raises(wr.UserFunctionError, match=message):
        query(window).run(events(FOUR))


def test_a_function_that_writes_to_a_global_runs_interpreted_and_is_called_once_per_event():
    seen = []

    def step(state, i):
        seen.append(i)
        return state, 1, 0

    with pytest.warns(InterpretedWarning, match="'step'"):
        query(own(step)).run(events(FOUR))
    assert seen == [0, 1, 2, 3]


def begin_too_many(state, i):
    return state, 20_000_000 if i == 1 else 1, 0


def test_a_step_that_begins_windows_without_end_meets_a_limit_and_changes_nothing():
    operator = query(own(begin_too_many)).operator()
    operator.process(events([5, 10]))
    before = operator.snapshot()
    for _ in range(2):
        with pytest.raises(wr.LimitError, match="more than 10,000,000"):
            operator.advance(200)
        assert operator.snapshot() == before
    operator.process(pa.table({"t": [4], "i": [2]}))
    assert operator.late().num_rows == 0
    assert operator.advance(6).num_rows == 0
    assert operator.metrics().live_slices == 2


@pytest.mark.filterwarnings("ignore::windrow.engine.compiler.InterpretedWarning")
@pytest.mark.parametrize(
    "window",
    [own(lambda s, i: [i, repr(i)]), asked_by(trigger=lambda i: [i, repr(i)])],
    ids=["step", "trigger"],
)
def test_a_function_on_which_numba_itself_stumbles_is_held_to_the_same(window):
    with pytest.raises(wr.UserFunctionError):
        query(window).run(events(FOUR))


# -- errors leave the operator as it was ---------------------------------------------------------

LARGE = 2**62


def overflowing():
    """An operator whose next advance fails: the sum of the first two events leaves 64 bits."""
    aggregates = {"ids": wr.collect("i"), "total": wr.sum("x")}
    asked = query(wr.tumbling(rows=2), aggregates=aggregates)
    table = events([10, 20, 30], x=[LARGE, LARGE, 0])
    operator = asked.operator()
    operator.process(table)
    return asked, table, operator


def test_a_failed_advance_can_be_tried_again():
    _, _, operator = overflowing()
    for _ in range(2):
        with pytest.raises(wr.DataError, match="the sum of window 'w'"):
            operator.advance(50)
    operator.remove_aggregate("total")
    assert content(operator.advance(50)) == [(10, 21, (0, 1))]
    assert content(operator.finish()) == [(30, 31, (2,))]


def test_a_failed_advance_takes_an_earlier_event_in_its_place():
    asked, table, operator = overflowing()
    with pytest.raises(wr.DataError):
        operator.advance(50)
    earlier = pa.table({"t": [5], "i": [9], "x": [-LARGE]})
    operator.process(earlier)
    assert operator.late().num_rows == 0
    assert_same(answers(asked, pa.concat_tables([table, earlier])), operator.finish())


def test_a_failed_finish_goes_on_with_the_next_batch():
    _, _, operator = overflowing()
    with pytest.raises(wr.DataError):
        operator.finish()
    operator.remove_aggregate("total")
    operator.process(pa.table({"t": [35], "i": [3], "x": [0]}))
    assert content(operator.finish()) == [(10, 21, (0, 1)), (30, 36, (2, 3))]


def refuse_seven(state, i):
    if i == 7:
        raise ValueError("seven")
    return 1, 1, state


def test_a_step_that_fails_in_a_later_chunk_takes_no_earlier_one():
    operator = query(own(refuse_seven)).operator()
    operator.process(pa.table({"t": [10, 20], "i": [1, 2]}))
    operator.process(pa.table({"t": [30, 40], "i": [7, 2]}))
    before = operator.snapshot()
    with pytest.raises(wr.UserFunctionError, match="seven"):
        operator.advance(50)
    assert operator.snapshot() == before


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.filterwarnings("ignore::windrow.engine.compiler.InterpretedWarning")
def test_ctrl_c_in_a_step_leaves_the_operator_usable(mode):
    interrupt = [True]

    def step(state, i):
        if interrupt and repr(i) == "2":
            raise KeyboardInterrupt
        return 1, 1, state

    operator = query(own(step)).operator(mode=mode, lateness=100)
    operator.process(events([1, 2, 3, 4]))
    before = operator.metrics()
    with pytest.raises(KeyboardInterrupt):
        operator.advance(200)
    assert operator.metrics() == before
    interrupt.clear()
    rest = pa.concat_tables([operator.advance(200), operator.finish()])
    whole = replay(rest) if mode == "update" else rest
    assert content(whole) == [(1, 2, (0,)), (2, 3, (1,)), (3, 4, (2,)), (4, 5, (3,))]


@pytest.mark.parametrize("window", [wr.session(5), wr.tumbling(rows=2)], ids=str)
@pytest.mark.filterwarnings("ignore::windrow.engine.compiler.InterpretedWarning")
def test_ctrl_c_in_an_aggregate_leaves_the_operator_as_it_was(window):
    interrupt = [True]

    def lift(i):
        if interrupt and int({str(i): i}[str(i)]) == 3:
            raise KeyboardInterrupt
        return i

    total = wr.aggregate(lift=lift, combine=lambda a, b: a + b, identity=0, name="total")
    asked = query(window, aggregates={"total": total}, key="k")
    operator = asked.operator()
    first, second = events([1, 2], k=[1, 1]), pa.table({"t": [2, 3, 4], "i": [7, 3, 5], "k": [1, 2, 1]})
    operator.process(first)
    before = operator.snapshot()
    try:
        operator.process(second)
    except KeyboardInterrupt:
        assert operator.snapshot() == before
        interrupt.clear()
        operator.process(second)
    else:
        before = operator.snapshot()
        with pytest.raises(KeyboardInterrupt):
            operator.advance(10)
        assert operator.snapshot() == before
        interrupt.clear()
    assert_same(asked.run(pa.concat_tables([first, second])), operator.finish())


@pytest.mark.parametrize("key", [(), "k"], ids=["one key", "keys"])
@pytest.mark.parametrize("window", [wr.session(1), wr.tumbling(rows=2)], ids=str)
def test_a_batch_beyond_the_limit_is_not_taken_and_the_operator_goes_on(window, key):
    operator = query(window, key=key).operator(max_slices=3)
    operator.process(events([1, 10, 20], k=[1, 1, 1]))
    before = operator.snapshot(), operator.metrics()
    more = pa.table({"t": [21, 40], "i": [3, 4], "k": [1, 9]})
    with pytest.raises(wr.LimitError, match=r"nothing of this batch was taken|operator is as it was"):
        operator.process(more)
    assert (operator.snapshot(), operator.metrics()) == before
    rows = [operator.advance(15), operator.advance(20)]
    operator.process(more.slice(0, 1))
    rows.append(operator.finish())
    expected = query(window, key=key).run(events([1, 10, 20, 21], k=[1, 1, 1, 1]))
    assert_same(expected, pa.concat_tables(rows))


def test_released_events_beyond_the_limit_are_an_error_that_changes_nothing():
    looking_back = query(wr.slide_by_rows(1000, every_rows=1), aggregates={"n": wr.count()})
    operator = looking_back.operator(max_slices=4)
    operator.process(events([1, 2, 3, 4]))
    operator.advance(5)
    operator.process(events([6, 7]))
    before = operator.snapshot()
    for _ in range(2):
        with pytest.raises(wr.LimitError, match="max_slices=4"):
            operator.advance(8)
        assert operator.snapshot() == before


# -- what never ends stays small -----------------------------------------------------------------

ENDLESS = {
    "session": wr.session(10),
    "session with a column": wr.session("g"),
    "threshold": wr.threshold(pc.field("i") > -1),
    "marks that never come": wr.punctuated(where=pc.field("i") > 5),
    "an end that never comes": wr.punctuated(start=pc.field("i") > 0, end=pc.field("i") > 5),
    "a value that never moves": wr.delta("i", by=5),
    "a reading that never advances": wr.tumbling(10**6, on="i"),
    "rows": wr.tumbling(rows=10**9),
    "landmark": wr.landmark(since=0, every=10),
    "band": wr.band(0, length=10**12),
    "a step that never ends": own(lambda s, i: (1, 1 - s, 0)),
    "no window at all": own(stay),
}


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("name", ENDLESS)
def test_a_window_that_never_ends_keeps_as_little_after_a_long_time_as_before(name, mode):
    windows = {"endless": ENDLESS[name], "short": wr.tumbling(10), "session": wr.session(2)}
    aggregates = {"n": wr.count(), "sum": wr.sum("i"), "max": wr.max("i")}
    operator = query(windows, aggregates=aggregates, key="k").operator(mode=mode, lateness=20)
    sizes = []
    for step in range(150):
        ticks = range(50 * step, 50 * step + 50)
        operator.process(pa.table({"t": ticks, "k": [t % 3 for t in ticks], "i": [1] * 50, "g": [100] * 50}))
        operator.advance(50 * step + 50)
        metrics = operator.metrics()
        sizes.append((metrics.live_slices, metrics.bytes, metrics.pending))
    early, late = np.max(sizes[:75], axis=0), np.max(sizes[75:], axis=0)
    assert (late <= early * 1.1).all(), f"{early} slices, bytes and pending events became {late}"
    assert early[0] < 2_500


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("window", [wr.session(10), wr.session("g"), wr.snapshot()], ids=str)
def test_keys_that_come_and_go_are_forgotten(window, mode):
    operator = query(window, aggregates={"n": wr.count()}, key="k").operator(mode=mode, lateness=10)
    sizes = []
    for day in range(120):
        ticks = range(100 * day, 100 * day + 50)
        operator.process(
            pa.table({"t": ticks, "k": [f"{day} {t}" for t in ticks], "i": [1] * 50, "g": [5] * 50})
        )
        operator.advance(100 * day + 100)
        sizes.append((operator.metrics().keys, operator.metrics().bytes))
    early, late = np.max(sizes[:60], axis=0), np.max(sizes[60:], axis=0)
    assert (late <= early * 1.1).all(), f"{early} keys and bytes became {late}"


def test_many_keys_with_few_events_are_kept_and_restored():
    asked = query(wr.tumbling(rows=3), aggregates={"n": wr.count()}, key="k")
    count = 20_000
    operator = asked.operator()
    operator.process(pa.table({"t": range(count), "k": range(count)}))
    operator.advance(count)
    operator.process(pa.table({"t": range(count, count + 10), "k": range(10)}))
    assert asked.restore(operator.snapshot()).finish().num_rows == count


# -- the life of an operator ---------------------------------------------------------------------

LIVES = [wr.session(5), wr.session("g"), wr.tumbling(rows=2), wr.snapshot(), wr.latest(rows=2, every=5)]


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("window", LIVES, ids=str)
def test_an_operator_lives_through_empty_batches_and_repeated_calls(window, mode):
    asked = query(window)
    operator = asked.operator(mode=mode)
    assert operator.finish().num_rows == 0
    operator = asked.operator(mode=mode)
    assert operator.advance(3).num_rows == operator.advance(3).num_rows == 0
    operator = asked.restore(operator.snapshot())
    table = events([3, 4, 50], g=[5, 5, 5])
    operator.process(table.slice(0, 0))
    assert operator.advance(3).num_rows == 0
    operator.process(table)
    found = [operator.advance(20), operator.advance(20), operator.finish()]
    assert found[1].num_rows == 0
    assert operator.finish().num_rows == 0
    rows = pa.concat_tables(found)
    assert_same(asked.run(table), replay(rows) if mode == "update" else rows)
    operator.process(pa.table({"t": [60], "i": [3], "g": [5]}))
    assert operator.late()["t"].to_pylist() == [60]
    assert asked.restore(operator.snapshot()).finish().num_rows == 0


@pytest.mark.parametrize("window", LIVES, ids=str)
def test_an_event_absurdly_far_ahead_is_diverted(window):
    operator = query(window).operator(max_ahead=100, on_bad="divert")
    operator.process(events([1], g=[5]))
    operator.advance(1)
    operator.process(pa.table({"t": [2, 10**12, 3], "i": [1, 2, 3], "g": [5, 5, 5]}))
    assert operator.bad()["i"].to_pylist() == [2]
    assert max(row["end"] for row in operator.finish().to_pylist()) < 20


@pytest.mark.parametrize("window", [wr.session(5), wr.session("g"), wr.tumbling(rows=2)], ids=str)
def test_a_broken_promise_of_order_is_a_bad_row(window):
    first = events([1, 5, 3], g=[1, 1, 1])
    second = pa.table({"t": [4, 5, 6], "i": [3, 4, 5], "g": [1, 1, 1]})
    with pytest.raises(wr.DataError, match=r"row 2, value 3.*comes after a later event"):
        query(window, ordered=True).operator().process(first)
    operator = query(window, ordered=True).operator(on_bad="divert")
    operator.process(first)
    operator.process(second)
    assert operator.bad()["i"].to_pylist() == [2, 3]
    kept = pa.table({"t": [1, 5, 5, 6], "i": [0, 1, 4, 5], "g": [1, 1, 1, 1]})
    assert content(operator.finish()) == content(query(window).run(kept))


MIXED = {
    "a session": ({"a": wr.session(5)}, [10, 24], 0),
    "rows": ({"a": wr.tumbling(rows=2)}, [10, 24, 25, 29], 0),
    "a session and rows": ({"a": wr.session(5), "b": wr.tumbling(rows=2)}, [10, 24, 25, 29], 0),
    "a landmark": ({"a": wr.landmark(since=0, every=10)}, [], 4),
    "snapshots": ({"a": wr.snapshot()}, [], 4),
}


@pytest.mark.parametrize("name", MIXED)
def test_late_events_are_counted_beside_a_window_that_would_take_them(name):
    windows, late, partly = MIXED[name]
    operator = query({**windows, "long": wr.tumbling(100)}).operator()
    operator.process(events([1, 40]))
    operator.advance(30)
    operator.process(events([10, 24, 25, 29, 30]))
    metrics = operator.metrics()
    assert operator.late()["t"].to_pylist() == late
    assert operator.late().num_rows == 0
    assert (metrics.late, metrics.partly_late, metrics.events) == (len(late), partly, 7 - len(late))


KEYS = {
    "null": [None, 1, None, 1],
    "NaN and zeros": [math.nan, -0.0, math.nan, 0.0],
    "text": ["a", None, "a", ""],
    "decimals": [Decimal("1.0"), None, Decimal("1.00"), Decimal(2)],
    "booleans": [True, None, True, False],
    "dictionary": pa.array(["a", "b", "a", None]).dictionary_encode(),
    "string view": pa.array(["a", "b", "a", None], pa.string_view()),
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("window", LIVES, ids=str)
def test_keys_of_every_sort_are_told_apart_and_survive_a_restart(window, name):
    asked = query(window, key="k")
    table = events([1, 2, 3, 4], k=KEYS[name], g=[5] * 4)
    operator = asked.operator()
    operator.process(table.slice(0, 2))
    operator = asked.restore(operator.snapshot())
    operator.process(table.slice(2))
    assert_same(answers(asked, table), operator.finish())


VALUES = {
    "string view": pa.array(["a", "b" * 40, None, "c"], pa.string_view()),
    "dictionary": pa.array(["a", "b", None, "a"]).dictionary_encode(),
    "large string": pa.array(["a", None, "b", "c"], pa.large_string()),
    "decimal": pa.array([Decimal("1.5"), None, Decimal("2.5"), Decimal("1.5")]),
    "timestamp": pa.array([1, 2, None, 3], pa.timestamp("ns", "UTC")),
    "boolean": pa.array([True, None, False, True]),
    "int8": pa.array([1, 2, None, 4], pa.int8()),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("key", [(), "k"], ids=["one key", "keys"])
def test_values_of_every_type_wait_and_survive_a_restart(name, key):
    computed = {"f": wr.first("v"), "m": wr.max("v"), "c": wr.collect("v"), "d": wr.distinct("v")}
    windows = {"r": wr.tumbling(rows=2), "b": wr.slide_by_rows(2, every_rows=1), "s": wr.session(5)}
    asked = query(windows, aggregates=computed, key=key)
    table = events([1, 2, 2, 4], v=VALUES[name], k=[1, 1, 2, 2])
    arrived = pa.concat_tables([table.slice(2), table.slice(0, 2)])
    operator = asked.operator(lateness=2)
    operator.process(arrived.slice(0, 2))
    operator.process(arrived.slice(2, 1))
    operator = asked.restore(operator.snapshot())
    operator.process(arrived.slice(3))
    found = [operator.advance(3)]
    operator = asked.restore(operator.snapshot())
    assert_same(asked.run(arrived), pa.concat_tables([*found, operator.finish()]))


def test_columns_may_come_go_and_change_places_between_batches():
    operator = query(wr.tumbling(rows=2)).operator()
    operator.process(pa.table({"t": [1], "i": [0]}))
    operator.process(pa.table({"i": [1], "t": [2]}))
    operator.process(pa.table({"x": ["new"], "i": [2], "y": [1.0], "t": [3]}))
    operator.process(pa.table({"t": [4], "i": [3], "x": [5]}))
    assert content(operator.finish()) == [(1, 3, (0, 1)), (3, 5, (2, 3))]


@pytest.mark.parametrize("mode", ["append", "update"])
def test_two_hundred_windows_of_all_kinds_are_answered_at_once(mode):
    windows = {f"{name} {copy}": window for copy in range(10) for name, window in SEQUENCES.items()}
    assert len(windows) > 200
    table = signals([1, 9, 3, 3, 20, 21])
    asked = wr.query(time="time", key="key0", windows=windows, aggregates={"ids": wr.collect("i")})
    operator = asked.operator(mode=mode, lateness=10)
    operator.process(table)
    found = [operator.advance(9)]
    operator = asked.restore(operator.snapshot())
    rows = pa.concat_tables([*found, operator.finish()])
    assert_same(answers(asked, table), replay(rows) if mode == "update" else rows)


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_window_can_be_pickled_compared_and_explained(name):
    asked = wr.query(time="time", windows={"w": SEQUENCES[name]}, aggregates={"n": wr.count()})
    twin = pickle.loads(pickle.dumps(asked))
    assert twin == asked
    assert hash(twin.windows["w"]) == hash(SEQUENCES[name])
    assert "w" in str(twin.explain())
    assert "w" in str(twin.explain(signals([0] * 6).schema))
    operator = twin.operator()
    operator.process(signals([1, 9, 3, 3, 20, 21]))
    assert asked.restore(operator.snapshot()).finish().num_rows == operator.finish().num_rows


def test_an_aggregate_added_while_events_wait_reads_a_column_that_they_lack():
    operator = query(wr.tumbling(rows=2), aggregates={"n": wr.count()}).operator()
    operator.process(events([10, 20, 30], y=[1, 2, 3]))
    assert operator.add_aggregate("y", wr.sum("y")) == 31
    operator = operator.query.restore(operator.snapshot())
    assert operator.advance(35)["y"].to_pylist() == [None]
    operator.process(events([40, 50], y=[4, 5]))
    assert operator.finish()["y"].to_pylist() == [None, 5]


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        (wr.tumbling(rows=2), wr.tumbling(10)),
        (wr.session(3), wr.tumbling(10)),
        (wr.tumbling(rows=2), wr.session(10)),
        (wr.session("g"), wr.tumbling(rows=2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["append", "update"])
def test_an_operator_survives_a_restart_after_its_only_window_of_a_kind_went(gone, left, mode):
    table = events([10, 20, 30, 31], g=[1, 1, 1, 1])
    operator = query({"gone": gone, "left": left}).operator(mode=mode, lateness=5)
    operator.process(table.slice(0, 2))
    found = [operator.advance(20)]
    operator.remove_window("gone")
    operator = operator.query.restore(operator.snapshot())
    operator.process(table.slice(2))
    rows = pa.concat_tables([*found, operator.finish()])
    rows = rows.filter(pc.equal(rows["window"].cast(pa.string()), "left"))
    assert_same(query({"left": left}).run(table), replay(rows) if mode == "update" else rows)


def test_a_landmark_whose_slices_were_joined_in_the_middle_of_a_step_loses_no_window():
    times = [*range(5, 20_000, 10), 20_001]
    operator = query(wr.landmark(since=0, every=10), aggregates={"n": wr.count()}).operator()
    operator.process(events(times))
    assert operator.advance(20_002).num_rows == len(times) - 1
    assert operator.metrics().live_slices < 10
    assert operator.finish().to_pylist() == [{"window": "w", "start": 0, "end": 20_010, "n": len(times)}]


# -- streams of some size ------------------------------------------------------------------------


def stream(seed, *, size, keys=50, span=None, lateness=200):
    """Events of which every fifth comes late, within the lateness, with columns for all windows."""
    luck = np.random.default_rng(seed)
    true = np.sort(luck.integers(0, span or 4 * size, size))
    delay = np.where(luck.random(size) < 0.2, luck.integers(0, lateness, size), 0)
    time = true[np.argsort(true + delay, kind="stable")]
    levels = luck.integers(-4, 5, size).astype(object)
    levels[luck.random(size) < 0.03] = None
    marks = (luck.random(size) < 0.2).astype(object)
    marks[luck.random(size) < 0.02] = None
    return pa.table(
        {
            "time": time,
            "key0": luck.integers(0, keys, size),
            "id": np.arange(size),
            "x": luck.integers(-5, 50, size),
            "s": [f"s{v}" for v in luck.integers(0, 3000, size)],
            "gap": luck.integers(1, 300, size),
            "km": time // 40 + luck.integers(-3, 4, size),
            "mark": pa.array(marks.tolist(), pa.bool_()),
            "level": pa.array(levels.tolist(), pa.float64()),
            "v": luck.integers(-2, 3, size),
        }
    )


# The same kinds as `SEQUENCES`, with sizes that fit such a stream.
SIZED = SEQUENCES | {
    "session": wr.session(120),
    "landmark": wr.landmark(since=3000, every=700),
    "slide by rows": wr.slide_by_rows(900, every_rows=3),
    "latest": wr.latest(rows=5, every=250, offset=7),
    "count sliding": wr.sliding(rows=17, every_rows=5),
    "threshold of some length": wr.threshold(pc.field("level") > -3, at_least=300, at_least_rows=2),
    "on a column": wr.tumbling(7, on="km"),
    "sliding on a column": wr.sliding(23, every=5, on="km", offset=1),
}
COMPUTED = {
    "n": wr.count(),
    "sum": wr.sum("x"),
    "ids": wr.collect("id"),
    "first": wr.first("s"),
    "middle": wr.median("x"),
}


def fed(asked, table, *, mode, lateness, batch, seed):
    """All rows of a stream fed in small batches, restored now and then."""
    operator = asked.operator(mode=mode, lateness=lateness)
    luck = np.random.default_rng(seed)
    found, newest, watermark = [], 0, 0
    for step, at in enumerate(range(0, table.num_rows, batch)):
        part = table.slice(at, batch)
        operator.process(part)
        newest = max(newest, pc.max(part["time"]).as_py())
        watermark = max(watermark, newest - int(luck.integers(0, 30)))
        found.append(operator.advance(watermark))
        if step % 7 == 3:
            operator = asked.restore(operator.snapshot())
    assert operator.metrics().late == 0
    rows = pa.concat_tables([*found, operator.finish()])
    return replay(rows) if mode == "update" else rows


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize(
    "name",
    list(SIZED),
)
def test_thousands_of_events_in_small_batches_give_what_the_oracle_gives(name, mode):
    asked = wr.query(time="time", key="key0", windows={"w": SIZED[name]}, aggregates=COMPUTED)
    table = stream(1, size=3000)
    assert_same(answers(asked, table), fed(asked, table, mode=mode, lateness=200, batch=61, seed=2))


@pytest.mark.parametrize("mode", ["append", "update"])
def test_all_kinds_in_one_query_without_keys_give_what_the_oracle_gives(mode):
    periodic = {"tumbling": wr.tumbling(100), "sliding": wr.sliding(500, every=70), "longer": wr.session(400)}
    asked = wr.query(time="time", windows={**SIZED, **periodic}, aggregates={"ids": wr.collect("id")})
    table = stream(3, size=600)
    assert_same(answers(asked, table), fed(asked, table, mode=mode, lateness=200, batch=23, seed=4))


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("name", SIZED)
def test_events_beyond_the_lateness_are_late_as_the_reference_says(name, mode):
    asked = wr.query(
        time="time", key="key0", windows={"w": SIZED[name]}, aggregates={"ids": wr.collect("id")}
    )
    table = stream(5, size=300, keys=6, span=2300, lateness=150)
    operator = asked.operator(mode=mode, lateness=60)
    reference = ReferenceOperator(asked, mode=mode, lateness=60)
    newest, late = 0, 0
    for step, at in enumerate(range(0, table.num_rows, 11)):
        part = table.slice(at, 11)
        operator.process(part)
        reference.process(part)
        newest = max(newest, pc.max(part["time"]).as_py())
        found = operator.advance(newest)
        reference.advance(newest)
        assert_same(reference.answers, found, note=f"step {step}")
        mine = operator.late()["id"].to_pylist()
        assert mine == reference.late()["id"].to_pylist()
        late += len(mine)
    found = operator.finish()
    reference.finish()
    assert_same(reference.answers, found, note="finish")
    assert operator.metrics().late == late


def test_two_operators_in_two_threads_do_not_disturb_each_other():
    asked = wr.query(time="time", key="key0", windows=dict(SIZED), aggregates={"ids": wr.collect("id")})
    table = stream(7, size=900)
    found = {}

    def work(name):
        operator = asked.operator(mode="update", lateness=300)
        rows, states = [], []
        for at in range(0, 900, 150):
            operator.process(table.slice(at, 150))
            rows.append(operator.advance(pc.max(table["time"].slice(0, at + 1)).as_py()))
            states.append(operator.snapshot())
        found[name] = pa.concat_tables([*rows, operator.finish()]), states

    threads = [threading.Thread(target=work, args=(name,)) for name in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work(2)
    assert found[0][0].equals(found[1][0])
    assert found[1][0].equals(found[2][0])
    assert found[0][1] == found[1][1] == found[2][1], "the same operations give the same bytes"


# -- the cache of kernels ------------------------------------------------------------------------

PROGRAM = """
import pyarrow as pa, pyarrow.compute as pc, windrow as wr
table = pa.table({"t": range(50), "k": [i % 3 for i in range(50)], "x": [i % 7 for i in range(50)]})
windows = {"s": wr.session(5), "h": wr.threshold(pc.field("x") > 2)}
q = wr.query(time="t", key="k", windows=windows, aggregates={"n": wr.count()})
print(sorted(map(str, q.run(table).to_pylist())))
"""


def started(directory):
    """A process of its own with this cache."""
    environment = {**os.environ, "WINDROW_CACHE_DIR": str(directory)}
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def output_of(process):
    out, problems = process.communicate(timeout=300)
    assert process.returncode == 0, problems[-500:]
    return out


def test_processes_share_a_cache_of_kernels_whatever_happens_to_one_of_them(tmp_path):
    killed = started(tmp_path / "shared")
    try:
        killed.communicate(timeout=3)
    except subprocess.TimeoutExpired:
        killed.kill()
        killed.communicate()
    both = [started(tmp_path / "shared"), started(tmp_path / "shared")]
    first, second = map(output_of, both)
    assert first == second == output_of(started(tmp_path / "shared"))


def test_a_cache_that_cannot_be_made_is_done_without(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert "'window': 's'" in output_of(started(tmp_path / "file"))

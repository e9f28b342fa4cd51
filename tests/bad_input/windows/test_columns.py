"""Columns that a window cannot read, and rows that it cannot take."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bad_input.windows.support import FOUR, INT64_MAX, INT64_MIN, content, events, query

import windrow as wr

SECONDS = pa.array(FOUR, pa.timestamp("s"))
TYPES = {
    "gaps of text": (wr.session("g"), {"g": list("abcd")}, "column 'g' is of type string; gaps are"),
    "gaps of booleans": (wr.session("g"), {"g": [True] * 4}, "column 'g' is of type bool"),
    "gaps of floats": (wr.session("g"), {"g": [1.5] * 4}, "integers .ticks. or durations"),
    "gaps of decimals": (wr.session("g"), {"g": [Decimal(1)] * 4}, "is of type decimal"),
    "gaps of time": (wr.session("g"), {"g": pa.array([1] * 4, pa.duration("s"))}, "is not a time"),
    "gaps from nowhere": (wr.session("nowhere"), {}, "there is no column 'nowhere'"),
    "a gap of seconds": (wr.session("5 seconds"), {}, "is a length of time, but column 't'"),
    "a gap of half a tick": (wr.session(2.5), {}, "not a whole number of ticks"),
    "a gap beyond the type": (wr.session(2**70), {}, "overflow column 't'"),
    "a gap too fine": (wr.session("5 nanoseconds"), {"t": SECONDS}, "finer than the ticks"),
    "marks of integers": (wr.punctuated(where="i"), {}, "'i' is of type int64; a boolean column is needed"),
    "marks of nulls": (wr.punctuated(where="b"), {"b": pa.nulls(4)}, "'b' is of type null"),
    "an expression of integers": (wr.threshold(pc.field("i") + 1), {}, "gives int64; a boolean is needed"),
    "an expression over nothing": (wr.threshold(pc.field("zz") > 1), {}, "there is no column 'zz'"),
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

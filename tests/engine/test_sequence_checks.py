"""Types and rows that a window cannot take."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windrow as wr
from windrow.engine.sequence import bad_rows, check_types, gaps_of
from windrow.measure import Measure

INTEGERS = Measure("t", pa.int64())
FLOATS = Measure("t", pa.float64())
STAMPS = Measure("t", pa.timestamp("ms"))
COLUMNS = {
    "i": pa.int64(),
    "u": pa.uint64(),
    "f": pa.float64(),
    "b": pa.bool_(),
    "s": pa.string(),
    "d": pa.duration("us"),
    "c": pa.decimal128(10, 2),
}


def schema(measure):
    return pa.schema([pa.field("t", measure.type), *(pa.field(n, t) for n, t in COLUMNS.items())])


def step(state, i):
    return state, 0, 0


FINE = [
    (wr.session("i"), INTEGERS),
    (wr.session("i"), STAMPS),
    (wr.session("d"), STAMPS),
    (wr.session("f"), FLOATS),
    (wr.session("i"), FLOATS),
    (wr.session("10 seconds"), STAMPS),
    (wr.tumbling(rows=3), STAMPS),
    (wr.tumbling(3, on="f"), STAMPS),
    (wr.punctuated("b"), STAMPS),
    (wr.delta("u", by=1), STAMPS),
    (wr.threshold(pc.field("f") > 1, at_least="1 second"), STAMPS),
    (wr.latest(rows=1, every="1 second"), STAMPS),
    (wr.slide_by_rows("1 second", every_rows=2), STAMPS),
    (wr.deterministic(step, state=0), STAMPS),
    (wr.deterministic(lambda s, t, d, b: (s, 0, 0), state=0), STAMPS),
]
WRONG = [
    (wr.session("gone"), INTEGERS, "there is no column 'gone'"),
    (wr.session("d"), INTEGERS, "column 'd' is of type duration"),
    (wr.session("f"), INTEGERS, "column 'f' is of type double"),
    (wr.session("f"), STAMPS, "column 'f' is of type double"),
    (wr.session("s"), STAMPS, "column 's' is of type string"),
    (wr.session("10 seconds"), INTEGERS, "is not a time"),
    (wr.session("1 nanosecond"), STAMPS, "finer than the ticks"),
    (wr.tumbling(3, on="s"), STAMPS, "column 's' is of type string; an integer or floating-point column"),
    (wr.tumbling(3, on="b"), STAMPS, "column 'b' is of type bool"),
    (wr.tumbling(3, on="c"), STAMPS, "column 'c' is of type decimal"),
    (wr.delta("d", by=1), STAMPS, "column 'd' is of type duration"),
    (wr.delta("i", by=1e19), STAMPS, "nothing can move by more than"),
    (wr.punctuated("i"), STAMPS, "column 'i' is of type int64; a boolean column"),
    (wr.punctuated(start="b", end=pc.field("f") + 1), STAMPS, "end: .* gives double"),
    (wr.threshold(lambda s: s == 1), STAMPS, "column 's' of type string"),
    (wr.threshold("b", at_least="1 second"), INTEGERS, "is not a time"),
    (wr.latest(rows=1, every="1 second"), INTEGERS, "is not a time"),
    (wr.latest(rows=1, every=2**70), INTEGERS, "longer than column 't'"),
    (wr.slide_by_rows(0.5, every_rows=2), INTEGERS, "not a whole number of ticks"),
    (wr.landmark(since=0.5, every=1), INTEGERS, "since"),
    (wr.deterministic(lambda state, s: (state, 0, 0), state=0), STAMPS, "column 's' is of type string"),
    (wr.deterministic(lambda state, c: (state, 0, 0), state=0), STAMPS, "column 'c' is of type decimal"),
    (
        wr.nondeterministic(evict=lambda rows: 0, trigger=lambda s: True),
        STAMPS,
        "column 's' is of type string",
    ),
]


@pytest.mark.parametrize(("window", "measure"), FINE, ids=str)
def test_types_that_fit_are_taken(window, measure):
    check_types("w", window, schema(measure), measure)


@pytest.mark.parametrize(("window", "measure", "problem"), WRONG, ids=str)
def test_types_that_do_not_fit_are_refused_by_name(window, measure, problem):
    with pytest.raises(wr.QueryError, match=problem) as caught:
        check_types("w", window, schema(measure), measure)
    assert str(caught.value).startswith("window 'w': ")


def found(window, batch, measure=INTEGERS):
    return [
        (column, np.flatnonzero(mask).tolist(), reason)
        for column, mask, reason in bad_rows(window, batch, measure)
    ]


def test_gaps_that_are_none_make_bad_rows():
    batch = pa.record_batch({"t": [1, 2, 3, 4, 2**63 - 3], "gap": [5, None, 0, -1, 4]})
    assert found(wr.session("gap"), batch) == [
        ("gap", [1], "is null, and a session needs its gap"),
        ("gap", [2, 3], "is not a gap: it must be longer than zero"),
        ("gap", [4], "ends the session beyond what the time column can express"),
    ]
    assert found(wr.session(5), batch) == []
    batch = pa.record_batch({"t": [1.0, 2.0, 3.0], "gap": [0.5, float("nan"), float("inf")]})
    assert found(wr.session("gap"), batch, FLOATS) == [("gap", [1, 2], "is not a finite gap")]
    batch = pa.record_batch({"t": [-5, 0], "gap": pa.array([2**63, 2**63 - 2], pa.uint64())})
    assert [rows for _, rows, _ in found(wr.session("gap"), batch)] == [[0]]


def test_gaps_come_in_ticks_whatever_their_unit():
    times = pa.array([1, 2, 3], pa.timestamp("ms"))
    for unit, numbers, wanted in [
        ("s", [1, 2, 3], [1000, 2000, 3000]),
        ("us", [1000, 2000, 5000], [1, 2, 5]),
    ]:
        batch = pa.record_batch({"t": times, "gap": pa.array(numbers, pa.duration(unit))})
        assert gaps_of(wr.session("gap"), batch, STAMPS).tolist() == wanted
        assert found(wr.session("gap"), batch, STAMPS) == []
    batch = pa.record_batch({"t": times, "gap": pa.array([1500, 2000, 999], pa.duration("us"))})
    assert [(rows, reason[:28]) for _, rows, reason in found(wr.session("gap"), batch, STAMPS)] == [
        ([0, 2], "is finer than the ticks of c")
    ]
    batch = pa.record_batch({"t": times, "gap": pa.array([1, 2**62, 1], pa.duration("s"))})
    assert [rows for _, rows, _ in found(wr.session("gap"), batch, STAMPS)] == [[1]]
    assert gaps_of(wr.session(timedelta(seconds=2)), batch, STAMPS).tolist() == [2000] * 3
    batch = pa.record_batch({"t": [1.0, 2.0], "gap": [1, 2]})
    assert gaps_of(wr.session("gap"), batch, FLOATS).tolist() == [1.0, 2.0]


def test_readings_that_cannot_be_compared_make_bad_rows():
    batch = pa.record_batch({"t": range(5), "km": [1.0, None, float("nan"), float("-inf"), 1e300]})
    assert found(wr.tumbling(5, on="km"), batch) == [
        ("km", [1], "is null, and a window advances with it"),
        ("km", [2, 3], "is not a finite number"),
        ("km", [4], "is too large for windows every 5"),
    ]
    batch = pa.record_batch({"t": [1, 2], "km": pa.array([3, 2**64 - 1], pa.uint64())})
    assert found(wr.tumbling(5, on="km"), batch) == [
        ("km", [1], "is too large for a 64-bit integer with a sign")
    ]
    batch = pa.record_batch({"t": [1, 2], "km": [2**63 - 1, 5]})
    assert found(wr.tumbling(2, on="km"), batch) == []
    assert [rows for _, rows, _ in found(wr.tumbling(1, on="km"), batch)] == [[0]]


def test_nulls_that_a_function_would_read_make_bad_rows():
    batch = pa.record_batch({"t": [1, 2, 3], "x": [1, None, 3], "y": [None, 1.5, 2.5]})
    window = wr.deterministic(lambda s, x, y, t: (s, 0, 0), state=0)
    reason = "is null, and a window reads it"
    assert found(window, batch) == [("x", [1], reason), ("y", [0], reason)]
    window = wr.nondeterministic(evict=lambda rows: 0, trigger=lambda x: x > 1)
    assert found(window, batch) == [("x", [1], reason)]
    for window in (wr.delta("x", by=1), wr.threshold(lambda x: x > 1), wr.tumbling(rows=2)):
        assert found(window, batch) == []


def test_times_too_far_for_looks_make_bad_rows():
    batch = pa.record_batch({"t": [1.0, 1e18]})
    assert [rows for _, rows, _ in found(wr.latest(rows=1, every=1.0), batch, FLOATS)] == [[1]]

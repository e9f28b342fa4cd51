"""Every discretizer against its definition: plain loops over the whole sequence of one key."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from sequences import Engine, discretized, schema_of

import windrow as wr
from windrow.measure import Measure

INTEGERS = Measure("t", pa.int64())
FLOATS = Measure("t", pa.float64())
COLUMNS = {"x": pa.int64(), "y": pa.float64(), "m": pa.bool_(), "n": pa.bool_()}


def after(t):
    return t + 1 if isinstance(t, int) else math.nextafter(t, math.inf)


# Models: `rows` is the sequence of one key, (time, x, y, m, n); windows are (begin, end, start, finish).


def rows_model(rows, length, every):
    for k in range(len(rows)):
        begin, end = k * every, min(k * every + length, len(rows))
        if begin < len(rows):
            yield begin, end, rows[begin][0], after(rows[end - 1][0])


def marked_model(rows, marks):
    begins = sorted({0, *(i for i, mark in enumerate(marks) if mark)}) if rows else []
    for begin, end in zip(begins, [*begins[1:], None], strict=True):
        finish = after(rows[-1][0]) if end is None else rows[end][0]
        yield begin, len(rows) if end is None else end, rows[begin][0], finish


def between_model(rows, starts, ends):
    begin = None
    for i, row in enumerate(rows):
        if begin is None and starts[i]:
            begin = i
        if begin is not None and ends[i]:
            yield begin, i + 1, rows[begin][0], after(row[0])
            begin = None
    if begin is not None:
        yield begin, len(rows), rows[begin][0], after(rows[-1][0])


def delta_model(rows, values, by, moves):
    boundaries = []
    for i, value in enumerate(values):
        if value is None or math.isnan(value):
            continue
        if not boundaries or abs(value - values[boundaries[-1]]) > by:
            boundaries.append(i)
    for j, begin in enumerate(boundaries):
        if j + moves < len(boundaries):
            end = boundaries[j + moves]
            yield begin, end, rows[begin][0], rows[end][0]
        else:
            yield begin, len(rows), rows[begin][0], after(rows[-1][0])


def threshold_model(rows, holds, least=0, least_rows=1):
    i = 0
    while i < len(rows):
        j = i
        while j < len(rows) and holds[j]:
            j += 1
        if j > i:
            start, finish = rows[i][0], rows[j][0] if j < len(rows) else after(rows[-1][0])
            if finish - start >= least and j - i >= least_rows:
                yield i, j, start, finish
        i = max(j, i + 1)


def advancing_model(rows, values, length, every, offset):
    highest = [max(values[: i + 1]) for i in range(len(values))]
    if not rows:
        return
    low = math.floor((highest[0] - offset - length) / every) - 2
    high = math.ceil((highest[-1] - offset) / every) + 2
    for k in range(low, high + 1):
        lower, upper = offset + k * every, offset + k * every + length
        held = [i for i, m in enumerate(highest) if lower <= m < upper]
        if held:
            end = held[-1] + 1
            finish = rows[end][0] if end < len(rows) else after(rows[-1][0])
            yield held[0], end, rows[held[0]][0], finish


def looking_back_model(rows, length, every):
    found = set()
    for i in range(every - 1, len(rows), every):
        t = rows[i][0]
        held = [j for j, row in enumerate(rows) if t - length < row[0] <= t]
        found.add((held[0], held[-1] + 1, after(t - length), after(t)))
    yield from found


def latest_model(rows, count, every, offset):
    if not rows:
        return
    k = math.floor((rows[0][0] - offset) / every) - 1
    while offset + (k - 1) * every <= rows[-1][0]:
        look = offset + k * every
        if any(look - every <= row[0] < look for row in rows):
            end = sum(row[0] < look for row in rows)
            begin = max(end - count, 0)
            yield begin, end, rows[begin][0], look
        k += 1


def deterministic_model(rows, step, state, arguments):
    queue = []
    for i, row in enumerate(rows):
        state, begins, ends = step(state, *arguments(row))
        for _ in range(ends):
            begin = queue.pop(0)
            yield begin, i, rows[begin][0], row[0]
        queue += [i] * begins
    for begin in queue:
        yield begin, len(rows), rows[begin][0], after(rows[-1][0])


def nondeterministic_model(rows, evict, trigger, update, state):
    begin = 0
    for i, (t, x, *_) in enumerate(rows):
        while begin <= i:
            leaving = evict(state, i + 1 - begin, rows[begin][0], t, x)
            begin += leaving
            if not leaving:
                break
        oldest = rows[begin][0] if begin <= i else t
        if begin <= i and trigger(state, i + 1 - begin, oldest, t, x):
            yield begin, i + 1, oldest, after(t)
        state = update(state, i + 1 - begin, oldest, t, x)


def column(rows, name):
    return [row[1 + list(COLUMNS).index(name)] for row in rows]


def truths(rows, name):
    return [value is True for value in column(rows, name)]


def trend(state, x, t):
    """Two windows begin where x rises above the last state; up to two end where it falls."""
    last, opened = state
    begins = 2 if x > last else 0
    ends = min(2, opened) if x < last else 0
    return (x, opened + begins - ends), begins, ends


def evict_old(oldest, t):
    return 1 if oldest < t - 3 else 0


def evict_in_pairs(rows, state):
    return 2 if rows > 4 + state % 3 else 0


def evict_all(rows, x):
    return rows if x < 0 else 0


def x_is_even(x):
    return x % 2 == 0


def often(state, rows):
    return (state + rows) % 2 == 0


def next_state(state, x):
    return state + abs(x) + 1


def is_big(x, y):
    return x + y > 2


def is_big_where_known(rows):
    pairs = zip(column(rows, "x"), column(rows, "y"), strict=True)
    return [x is not None and y is not None and x + y > 2 for x, y in pairs]


# (window, model, whether it takes nulls in the columns it reads)
CASES = {
    "tumbling rows": (wr.tumbling(rows=3), lambda r: rows_model(r, 3, 3), True),
    "single rows": (wr.tumbling(rows=1), lambda r: rows_model(r, 1, 1), True),
    "sliding rows": (wr.sliding(rows=5, every_rows=2), lambda r: rows_model(r, 5, 2), True),
    "rows with gaps": (wr.sliding(rows=2, every_rows=5), lambda r: rows_model(r, 2, 5), True),
    "marks": (wr.punctuated("m"), lambda r: marked_model(r, truths(r, "m")), True),
    "start and end": (
        wr.punctuated(start="m", end="n"),
        lambda r: between_model(r, truths(r, "m"), truths(r, "n")),
        True,
    ),
    "marks by expression": (
        wr.punctuated(where=pc.field("x") > 2),
        lambda r: marked_model(r, [x is not None and x > 2 for x in column(r, "x")]),
        True,
    ),
    "delta of integers": (wr.delta("x", by=2), lambda r: delta_model(r, column(r, "x"), 2, 1), True),
    "delta of floats": (
        wr.delta("y", by=1.5, moves=3),
        lambda r: delta_model(r, column(r, "y"), 1.5, 3),
        True,
    ),
    "any change": (wr.delta("x", by=0), lambda r: delta_model(r, column(r, "x"), 0, 1), True),
    "threshold": (wr.threshold("m"), lambda r: threshold_model(r, truths(r, "m")), True),
    "threshold by function": (
        wr.threshold(is_big, at_least_rows=2),
        lambda r: threshold_model(r, is_big_where_known(r), 0, 2),
        True,
    ),
    "long threshold": (
        wr.threshold("n", at_least=2),
        lambda r: threshold_model(r, truths(r, "n"), 2),
        True,
    ),
    "advancing": (
        wr.tumbling(3, on="x"),
        lambda r: advancing_model(r, column(r, "x"), 3, 3, 0),
        False,
    ),
    "sliding on a column": (
        wr.sliding(5, every=2, on="x", offset=-3),
        lambda r: advancing_model(r, column(r, "x"), 5, 2, -3),
        False,
    ),
    "gaps on a column": (
        wr.sliding(1, every=3, on="x"),
        lambda r: advancing_model(r, column(r, "x"), 1, 3, 0),
        False,
    ),
    "advancing floats": (
        wr.sliding(2.5, every=0.5, on="y", offset=0.25),
        lambda r: advancing_model(r, column(r, "y"), 2.5, 0.5, 0.25),
        False,
    ),
    "advancing integers by floats": (
        wr.tumbling(1.5, on="x"),
        lambda r: advancing_model(r, column(r, "x"), 1.5, 1.5, 0),
        False,
    ),
    "slide by rows": (
        wr.slide_by_rows(4, every_rows=2),
        lambda r: looking_back_model(r, 4, 2),
        True,
    ),
    "slide by each row": (wr.slide_by_rows(1, every_rows=1), lambda r: looking_back_model(r, 1, 1), True),
    "slide by many rows": (wr.slide_by_rows(9, every_rows=5), lambda r: looking_back_model(r, 9, 5), True),
    "latest": (wr.latest(rows=3, every=2), lambda r: latest_model(r, 3, 2, 0), True),
    "latest one": (wr.latest(rows=1, every=3, offset=1), lambda r: latest_model(r, 1, 3, 1), True),
    "deterministic": (
        wr.deterministic(trend, state=(0, 0)),
        lambda r: deterministic_model(r, trend, (0, 0), lambda row: (row[1], row[0])),
        False,
    ),
    "evict by age": (
        wr.nondeterministic(evict=evict_old, trigger=x_is_even),
        lambda r: nondeterministic_model(
            r,
            lambda s, n, o, t, x: evict_old(o, t),
            lambda s, n, o, t, x: x_is_even(x),
            lambda s, n, o, t, x: s,
            0,
        ),
        False,
    ),
    "evict by count": (
        wr.nondeterministic(evict=evict_in_pairs, trigger=often, update=next_state, state=1),
        lambda r: nondeterministic_model(
            r,
            lambda s, n, o, t, x: evict_in_pairs(n, s),
            lambda s, n, o, t, x: often(s, n),
            lambda s, n, o, t, x: next_state(s, x),
            1,
        ),
        False,
    ),
    "evict everything": (
        wr.nondeterministic(evict=evict_all, trigger=x_is_even),
        lambda r: nondeterministic_model(
            r,
            lambda s, n, o, t, x: evict_all(n, x),
            lambda s, n, o, t, x: x_is_even(x),
            lambda s, n, o, t, x: s,
            0,
        ),
        False,
    ),
}


@st.composite
def streams(draw, measure, nulls, keys=3):
    """Events in order of time and arrival, and where the runs end."""
    steps = st.integers(0, 3) if not measure.floating else st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.75])
    number = st.integers(-4, 9)
    real = st.sampled_from([-2.0, 0.0, 0.5, 1.0, 1.25, 3.0, 4.5, 8.0])
    flag = st.booleans()
    if nulls:
        number, real, flag = number | st.none(), real | st.none() | st.just(math.nan), flag | st.none()
    event = st.tuples(st.integers(0, keys - 1), steps, number, real, flag, flag)
    events, now = [], draw(st.integers(-5, 5)) + (0.5 if measure.floating else 0)
    for key, step, *values in draw(st.lists(event, max_size=40)):
        now += step
        events.append((key, now, *values))
    cuts = draw(st.lists(st.integers(0, len(events)), max_size=6))
    return events, cuts


def expected(model, events):
    found = []
    for key in sorted({e[0] for e in events}):
        found += [(key, *window) for window in model([e[1:] for e in events if e[0] == key])]
    return sorted(found)


@pytest.mark.parametrize("measure", [INTEGERS, FLOATS], ids=["integers", "floats"])
@pytest.mark.parametrize("case", CASES)
def test_windows_are_those_of_the_definition_however_the_stream_is_cut(case, measure):
    window, model, nulls = CASES[case]
    schema = schema_of(COLUMNS, measure)

    @examples(60)
    @given(streams(measure, nulls))
    def check(stream):
        events, cuts = stream
        assert discretized(window, measure, schema, events, cuts) == expected(model, events)

    check()


@pytest.mark.parametrize("case", CASES)
def test_copies_and_restored_states_go_on_alike(case):
    window, model, nulls = CASES[case]
    schema = schema_of(COLUMNS, INTEGERS)

    @examples(25)
    @given(streams(INTEGERS, nulls))
    def check(stream):
        events, cuts = stream
        cut = cuts[0] if cuts else len(events) // 2
        engine = Engine(window, INTEGERS, schema, 3)
        if cut:
            engine.release(events[:cut], events[cut - 1][1])
        twin, restored = engine.copy(), Engine(window, INTEGERS, schema, 0)
        restored.seen, restored.times, restored.found = twin.seen.copy(), twin.times, list(twin.found)
        saved = engine.discretizer.save()
        assert {str(a.dtype) for a in saved.values()} <= {"int64", "float64", "uint8"}
        restored.discretizer.load({k: v.copy() for k, v in saved.items()}, 3, restored.seen)
        wanted = expected(model, events)
        for one in (engine, twin, restored):
            if events[cut:]:
                one.release(events[cut:], events[-1][1])
            assert one.finish() == wanted

    check()


def test_keys_that_come_later_begin_anew():
    schema = schema_of(COLUMNS, INTEGERS)
    for window, model, _ in CASES.values():
        engine = Engine(window, INTEGERS, schema, 1)
        engine.release([(0, 1, 1, 1.0, True, False)], 1)
        engine.seen = np.array([1, 0, 0])
        engine.times += [[], []]
        engine.discretizer.grow(3)
        engine.release([(2, 2, 5, 1.0, False, True), (0, 3, 2, 0.0, False, True)], 3)
        events = [
            (0, 1, 1, 1.0, True, False),
            (2, 2, 5, 1.0, False, True),
            (0, 3, 2, 0.0, False, True),
        ]
        assert engine.finish() == expected(model, events)

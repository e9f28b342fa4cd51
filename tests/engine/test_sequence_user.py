"""Functions of the user's own in windows: compiled or not, they mean the same, and errors say where."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pyarrow as pa
import pytest
from sequences import Engine, discretized, schema_of

import windrow as wr
from windrow.compiling.compiler import InterpretedWarning
from windrow.engine.sequence import discretizer_for
from windrow.measure import Measure

INTEGERS = Measure("t", pa.int64())
FLOATS = Measure("t", pa.float64())
STAMPS = Measure("t", pa.timestamp("us"))
SCHEMA = schema_of({"x": pa.int64(), "y": pa.float64(), "m": pa.bool_()}, INTEGERS)
EVENTS = [(i % 2, i // 2, i % 5, i / 4, i % 3 == 0) for i in range(30)]


def engine(window, schema=SCHEMA, measure=INTEGERS):
    return Engine(window, measure, schema, 2)


def uncompilable(value):
    """The same value, by a way that Numba does not know."""
    return eval("value")


def test_interpreted_and_compiled_steps_find_the_same_windows():
    def fast(state, x, t):
        return state + x * t, 1 if x > 2 else 0, 1 if state % 7 > 3 and x > 2 and t > 4 else 0

    def slow(state, x, t):
        return uncompilable(state + x * t), 1 if x > 2 else 0, 1 if state % 7 > 3 and x > 2 and t > 4 else 0

    window = wr.deterministic(slow, state=0)
    with pytest.warns(InterpretedWarning, match="'slow'"):
        interpreted = discretized(window, INTEGERS, SCHEMA, EVENTS, range(0, 30, 7))
    compiled = discretized(wr.deterministic(fast, state=0), INTEGERS, SCHEMA, EVENTS, range(0, 30, 7))
    assert interpreted == compiled
    assert len(interpreted) > 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        discretized(window, INTEGERS, SCHEMA, EVENTS)


def test_interpreted_and_compiled_evictions_find_the_same_windows():
    def slow(oldest, t):
        return uncompilable(1 if oldest < t - 4 else 0)

    def fast(oldest, t):
        return 1 if oldest < t - 4 else 0

    def trigger(m):
        return m

    with pytest.warns(InterpretedWarning, match="'slow'"):
        interpreted = discretized(
            wr.nondeterministic(evict=slow, trigger=trigger), INTEGERS, SCHEMA, EVENTS, range(0, 30, 4)
        )
    compiled = discretized(wr.nondeterministic(evict=fast, trigger=trigger), INTEGERS, SCHEMA, EVENTS)
    assert interpreted == compiled
    assert len(interpreted) > 4


def test_a_state_that_becomes_a_float_is_kept_as_one():
    def step(mean, y):
        mean = 0.5 * mean + 0.5 * y
        return mean, 1 if y > 2 else 0, 0

    one = engine(wr.deterministic(step, state=0))
    one.release(EVENTS[:10], 4)
    assert one.discretizer.save()["state 0"].dtype == np.float64
    assert one.discretizer.save()["state 0"][1] != int(one.discretizer.save()["state 0"][1])


def test_times_come_as_ticks_and_booleans_as_booleans():
    schema = schema_of({"d": pa.date32(), "m": pa.bool_(), "s": pa.duration("s")}, STAMPS)

    def step(state, t, d, m, s):
        return state, 1 if m and t == 1_000_000 and d == 3 and s == 60 else 0, 0

    days, minute = np.datetime64("1970-01-04").item(), np.timedelta64(60, "s").item()
    found = discretized(
        wr.deterministic(step, state=0),
        STAMPS,
        schema,
        [(0, 0, days, True, minute), (0, 1_000_000, days, True, minute)],
    )
    assert [w[1:3] for w in found] == [(1, 2)]


def test_columns_may_be_named_apart_from_parameters():
    window = wr.deterministic(lambda s, value, now: (s, value > 2, s > 0), state=0, columns=["x", "t"])
    assert len(discretized(window, INTEGERS, SCHEMA, EVENTS)) == sum(e[2] > 2 for e in EVENTS)
    window = wr.nondeterministic(
        evict=lambda rows, value: rows - 1 if value > 2 else 0,
        trigger=lambda value, now: value > 2 and now > 0,
        columns=["x", "t"],
    )
    found = discretized(window, INTEGERS, SCHEMA, EVENTS)
    assert all(end - begin == 1 for _, begin, end, _, _ in found)
    assert len(found) == sum(e[2] > 2 and e[1] > 0 for e in EVENTS)


def test_a_predicate_sees_nan_but_no_null():
    schema = schema_of({"x": pa.float64()}, INTEGERS)
    events = [(0, i, x) for i, x in enumerate([1.0, math.nan, math.nan, 2.0, None, math.nan])]
    found = discretized(wr.threshold(lambda x: math.isnan(x)), INTEGERS, schema, events)
    assert [w[1:3] for w in found] == [(1, 3), (5, 6)]


NONSENSE_STEPS = {
    "half a window": (lambda s, x: (s, 0.5, 0), 0, "begins, which is not a whole number"),
    "two values": (lambda s, x: (s, 1), 0, r"\(state, begins, ends\) is needed"),
    "no tuple": (lambda s, x: x, 0, r"\(state, begins, ends\) is needed"),
    "another state": (lambda s, x: ((s, s), 1, 0), 0, "as the state; a number is needed"),
    "a shorter state": (lambda s, x: ((x,), 1, 0), (0, 0), "as the state; a tuple of 2 numbers is needed"),
}


@pytest.mark.parametrize("case", NONSENSE_STEPS)
def test_a_step_that_returns_nonsense_is_refused_before_the_first_event(case):
    step, state, problem = NONSENSE_STEPS[case]
    with pytest.raises(wr.UserFunctionError, match=problem) as caught:
        discretizer_for(wr.deterministic(step, state=state), INTEGERS, SCHEMA, name="w")
    assert "of window 'w'" in str(caught.value)


INTERPRETED_NONSENSE = {
    "half a window": (lambda s, x: (s, uncompilable(0.5), 0), 0, r"returned 0.5 for begins"),
    "two values": (lambda s, x: (s, uncompilable(1)), 0, r"returned \(0, 1\); \(state, begins, ends\)"),
    "text": (lambda s, x: (s, uncompilable(str(x)), 0), 0, "returned '0' for begins"),
    "no number": (
        lambda s, x: (uncompilable(str(s)), 0, 0),
        0,
        "returned the state '0', which is not a number",
    ),
    "half a state": (lambda s, x: (s + uncompilable(0.5), 0, 0), 0, "began as an integer"),
    "a large state": (lambda s, x: (uncompilable(2**70), 0, 0), 0, "does not fit in 64 bits"),
    "a shorter state": (lambda s, x: ((uncompilable(1),), 0, 0), (0, 0), "a tuple of 2 numbers is needed"),
}


@pytest.mark.filterwarnings("ignore::windrow.compiling.compiler.InterpretedWarning")
@pytest.mark.parametrize("case", INTERPRETED_NONSENSE)
def test_nonsense_of_an_interpreted_step_is_named_with_its_event(case):
    step, state, problem = INTERPRETED_NONSENSE[case]
    with pytest.raises(wr.UserFunctionError, match=problem) as caught:
        engine(wr.deterministic(step, state=state)).release(EVENTS, 20)
    assert "at time 0 (state=" in str(caught.value)


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (lambda s, x: (s + 1, -1 if x == 4 else 0, 0), "returned a negative number of windows"),
        (lambda s, x: (s + 1, 0, 1 if x == 4 else 0), "ended more windows than were open"),
        (lambda s, x: (s + 1, 1 // (x - 4), 0), "raised ZeroDivisionError"),
    ],
)
def test_a_step_that_fails_is_named_with_its_event_and_leaves_everything_as_it_was(step, problem):
    one = engine(wr.deterministic(step, state=7))
    one.release([(0, 0, 5, 0.0, True), (1, 1, 5, 0.0, True)], 1)
    before = one.discretizer.save()
    with pytest.raises(wr.UserFunctionError, match=problem) as caught:
        one.release([(0, 2, 6, 0.0, True), (1, 3, 6, 0.0, True), (1, 4, 4, 0.0, True)], 5)
    assert "of window 'w'" in str(caught.value)
    assert "at time 4 (state=9, x=4)" in str(caught.value)
    after = one.discretizer.save()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_an_eviction_that_fails_is_named_with_its_event_and_leaves_everything_as_it_was():
    def evict(rows, x):
        return 10 // (x - 4) if x > 3 else 0

    def trigger(oldest, rows):
        return rows > 0

    one = engine(wr.nondeterministic(evict=evict, trigger=trigger))
    one.release([(0, 0, 1, 0.0, True)], 1)
    before = one.discretizer.save()
    with pytest.raises(
        wr.UserFunctionError, match="evict 'evict' of window 'w' raised ZeroDivisionError"
    ) as caught:
        one.release([(0, 2, 2, 0.0, True), (1, 3, 1, 0.0, True), (1, 4, 4, 0.0, True)], 5)
    assert "at time 4 (rows=2, x=4)" in str(caught.value)
    with pytest.raises(wr.UserFunctionError, match="evicted more events than there are at time 4"):
        one.release([(0, 4, 5, 0.0, True)], 5)
    after = one.discretizer.save()
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    ("functions", "problem"),
    [
        ({"evict": lambda rows: 0.5, "trigger": lambda m: m}, "evict .* a whole number of events is needed"),
        ({"evict": lambda rows: 0, "trigger": lambda x: x}, "trigger .* a boolean is needed"),
        (
            {"evict": lambda rows: 0, "trigger": lambda m: m, "update": lambda state: (state, 1)},
            "update .* as the state; a number is needed",
        ),
    ],
)
def test_evictions_that_return_nonsense_are_refused_before_the_first_event(functions, problem):
    with pytest.raises(wr.UserFunctionError, match=problem):
        discretizer_for(wr.nondeterministic(**functions), INTEGERS, SCHEMA, name="w")


@pytest.mark.filterwarnings("ignore::windrow.compiling.compiler.InterpretedWarning")
def test_interpreted_evictions_are_checked_too():
    one = engine(wr.nondeterministic(evict=lambda rows: 0, trigger=lambda x: uncompilable(x)))
    with pytest.raises(wr.UserFunctionError, match="returned 0, which is not a boolean, at time 0"):
        one.release(EVENTS, 20)
    one = engine(wr.nondeterministic(evict=lambda rows: uncompilable(-rows), trigger=lambda m: m))
    with pytest.raises(wr.UserFunctionError, match="evicted a negative number of events at time 0"):
        one.release(EVENTS, 20)


def test_a_step_that_never_ends_its_windows_meets_a_limit():
    one = engine(wr.deterministic(lambda s, x: (s, 1_000_000, 0), state=0))
    one.release([(0, 0, 0, 0.0, True)], 0)
    with pytest.raises(wr.LimitError, match="window 'w': more than 10,000,000 windows would be open at once"):
        one.release([(0, i, 0, 0.0, True) for i in range(1, 11)], 10)
    assert len(one.anchors()[0]) == 1_000_000
    one = engine(wr.deterministic(lambda s, x: (s, 2**62, 0), state=0))
    with pytest.raises(wr.LimitError):
        one.release([(0, 0, 0, 0.0, True)], 0)


def test_many_windows_may_begin_and_end_at_one_event():
    window = wr.deterministic(lambda s, x: (s, 300 if x == 1 else 0, 200 if x == 2 else 0), state=0)
    events = [(0, i, x, 0.0, True) for i, x in enumerate([1, 0, 2, 1, 2, 0])]
    found = discretized(window, INTEGERS, SCHEMA, events)
    assert len(found) == 600
    assert [found.count(w) for w in sorted(set(found))] == [200, 100, 100, 200]


def test_content_of_many_events_is_fetched_as_it_is_needed():
    def evict(oldest, t):
        return 1 if oldest < t - 100 else 0

    events = [(0, i // 40, 0, 0.0, i % 999 == 0) for i in range(4000)]
    events += [(0, 1000 + i, 0, 0.0, True) for i in range(3)]
    window = wr.nondeterministic(evict=evict, trigger=lambda m: m)
    once = discretized(window, INTEGERS, SCHEMA, events)
    assert discretized(window, INTEGERS, SCHEMA, events, [3998, 3999, 4000, 4001]) == once

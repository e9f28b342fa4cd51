"""Functions of a window that return nonsense, or cannot be compiled."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bad_input.windows.support import FOUR, events, own, query

import windrow as wr
from windrow.compiling.compiler import InterpretedWarning


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
    "a state too large": (own(lambda s, i: (s + opaque(10**30), 1, 0)), "does not fit in 64 bits"),
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
@pytest.mark.filterwarnings("ignore::windrow.compiling.compiler.InterpretedWarning")
def test_a_function_that_cannot_be_compiled_is_held_to_the_same(name):
    window, message = INTERPRETED[name]
    with pytest.raises(wr.UserFunctionError, match=message):
        query(window).run(events(FOUR))


BIG = 2**40
OVERFLOWS = {
    "a state doubled": lambda same: own(lambda s, i: (same(s) * 2, 1 if s < 0 else 0, 0), 2**61),
    "a state that goes down": lambda same: own(lambda s, i: (same(s) * 2, 0, 0), -(2**62)),
    "a number of a state": lambda same: own(lambda s, i: ((s[0], same(s[1]) + 2**62), 0, 0), (0.5, 2**61)),
    "windows that begin": lambda same: own(lambda s, i: (s, (same(i) + 1) * BIG * BIG, 0)),
    "an eviction": lambda same: asked_by(lambda rows: 0 * same(rows) * BIG * BIG * BIG + rows * BIG * BIG),
    "a trigger": lambda same: asked_by(trigger=lambda i: same(i + 1) * BIG * BIG > 0),
    "an update": lambda same: asked_by(update=lambda state, i: same(state) + BIG * BIG * (i + 1)),
    "a condition": lambda same: wr.threshold(lambda i: same(i + 1) * BIG * BIG > 0),
    "minus the lowest": lambda same: own(lambda s, i: (-same(s), 0, 0), -(2**63)),
}


def same(value):
    return value


@pytest.mark.parametrize("name", OVERFLOWS)
@pytest.mark.parametrize("way", [same, opaque], ids=["compiled", "interpreted"])
@pytest.mark.filterwarnings("ignore::windrow.compiling.compiler.InterpretedWarning")
def test_an_integer_beyond_64_bits_is_an_error_that_changes_nothing(name, way):
    operator = query(OVERFLOWS[name](way)).operator()
    operator.prepare(events(FOUR).schema)
    # A condition is asked when events come, what follows the order of events when their time has come.
    when_they_come = name == "a condition"
    if not when_they_come:
        operator.process(events(FOUR))
    before = operator.snapshot()
    with pytest.raises(
        wr.UserFunctionError, match=r"raised OverflowError at time \d+ \(.*does not fit in 64 bits"
    ):
        operator.process(events(FOUR)) if when_they_come else operator.advance(100)
    assert operator.snapshot() == before


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


@pytest.mark.filterwarnings("ignore::windrow.compiling.compiler.InterpretedWarning")
@pytest.mark.parametrize(
    "window",
    [own(lambda s, i: [i, repr(i)]), asked_by(trigger=lambda i: [i, repr(i)])],
    ids=["step", "trigger"],
)
def test_a_function_on_which_numba_itself_stumbles_is_held_to_the_same(window):
    with pytest.raises(wr.UserFunctionError):
        query(window).run(events(FOUR))

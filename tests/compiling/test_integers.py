"""Integers of user functions: compiled or interpreted, they are Python's own, or an error where 64 bits are not enough."""

from __future__ import annotations

import math
import operator

import numba
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.compiling.integers import interpreted
from windrow.compiling.native import compiled

HIGHEST, LOWEST = 2**63 - 1, -(2**63)


def loop(a, b):
    found = 0
    for i in range(3):
        found += a * i - b
    return found


@numba.njit
def compiled_by_the_user(a, b):
    return a + b


def outer(a, b):
    return compiled_by_the_user(a, b)


OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "**": lambda a, b: a**b,
    "** 2": lambda a, b: a**2,
    "-a": lambda a, b: -a,
    "abs": lambda a, b: abs(a),
    "divmod": lambda a, b: divmod(a, b)[0],
    "pow": lambda a, b: pow(a, b),
    "sum": lambda a, b: sum((a, b)),
    "operator.add": lambda a, b: operator.add(a, b),
    "constants on the left": lambda a, b: 3 * (1 - a) + 2,
    "on the way": lambda a, b: (a + b) - b,
    "a comparison": lambda a, b: a * a > b,
    "a loop": loop,
    "a call": lambda a, b: loop(a, b) + 1,
}
COMPILED = {name: compiled(function) for name, function in OPERATIONS.items()}
NUMBERS = st.one_of(
    st.integers(LOWEST, HIGHEST),
    st.integers(-70, 70),
    st.integers(-(2**32), 2**32),
    st.sampled_from([LOWEST, LOWEST + 1, -1, 0, 1, HIGHEST]),
)


def exactly(function, a, b):
    """The answer in integers without limit; None if a number on the way or the answer is beyond 64 bits."""
    if function is OPERATIONS["** 2"]:
        b = 2
    shifts = function in (OPERATIONS["<<"], OPERATIONS["**"], OPERATIONS["pow"], OPERATIONS["** 2"])
    if shifts and b > 64 and abs(a) > 1:
        return None
    if function is OPERATIONS["<<"] and b > 64:
        return 0 if a == 0 else None
    if function in (OPERATIONS["**"], OPERATIONS["pow"]) and b > 64:
        return a if b % 2 or a == 0 else 1
    found = function(a, b)
    on_the_way = {
        OPERATIONS["on the way"]: [a + b],
        OPERATIONS["constants on the left"]: [1 - a, 3 * (1 - a)],
        OPERATIONS["a comparison"]: [a * a],
    }
    made = [found, *on_the_way.get(function, [])]
    if function in (loop, OPERATIONS["a call"]):
        total = 0
        for i in range(3):
            made += [a * i, a * i - b, total + (a * i - b)]
            total += a * i - b
    return found if all(LOWEST <= x <= HIGHEST for x in made) else None


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except (ArithmeticError, ValueError) as problem:
        return type(problem)


@pytest.mark.parametrize("name", OPERATIONS)
@given(NUMBERS, NUMBERS)
def test_an_operation_is_exact_or_raises_compiled_and_interpreted(name, a, b):
    function = OPERATIONS[name]
    if b < 0 and function in (OPERATIONS["**"], OPERATIONS["pow"]):
        expected = ValueError
    else:
        expected = outcome(exactly, function, a, b)
        expected = OverflowError if expected is None else expected
    assert outcome(COMPILED[name], a, b) == expected
    assert outcome(interpreted(function), a, b) == expected


def test_a_function_that_the_user_compiled_is_compiled_anew():
    assert outer(HIGHEST, 1) == LOWEST
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        compiled(outer)(HIGHEST, 1)


@pytest.mark.parametrize(
    "function", [int, round, math.floor, math.ceil, math.trunc], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("value", [1e300, -1e19, 2.0**63, math.inf, math.nan, -(2.0**63), 2.5, -7.5])
def test_a_float_becomes_an_integer_that_fits_or_raises(function, value):
    def whole(x):
        return function(x)

    wanted = outcome(interpreted(whole), value)
    assert outcome(compiled(whole), value) == wanted


def test_an_integer_to_a_negative_power_is_refused_both_ways():
    for function in (compiled(OPERATIONS["**"]), interpreted(OPERATIONS["**"])):
        with pytest.raises(ValueError, match="make it a float first"):
            function(2, -1)


def test_a_constant_beyond_64_bits_is_left_to_the_interpreter():
    with pytest.raises(numba.core.errors.NumbaError, match="the constant 9223372036854775808 does not fit"):
        compiled(lambda a: a + 2**63)(1)


def test_floats_and_booleans_are_what_they_were():
    assert compiled(lambda a, b: a + b)(0.5, 2**62) == 0.5 + 2**62
    assert compiled(lambda a, b: a / b)(2**62, 2**61) == 2.0
    assert compiled(lambda a, b: a + b)(True, True) == 2
    assert interpreted(lambda a, b: (a > b, a / b))(3, 2) == (True, 1.5)
    assert interpreted(lambda a: a + 1)(3) == 4

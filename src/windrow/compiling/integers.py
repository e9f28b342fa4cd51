"""Integers of user functions: 64 bits, and an OverflowError where a result needs more.

    compiled        `engine.checking`: additions and the like look at the processor's overflow flag
    interpreted     functions get `Int64`, a Python integer that looks at each result

Every integer that a function makes must fit, also one on the way to a smaller one. So both ways of running agree,
and neither wraps around in silence. NumPy's functions of two integers are checked as their operators are. Sums and products
of its arrays cannot be: compiled functions with such are refused, and interpreted ones get what NumPy gives. Floats cost
nothing: what is lowered otherwise is found by its types.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from windrow.measure import INT64_MAX, INT64_MIN

FRACTION = "an integer to a negative power is a fraction: make it a float first"
UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.negative: operator.neg,
    np.absolute: abs,
    np.power: operator.pow,
    np.floor_divide: operator.floordiv,
    np.left_shift: operator.lshift,
    np.right_shift: operator.rshift,
}


class Nonsense(Exception):
    """An answer of a user function that means nothing; the text says why."""


class Int64(int):
    """A Python integer whose operations raise where compiled ones do, NumPy's functions of two numbers included."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **options: Any) -> Any:
        integers = all(isinstance(value, (int, np.integer)) for value in given)
        if ufunc in UFUNCS and method == "__call__" and integers and not options:
            return UFUNCS[ufunc](*(Int64(value) for value in given))
        plain = [int(value) if isinstance(value, Int64) else value for value in given]
        return getattr(ufunc, method)(*plain, **options)


def _fitting(found: Any) -> Any:
    """An integer, or a tuple of them, that fits; anything else as it is."""
    if found.__class__ is int and INT64_MIN <= found <= INT64_MAX:
        return Int64(found)
    if isinstance(found, tuple):
        return tuple(map(_fitting, found))
    if not isinstance(found, int) or INT64_MIN <= found <= INT64_MAX:
        return found
    # The digits of a number can be more than anybody reads.
    shown = found if found.bit_length() < 200 else f"a number of {found.bit_length()} bits"
    raise OverflowError(f"{shown} does not fit in 64 bits")


def _operation(name: str) -> Callable[..., Any]:
    plain = getattr(int, name)

    def operation(*operands: Any) -> Any:
        found = plain(*operands)
        # One call less where all is well.
        return Int64(found) if found.__class__ is int and INT64_MIN <= found <= INT64_MAX else _fitting(found)

    return operation


def _reflected(name: str) -> Callable[..., Any]:
    return lambda self, other: getattr(Int64(other), name)(self) if isinstance(other, int) else NotImplemented


def _int64_power(self: int, other: Any, modulus: Any = None) -> Any:
    if not isinstance(other, int) or modulus is not None:
        return _fitting(int.__pow__(self, other, modulus))
    if other < 0:
        raise ValueError(FRACTION)
    # What is beyond 64 bits need not be computed to be refused.
    return _fitting(int.__pow__(self, other if -2 < self < 2 else min(other, 64)))


def _int64_shift(self: int, other: Any) -> Any:
    return _fitting(int.__lshift__(self, min(other, 64) if isinstance(other, int) else other))


_BINARY = ("add", "sub", "mul", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "or", "xor")
for _name in _BINARY:
    setattr(Int64, f"__{_name}__", _operation(f"__{_name}__"))
    setattr(Int64, f"__r{_name}__", _reflected(f"__{_name}__"))
for _name in ("neg", "pos", "abs", "invert", "round", "trunc", "floor", "ceil"):
    setattr(Int64, f"__{_name}__", _operation(f"__{_name}__"))
Int64.__pow__ = _int64_power  # type: ignore[method-assign]
Int64.__lshift__ = _int64_shift  # type: ignore[method-assign]


def _arguments(values: Any) -> Any:
    """Numbers, and tuples of them, as Python's own."""
    for value in values:
        if value.__class__ in _PYTHON:
            return tuple([_PYTHON[v.__class__](v) if v.__class__ in _PYTHON else v for v in values])
    return values


_PYTHON: dict[Any, Callable[[Any], Any]] = {
    int: Int64,
    np.int64: Int64,
    np.float64: float,
    np.bool_: bool,
    tuple: _arguments,
}


def _answer(found: Any) -> Any:
    """What a function returned, in Python's own numbers; integers must fit."""
    if found.__class__ is Int64:
        return found
    if isinstance(found, np.generic):
        found = found.item()
    return tuple(map(_answer, found)) if isinstance(found, tuple) else _fitting(found)


@functools.cache
def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A user's function as plain Python, with integers that raise where they do not fit in 64 bits.

    It is called with numbers of NumPy or of Python, and returns Python's own, integers as `Int64`.
    """

    @functools.wraps(function)
    def called(*arguments: Any) -> Any:
        return _answer(function(*_arguments(arguments)))

    return called


@functools.cache
def strict(function: Any, kinds: str, bare: bool, what: str, *, floats: bool) -> Callable[..., Any]:
    """A function that Numba cannot compile, `interpreted`, and its answer checked: see `checked_numbers`.

    One that is called with `floats` alone, and returns them, has nothing to check: it is a mere copy.
    """

    @functools.wraps(function)
    def called(*arguments: Any) -> Any:
        return checked_numbers(function(*_arguments(arguments)), kinds, bare, what)

    if floats:
        parts = function.__name__, function.__defaults__, function.__closure__
        called = functools.update_wrapper(
            type(function)(function.__code__, function.__globals__, *parts), function
        )
    called.is_interpreted = True  # type: ignore[attr-defined]
    return called


def python_numbers(values: np.ndarray) -> list[Any]:
    """A column for interpreted functions."""
    return list(map(Int64, values.tolist())) if values.dtype.kind == "i" else values.tolist()


def checked_numbers(found: Any, kinds: str, bare: bool, what: str) -> Any:
    """What an interpreted function returned, as it is kept: a number for each of `kinds` ("i", "f" or "b").

    `what` says what it is: "state", "partial".
    """
    if bare:
        return _number(found, kinds, what)
    if not isinstance(found, (tuple, list)) or len(found) != len(kinds):
        raise Nonsense(
            f"returned {found!r} as the {what}; a tuple of {len(kinds)} numbers is needed, as it began,"
        )
    return tuple([_number(value, kind, what) for value, kind in zip(found, kinds, strict=True)])


def _number(value: Any, kind: str, what: str) -> Any:
    if value.__class__ is _USUAL[kind]:
        return value
    value = _answer(value)
    if isinstance(value, tuple):
        raise Nonsense(f"returned {value!r} as the {what}; a number is needed, as it began,")
    if not isinstance(value, (int, float)):
        raise Nonsense(f"returned the {what} {value!r}, which is not a number,")
    if kind == "f":
        return float(value)
    if isinstance(value, float) and what != "result":
        raise Nonsense(f"returned the {what} {value!r}, which began as an integer (begin with 0.0 instead),")
    if isinstance(value, float) or (kind == "b" and not isinstance(value, bool)):
        usual, other = ("a boolean", "int") if kind == "b" else ("an integer", "float")
        raise Nonsense(
            f"returned the {what} {value!r}, and {usual} for ones (return {other}({what}) for all)"
        )
    return value


_USUAL = {"i": Int64, "f": float, "b": bool}

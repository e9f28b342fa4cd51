"""Integers of user functions: 64 bits, and an OverflowError where a result needs more.

    compiled        additions and the like are lowered with a look at the processor's overflow flag
    interpreted     functions get `Int64`, a Python integer that looks at each result

Every integer that a function makes must fit, also one on the way to a smaller one. So both ways of running agree,
and neither wraps around in silence. NumPy's functions of two integers are checked as their operators are. Sums and products
of its arrays cannot be: compiled functions with such are refused, and interpreted ones get what NumPy gives. Floats cost
nothing: what is lowered otherwise is found by its types.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import ir, lowering
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import BaseNativeLowering, NativeLowering
from numba.extending import intrinsic

from windrow.measure import INT64_MAX, INT64_MIN

TOO_LARGE = "an integer does not fit in 64 bits"
FRACTION = "an integer to a negative power is a fraction: make it a float first"
NEGATIVE_SHIFT = "negative shift count"


# -- compiled ----------------------------------------------------------------------------------------


def _flagged(name: str) -> Callable[..., Any]:
    """Code for an operation that sets a flag where its result does not fit: "sadd", "ssub", "smul"."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = getattr(builder, f"{name}_with_overflow")(*arguments)
        with builder.if_then(builder.extract_value(found, 1), likely=False):
            context.call_conv.return_user_exc(builder, OverflowError, (TOO_LARGE,))
        return builder.extract_value(found, 0)

    return generate


_add, _subtract, _multiply = map(_flagged, ("sadd", "ssub", "smul"))


@intrinsic  # type: ignore[untyped-decorator]
def _product(typing: Any, a: Any, b: Any) -> Any:
    return types.int64(types.int64, types.int64), _multiply


@intrinsic  # type: ignore[untyped-decorator]
def _difference(typing: Any, a: Any, b: Any) -> Any:
    return types.int64(types.int64, types.int64), _subtract


def _negative(a):  # type: ignore[no-untyped-def]
    return _difference(0, a)


def _absolute(a):  # type: ignore[no-untyped-def]
    return _difference(0, a) if a < 0 else a


def _quotient(a, b):  # type: ignore[no-untyped-def]
    return _difference(0, a) if b == -1 else a // b


def _quotient_and_rest(a, b):  # type: ignore[no-untyped-def]
    return (_difference(0, a), 0) if b == -1 else (a // b, a % b)


def _power(a, b):  # type: ignore[no-untyped-def]
    if b < 0:
        raise ValueError(FRACTION)
    result = 1
    while True:
        if b & 1:
            result = _product(result, a)
        b >>= 1
        if b == 0:
            return result
        a = _product(a, a)


def _shifted_left(a, b):  # type: ignore[no-untyped-def]
    if b < 0:
        raise ValueError(NEGATIVE_SHIFT)
    if a == 0:
        return 0
    if b > 63 or (a << b) >> b != a:
        raise OverflowError(TOO_LARGE)
    return a << b


def _shifted_right(a, b):  # type: ignore[no-untyped-def]
    if b < 0:
        raise ValueError(NEGATIVE_SHIFT)
    return a >> min(b, 63)


def _whole(x):  # type: ignore[no-untyped-def]
    """Whether a float can become an integer; an error if not."""
    if x != x:
        raise ValueError("cannot convert float NaN to integer")
    if not -9223372036854775808.0 <= x < 9223372036854775808.0:
        raise OverflowError(TOO_LARGE)
    return True


def total(values, start=0):  # type: ignore[no-untyped-def]
    """What `sum` is to a user's function; Numba's own wraps around."""
    for value in values:
        start = start + value
    return start


total.__module__ = "builtins"  # it is compiled as if it were the user's


_CODE = {operator.add: _add, operator.sub: _subtract, operator.mul: _multiply}
_FUNCTIONS = {
    operator.neg: _negative,
    operator.floordiv: _quotient,
    operator.pow: _power,
    operator.lshift: _shifted_left,
    operator.rshift: _shifted_right,
    abs: _absolute,
    divmod: _quotient_and_rest,
    pow: _power,
}
_UFUNCS: dict[Any, Callable[..., Any]] = {
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
# What adds up or multiplies the numbers of an array.
_REDUCTIONS = ("sum", "prod", "cumsum", "cumprod", "dot", "vdot", "trace")
_CONSTANTS = (ir.Const, ir.Global, ir.FreeVar)
_ROUNDING = (int, round, math.ceil, math.floor, math.trunc)


class Unchecked(numba.core.errors.UnsupportedError):  # type: ignore[misc]
    """A function with integers that nobody can check; the text says which."""


class _Lowering(lowering.Lower):  # type: ignore[misc]
    """What Numba does, but for operations on integers."""

    context: Any

    def init(self) -> None:
        super().init()
        for block in self.blocks.values():
            for found in block.find_insts(ir.Assign):
                value = found.value.value if isinstance(found.value, _CONSTANTS) else None
                if type(value) is int and not INT64_MIN <= value <= INT64_MAX:
                    raise numba.core.errors.UnsupportedError(f"the constant {value} does not fit in 64 bits")
        # A copy: the code behind other functions is shared with those of other compilers.
        self.context = self.context.subtarget(get_function=functools.partial(_function, self.context))


def _function(context: Any, function: Any, signature: Any) -> Any:
    """The code for a function; `context.get_function` is what it is elsewhere."""
    key = getattr(function, "typing_key", None)
    key = _UFUNCS.get(key, key) if isinstance(key, np.ufunc) else key
    _require_no_reduction(function, key, signature)
    integers = all(isinstance(a, (types.Integer, types.Boolean)) for a in signature.args)
    if (key in _CODE or key in _FUNCTIONS) and integers and _is_signed(signature.return_type):
        if any(isinstance(a, types.Literal) for a in signature.args):
            raise NotImplementedError  # Numba then asks for the code without constants
        return functools.partial(_checked, context, key, signature)
    found = context.get_function(function, signature)
    rounds = key in _ROUNDING or isinstance(function, types.NumberClass)
    of_float = isinstance(next(iter(signature.args), None), types.Float)
    if not rounds or not of_float or not _is_signed(signature.return_type):
        return found

    def rounded(builder: Any, arguments: Any, location: Any = None) -> Any:
        context.compile_internal(builder, _whole, types.boolean(signature.args[0]), arguments[:1])
        return found(builder, arguments, location)

    return rounded


def _require_no_reduction(function: Any, key: Any, signature: Any) -> None:
    """An error where NumPy would add up or multiply an array of integers, in whose loop no overflow is seen."""
    owner, name = key if isinstance(function, types.BoundFunction) else (None, getattr(key, "__name__", None))
    if name not in _REDUCTIONS or (owner is None and not str(key.__module__).startswith("numpy")):
        return
    given = [function.this] if owner is not None else signature.args
    if any(isinstance(a, types.Array) and isinstance(a.dtype, types.Integer) for a in given):
        raise Unchecked(
            f"the {name} of an array of integers would wrap around in silence where it needs more than 64 bits: "
            "use + and *, or an array of floats"
        )


def _is_signed(returned: Any) -> bool:
    parts = returned.types if isinstance(returned, types.BaseTuple) else (returned,)
    return all(isinstance(p, types.Integer) and p.signed and p.bitwidth == 64 for p in parts)


def _checked(context: Any, key: Any, signature: Any, builder: Any, arguments: Any, _: Any = None) -> Any:
    wide = [context.cast(builder, a, t, types.int64) for a, t in zip(arguments, signature.args, strict=True)]
    signature = signature.return_type(*[types.int64] * len(wide))
    if key in _CODE:
        return _CODE[key](context, builder, signature, wide)
    return context.compile_internal(builder, _FUNCTIONS[key], signature, wide)


@register_pass(mutates_CFG=True, analysis_only=False)
class _NativeLowering(BaseNativeLowering):  # type: ignore[misc]
    _name = "windrow_native_lowering"

    @property
    def lowering_class(self) -> type:
        return _Lowering


class Checking(CompilerBase):  # type: ignore[misc]
    """Numba's compiler for functions of the user's own."""

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_NativeLowering, NativeLowering)
        passes.passes = [p for p in passes.passes if p[0] is not NativeLowering]
        passes.finalize()
        return [passes]


# -- interpreted -------------------------------------------------------------------------------------


class Nonsense(Exception):
    """An answer of a user function that means nothing; the text says why."""


class Int64(int):
    """A Python integer whose operations raise where compiled ones do, NumPy's functions of two numbers included."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **options: Any) -> Any:
        integers = all(isinstance(value, (int, np.integer)) for value in given)
        if ufunc in _UFUNCS and method == "__call__" and integers and not options:
            return _UFUNCS[ufunc](*(Int64(value) for value in given))
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

"""Integers of user functions, compiled: operations that raise an OverflowError where 64 bits are not enough.

Additions and the like are lowered with a look at the processor's overflow flag; `engine.integers` has the same for
interpreted functions.
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

from windrow.compiling.integers import FRACTION, UFUNCS
from windrow.measure import INT64_MAX, INT64_MIN

TOO_LARGE = "an integer does not fit in 64 bits"
NEGATIVE_SHIFT = "negative shift count"


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
    key = UFUNCS.get(key, key) if isinstance(key, np.ufunc) else key
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

"""Every call of a loop in both tiers: as plain Python on copies of its arguments, and compiled. Both must do the same.

What a loop returns, what it leaves in its arguments, and the kind of error that it raises are compared bit for bit, except
for the sign of NaN, which no answer depends on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from windrow.compiling import tiers as cache
from windrow.compiling.fingerprint import names_in
from windrow.compiling.tiers import Kernel


@contextmanager
def both_tiers() -> Iterator[Counter[str]]:
    """Calls in here are compared; how many there were of each loop, by its name."""
    seen: Counter[str] = Counter()

    def call(kernel: Kernel, *arguments: Any) -> Any:
        seen[name_of(kernel)] += 1
        copies = copied(arguments)
        plain = outcome(kernel.interpret, copies)
        fast = outcome(kernel.native, arguments)
        assert same(plain[1], fast[1]), f"{name_of(kernel)}: {plain} is not {fast}"
        assert same(copies, arguments), (
            f"{name_of(kernel)} leaves other arguments: {differing(copies, arguments)}"
        )
        if isinstance(fast[0], BaseException):
            raise fast[0]
        return fast[0]

    with patch.object(cache, "TIER", "compiled"), calling(call):
        yield seen


@contextmanager
def plain_loops() -> Iterator[None]:
    """Calls in here run as plain Python, also of loops that are compiled already."""
    with patch.object(cache, "TIER", "interpreted"), calling(Kernel.interpret):
        yield


@contextmanager
def calling(call: Callable[..., Any]) -> Iterator[None]:
    """Each call of a loop is a call of this, with the loop before its arguments."""
    with ExitStack() as patched:
        # Those that are compiled already have a class of their own.
        for kind in (Kernel, *Kernel.__subclasses__()):
            patched.enter_context(patch.object(kind, "__call__", call))
        yield


def name_of(kernel: Kernel) -> str:
    return f"{kernel.__module__}.{kernel.__name__}"


def inner_loops(kernel: Kernel) -> set[str]:
    """The names of the loops that a loop calls, however deep."""
    found: dict[str, Kernel] = {}
    waiting = [kernel]
    while waiting:
        function = waiting.pop().py_func
        values = [function.__globals__.get(name) for name in names_in(function.__code__)]
        fresh = [value for value in values if isinstance(value, Kernel) and name_of(value) not in found]
        found |= {name_of(value): value for value in fresh}
        waiting += fresh
    return set(found)


def outcome(function: Any, arguments: Any) -> tuple[Any, Any]:
    """What a function returns, or raises, and what of it is compared."""
    try:
        found = function(*arguments)
    except Exception as problem:
        return problem, type(problem)
    return found, found


def copied(arguments: Any) -> Any:
    """The arguments with copies of their arrays; those that share memory still do."""
    copies: dict[int, np.ndarray] = {}

    def copy(value: Any) -> Any:
        if isinstance(value, tuple):
            parts = [copy(part) for part in value]
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if not isinstance(value, np.ndarray):
            return value
        whole = value
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        if not whole.flags.c_contiguous:
            return value.copy()
        memory = copies.setdefault(id(whole), whole.copy())
        offset = value.ctypes.data - whole.ctypes.data
        view = np.ndarray(
            value.shape,
            value.dtype,
            memory.reshape(-1).view(np.uint8) if memory.size else memory,
            offset,
            value.strides,
        )
        view.flags.writeable = value.flags.writeable
        return view

    return copy(tuple(arguments))


def same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        if one.dtype.names:  # between its fields a record has bytes that nobody reads
            return all(same(one[name], other[name]) for name in one.dtype.names)
        if one.dtype.kind != "f":
            return one.tobytes() == other.tobytes()
        nan = np.isnan(one)
        return bool((nan == np.isnan(other)).all()) and one[~nan].tobytes() == other[~nan].tobytes()
    if isinstance(one, float) and isinstance(other, float):
        return same(np.array([one]), np.array([other]))
    return type(one) is type(other) and one == other


def differing(one: Any, other: Any) -> str:
    pairs = zip(one, other, strict=True)
    return "; ".join(f"argument {i}: {a!r} and {b!r}" for i, (a, b) in enumerate(pairs) if not same(a, b))

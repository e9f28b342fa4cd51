"""From plain Python functions to loops, and what becomes of functions of the user's own.

An aggregate's functions are plain Python. A *kernel* is a loop that calls them by names that stand for them. Both run as
they are, or are compiled together by Numba into one machine-code loop: `compiling.tiers` says when.

A loop around functions of the user's own is compiled anew in each process. One that Numba cannot compile still works: it
then runs as plain Python, with one warning that names the function and what stopped it.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from windrow.compiling.fingerprint import is_users, names_in
from windrow.compiling.integers import interpreted
from windrow.compiling.rewiring import rewired
from windrow.compiling.tiers import Kernel
from windrow.errors import QueryError

# Code that makes no arrays need not count who holds one, which takes longer than a small combine.
UNCOUNTED: dict[str, Any] = {"_nrt": False}


class InterpretedWarning(UserWarning):
    """A user function could not be compiled and runs as plain Python."""


def bound(function: Any, given: dict[Any, Any]) -> Any:
    """The function with other functions in the place of those that it names, however deep it calls them.

    An algorithm over partials is written with names that stand for an aggregate's functions; here it gets them.
    """
    seen: dict[Any, Any] = {}

    def put(value: Any) -> Any:
        if not isinstance(value, types.FunctionType) or value in seen:
            return seen.get(value, value) if isinstance(value, types.FunctionType) else value
        if value in given:
            return given[value]
        seen[value] = value
        if value.__closure__ is None:
            seen[value] = rewired(value, put)
        return seen[value]

    return put(function)


_KERNELS: dict[Any, Any] = {}


def kernel(
    source: str,
    name: str,
    functions: dict[str, Callable[..., Any] | None],
    *,
    user: bool = False,
    allocates: bool = True,
) -> Any:
    """The function `name` in `source`, whose free names are `functions`, as a loop.

    `user` marks functions that are not windrow's own: never cached on disk, and interpreted
    where Numba cannot compile them. `allocates` says whether arrays are made on the way.
    """
    key = (source, name, tuple(functions.items()), allocates)
    if key not in _KERNELS:
        given = {role: function for role, function in functions.items() if function is not None}
        _KERNELS.setdefault(key, _build(source, name, given, user, allocates))
    return _KERNELS[key]


def _build(source: str, name: str, functions: dict[str, Any], user: bool, allocates: bool) -> Any:
    if not user:
        options = {"nogil": True, "error_model": "numpy"} | ({} if allocates else UNCOUNTED)
        is_kept = all(map(_is_named, functions.values()))
        return Kernel(_defined(source, name, functions), options, is_kept=is_kept)
    from windrow.compiling.native import USER_OPTIONS, loop

    # Whether a user's function makes arrays is found out when it is compiled.
    ways = [USER_OPTIONS | UNCOUNTED, USER_OPTIONS][allocates:]
    if any(hasattr(function, "is_interpreted") for _, function in _users_own(functions)):
        ways = []
    fast = [loop(_defined(source, name, functions), options) for options in ways]
    return _UserKernel(source, name, functions, fast)


def _defined(source: str, name: str, functions: dict[str, Any]) -> Any:
    """The function `name` of a source that reads these functions, and NumPy."""
    scope: dict[str, Any] = {"__name__": __name__, "np": np, **functions}
    exec(compile(source, "<windrow kernel>", "exec"), scope)
    return scope[name]


def _is_named(function: Any) -> bool:
    """Whether a function is known by its code and the numbers it is closed over."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return all(isinstance(c, (int, float)) for c in cells)


class _UserKernel:
    """A kernel around user functions: compiled at first call, or interpreted from then on."""

    def __init__(self, source: str, name: str, functions: dict[str, Any], fast: list[Any]) -> None:
        from numba.core.errors import NumbaError

        self._refusal = NumbaError
        self._fast = fast
        self.was_compiled = False
        self._functions = functions
        own = {f: f if hasattr(f, "is_interpreted") else interpreted(f) for _, f in _users_own(functions)}
        slow = {r: bound(f, own) if isinstance(f, types.FunctionType) else f for r, f in functions.items()}
        self._slow = _defined(source, name, slow)

    def __call__(self, *arguments: Any) -> Any:
        while self._fast:
            fast = self._fast[0]
            try:
                found = fast(*arguments)
                self.was_compiled = True
                return found
            except self._refusal as problem:
                # Two threads may find out at the same time, and each way is given up once.
                self._fast = [way for way in self._fast if way is not fast]
                if not self._fast:
                    warn_interpreted(self._functions, problem)
        return self._slow(*arguments)


_WARNED: set[Any] = set()


def warn_interpreted(functions: dict[str, Any], problem: Exception) -> None:
    """Say once, for a set of user functions, that they run interpreted, and why; an error if they must not."""
    from windrow.compiling.checking import Unchecked

    own = _users_own(functions) or [(role, f) for role, f in functions.items() if f is not None]
    given = {function for _, function in own}
    if isinstance(problem, Unchecked):
        names = " or ".join(f"{role} {function.__name__!r}" for role, function in own)
        raise QueryError(f"the function {names} cannot be used: {problem.msg}")
    if given & _WARNED:
        return
    _WARNED.update(given)
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    reason = next((line for line in lines if not line.startswith(("Failed", "[", "-", "During"))), lines[0])
    names = ", ".join(f"{role} {function.__name__!r}" for role, function in own)
    warnings.warn(
        f"{names}: cannot be compiled and runs as plain Python, which is slow. Numba says: {reason}",
        InterpretedWarning,
        stacklevel=2,
    )


def _users_own(functions: dict[str, Any]) -> list[tuple[str, Any]]:
    """The functions of the user's, and what they are for, however deep those given call them."""
    found: dict[Any, str] = {}
    seen: set[Any] = set()
    waiting = list(functions.items())
    while waiting:
        role, function = waiting.pop(0)
        if not isinstance(function, types.FunctionType) or function in seen:
            continue
        seen.add(function)
        if is_users(function):
            found[function] = role.rstrip("_")
            continue
        names = names_in(function.__code__)
        waiting += [(name, called) for name, called in function.__globals__.items() if name in names]
    return [(role, function) for function, role in found.items()]

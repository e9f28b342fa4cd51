"""From plain Python functions to compiled loops, kept on disk between processes.

An aggregate's functions are plain Python. A *kernel* is a loop that calls them; its source is
written out by `templates` for the number of columns and fields that the partial has. Both are
compiled together by Numba into one machine-code loop.

Built-in aggregates are cached: the kernel's source is stored in a file in `cache_directory`, and Numba
keeps the machine code beside it. Functions of the user's own are compiled anew in each process.

A user function that Numba cannot compile still works: the same loop then runs as plain Python, with
one warning that names the function and what stopped it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from windrow.engine.cache import cache_directory, compiled_once

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# A user's ZeroDivisionError must be raised, not turned into inf.
USER_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "python"}


class InterpretedWarning(UserWarning):
    """A user function could not be compiled and runs as plain Python."""


def compiled(function: Callable[..., Any], *, user: bool = False) -> Any:
    """The function as a Numba dispatcher; plain functions that it calls are compiled with it."""
    return _compiled(function, user, {})


def _compiled(function: Any, user: bool, seen: dict[Any, Any]) -> Any:
    if isinstance(function, numba.core.dispatcher.Dispatcher):
        return function
    key = (function, user)
    if key in _DISPATCHERS:
        return _DISPATCHERS[key]
    if function in seen:
        return seen[function]
    seen[function] = function
    names = _names(function.__code__)
    scope = {
        name: _compiled(value, user, seen) if isinstance(value, types.FunctionType) else value
        for name, value in function.__globals__.items()
        if name in names
    }
    # A cached function is rebuilt in the module that its scope names.
    scope["__name__"] = function.__module__
    scope["__builtins__"] = function.__globals__.get("__builtins__", __builtins__)
    cells = None
    if function.__closure__ is not None:
        contents = [cell.cell_contents for cell in function.__closure__]
        cells = tuple(
            types.CellType(_compiled(c, user, seen) if isinstance(c, types.FunctionType) else c)
            for c in contents
        )
    clone = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
    dispatcher = numba.njit(**(USER_OPTIONS if user else OPTIONS))(clone)
    _DISPATCHERS[key] = dispatcher
    return dispatcher


_DISPATCHERS: dict[Any, Any] = {}
_KERNELS: dict[Any, Any] = {}


def _names(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def kernel(
    source: str, name: str, functions: dict[str, Callable[..., Any] | None], *, user: bool = False
) -> Any:
    """Compile the function `name` in `source`, whose free names are `functions`.

    `user` marks functions that are not windrow's own: never cached on disk, and interpreted
    where Numba cannot compile them.
    """
    key = (source, name, tuple(functions.items()))
    if key not in _KERNELS:
        _KERNELS[key] = _build(source, name, functions, user)
    return _KERNELS[key]


def _build(source: str, name: str, functions: dict[str, Any], user: bool) -> Any:
    scope: dict[str, Any] = {"__name__": __name__}
    path = None if user else _write(source, functions)
    exec("import numpy as np", scope)
    scope |= {k: compiled(f, user=user) for k, f in functions.items() if f is not None}
    exec(compile(source, str(path or "<windrow kernel>"), "exec"), scope)
    if user:
        return _UserKernel(source, name, functions, numba.njit(**USER_OPTIONS)(scope[name]))
    return numba.njit(**OPTIONS)(scope[name]) if path is None else compiled_once(scope[name], **OPTIONS)


def _write(source: str, functions: dict[str, Any]) -> Path | None:
    """Store a kernel's source; its name holds the functions it calls, so that none is confused."""
    directory = cache_directory()
    given = {role: f for role, f in functions.items() if f is not None}
    if directory is None or not all(_is_named(f) for f in given.values()):
        return None
    called = ",".join(f"{role}={_full_name(f)}" for role, f in given.items())
    path = directory / f"kernel_{hashlib.sha256((source + called).encode()).hexdigest()[:16]}.py"
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", dir=directory, suffix=".tmp", delete=False) as handle:
            handle.write(f"# {called}\n{source}")
        os.replace(handle.name, path)
        # The cache is keyed by modification time; two processes that race write the same text.
        os.utime(path, (0, 0))
    return path


def _is_named(function: Any) -> bool:
    """Whether a function is known by its name and the numbers it is closed over."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return all(isinstance(c, (int, float)) for c in cells)


def _full_name(function: Any) -> str:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return f"{function.__module__}.{function.__qualname__}{cells or ''}"


class _UserKernel:
    """A kernel around user functions: compiled at first call, or interpreted from then on."""

    def __init__(self, source: str, name: str, functions: dict[str, Any], fast: Any) -> None:
        self._fast: Any = fast
        self._functions = functions
        slow: dict[str, Any] = {k: f for k, f in functions.items() if f is not None}
        exec("import numpy as np", slow)
        exec(compile(source, "<windrow kernel>", "exec"), slow)
        self._slow = slow[name]

    def __call__(self, *arguments: Any) -> Any:
        if self._fast is not None:
            try:
                return self._fast(*arguments)
            except numba.core.errors.NumbaError as problem:
                self._fast = None
                warn_interpreted(self._functions, problem)
        return self._slow(*arguments)


_WARNED: set[Any] = set()


def warn_interpreted(functions: dict[str, Any], problem: Exception) -> None:
    """Say once, for a set of user functions, that they run interpreted, and why."""
    given = {f for f in functions.values() if f is not None}
    if given & _WARNED:
        return
    _WARNED.update(given)
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    reason = next((line for line in lines if not line.startswith(("Failed", "[", "-", "During"))), lines[0])
    names = ", ".join(f"{role} {f.__name__!r}" for role, f in functions.items() if f is not None)
    warnings.warn(
        f"{names}: cannot be compiled and runs as plain Python, which is slow. Numba says: {reason}",
        InterpretedWarning,
        stacklevel=2,
    )

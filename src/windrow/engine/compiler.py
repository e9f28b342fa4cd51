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
from windrow.engine.fingerprint import code_of, names_in
from windrow.engine.integers import Checking, Unchecked, interpreted, total
from windrow.errors import QueryError

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# A user's ZeroDivisionError must be raised, not turned into inf.
USER_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "python"}
# Code that makes no arrays need not count who holds one, which takes longer than a small combine.
UNCOUNTED: dict[str, Any] = {"_nrt": False}
# What only compiled code calls needs no way in from Python, which takes as long to compile as the function.
INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
CALLED = (types.FunctionType, numba.core.dispatcher.Dispatcher)


class InterpretedWarning(UserWarning):
    """A user function could not be compiled and runs as plain Python."""


def compiled(function: Callable[..., Any], *, user: bool = False) -> Any:
    """The function as a Numba dispatcher; plain functions that it calls are compiled with it."""
    return _compiled(function, _options(user, allocates=True), {})


def _options(user: bool, allocates: bool) -> dict[str, Any]:
    return (USER_OPTIONS if user else OPTIONS) | ({} if allocates else UNCOUNTED)


def _compiled(function: Any, options: dict[str, Any], seen: dict[Any, Any]) -> Any:
    user = options["error_model"] == "python"
    if isinstance(function, numba.core.dispatcher.Dispatcher):
        if not user or not _is_users(function.py_func):
            return function
        function = function.py_func  # its integers are checked as those of other functions are
    key = (function, *options.items())
    if key in _DISPATCHERS:
        return _DISPATCHERS[key]
    if function in seen:
        return seen[function]
    seen[function] = function
    names = names_in(function.__code__)
    scope = {
        name: _compiled(value, options, seen) if isinstance(value, CALLED) else value
        for name, value in function.__globals__.items()
        if name in names
    }
    checking = {}
    if user and _is_users(function):
        checking = {"pipeline_class": Checking}
        if "sum" in names:
            scope.setdefault("sum", _compiled(total, options, seen))
    # A cached function is rebuilt in the module that its scope names.
    scope["__name__"] = function.__module__
    scope["__builtins__"] = function.__globals__.get("__builtins__", __builtins__)
    cells = None
    if function.__closure__ is not None:
        contents = [cell.cell_contents for cell in function.__closure__]
        cells = tuple(
            types.CellType(_compiled(c, options, seen) if isinstance(c, CALLED) else c) for c in contents
        )
    clone = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
    # Of two threads that make the same one, both take that of the first, so that it is compiled once.
    return _DISPATCHERS.setdefault(key, numba.njit(**options, **checking)(clone))


def _is_users(function: Any) -> bool:
    return not str(function.__module__).startswith("windrow.")


_DISPATCHERS: dict[Any, Any] = {}
_KERNELS: dict[Any, Any] = {}


def bound(function: Any, given: dict[Any, Any]) -> Any:
    """The function with other functions in the place of those that it names, however deep it calls them.

    An algorithm over partials is written with names that stand for an aggregate's functions; here it gets them.
    """
    return _bound(function, given, {})


def _bound(function: Any, given: dict[Any, Any], seen: dict[Any, Any]) -> Any:
    if function in given:
        return given[function]
    if function in seen:
        return seen[function]
    names = names_in(function.__code__)
    called = {
        n: f
        for n, f in function.__globals__.items()
        if n in names and isinstance(f, types.FunctionType) and (f.__closure__ is None or f in given)
    }
    put = {n: _bound(f, given, seen) for n, f in called.items()}
    if all(put[n] is f for n, f in called.items()):
        seen[function] = function
        return function
    scope = {**function.__globals__, **put}
    clone = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__)
    clone.__qualname__ = function.__qualname__
    seen[function] = clone
    return clone


def kernel(
    source: str,
    name: str,
    functions: dict[str, Callable[..., Any] | None],
    *,
    user: bool = False,
    allocates: bool = True,
) -> Any:
    """Compile the function `name` in `source`, whose free names are `functions`.

    `user` marks functions that are not windrow's own: never cached on disk, and interpreted
    where Numba cannot compile them. `allocates` says whether arrays are made on the way.
    """
    key = (source, name, tuple(functions.items()), allocates)
    if key not in _KERNELS:
        _KERNELS.setdefault(key, _build(source, name, functions, user, allocates))
    return _KERNELS[key]


def _build(source: str, name: str, functions: dict[str, Any], user: bool, allocates: bool) -> Any:
    if user:
        # Whether a user's function makes arrays is found out when it is compiled.
        ways = [_options(user, False), _options(user, True)][allocates:]
        if any(hasattr(function, "is_interpreted") for _, function in _users_own(functions)):
            ways = []
        fast = [numba.njit(**o)(_scope(source, functions, o)[name]) for o in ways]
        return _UserKernel(source, name, functions, fast)
    options = _options(user, allocates)
    path = _write(source, functions, options)
    function = _scope(source, functions, options, str(path or "<windrow kernel>"))[name]
    return numba.njit(**options)(function) if path is None else compiled_once(function, **options)


def _scope(
    source: str, functions: dict[str, Any], options: dict[str, Any], path: str = "<windrow kernel>"
) -> dict[str, Any]:
    """The names that the source defines, and those that it reads."""
    scope: dict[str, Any] = {"__name__": __name__}
    exec("import numpy as np", scope)
    scope |= {k: _compiled(f, options | INNER, {}) for k, f in functions.items() if f is not None}
    exec(compile(source, path, "exec"), scope)
    return scope


def _write(source: str, functions: dict[str, Any], options: dict[str, Any]) -> Path | None:
    """Store a kernel's source; its name holds the code of the functions it calls, so that none is confused."""
    directory = cache_directory()
    given = {role: f for role, f in functions.items() if f is not None}
    if directory is None or not all(_is_named(f) for f in given.values()):
        return None
    called = ",".join(f"{role}={f.__module__}.{f.__qualname__}" for role, f in given.items())
    told = "\n".join([source, called, repr(options), *map(code_of, given.values())])
    path = directory / f"kernel_{hashlib.sha256(told.encode()).hexdigest()[:16]}.py"
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


class _UserKernel:
    """A kernel around user functions: compiled at first call, or interpreted from then on."""

    def __init__(self, source: str, name: str, functions: dict[str, Any], fast: list[Any]) -> None:
        self._fast = fast
        self.was_compiled = False
        self._functions = functions
        own = {f: f if hasattr(f, "is_interpreted") else interpreted(f) for _, f in _users_own(functions)}
        slow: dict[str, Any] = {
            role: bound(f, own) if isinstance(f, types.FunctionType) else f
            for role, f in functions.items()
            if f is not None
        }
        exec("import numpy as np", slow)
        exec(compile(source, "<windrow kernel>", "exec"), slow)
        self._slow = slow[name]

    def __call__(self, *arguments: Any) -> Any:
        while self._fast:
            fast = self._fast[0]
            try:
                found = fast(*arguments)
                self.was_compiled = True
                return found
            except numba.core.errors.NumbaError as problem:
                # Two threads may find out at the same time, and each way is given up once.
                self._fast = [way for way in self._fast if way is not fast]
                if not self._fast:
                    warn_interpreted(self._functions, problem)
        return self._slow(*arguments)


_WARNED: set[Any] = set()


def warn_interpreted(functions: dict[str, Any], problem: Exception) -> None:
    """Say once, for a set of user functions, that they run interpreted, and why; an error if they must not."""
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
        if _is_users(function):
            found[function] = role.rstrip("_")
            continue
        names = names_in(function.__code__)
        waiting += [(name, called) for name, called in function.__globals__.items() if name in names]
    return [(role, function) for function, role in found.items()]

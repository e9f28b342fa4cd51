"""Loops compiled by Numba. Only what is worth compiling leads here: to import Numba takes as long as a small query.

A dispatcher looks at the types of its arguments. What it has in memory for them it runs; else it asks the loop, which
may prefer to run this call as plain Python. What is compiled is kept in `folder`.
"""

from __future__ import annotations

import pickle
import types
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

import numba
from numba.core.compiler import CompileResult
from numba.core.dispatcher import OmittedArg
from numba.core.serialize import dumps

from windrow.compiling import folder
from windrow.compiling.checking import Checking, total
from windrow.compiling.fingerprint import is_users
from windrow.compiling.jobs import Job, examples
from windrow.compiling.notice import compiling
from windrow.compiling.rewiring import rewired

# A user's ZeroDivisionError must be raised, not turned into inf.
USER_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "python"}
# Seconds to wait for another process that compiles the same.
PATIENCE = 1.0
# What only compiled code calls needs no way in from Python, which takes as long to compile as the function.
INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
TYPES = {"b": numba.boolean, "i": numba.int64, "f": numba.float64}
# What is raised where a function cannot be compiled: Numba stumbles over some of its own types.
NOT_COMPILED = (numba.core.errors.NumbaError, TypeError)
Dispatcher = numba.core.dispatcher.Dispatcher


def dispatcher(kernel: Any) -> Any:
    """The dispatcher of an `compiling.tiers.Kernel`."""
    made = loop(kernel.py_func, kernel.options)
    if kernel.can_be_kept:
        made._cache = _Kept(kernel.kept_name)
    compile_for = made._compile_for_args

    def interpret(*arguments: Any) -> Any:
        """A call as plain Python; a dispatcher fills in what stands for defaults."""
        return kernel.interpret(*(a for a in arguments if not isinstance(a, OmittedArg)))

    def compile_or_interpret(*arguments: Any) -> Any:
        """What a dispatcher calls with arguments whose types are new to it; it then calls what it gets."""

        def is_kept() -> bool:
            return kernel.can_be_kept and made._cache.holds(_types(made, arguments), made.targetctx)

        if not kernel.is_worth_compiling(arguments, is_kept):
            return interpret
        if not kernel.can_be_kept:
            with compiling(kernel.__name__):
                return compile_for(*arguments)
        if is_kept():
            return compile_for(*arguments)
        with (
            compiling(kernel.__name__),
            made._cache.claimed(_types(made, arguments), made.targetctx, PATIENCE),
        ):
            return compile_for(*arguments)  # or load it, if another process was faster

    made._compile_for_args = compile_or_interpret
    return made


def compile_job(job: Job) -> bool:
    """Compile a loop and keep it, unless another process does so now; whether there is machine code of it on disk."""
    made = loop(job.function, job.options)
    made._cache = kept = _Kept(job.name)
    given = examples(job.arguments)
    defaults = job.function.__defaults__ or ()
    missing = job.function.__code__.co_argcount - len(given)
    types_ = _types(made, (*given, *map(OmittedArg, defaults[len(defaults) - missing :])))
    with kept.claimed(types_, made.targetctx, 0.0) as is_mine:
        if is_mine and not kept.holds(types_, made.targetctx):
            with suppress(*NOT_COMPILED):
                made.compile(types_)
    return kept.holds(types_, made.targetctx)


def _types(made: Any, arguments: Any) -> tuple[Any, ...]:
    """Numba's types of the arguments of a dispatcher."""
    return tuple(
        numba.types.Omitted(a.value) if isinstance(a, OmittedArg) else made.typeof_pyval(a) for a in arguments
    )


def loop(function: Any, options: dict[str, Any]) -> Any:
    """A dispatcher of a function; other functions that it calls are compiled for it alone."""
    inner = options | INNER
    return numba.njit(**options)(rewired(function, lambda value: _compiled(value, inner, {})))


def compiled(function: Callable[..., Any]) -> Any:
    """A function of the user's as a dispatcher; plain functions that it calls are compiled with it."""
    return _compiled(function, USER_OPTIONS, {})


def returned(function: Any, arguments: Any) -> Any:
    """The Numba type that a function of the user's returns for arguments of these Numba types."""
    found = compiled(function)
    found.compile(tuple(arguments))
    return numba.types.unliteral(found.overloads[tuple(arguments)].signature.return_type)


def _compiled(value: Any, options: dict[str, Any], seen: dict[Any, Any]) -> Any:
    """What stands for an object in compiled functions."""
    if hasattr(value, "native"):
        return value.native
    user = options.get("error_model") == "python"
    if isinstance(value, Dispatcher):
        if not user or not is_users(value.py_func):
            return value
        value = value.py_func  # its integers are checked as those of other functions are
    if not isinstance(value, types.FunctionType):
        return value
    key = (value, *options.items())
    if key in _DISPATCHERS:
        return _DISPATCHERS[key]
    if value in seen:
        return seen[value]
    seen[value] = value
    checks = user and is_users(value)
    more = {"sum": _compiled(total, options, seen)} if checks and value is not total else {}
    clone = rewired(value, lambda called: _compiled(called, options, seen), more)
    # Of two threads that make the same one, both take that of the first, so that it is compiled once.
    checking = {"pipeline_class": Checking} if checks else {}
    return _DISPATCHERS.setdefault(key, numba.njit(**options, **checking)(clone))


_DISPATCHERS: dict[Any, Any] = {}


class _Kept:
    """The machine code of a loop on disk, as Numba's dispatchers ask for it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.cache_path = str(folder.cache_directory())

    def _file(self, types_: Any, codegen: Any) -> str:
        return self._named(types_, codegen.magic_tuple())

    def _named(self, types_: Any, processor: tuple[str, str, str]) -> str:
        return f"{self._name}-{folder.text_hash(f'{types_}{processor}')}.bin"

    def _files(self, types_: Any, context: Any) -> tuple[str, str]:
        """The code for this processor, and that for any of its kind, which may have been carried here."""
        codegen = context.codegen()
        return self._file(types_, codegen), self._named(types_, (codegen.magic_tuple()[0], "generic", ""))

    def holds(self, types_: Any, context: Any) -> bool:
        """Whether there is code for arguments of these types."""
        return any(map(folder.holds, self._files(types_, context)))

    def claimed(self, types_: Any, context: Any, patience: float) -> AbstractContextManager[bool]:
        """As `folder.claimed`, for arguments of these types."""
        return folder.claimed(self._file(types_, context.codegen()), patience)

    def load_overload(self, types_: Any, context: Any) -> Any:
        context.refresh()
        found = next(filter(None, map(folder.read, self._files(types_, context))), None)
        try:
            return None if found is None else CompileResult._rebuild(context, *pickle.loads(found))
        except (AttributeError, ImportError, TypeError, ValueError, EOFError, pickle.UnpicklingError):
            return None  # it is no code, or what it names has moved since

    def save_overload(self, types_: Any, made: Any) -> None:
        if made.library.has_dynamic_globals or not all(part.can_cache for part in made.lifted):
            return
        try:
            code = dumps(made._reduce())
        except RuntimeError:  # an interrupt came while it was compiled
            return
        folder.write(self._file(types_, made.codegen), code)

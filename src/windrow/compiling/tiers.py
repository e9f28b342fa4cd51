"""Loops in two tiers: as plain Python where there is little to do, compiled where there is much.

    interpreted     begins at once; microseconds for each element
    compiled        begins after `COMPILE` seconds, or `LOAD` if its machine code is on disk; nanoseconds for each

A loop is a plain Python function. As long as a call has little to do, and not much has been done before, it runs as it
is, on NumPy's numbers, which overflow and divide as those of compiled code do. What decides is what a call is
expected to take: its elements, times what one took before (`STEP` at first). A loop is compiled once that, with all that
it has taken so far, is more than compiling it takes: so nobody waits much more than twice as long as with the better of both tiers.
Numba itself is imported when the first loop is worth it.

`WINDROW_TIER` chooses for all: "auto", "interpreted" or "compiled". The answers are the same. Loops around functions of the
user's own have one tier: they are compiled at once.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import threading
import time
import types
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.compiling.rewiring import rewired
from windrow.errors import QueryError

if TYPE_CHECKING:
    from windrow.compiling.jobs import Job

# Seconds: to import Numba and have its first loop ready, to load a loop, to compile one, and for an element of a plain loop, at first and
# at least.
IMPORT = 0.45
LOAD = 0.005
COMPILE = 0.5
STEP, FASTEST_STEP = 5e-7, 2e-8
# Seconds that a call of a plain loop takes besides the loop.
CALL = 3e-6
# Seconds in a loop after which a child is asked to compile it, and after which nobody waits for the child any more.
ASKED = 0.05
PATIENCE = 4 * COMPILE
TIERS = ("auto", "interpreted", "compiled")
TIER = os.environ.get("WINDROW_TIER", "auto")
if TIER not in TIERS:
    raise QueryError(f"WINDROW_TIER must be one of {', '.join(TIERS)}, not {TIER!r}")
# Numba's options for the loops of this package.
JIT: dict[str, Any] = {"nogil": True}


def jit(function: Callable[..., Any]) -> Kernel:
    """The decorator of this package's own loops."""
    return Kernel(function, JIT)


class Kernel:
    """A function that runs as it is, or compiled.

    `options` are Numba's. `is_kept` says whether its machine code is known by its code, and can lie on disk.
    """

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], *, is_kept: bool = True
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func: Any = function
        self.options = options
        self.can_be_kept = is_kept
        self._seconds = 0.0
        self._elements = 0

    def __call__(self, *arguments: Any) -> Any:
        if not self.is_worth_compiling(arguments):
            return self.interpret(*arguments)
        # From now on the dispatcher itself is called, which spares a Python function.
        self.__class__ = type("NativeKernel", (Kernel,), {"__call__": staticmethod(self.native)})
        return self.native(*arguments)

    def is_worth_compiling(self, arguments: Any, is_kept_for: Callable[[], bool] | None = None) -> bool:
        """Whether a call with these arguments takes longer than to compile the loop, or to load it.

        `is_kept_for` says whether there is machine code for them on disk; else it may be for others.
        """
        if TIER != "auto" or _NOTES.get() is not None:
            return TIER == "compiled"
        # What looks faster has looked at few of its elements so far.
        step = max(self._seconds / self._elements, FASTEST_STEP) if self._elements else STEP
        expected = elements(arguments) * step
        due = self._seconds + expected
        if due <= LOAD:
            return False
        is_loaded = is_kept_for is not None or "numba" in sys.modules
        if not is_loaded and _SPENT.seconds + expected <= IMPORT:
            return False
        if not self.can_be_kept:
            return due > COMPILE
        from windrow.compiling.folder import is_kept

        if is_kept_for() if is_kept_for is not None else is_kept(self.kept_name):
            return True
        if expected <= COMPILE and ASKED < due <= PATIENCE:
            from windrow.compiling.ahead import is_ready
            from windrow.compiling.jobs import types_of

            if (ready := is_ready(self, types_of(arguments))) is not None:
                return ready
        return due > COMPILE

    @functools.cached_property
    def kept_name(self) -> str:
        """What its machine code is known by on disk, whatever the types."""
        from windrow.compiling.folder import name_of

        return name_of(self.py_func, self.options)

    def job(self, arguments: Any) -> Job:
        """What another process needs to compile it for arguments of these types (see `jobs.types_of`)."""
        from windrow.compiling.jobs import Job

        return Job(self.kept_name, self.py_func, self.options, arguments)

    def __reduce__(self) -> Any:
        name = self.py_func.__name__
        if vars(sys.modules.get(self.__module__, types)).get(name) is self:
            return name
        return Kernel, (self.py_func, self.options)

    @functools.cached_property
    def native(self) -> Any:
        """The loop as Numba's dispatcher, which asks back before it compiles."""
        from windrow.compiling.native import dispatcher

        return dispatcher(self)

    @functools.cached_property
    def plain(self) -> Callable[..., Any]:
        """The loop as plain Python, with plain loops in the place of those that it calls."""
        return _plain(self.py_func)

    def interpret(self, *arguments: Any) -> Any:
        """A call as plain Python: numbers are NumPy's within, and Python's outside, as with compiled code."""
        if (notes := _NOTES.get()) is not None:
            return self._note(notes, arguments)
        start = time.thread_time()
        try:
            return self._run(arguments)
        finally:
            seconds = time.thread_time() - start
            self._seconds += seconds
            self._elements += elements(arguments)
            _SPENT.seconds += seconds + CALL

    def _note(self, notes: dict[tuple[Kernel, Any], None], arguments: Any) -> Any:
        """A call of a rehearsal, which says nothing of how long other calls take."""
        from windrow.compiling.jobs import types_of

        if self.can_be_kept:
            notes[self, types_of(arguments)] = None
        return self._run(arguments)

    # A decorator costs a third of what `with` does.
    @np.errstate(all="ignore")
    def _run(self, arguments: Any) -> Any:
        return _outside(self.plain(*map(_inside, arguments)))


# In plain loops, all of them. No attribute of `Kernel`: to set one of a class makes each look at its attributes slow.
_SPENT = types.SimpleNamespace(seconds=0.0)
Notes = Collection[tuple[Kernel, Any]]
_NOTES: ContextVar[dict[tuple[Kernel, Any], None] | None] = ContextVar("notes", default=None)
_STANDS_FOR: ContextVar[int] = ContextVar("stands_for", default=1)


@contextmanager
def noting(stands_for: int = 1) -> Iterator[Notes]:
    """Loops run as plain Python in here; which ones, and the types of their arguments, in order.

    What is done in here `stands_for` so many times as much: who chooses a loop by how much there is to do, chooses for that.
    """
    notes: dict[tuple[Kernel, Any], None] = {}
    tokens = _NOTES.set(notes), _STANDS_FOR.set(stands_for)
    try:
        yield notes.keys()
    finally:
        _NOTES.reset(tokens[0])
        _STANDS_FOR.reset(tokens[1])


def times_more() -> int:
    """How many times what is done now stands for: more than once in a rehearsal."""
    return _STANDS_FOR.get()


class Twofold:
    """A function that compiled code has in another form, which `native` makes when Numba is there."""

    def __init__(self, plain: Callable[..., Any], native: Callable[[], Any]) -> None:
        self.plain = plain
        self._native = native

    @functools.cached_property
    def native(self) -> Any:
        return self._native()


def elements(arguments: Any) -> int:
    """About how many numbers a loop goes through: those of the arrays among its arguments, and one for the call."""
    count = 1
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            # A row of a sketch is gone through by NumPy at once.
            count += argument.size if argument.ndim == 1 else min(argument.size, 32 * max(argument.shape))
        elif isinstance(argument, tuple):
            count += elements(argument)
    return count


# -- plain loops -------------------------------------------------------------------------------------


def _inside(value: Any) -> Any:
    """A number as NumPy's, so that it is one of 64 bits."""
    kind = value.__class__
    if kind is int:
        return np.int64(value) if -(2**63) <= value < 2**63 else np.uint64(value)
    return np.float64(value) if kind is float else value


def _outside(value: Any) -> Any:
    """A number as Python's; those of a tuple, too."""
    if isinstance(value, np.generic):
        return value.item()
    if value.__class__ is tuple:
        return tuple(map(_outside, value))
    return value


def _plain(value: Any) -> Any:
    """What stands for an object in plain loops."""
    if hasattr(value, "plain"):  # a loop, or a function that has another form here
        return value.plain
    if value is math:
        return _MATH
    if not isinstance(value, types.FunctionType) or not value.__module__.startswith("windrow."):
        return value
    with _REWIRING:  # no other thread may see a function that is half done
        if value not in _PLAIN:
            _PLAIN[value] = value  # it may call itself
            _PLAIN[value] = rewired(value, _plain, _BUILTINS)
        return _PLAIN[value]


_PLAIN: dict[Any, Any] = {}
_REWIRING = threading.RLock()


def _as_in_c(function: Callable[..., float], otherwise: Callable[..., float]) -> Callable[..., Any]:
    """A function of `math` that gives a number where Python raises an error."""

    def called(*arguments: Any) -> Any:
        try:
            return np.float64(function(*arguments))
        except (ValueError, OverflowError):
            return np.float64(otherwise(*arguments))

    return called


def _whole(function: Callable[[Any], int]) -> Callable[[Any], Any]:
    """Rounding to an integer of 64 bits: the least one where there is none."""

    def called(value: Any) -> Any:
        try:
            return np.int64(function(value))
        except (ValueError, OverflowError):
            return np.int64(-(2**63))

    return called


_MATH = types.SimpleNamespace(
    **{name: value for name, value in vars(math).items() if not name.startswith("_")}
    | {
        "log": _as_in_c(math.log, lambda x: -math.inf if x == 0 else math.nan),
        "exp": _as_in_c(math.exp, lambda x: math.inf),
        "sqrt": _as_in_c(math.sqrt, lambda x: math.nan),
        "asin": _as_in_c(math.asin, lambda x: math.nan),
        "sin": _as_in_c(math.sin, lambda x: math.nan),
        "floor": _whole(math.floor),
        "ceil": _whole(math.ceil),
    }
)
_BUILTINS = {"float": np.float64, "int": _whole(int)}

"""Work that one compiled loop hands to another, on a second thread, without Python between.

    first       fills a chunk | hand ->          ... fills the next one ...          | collect
    second      waits ------->| makes the lcs of the chunk |-> waits

A thread that waits sleeps in a POSIX semaphore of the C library, whose name is all that a compiled loop needs. Where a
system has none, nothing is handed over: the store finds nobody `OPEN`, and does the work itself.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from windrow.engine.cache import Twofold, jit
from windrow.stores import operations
from windrow.stores.pba import DONE, FAILED, HANDED, HIGH, LOW, MASK, OPEN, READY
from windrow.stores.sba import accumulate_left


def _library() -> Any:
    """The C library, if it has semaphores."""
    try:
        known = ctypes.CDLL(None)
    except (OSError, TypeError):  # no system with POSIX
        return None
    return known if all(hasattr(known, name) for name in ("sem_init", "sem_post", "sem_wait")) else None


LIBRARY = _library()
IS_POSSIBLE = LIBRARY is not None


def _function(name: str, *arguments: str) -> Twofold:
    """A function of the C library. Addresses are numbers here: they lie in `notes`."""

    def native() -> Any:
        from numba import types

        return types.ExternalFunction(name, types.intc(*(getattr(types, a) for a in arguments)))

    widths = {"intp": ctypes.c_ssize_t, "intc": ctypes.c_int, "uintc": ctypes.c_uint}

    def plain(*values: Any) -> Any:
        return getattr(LIBRARY, name)(*(widths[a](int(v)) for a, v in zip(arguments, values, strict=True)))

    return Twofold(plain, native)


sem_init: Any = _function("sem_init", "intp", "intc", "uintc")
sem_post: Any = _function("sem_post", "intp")
sem_wait: Any = _function("sem_wait", "intp")
# A semaphore takes 32 bytes or less.
SEMAPHORE_NUMBERS = 8


def hand(notes, mask, low, high):  # type: ignore[no-untyped-def]
    """See `operations.hand`."""
    notes[MASK] = mask
    notes[LOW] = low
    notes[HIGH] = high
    notes[HANDED] = 1
    sem_post(notes[READY])


def collect(notes):  # type: ignore[no-untyped-def]
    """See `operations.collect`."""
    while sem_wait(notes[DONE]) != 0:  # a signal came
        pass
    notes[HANDED] = 0
    if notes[FAILED] != 0:
        raise RuntimeError("the second thread has failed")


def serve(cells, notes):  # type: ignore[no-untyped-def]
    """The loop of the second thread: do what is handed over, as long as this is `OPEN`."""
    while receive(notes):
        work(cells, notes)


def receive(notes):  # type: ignore[no-untyped-def]
    """Wait until something is handed over; whether there is something."""
    while sem_wait(notes[READY]) != 0:
        pass
    return notes[OPEN] != 0


def work(cells, notes):  # type: ignore[no-untyped-def]
    """Do what was handed over, and say so."""
    accumulate_left(cells, notes[MASK], notes[LOW], notes[HIGH])
    sem_post(notes[DONE])


# What stands for the names of a store that hands work over; elsewhere nobody is open, and nothing is called.
GIVEN: dict[Any, Any] = {operations.hand: hand, operations.collect: collect} if IS_POSSIBLE else {}


@jit
def _begin(address, value):  # type: ignore[no-untyped-def]
    return sem_init(address, 0, value)


@jit
def _post(address):  # type: ignore[no-untyped-def]
    sem_post(address)


@jit
def _wait(address):  # type: ignore[no-untyped-def]
    while sem_wait(address) != 0:
        pass


class Semaphore:
    """A semaphore that Python and compiled loops know; the memory at its `address` is its own."""

    def __init__(self, value: int = 0) -> None:
        self._memory = np.zeros(SEMAPHORE_NUMBERS, np.int64)
        self.address = int(self._memory.ctypes.data)
        self.is_usable = IS_POSSIBLE and _begin(self.address, value) == 0

    def post(self) -> None:
        _post(self.address)

    def wait(self) -> None:
        """Until it is posted; other threads go on meanwhile."""
        _wait(self.address)

"""PBA as published, for streams that come row by row: compiled loops hand chunks to each other, without Python between.

    first       fills a chunk | hand ->          ... fills the next one ...          | collect
    second      waits ------->| makes the lcs of the chunk |-> waits

windrow itself takes rows in batches, and hands chunks over between two stretches of a loop (`windrow.rolling.parallel`). To
tell how long each single window takes, this must happen within the loop: a thread that waits sleeps in a POSIX semaphore
of the C library, whose name is all that a compiled loop needs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numba import njit, types

from benchmarks.papers.native import native
from windrow.engine.functions.bound_kernels import Operations, compiled
from windrow.stores.operations import combine, put
from windrow.stores.pba import PBA
from windrow.stores.sba import accumulate_left

# Addresses are numbers here: they lie in the notes.
sem_init = types.ExternalFunction("sem_init", types.intc(types.intp, types.intc, types.uintc))
sem_post = types.ExternalFunction("sem_post", types.intc(types.intp))
sem_wait = types.ExternalFunction("sem_wait", types.intc(types.intp))

# Notes: whether more may come, and whether a chunk is handed over; the chunk, as `accumulate_left` takes it; the addresses
# of two semaphores, which take 32 bytes or less each.
OPEN, HANDED, MASK, LOW, HIGH, READY, DONE = range(7)
SEMAPHORE_NUMBERS = 8


def insert(state, cells, notes, partial):  # type: ignore[no-untyped-def]
    mask, chunk, front, middle, last, end, made, ca, csa, identity = state
    put(cells, end & mask, partial)
    csa = combine(csa, partial)
    end += 1
    if end - last == chunk:
        if front == middle:
            accumulate_left(cells, mask, last, end)
            made = middle = end
        else:
            ca = csa
            notes[MASK] = mask
            notes[LOW] = middle
            notes[HIGH] = end
            notes[HANDED] = 1
            sem_post(notes[READY])
        last = end
        csa = identity
    return mask, chunk, front, middle, last, end, made, ca, csa, identity


def evict(state, cells, notes):  # type: ignore[no-untyped-def]
    mask, chunk, front, middle, last, end, made, ca, csa, identity = state
    front += 1
    if front == middle:
        middle = last
        ca = identity
    if made < middle:
        wait_at(notes[DONE])
        notes[HANDED] = 0
        made = middle
    return mask, chunk, front, middle, last, end, made, ca, csa, identity


def wait_at(semaphore):  # type: ignore[no-untyped-def]
    while sem_wait(semaphore) != 0:  # a signal came
        pass


def serve(cells, notes):  # type: ignore[no-untyped-def]
    """The loop of the second thread: do what is handed over, as long as this is `OPEN`."""
    while receive(notes):
        work(cells, notes)


def receive(notes):  # type: ignore[no-untyped-def]
    """Wait until something is handed over; whether there is something."""
    wait_at(notes[READY])
    return notes[OPEN] != 0


def work(cells, notes):  # type: ignore[no-untyped-def]
    """Do what was handed over, and say so."""
    accumulate_left(cells, notes[MASK], notes[LOW], notes[HIGH])
    sem_post(notes[DONE])


@njit
def _begin(semaphore):  # type: ignore[no-untyped-def]
    return sem_init(semaphore, 0, 0)


@njit
def _post(semaphore):  # type: ignore[no-untyped-def]
    sem_post(semaphore)


PUBLISHED = replace(PBA, insert=insert, evict=evict, notes=lambda capacity: DONE + 1 + 2 * SEMAPHORE_NUMBERS)


@contextmanager
def second_thread(given: Operations, cells: tuple[np.ndarray, ...], notes: np.ndarray) -> Iterator[None]:
    """A second thread that works for a store whose cells and notes these are."""
    address = int(notes.ctypes.data)
    notes[[READY, DONE]] = address + 8 * (DONE + 1), address + 8 * (DONE + 1 + SEMAPHORE_NUMBERS)
    for semaphore in (READY, DONE):
        assert _begin(notes[semaphore]) == 0, "this system has no semaphores"
    notes[OPEN] = 1
    thread = threading.Thread(
        target=native(compiled(serve, PUBLISHED, given)), args=(cells, notes), daemon=True
    )
    thread.start()
    yield
    notes[OPEN] = 0
    _post(notes[READY])
    thread.join()

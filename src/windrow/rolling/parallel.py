"""Two threads at work on one window, by PBA. Loops are compiled and hold no lock, so both run at the same time.

In a stream a helper makes the `lcs` of a chunk, as published, while the caller fills the next one. The caller stops where
a chunk is full, and where a window is about to begin in one whose `lcs` are not ready:

    caller     | chunk 1          | chunk 2          | chunk 3
    helper                        | lcs of 1 ---.    | lcs of 2 ---.
    waits                                          !                  !

Of a batch that is much longer than a window all rows are there, and the second thread need not stop at `lcs`.
It begins anew at a boundary in the middle, and answers from where its first window is full:

    rows       |---------- first ------------------|
               .                   |~~ fills ~~~~~~|------ second -------------|
    chunks     |    |    |    |    |    |    |    |    |    |    |    |    |

Chunks lie where they would lie with one thread, so that answers are the same, bit by bit, however rows come.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any

import numpy as np

from windrow.engine.pool import helpers
from windrow.stores.pba import chunk_in, owed, relieved, until_asked, until_boundary

# A batch is shared from this number of windows of rows on: the second thread fills one window before it answers.
LEAST_WINDOWS = 4
LEAST_ROWS = 1 << 17

Cells = tuple[np.ndarray, ...]
State = tuple[Any, ...]
Slid = tuple[State, int, int]
Run = Callable[..., Slid]


def boundary(rows: int, size: int, state: State) -> int | None:
    """The row where a second thread may begin; None if the batch is too short for two."""
    if rows < max(LEAST_WINDOWS * size, LEAST_ROWS):
        return None
    chunk, ahead = chunk_in(state), until_boundary(state)
    return ahead + max(0, (rows - size) // 2 - ahead) // chunk * chunk


def slide_both(
    run: Run,
    begin: int,
    empty: State,
    inputs: Cells,
    rows: int,
    size: int,
    held: int,
    state: State,
    cells: Cells,
    notes: np.ndarray,
    out: Cells,
) -> Slid:
    """As `bulk_loops.slide_in_chunks`, which is `run`: rows up to the first window that begins at `begin` on this
    thread, the others on a second one, from the `empty` state of the store.

    No `lcs` are to be left with a helper.
    """
    end = begin + size - 1
    answers = end - (size - held) + (held < size)
    fresh = tuple(np.empty_like(column) for column in cells)
    later = tuple(column[begin:] for column in inputs)
    room = tuple(column[answers:] for column in out)
    second = helpers().submit(run, later, rows - begin, size, 0, empty, fresh, notes, room)
    try:
        run(inputs, end, size, held, state, cells, notes, out)
    finally:
        wait([second])
    state, held, made = second.result()
    for column, other in zip(cells, fresh, strict=True):
        column[:] = other
    return state, held, answers + made


class Helper:
    """Computes the `lcs` of chunks in a second thread, by `accumulate`: those of one chunk at a time."""

    def __init__(self, accumulate: Callable[..., None]) -> None:
        self._accumulate = accumulate
        self._left: list[tuple[Any, ...]] = []
        self._done: Future[None] | None = None
        _KNOWN.add(self)

    def slide(
        self,
        run: Run,
        inputs: Cells,
        rows: int,
        size: int,
        held: int,
        state: State,
        cells: Cells,
        notes: np.ndarray,
        out: Cells,
    ) -> Slid:
        """As `bulk_loops.slide_in_chunks`, which is `run`. When it ends, `lcs` may still be under way."""
        begin = made = 0
        while begin < rows:
            chunk = owed(state)
            if self._done is None and chunk is not None:
                self._hand(cells, *chunk)
            part = min(rows - begin, until_boundary(state))
            if self._done is not None:
                part = min(part, size - held + until_asked(state))
                if part <= 0:
                    state, part = self.collected(state), 1
            taken = tuple(column[begin : begin + part] for column in inputs)
            room = tuple(column[made:] for column in out)
            state, held, more = run(taken, part, size, held, state, cells, notes, room)
            begin += part
            made += more
        return state, held, made

    def _hand(self, *work: Any) -> None:
        self._left, self._done = [work], Future()
        with suppress(RuntimeError):  # there are too many threads: who waits for it does it
            helpers().submit(self._do, self._left, self._done)

    def _do(self, left: list[tuple[Any, ...]], done: Future[None]) -> None:
        try:
            work = left.pop()
        except IndexError:  # another thread has begun
            return
        try:
            done.set_result(self._accumulate(*work))
        except BaseException as problem:  # a user's function may raise anything, and the caller waits
            done.set_exception(problem)

    def settle(self) -> None:
        """Do what no helper has begun, and wait for what one has; it is still to be collected."""
        if self._done is not None:
            self._do(self._left, self._done)
            wait([self._done])

    def collected(self, state: State) -> State:
        """The store's state when nothing is under way any more; what failed is raised."""
        self.settle()
        done, self._done = self._done, None
        if done is None:
            return state
        done.result()
        return relieved(state)

    def forget(self) -> None:
        """Have nothing under way, whatever became of it; cells are for others to put back."""
        self.settle()
        self._done = None


_KNOWN: weakref.WeakSet[Helper] = weakref.WeakSet()


def _before_fork() -> None:
    """A forked process has no helper that could end what was begun."""
    for known in list(_KNOWN):
        known.settle()


if hasattr(os, "register_at_fork"):  # where processes can be forked
    os.register_at_fork(before=_before_fork)

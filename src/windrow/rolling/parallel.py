"""A batch shared by two threads. Loops are compiled and hold no lock, so both run at the same time.

Of a batch that is much longer than a window all rows are there, and the second thread of PBA need not stop at `lcs`.
It begins anew at a boundary in the middle, and answers from where its first window is full:

    rows       |---------- first ------------------|
               .                   |~~ fills ~~~~~~|------ second -------------|
    chunks     |    |    |    |    |    |    |    |    |    |    |    |    |

Chunks lie where they would lie with one thread, so that answers are the same, bit by bit, however rows come.
Shorter batches are treated as a stream (see `beside`).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from typing import Any

import numpy as np

from windrow.engine.pool import helpers
from windrow.stores.pba import OPEN, chunk_in, until_boundary

# A batch is shared if it has so many windows and rows: the second thread fills one window before it answers.
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
    """As `in_bulk.slide_in_chunks`, which is `run`: rows up to the first window that begins at `begin` on this
    thread, the others on a second one, from the `empty` state of the store.

    Nothing is to be left with others that the store has handed over.
    """
    end = begin + size - 1
    answers = end - (size - held) + (held < size)
    fresh = tuple(np.empty_like(column) for column in cells)
    later = tuple(column[begin:] for column in inputs)
    room = tuple(column[answers:] for column in out)
    alone = notes.copy()
    alone[OPEN] = 0
    second = helpers().submit(run, later, rows - begin, size, 0, empty, fresh, np.zeros_like(notes), room)
    try:
        run(inputs, end, size, held, state, cells, alone, out)
    finally:
        wait([second])
    state, held, made = second.result()
    for column, other in zip(cells, fresh, strict=True):
        column[:] = other
    return state, held, answers + made

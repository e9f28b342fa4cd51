"""PBA with two threads. Loops are compiled and hold no lock, so both run at the same time.

A stream, a few rows at a time, is treated as published. The first thread fills a chunk and answers; the second
makes the `lcs` of the chunk before, and is waited for where a window is about to begin there, nearly a chunk later:

    first      | chunk 1          | chunk 2          | chunk 3
    second                        | lcs of 1 ---.    | lcs of 2 ---.
    waits                                          !                  !

Of a batch that is much longer than a window all rows are there, and the second thread need not stop at `lcs`. It
begins anew at a boundary in the middle, and answers from where its first window is full:

    rows       |---------- first ------------------|
               .                   |~~ fills ~~~~~~|------ second -------------|
    chunks     |    |    |    |    |    |    |    |    |    |    |    |    |

Chunks lie where they would lie with one thread, so that answers are the same, bit by bit, however rows come.

The second thread belongs to the process: it sleeps while nobody needs it, ends with the process, and a forked
process starts its own. What fails on it is raised in the caller.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from windrow.engine.stored import Operations, compiled
from windrow.stores.base import Store
from windrow.stores.late import is_between, reach, revise, widen
from windrow.stores.pba import PBA, chunk_in, debt, owing, relieved, until_boundary, until_due
from windrow.stores.sba import accumulate_left

# Where two threads begin to pay for `max`, by the processor time of the busier one. Handing a chunk over takes the
# first thread about as long as the `lcs` of so many partials; with shorter chunks SBA is faster.
LEAST_CHUNK = 1 << 16
# A batch is shared if it has so many windows and rows: the second thread fills one window before it answers.
LEAST_WINDOWS = 4
LEAST_ROWS = 1 << 17

Cells = tuple[np.ndarray, ...]
State = tuple[Any, ...]
Slid = tuple[State, int, int]
Run = Callable[..., Slid]


class SecondThread:
    """What a second thread has begun for one store.

    compiled:    compiles a loop for the store
    create:      gives the first state of the store
    careful:     nothing goes on when a call has returned, as the next one may look into the cells or copy them
    """

    def __init__(self, compiled: Callable[..., Any], create: Callable[[], State], *, careful: bool) -> None:
        self._accumulate = compiled(accumulate_left)
        self._widen = compiled(widen)
        self._revise = compiled(revise)
        self._create = create
        self._careful = careful
        self._begun: Future[None] | None = None
        _KNOWN.add(self)

    def slide(
        self, run: Run, inputs: Cells, rows: int, size: int, held: int, state: State, *kept: Any
    ) -> Slid:
        """As `in_bulk.slide_in_chunks`, which is `run`, but with two threads; `kept` is cells, notes and out."""
        begin, begun = self._boundary(rows, size, state), self._begun
        if begin is None and chunk_in(state) < LEAST_CHUNK:
            return run(inputs, rows, size, held, state, *kept)
        try:
            if begin is None:
                state, held, made = self.slide_beside(run, inputs, rows, size, held, state, *kept)
            else:
                state, held, made = self.slide_both(run, inputs, rows, begin, size, held, state, *kept)
            if self._careful and debt(state):
                state = self._paid(state, kept[0])
        except BaseException:
            self.wait()
            self._begun = begun
            raise
        return state, held, made

    def revise(self, state: State, cells: Cells, ago: int, partial: Any) -> State:
        """Add a late partial to the slice before which `ago` others came later (see `stores.late`)."""
        apart = is_between(state, ago)
        if apart and debt(state):
            self._begin(state, cells)
            state = relieved(state)
        late = reach(state, ago)
        state = self._revise(state, ago, partial)
        if not apart:
            self._widen(cells, *late, partial)
            return state
        self._begun = second_thread().submit(_after, self._begun, self._widen, cells, *late, partial)
        return owing(state)

    def _begin(self, state: State, cells: Cells) -> None:
        """Have the second thread pay, if it does not already."""
        owed = debt(state)
        if owed and self._begun is None:
            self._begun = second_thread().submit(self._accumulate, cells, *owed)

    def wait(self) -> None:
        """Until the second thread has done what it began."""
        if self._begun is not None:
            wait([self._begun])

    def slide_beside(
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
        """The first thread goes on while `lcs` are made on the second."""
        done = made = 0
        while done < rows:
            owed = debt(state)
            if owed is None:
                ahead = until_boundary(state)
            else:
                self._begin(state, cells)
                ahead = size - held + until_due(state)
                if ahead <= 0:
                    state = self._paid(state, cells)
                    continue
            ahead = min(ahead, rows - done)
            part = tuple(column[done : done + ahead] for column in inputs)
            room = tuple(column[made:] for column in out)
            state = relieved(state) if owed else state
            state, held, answers = run(part, ahead, size, held, state, cells, notes, room)
            state = owing(state) if owed else state
            done += ahead
            made += answers
        return state, held, made

    def _paid(self, state: State, cells: Cells) -> State:
        """The state when what is owed is paid, by the second thread if it has begun."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.result()
        elif owed := debt(state):
            self._accumulate(cells, *owed)
        return relieved(state)

    def _boundary(self, rows: int, size: int, state: State) -> int | None:
        """The row where the second thread may begin; None if the batch is too short for two."""
        if rows < max(LEAST_WINDOWS * size, LEAST_ROWS):
            return None
        chunk, ahead = chunk_in(state), until_boundary(state)
        return ahead + max(0, (rows - size) // 2 - ahead) // chunk * chunk

    def slide_both(
        self,
        run: Run,
        inputs: Cells,
        rows: int,
        begin: int,
        size: int,
        held: int,
        state: State,
        cells: Cells,
        notes: np.ndarray,
        out: Cells,
    ) -> Slid:
        """Rows up to the first window that begins at `begin` on this thread, the others on the second."""
        if debt(state):
            state = self._paid(state, cells)
        end = begin + size - 1
        answers = end - (size - held) + (held < size)
        fresh = tuple(np.empty_like(column) for column in cells)
        later = tuple(column[begin:] for column in inputs)
        room = tuple(column[answers:] for column in out)
        second = second_thread().submit(
            run, later, rows - begin, size, 0, self._create(), fresh, np.zeros_like(notes), room
        )
        try:
            run(inputs, end, size, held, state, cells, notes, out)
        finally:
            wait([second])
        state, held, made = second.result()
        for column, other in zip(cells, fresh, strict=True):
            column[:] = other
        return state, held, answers + made


def beside(store: Store, given: Operations, capacity: int, *, careful: bool) -> SecondThread | None:
    """A second thread for a store of so many partials, if it is one that can leave work to others."""
    if store is not PBA:
        return None
    return SecondThread(
        lambda loop: compiled(loop, store, given),
        lambda: store.create(capacity, given.identity),
        careful=careful,
    )


def _after(before: Future[None] | None, work: Callable[..., Any], *arguments: Any) -> None:
    """Work that waits for other work, which was begun earlier and waits for none that is begun later."""
    if before is not None:
        before.result()
    work(*arguments)


_KNOWN: weakref.WeakSet[SecondThread] = weakref.WeakSet()
_POOL: list[ThreadPoolExecutor] = []


def second_thread() -> ThreadPoolExecutor:
    """The threads that wait for work: as many as there are processors beside the first one."""
    if not _POOL:
        _POOL.append(ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1), "windrow"))
    return _POOL[0]


def _before_fork() -> None:
    """A forked process has no second thread that could end what was begun."""
    for known in list(_KNOWN):
        known.wait()


if hasattr(os, "register_at_fork"):  # where processes can be forked
    os.register_at_fork(before=_before_fork, after_in_child=_POOL.clear)

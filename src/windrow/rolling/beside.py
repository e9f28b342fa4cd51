"""A second thread beside the one that fills a store: it makes the `lcs` that PBA hands over, as published.

    first      | chunk 1          | chunk 2          | chunk 3
    second                        | lcs of 1 ---.    | lcs of 2 ---.
    waits                                          !                  !

Both are in compiled code, which holds no lock, and meet there (see `engine.handing`). The first one waits where a
window is about to begin in a chunk whose `lcs` are not ready, nearly a chunk after it was full.

The thread is started when there is work for it, and sleeps while there is none. It ends with the window that it
works for, or with the process, and a forked process starts its own. What fails on it is raised by the first thread.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from windrow.engine.handing import Semaphore, serve
from windrow.engine.stored import Operations, compiled
from windrow.planner.rolling import LEAST_FOR_TWO_THREADS
from windrow.stores.base import Store
from windrow.stores.pba import DONE, FAILED, HANDED, OPEN, PBA, READY, relieved

Cells = tuple[np.ndarray, ...]


class _Work:
    """What both threads know: the store's `cells` and `notes`, and what has gone wrong."""

    def __init__(self, run: Callable[[Cells, np.ndarray], None], cells: Cells, notes: np.ndarray) -> None:
        self.run = run
        self.cells = cells
        self.notes = notes
        self.problem: BaseException | None = None
        self.ready, self.done = Semaphore(), Semaphore()

    def do(self) -> None:
        """The second thread, from its beginning to its end."""
        while True:
            try:
                self.run(self.cells, self.notes)
                return
            except BaseException as problem:  # a user's function may raise anything, and somebody waits
                has_begun = bool(self.notes[HANDED])
                self.problem = problem
                self.notes[FAILED] = 1
                if not has_begun:
                    self.notes[OPEN] = 0
                self.done.post()
                if not has_begun:
                    return

    def end(self) -> None:
        """Tell the second thread that nothing more will come."""
        if self.notes[OPEN]:
            self.notes[OPEN] = 0
            self.ready.post()


class SecondThread:
    """The second thread of one store."""

    def __init__(self, run: Callable[[Cells, np.ndarray], None], cells: Cells, notes: np.ndarray) -> None:
        self._work = _Work(run, cells, notes)
        self._is_started = False
        self._end = weakref.finalize(self, self._work.end)
        _KNOWN.add(self)

    def start(self) -> None:
        """Be there from now on; where that is impossible, the store does without."""
        if self._is_started:
            return
        self._is_started = True
        work, notes = self._work, self._work.notes
        work.ready, work.done = Semaphore(), Semaphore(int(notes[HANDED]))
        if work.ready.is_usable and work.done.is_usable:
            notes[[READY, DONE]] = work.ready.address, work.done.address
            notes[OPEN] = 1
            try:
                threading.Thread(target=work.do, name="windrow", daemon=True).start()
            except RuntimeError:  # there are too many threads
                notes[OPEN] = 0

    @property
    def problem(self) -> BaseException | None:
        """What was raised on the second thread, if something was."""
        return self._work.problem

    def settle(self) -> None:
        """Wait until all that was handed over is done; it is still to be collected."""
        if self._work.notes[HANDED]:
            self._work.done.wait()
            self._work.done.post()

    def require_success(self) -> None:
        """Settle, and raise what was raised on the second thread."""
        self.settle()
        if self._work.notes[HANDED] and self.problem is not None:
            raise self.problem

    def state(self) -> int:
        """Settle, and what `restore` needs to come back to how things are."""
        self.settle()
        return int(self._work.notes[HANDED])

    def collected(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """The store's state when all that was handed over is done and collected."""
        if not self._work.notes[HANDED]:
            return state
        self.require_success()
        self._work.done.wait()
        self._work.notes[HANDED] = 0
        return relieved(state)

    def restore(self, state: int) -> None:
        """Forget what was handed over or collected since, and what failed; cells are for others to put back."""
        work, notes = self._work, self._work.notes
        if notes[HANDED]:
            work.done.wait()
        work.problem, notes[FAILED], notes[HANDED] = None, 0, state
        if state:
            work.done.post()

    def begin_anew(self) -> None:
        """In a forked process, where no second thread is."""
        self._work.notes[OPEN] = 0
        self._is_started = False


def beside(store: Store, given: Operations, cells: Cells, notes: np.ndarray) -> SecondThread | None:
    """A second thread for a store, if it is one that can leave work to others."""
    return SecondThread(compiled(serve, store, given), cells, notes) if store is PBA else None


def pays(capacity: int) -> bool:
    """Whether two threads are faster than one for a store of so many partials."""
    return capacity >= LEAST_FOR_TWO_THREADS


_KNOWN: weakref.WeakSet[SecondThread] = weakref.WeakSet()


def _before_fork() -> None:
    """A forked process has no second thread that could end what was begun."""
    for known in list(_KNOWN):
        known.settle()


def _after_fork() -> None:
    for known in list(_KNOWN):
        known.begin_anew()


if hasattr(os, "register_at_fork"):  # where processes can be forked
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)

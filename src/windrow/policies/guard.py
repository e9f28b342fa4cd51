"""One at a time: the lock of a window, calls that must not be made from within, and the clock that calls by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from windrow.errors import QueryError, StateError
from windrow.policies import layout
from windrow.policies.clock import Call, weakly
from windrow.policies.handlers import Handled
from windrow.policies.layout import of
from windrow.policies.tape import Tape


class Guarded(Handled):
    """The part of a window that lets in one call at a time, from any thread or from its clock."""

    _lock: threading.RLock
    _failure: BaseException | None = None
    _call: Call | None = None
    _lost: bool = False

    def advance(self) -> Tape:
        """Do what is due on the clock."""
        raise NotImplementedError

    def locked(self) -> AbstractContextManager[Any]:
        """Keep the clock and other threads out of the window, to look at it outside of handlers."""
        return self._lock

    @contextmanager
    def _entered(self, what: str) -> Iterator[None]:
        with self.locked():
            # The lock lets a thread in twice, and others wait: this one has come here from a handler.
            if self._busy is not None:
                raise QueryError(
                    f"{what} was called by a handler of this window while it is in {self._busy}: "
                    "a handler may look at its window, but not change it"
                )
            if self._lost:
                raise StateError("a call was interrupted half-way: go on from a snapshot, in a new window")
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            self._busy = what
            try:
                yield
            finally:
                self._busy = None
                self._schedule()

    def _schedule(self) -> None:
        """Be called by the clock when something is due."""
        machine = self._machine
        if not machine.settings[of.CLOCKED]:
            return
        deadline = layout.NEVER
        if machine.counters[of.DUES]:
            deadline = int(machine.partitions.table[machine.partitions.dues[0], of.DUE])
        before = self._call
        if before is not None and before.deadline == deadline:
            return
        never = deadline == layout.NEVER
        self._call = None if never else self.clock.call_at(deadline, weakly(self._on_time))
        if before is not None:
            before.cancel()

    def _on_time(self) -> None:
        """The clock calls. What a handler raises goes to whoever calls the window next."""
        with self.locked():
            self._call = None
            # A handler has moved the clock: its window looks at it when it is done.
            if self._busy is not None:
                return
            try:
                self._consume(self.advance())
            except Exception as problem:  # a handler may raise anything
                self._failure = problem

    def _consume(self, tape: Tape) -> None:
        for consumer in self._consumers:
            consumer(tape)

    def close(self) -> None:
        """Take the window off its clock: nothing happens in it any more by itself."""
        with self.locked():
            if self._call is not None:
                self._call.cancel()
                self._call = None
            self._machine.settings[of.CLOCKED] = 0

    def __del__(self) -> None:
        if self._call is not None:
            self._call.cancel()

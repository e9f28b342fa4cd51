"""The clock of a window: what time it is, and calls at given instants.

    RealClock       the machine's time; one thread for all windows on it while a call is waiting, asleep until its deadline
    VirtualClock    stands still until it is advanced; calls happen inside `advance`, in order

Times are nanoseconds since 1970. A real clock never goes back: it is read once, and runs on from there with the
machine's uptime. Each window registers one deadline, which replaces the one before. A clock does not keep windows
alive (`weakly`): one without other references cancels its deadline.
"""

from __future__ import annotations

import heapq
import itertools
import queue
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, Protocol

from windrow.durations import DurationLike
from windrow.errors import QueryError
from windrow.policies.spec import time as period_of


@dataclass(order=True)
class Call:
    """A call that is waiting for its instant; `cancelled` calls are dropped when their time comes."""

    deadline: int
    function: Callable[[], None] = field(compare=False)
    # Among calls of one instant, the first to be registered is made first.
    number: int = field(default_factory=itertools.count().__next__)
    cancelled: bool = field(default=False, compare=False)
    wake: Callable[[None], None] | None = field(default=None, compare=False)

    def cancel(self) -> None:
        """Have it not called, unless it has begun."""
        self.cancelled = True
        if self.wake is not None:
            self.wake(None)


def weakly(function: Callable[..., Any]) -> Callable[..., Any]:
    """A method that does not keep its object alive, and does nothing once that is gone; other functions as they are."""
    if not isinstance(function, MethodType):
        return function
    # The function itself is held: a class that is loaded or defined again has other ones.
    owner, method = weakref.ref(function.__self__), function.__func__

    def call(*args: Any) -> Any:
        alive = owner()
        return None if alive is None else method(alive, *args)

    return call


class Clock(Protocol):
    """What a window needs of a clock."""

    def now(self) -> int:
        """Nanoseconds since 1970; never less than before."""

    def call_at(self, deadline: int, function: Callable[[], None]) -> Call:
        """Have `function` called once the clock has come to `deadline`."""


class RealClock:
    """The machine's time.

    Calls are made by a thread of the clock's own, which lives as long as one is waiting, and never keeps a program
    from ending. What a call raises is its own affair: windows keep it for the next one who uses them.
    """

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()
        self._calls: list[Call] = []
        self._lock = threading.Lock()
        # A call may be cancelled by the garbage collector, wherever a thread is: to wake by a queue needs no lock.
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def now(self) -> int:
        """Nanoseconds since 1970."""
        return time.monotonic_ns() + self._offset

    def call_at(self, deadline: int, function: Callable[[], None]) -> Call:
        """Have `function` called by the clock's thread at `deadline`."""
        with self._lock:
            call = Call(deadline, function, wake=self._woken.put)
            heapq.heappush(self._calls, call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="windrow clock", daemon=True)
                self._thread.start()
        self._woken.put(None)
        return call

    def _run(self) -> None:
        while (call := self._next()) is not None:
            call.function()

    def _next(self) -> Call | None:
        """Wait for the next call that is due; None, and the end of the thread, if there is none."""
        while True:
            with self._lock:
                while self._calls and self._calls[0].cancelled:
                    heapq.heappop(self._calls)
                if not self._calls:
                    self._thread = None
                    return None
                wait = self._calls[0].deadline - self.now()
                if wait <= 0:
                    return heapq.heappop(self._calls)
            with suppress(queue.Empty):
                # A wait of centuries is more than a lock accepts.
                self._woken.get(timeout=min(wait / 1e9, threading.TIMEOUT_MAX / 2))


class VirtualClock:
    """A clock that stands still until it is advanced.

    Examples
    --------
    >>> clock = VirtualClock()
    >>> call = clock.call_at(2_000_000_000, lambda: print("two seconds"))
    >>> clock.advance("5 seconds")
    two seconds
    >>> clock.now()
    5000000000
    """

    def __init__(self, start: int = 0) -> None:
        if isinstance(start, bool) or not isinstance(start, int):
            raise QueryError(f"a clock starts at a whole number of nanoseconds since 1970, not {start!r}")
        self._now = start
        self._calls: list[Call] = []

    def now(self) -> int:
        """Nanoseconds since 1970."""
        return self._now

    def call_at(self, deadline: int, function: Callable[[], None]) -> Call:
        """Have `function` called when the clock is advanced to `deadline` or beyond."""
        call = Call(deadline, function)
        heapq.heappush(self._calls, call)
        return call

    def advance(self, period: DurationLike) -> None:
        """Move on by a length of time; calls are made at their instants, in order.

        Parameters
        ----------
        period
            `"5 seconds"`, a `timedelta`, or a number of seconds.
        """
        self.advance_to(self._now + period_of(period).nanoseconds)

    def advance_to(self, instant: int) -> None:
        """Move on to an instant; calls are made at theirs, in order.

        Parameters
        ----------
        instant
            Nanoseconds since 1970.

        Raises
        ------
        QueryError
            If the instant is before that of the clock.
        """
        if instant < self._now:
            raise QueryError(f"a clock does not go back: it is {self._now}, and {instant} is before that")
        while self._calls and self._calls[0].deadline <= instant:
            call = heapq.heappop(self._calls)
            if not call.cancelled:
                self._now = max(self._now, call.deadline)
                call.function()
        self._now = instant

"""The helper threads of this process: started when they are first needed, kept, and shared by all who have work for them.

Compiled loops hold no lock of the interpreter, so helpers run beside the caller. A caller takes part in its own work
and so never waits for a helper that has not begun: helpers that are busy elsewhere cost time, and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from typing import TypeVar

Result = TypeVar("Result")

# More helpers than this are never started.
MOST = 256
_POOL: list[ThreadPoolExecutor] = []


def helpers() -> ThreadPoolExecutor:
    """The pool of all helpers; one is started where none of those that are there is idle."""
    if not _POOL:
        _POOL.append(ThreadPoolExecutor(MOST, "windrow"))
    return _POOL[0]


if hasattr(os, "register_at_fork"):  # where processes can be forked
    os.register_at_fork(after_in_child=_POOL.clear)


def together(tasks: Sequence[Callable[[Event], Result]], threads: int) -> list[Result]:
    """What tasks return, in their order, done by the caller and up to `threads - 1` helpers.

    If a task fails, or the caller is interrupted, no other one begins, and those under way are asked to stop by the
    event that each was called with. All have ended when the error is raised.
    """
    stop = Event()
    left = iter(range(len(tasks)))
    results: dict[int, Result] = {}

    def work() -> None:
        try:
            for number in left:
                if stop.is_set():
                    return
                results[number] = tasks[number](stop)
        except BaseException:
            stop.set()
            raise

    others = [helpers().submit(work) for _ in range(min(threads, len(tasks)) - 1)]
    try:
        work()
    finally:
        for other in others:
            other.cancel()
        wait(others)
    for other in others:
        if not other.cancelled():
            other.result()
    return [results[number] for number in range(len(tasks))]

"""Calls in two phases, so that one which fails costs what it brought, and leaves everything as it was.

    stage      all that can fail: limits, and functions of the user's own; each step says how it is undone
    commit     the rest, which cannot fail
    rollback   the steps are undone, the last one first

An operator stages a batch in all of its engines before it commits it in any.
"""

from __future__ import annotations

from collections.abc import Callable

Step = Callable[[], None]


class Staged:
    """What an engine is about to take in: it ends with either `commit` or `rollback`."""

    __slots__ = ("_rest", "_undo")

    def __init__(self) -> None:
        self._undo: list[Step] = []
        self._rest: list[Step] = []

    def on_rollback(self, step: Step) -> None:
        """How to undo what was just done."""
        self._undo.append(step)

    def on_commit(self, step: Step) -> None:
        """What is left to do, and cannot fail."""
        self._rest.append(step)

    def commit(self) -> None:
        for step in self._rest:
            step()

    def rollback(self) -> None:
        while self._undo:
            self._undo.pop()()

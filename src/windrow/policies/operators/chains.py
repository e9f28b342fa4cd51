"""The rows of one side of a join by their key: a chain of rows for each key, oldest first.

    head[k] --> row --> row --> tail[k]          links in `after`, one for each row of the window's log

A window evicts rows in the order in which they came, and all rows of a key are of one partition; so
those that are gone are always the first of their chain, and are dropped when it is walked next.
"""

from __future__ import annotations

import numpy as np

from windrow.compiling.tiers import jit
from windrow.policies.partitions import grown

# At most this many keys are never tidied up.
FEW = 4096
NONE = np.empty(0, np.int64)
Lives = tuple[np.ndarray, np.ndarray, np.ndarray]


@jit
def append(key, base, head, tail, after, gone):  # type: ignore[no-untyped-def]
    """Rows base, base + 1, .. come to the ends of the chains of their keys; a key of -1 has no chain."""
    for i in range(key.shape[0]):
        k = key[i]
        row = base + i
        after[row] = -1
        gone[row] = False
        if k < 0:
            continue
        if head[k] < 0:
            head[k] = row
        else:
            after[tail[k]] = row
        tail[k] = row


@jit
def probe(key, begin, head, after, gone, place, came, left_at, left, right):  # type: ignore[no-untyped-def]
    """For each row from `begin` on the rows in the chain of its key, as pairs; up to which row there was
    room.

    Rows meet those that are not `gone`. Where they have a `place` each, in order, they meet those that came
    before it and left after it. Returns the row to go on with, and how many pairs there are. Room for one
    row's pairs is never split: if the first row has more than there is room for, none are given.
    """
    count = 0
    placed = place.shape[0] > 0
    for i in range(begin, key.shape[0]):
        k = key[i]
        if k < 0:
            continue
        while head[k] >= 0 and (left_at[head[k]] < place[i] if placed else gone[head[k]]):
            head[k] = after[head[k]]
        row = head[k]
        found = count
        while row >= 0 and (not placed or came[row] < place[i]):
            if found == left.shape[0]:
                return i, count
            left[found] = i
            right[found] = row
            found += 1
            row = after[row]
        count = found
    return key.shape[0], count


@jit
def leave_behind(head, tail, after, gone):  # type: ignore[no-untyped-def]
    """Let every chain begin with a row that is there."""
    for k in range(head.shape[0]):
        while head[k] >= 0 and gone[head[k]]:
            head[k] = after[head[k]]
        if head[k] < 0:
            tail[k] = -1


class Chains:
    """A chain of rows for each key. `gone` and `matched` say of each row whether it has left, and whether it ever had a
    match.
    """

    def __init__(self) -> None:
        self._head = np.full(0, -1)
        self._tail = np.full(0, -1)
        self._after = np.full(0, -1)
        self.gone = np.zeros(0, np.bool_)
        self.matched = np.zeros(0, np.bool_)

    def know(self, keys: int) -> None:
        """Make room for `keys` keys."""
        self._head, self._tail = grown(self._head, keys, -1), grown(self._tail, keys, -1)

    def append(self, key: np.ndarray, base: int) -> None:
        """Rows of these keys come; the first of them is row `base` of the log."""
        end = base + len(key)
        self._after = grown(self._after, end, -1)
        self.gone, self.matched = grown(self.gone, end), grown(self.matched, end)
        self.matched[base:end] = False
        append(key, base, self._head, self._tail, self._after, self.gone)

    def probe(
        self, key: np.ndarray, begin: int, room: int, place: np.ndarray = NONE, lives: Lives | None = None
    ) -> tuple[int, np.ndarray, np.ndarray]:
        """Pairs of (place in key, row) from `begin` on, about `room` of them, and where to go on.

        Keys that have a `place` each meet the rows that were there then: `lives` are `heads`, and where rows came
        and left.
        """
        heads, *came_and_left = (self._head, NONE, NONE) if lives is None else lives
        while True:
            left, right = np.empty(room, np.int64), np.empty(room, np.int64)
            among = heads, self._after, self.gone, place, *came_and_left
            reached, count = probe(key, begin, *among, left, right)
            if reached > begin or count:
                return reached, left[:count], right[:count]
            room *= 4

    def ends(self) -> np.ndarray:
        """The last row of each chain, to `cut` them there."""
        return self._tail.copy()

    def cut(self, ends: np.ndarray, base: int) -> None:
        """Let chains have these ends again: rows from `base` on have not come."""
        self._head[self._head >= base] = -1
        self._tail[: len(ends)] = ends
        self._after[ends[ends >= 0]] = -1

    def heads(self) -> np.ndarray:
        """Where chains begin, to be gone along from there without changing them."""
        return self._head.copy()

    def moved(self, moved: np.ndarray) -> None:
        """Rows of the log have other numbers; -1 is one that has left."""
        leave_behind(self._head, self._tail, self._after, self.gone)
        kept = np.flatnonzero(moved >= 0)
        self._after = _renamed(self._after[kept], moved)
        self.gone, self.matched = self.gone[kept], self.matched[kept]
        self._head, self._tail = _renamed(self._head, moved), _renamed(self._tail, moved)

    def live(self, keys: int) -> np.ndarray:
        """Which of the first `keys` keys have rows."""
        self.know(keys)
        leave_behind(self._head, self._tail, self._after, self.gone)
        return self._head[:keys] >= 0

    def renumber(self, kept: np.ndarray) -> None:
        """Key kept[i] becomes key i."""
        self._head, self._tail = self._head[kept], self._tail[kept]


def _renamed(rows: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Row numbers as they are now; -1 stays."""
    return np.where(rows >= 0, moved[np.maximum(rows, 0)], -1)

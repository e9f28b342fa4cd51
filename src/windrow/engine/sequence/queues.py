"""A queue of rows for each key, all of them in shared columns.

    key        0        1        2
    begin      0        8        4
    end        3       10        4            key 2 has no rows
    column   [ a b c .  . . . .  d e . . ]    rows of a key lie side by side, with room behind them

Rows are added at the end of a queue and leave at its front: O(1) each, amortised, however many rows there are. A
queue without room moves to the end of the columns. What it leaves behind stays as it is until `settle`, so that
`mark` needs to remember no more than where queues begin and end, and `restore` brings all rows back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from windrow.engine.cache import jit

# Columns are packed once they have more than so many places for each row, each key, and besides.
PLACES_PER_ROW, PLACES_PER_KEY, SPARE = 8, 4, 256

Mark = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]


@jit
def make_room(keys, counts, begin, end, limit, used, source, target, size):  # type: ignore[no-untyped-def]
    """Give queues without room for `counts` more rows a new place behind `used`; how much is used then, and moves.

    Move m takes `size[m]` rows from `source[m]` to `target[m]`.
    """
    moves = 0
    for s in range(keys.shape[0]):
        k = keys[s]
        if end[k] + counts[s] > limit[k]:
            held = end[k] - begin[k]
            source[moves], target[moves], size[moves] = begin[k], used, held
            begin[k], end[k] = used, used + held
            used += 2 * (held + counts[s]) + 2
            limit[k] = used
            moves += 1
    return used, moves


@jit
def ranges(low, high):  # type: ignore[no-untyped-def]
    """low[0] .. high[0]-1, low[1] .. high[1]-1, and so on."""
    total = 0
    for i in range(low.shape[0]):
        total += high[i] - low[i]
    out = np.empty(total, np.int64)
    n = 0
    for i in range(low.shape[0]):
        for place in range(low[i], high[i]):
            out[n] = place
            n += 1
    return out


@jit
def lengthen(keys, counts, end):  # type: ignore[no-untyped-def]
    """The places of `counts[s]` more rows behind those of each key, which are in its queue from now on."""
    total = 0
    for s in range(keys.shape[0]):
        total += counts[s]
    out = np.empty(total, np.int64)
    n = 0
    for s in range(keys.shape[0]):
        for _ in range(counts[s]):
            out[n] = end[keys[s]]
            end[keys[s]] += 1
            n += 1
    return out


class KeyQueues:
    """A queue of rows for each key; `dtypes` are those of the columns."""

    def __init__(self, dtypes: Sequence[Any]) -> None:
        self.columns = [np.empty(0, dtype) for dtype in dtypes]
        self.begin = np.zeros(0, np.int64)
        self.end = np.zeros(0, np.int64)
        self.limit = np.zeros(0, np.int64)
        self.used = 0
        self.rows = 0

    def __len__(self) -> int:
        """How many rows all queues have."""
        return self.rows

    def grow(self, keys: int) -> None:
        """Know `keys` keys; those that are new have no rows."""
        known = len(self.begin)
        if keys > known:
            more = np.zeros(max(keys, 2 * known) - known, np.int64)
            self.begin = np.concatenate([self.begin, more])
            self.end = np.concatenate([self.end, more])
            self.limit = np.concatenate([self.limit, more])

    def counts(self, keys: np.ndarray) -> np.ndarray:
        """How many rows the queues of these keys have."""
        return self.end[keys] - self.begin[keys]

    def places(self, keys: np.ndarray) -> np.ndarray:
        """Where the rows of these keys are, key after key."""
        return ranges(self.begin[keys], self.end[keys])

    def extend(self, used: int) -> None:
        """Have columns of at least `used` places."""
        room = len(self.columns[0])
        if used > room:
            for i, column in enumerate(self.columns):
                wider = np.empty(max(used, 2 * room), column.dtype)
                wider[:room] = column
                self.columns[i] = wider

    def push(self, keys: np.ndarray, counts: np.ndarray, columns: Sequence[np.ndarray]) -> None:
        """Add rows, `counts[s]` of them behind those of key keys[s]; keys are different."""
        moves = np.empty((3, len(keys)), np.int64)
        self.used, moved = make_room(keys, counts, self.begin, self.end, self.limit, self.used, *moves)
        if moved:
            self.extend(self.used)
            source, target, size = moves[:, :moved]
            if size.any():
                there, here = ranges(target, target + size), ranges(source, source + size)
                for column in self.columns:
                    column[there] = column[here]
        at = lengthen(keys, counts, self.end)
        for column, values in zip(self.columns, columns, strict=True):
            column[at] = values
        self.rows += len(at)

    def pop(self, keys: np.ndarray, counts: np.ndarray) -> None:
        """Take so many rows from the front of each queue."""
        self.begin[keys] += counts
        self.rows -= int(counts.sum())

    def clear(self, keys: np.ndarray) -> None:
        """Take all rows of these keys; what is pushed next goes elsewhere, so that they can be restored."""
        self.rows -= int(self.counts(keys).sum())
        self.begin[keys] = self.end[keys] = self.limit[keys] = 0

    def mark(self, keys: np.ndarray) -> Mark:
        """What `restore` needs to bring the rows of these keys back, until `settle`: O(keys)."""
        return keys, self.begin[keys], self.end[keys], self.limit[keys], self.rows

    def restore(self, mark: Mark) -> None:
        keys, self.begin[keys], self.end[keys], self.limit[keys], self.rows = mark

    def settle(self) -> None:
        """No mark is needed any more: pack the columns if most of them is unused."""
        if self.used <= PLACES_PER_ROW * self.rows + PLACES_PER_KEY * len(self.begin) + SPARE:
            return
        size = self.end - self.begin
        rows = ranges(self.begin, self.end)
        room = 2 * size
        self.limit = np.cumsum(room)
        self.begin = self.limit - room
        self.end = self.begin + size
        self.used = int(self.limit[-1])
        there = ranges(self.begin, self.end)
        for i, column in enumerate(self.columns):
            self.columns[i] = np.empty(self.used, column.dtype)
            self.columns[i][there] = column[rows]

    def all(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """The key of each row and the columns, key after key."""
        size = self.end - self.begin
        at = ranges(self.begin, self.end)
        return np.repeat(np.arange(len(size)), size), [column[at] for column in self.columns]

    def fill(self, key: np.ndarray, columns: Sequence[np.ndarray]) -> None:
        """Add rows of many keys, sorted by key."""
        head = np.flatnonzero(np.diff(key, prepend=-1))
        self.push(key[head], np.diff(np.append(head, len(key))), columns)

    @property
    def nbytes(self) -> int:
        arrays = (*self.columns, self.begin, self.end, self.limit)
        return int(sum(array.nbytes for array in arrays))

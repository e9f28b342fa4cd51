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

from typing import Any

import numpy as np

from windrow.compiling.tiers import jit

# Columns are packed once they have more places than these for each row and each key, and SPARE.
PLACES_PER_ROW, PLACES_PER_KEY, SPARE = 8, 4, 256
# Packed columns keep memory of up to this many times what they use: in a steady stream they need it again.
MOST_ROOM = 2
BEGIN, END, LIMIT = range(3)

Mark = tuple[np.ndarray, np.ndarray, int]


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
def make_room(keys, counts, edges, used, numbers, ticks):  # type: ignore[no-untyped-def]
    """Let the queues of these keys have room for `counts` more rows; those without move behind `used`.

    How much of the columns is used then; where they are shorter, nothing is done, and the result is negative.
    """
    need = used
    for s in range(keys.shape[0]):
        k = keys[s]
        if edges[END, k] + counts[s] > edges[LIMIT, k]:
            need += 2 * (edges[END, k] - edges[BEGIN, k] + counts[s]) + 2
    if need > numbers.shape[1]:
        return -need
    for s in range(keys.shape[0]):
        k = keys[s]
        if edges[END, k] + counts[s] > edges[LIMIT, k]:
            begin, held = edges[BEGIN, k], edges[END, k] - edges[BEGIN, k]
            for c in range(numbers.shape[0]):
                for i in range(held):
                    numbers[c, used + i] = numbers[c, begin + i]
            for c in range(ticks.shape[0]):
                for i in range(held):
                    ticks[c, used + i] = ticks[c, begin + i]
            edges[BEGIN, k], edges[END, k] = used, used + held
            used += 2 * (held + counts[s]) + 2
            edges[LIMIT, k] = used
    return used


@jit
def push_rows(keys, counts, edges, used, numbers, ticks, new_numbers, new_ticks):  # type: ignore[no-untyped-def]
    """Write counts[s] new rows behind those of key keys[s]; what it returns is that of `make_room`."""
    used = make_room(keys, counts, edges, used, numbers, ticks)
    if used < 0:
        return used
    row = 0
    for s in range(keys.shape[0]):
        end = edges[END, keys[s]]
        for c in range(numbers.shape[0]):
            for i in range(counts[s]):
                numbers[c, end + i] = new_numbers[c, row + i]
        for c in range(ticks.shape[0]):
            for i in range(counts[s]):
                ticks[c, end + i] = new_ticks[c, row + i]
        row += counts[s]
        edges[END, keys[s]] = end + counts[s]
    return used


class KeyQueues:
    """A queue of rows for each key: columns of int64 are the rows of `numbers`, columns of times those of `ticks`.

    `edges` are the rows BEGIN, END and LIMIT: where each queue begins and ends, and how far it may go.
    """

    def __init__(self, numbers: int, ticks: int, tick: np.dtype[Any]) -> None:
        self.numbers = np.empty((numbers, 0), np.int64)
        self.ticks = np.empty((ticks, 0), tick)
        self.edges = np.zeros((3, 0), np.int64)
        self.used = 0
        self.rows = 0

    def __len__(self) -> int:
        """How many rows all queues have."""
        return self.rows

    @property
    def begin(self) -> np.ndarray:
        return self.edges[BEGIN]

    @property
    def end(self) -> np.ndarray:
        return self.edges[END]

    def grow(self, keys: int) -> None:
        """Know `keys` keys; those that are new have no rows."""
        known = self.edges.shape[1]
        if keys > known:
            more = np.zeros((3, max(keys, 2 * known) - known), np.int64)
            self.edges = np.concatenate([self.edges, more], axis=1)

    def counts(self, keys: np.ndarray) -> np.ndarray:
        """How many rows the queues of these keys have."""
        count: np.ndarray = self.edges[END, keys] - self.edges[BEGIN, keys]
        return count

    def places(self, keys: np.ndarray) -> np.ndarray:
        """Where the rows of these keys are, key after key."""
        places: np.ndarray = ranges(self.edges[BEGIN, keys], self.edges[END, keys])
        return places

    def all_places(self) -> np.ndarray:
        """Where the rows of all keys are, key after key."""
        places: np.ndarray = ranges(self.begin, self.end)
        return places

    def with_room(self, loop: Any, keys: np.ndarray, counts: np.ndarray, *rows: np.ndarray) -> None:
        """Call a loop that makes room for `counts[s]` more rows of key keys[s], which are different; again if there is none."""
        used = loop(keys, counts, self.edges, self.used, self.numbers, self.ticks, *rows)
        if used < 0:
            self._allocate(max(-used, 2 * self.used), slice(0, self.used), slice(0, self.used))
            used = loop(keys, counts, self.edges, self.used, self.numbers, self.ticks, *rows)
        self.used = used

    def _allocate(self, room: int, source: Any, target: Any) -> None:
        """Have columns with `room` places, and the rows of places `source` at `target`."""
        numbers, ticks = self.numbers, self.ticks
        self.numbers = np.empty((len(numbers), room), np.int64)
        self.ticks = np.empty((len(ticks), room), ticks.dtype)
        self.numbers[:, target], self.ticks[:, target] = numbers[:, source], ticks[:, source]

    def push(self, keys: np.ndarray, counts: np.ndarray, numbers: np.ndarray, ticks: np.ndarray) -> None:
        """Add rows, `counts[s]` of them behind those of key keys[s]; keys are different."""
        self.with_room(push_rows, keys, counts, numbers, ticks)
        self.rows += numbers.shape[1]

    def pop(self, keys: np.ndarray, counts: np.ndarray) -> None:
        """Take `counts[s]` rows from the front of the queue of key keys[s]."""
        self.edges[BEGIN, keys] += counts
        self.rows -= int(counts.sum())

    def clear(self, keys: np.ndarray) -> None:
        """Take all rows of these keys; what is pushed next goes elsewhere, so that they can be restored."""
        self.rows -= int(self.counts(keys).sum())
        self.edges[:, keys] = 0

    def mark(self, keys: np.ndarray) -> Mark:
        """What `restore` needs to bring the rows of these keys back, until `settle`: O(keys)."""
        return keys, self.edges.take(keys, axis=1), self.rows

    def restore(self, mark: Mark) -> None:
        keys, edges, self.rows = mark
        self.edges[:, keys] = edges

    def settle(self) -> None:
        """No mark is needed any more: pack the columns if most of them is unused."""
        if self.used <= PLACES_PER_ROW * self.rows + PLACES_PER_KEY * self.edges.shape[1] + SPARE:
            return
        size = self.end - self.begin
        rows = self.all_places()
        limit = np.cumsum(2 * size)
        self.edges = np.array([limit - 2 * size, limit - size, limit])
        self.used = int(limit[-1])
        there = self.all_places()
        if self.numbers.shape[1] > MOST_ROOM * self.used + SPARE:
            self._allocate(self.used, rows, there)
        else:
            self.numbers[:, there], self.ticks[:, there] = self.numbers[:, rows], self.ticks[:, rows]

    def all(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The key of each row and the columns, key after key."""
        at = self.all_places()
        key = np.repeat(np.arange(self.edges.shape[1]), self.end - self.begin)
        return key, self.numbers[:, at], self.ticks[:, at]

    def fill(self, key: np.ndarray, numbers: np.ndarray, ticks: np.ndarray) -> None:
        """Add rows of many keys, sorted by key."""
        head = np.flatnonzero(np.diff(key, prepend=-1))
        self.push(key[head], np.diff(np.append(head, len(key))), numbers, ticks)

    @property
    def nbytes(self) -> int:
        return int(self.numbers.nbytes + self.ticks.nbytes + self.edges.nbytes)

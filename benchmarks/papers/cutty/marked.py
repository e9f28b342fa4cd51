"""Windows that the data places, answered from a FlatFAT of sums: by Cutty over slices, by RA over events.

The two are one loop. It is told where slices begin: at each event for RA, where a window begins for Cutty.

    events     o  o  o  o  o  o  o  o
    marks A    |        |        |           windows of A end where the next one begins
    marks B       |           |
    slices     |--|-----|-----|--|           Cutty: leaves of the tree; for RA each event is one

A window is the join of the leaves since its begin. The open slice becomes a leaf when the next one begins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windrow.compiling.tiers import jit


@dataclass(frozen=True)
class Marks:
    """The windows of all queries: event `row[i]` ends a window of query `query[i]` and begins the next."""

    row: np.ndarray
    query: np.ndarray
    queries: int

    def cuts(self, events: int) -> np.ndarray:
        """Where slices begin, for Cutty."""
        found = np.zeros(events, np.bool_)
        found[self.row] = True
        return found

    def longest(self, events: int) -> int:
        """Events in the longest window."""
        gaps = [
            np.diff(np.append(self.row[self.query == q], events)).max(initial=1) for q in range(self.queries)
        ]
        return int(max(gaps))


def marks_of(columns: np.ndarray) -> Marks:
    """Marks as one column of booleans per query."""
    row, query = np.nonzero(columns.T)
    return Marks(row, query, len(columns))


@jit
def climb(tree, capacity, leaf):
    """Bring all nodes above a leaf up to date; how many combines that took."""
    combines = 0
    node = (capacity + (leaf & (capacity - 1))) >> 1
    while node >= 1:
        tree[node] = tree[2 * node] + tree[2 * node + 1]
        combines += 1
        node >>= 1
    return combines


@jit
def joined(tree, capacity, low, high):
    """The sum of leaves low .. high-1 of the ring, and how many combines it took. Free leaves are zero."""
    total, parts = 0, 0
    low += capacity
    high += capacity
    while low < high:
        if low & 1:
            total += tree[low]
            parts += 1
            low += 1
        if high & 1:
            high -= 1
            total += tree[high]
            parts += 1
        low >>= 1
        high >>= 1
    return total, parts


@jit
def answer(values, cuts, row, query, begin, tree, capacity, out):
    """Windows to `out` in the order of marks, -1 for the first mark of a query, which ends none.

    begin: of each query, the leaf that its open window begins with, -1 if none is open.
    Returns calls of combine for updates and for merges, the most leaves alive, and the leaves made.
    """
    update, merge, most, m = 0, 0, 0, 0
    front, end, current = 0, 0, 0
    mask = capacity - 1
    for i in range(values.shape[0]):
        if cuts[i] and i > 0:
            tree[capacity + (end & mask)] = current
            update += climb(tree, capacity, end)
            end += 1
            most = max(most, end - front)
        while m < row.shape[0] and row[m] == i:
            q = query[m]
            out[m] = -1
            if begin[q] >= 0:
                low, high = begin[q] & mask, (end - 1) & mask
                if low <= high:
                    total, parts = joined(tree, capacity, low, high + 1)
                else:
                    total, parts = joined(tree, capacity, low, capacity)
                    rest, more = joined(tree, capacity, 0, high + 1)
                    total += rest
                    parts += more
                out[m] = total
                merge += parts - 1
            begin[q] = end
            oldest = end
            for other in begin:
                if other >= 0:
                    oldest = min(oldest, other)
            while front < oldest:
                tree[capacity + (front & mask)] = 0
                front += 1
            m += 1
        if cuts[i] or i == 0:
            current = values[i]
        else:
            current += values[i]
            update += 1
    return update, merge, most, end


@dataclass(frozen=True)
class Answered:
    """What a run gave and took. `held` is leaves, nodes above them, and the open slice."""

    sums: np.ndarray
    update: int
    merge: int
    held: int


def run(values: np.ndarray, cuts: np.ndarray, marks: Marks) -> Answered:
    """All windows that end, with cuts at these events."""
    leaves = 2 * min(marks.longest(len(values)), int(cuts.sum())) + 2
    capacity = 1 << int(leaves).bit_length()
    tree, out = np.zeros(2 * capacity, np.int64), np.empty(len(marks.row), np.int64)
    begin = np.full(marks.queries, -1, np.int64)
    update, merge, most, _ = answer(values, cuts, marks.row, marks.query, begin, tree, capacity, out)
    return Answered(out[out >= 0], int(update), int(merge), 2 * int(most) + 1)

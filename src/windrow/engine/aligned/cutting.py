"""Cutting: which events fall into which slice. Knows edges and keys, and no aggregate.

The result is a set of *segments* in one of two forms:

    Runs     events low[i] .. high[i]-1 all belong to cell[i]      (in order, one key)
    Cells    event i belongs to cell[i], or to none (-1)           (many keys, or out of order)

Events in order cost one comparison per slice or per event; events out of order look up their
slice in a small table, so a late event costs no search (Scotty, section 5.3, step 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.aligned.lookup import lookup
from windrow.engine.arrays import different

# So many events of a slice, in the mean, are worth being laid side by side.
MANY_IN_A_SLICE = 16


@dataclass
class Runs:
    """Events `low[i] .. high[i]-1` belong to `cell[i]`; runs are ascending and do not overlap."""

    low: np.ndarray
    high: np.ndarray
    cell: np.ndarray

    def only(self, rows: np.ndarray) -> Runs:
        """The segments of a table that has these rows only (ascending)."""
        return Runs(np.searchsorted(rows, self.low), np.searchsorted(rows, self.high), self.cell)

    def located(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows that have a cell, and their cells."""
        sizes = self.high - self.low
        ends = np.cumsum(sizes)
        rows = np.arange(ends[-1] if len(ends) else 0) + np.repeat(self.low - ends + sizes, sizes)
        return rows, np.repeat(self.cell, sizes)

    def touched(self, limit: int) -> np.ndarray:
        """The different cells, ascending; all are below `limit`."""
        return different(self.cell, limit)


@dataclass
class Cells:
    """Event i belongs to `cell[i]`; -1 is no cell at all."""

    cell: np.ndarray

    def only(self, rows: np.ndarray) -> Cells:
        """The segments of a table that has these rows only."""
        return Cells(self.cell[rows])

    def located(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows that have a cell, and their cells."""
        rows = np.flatnonzero(self.cell >= 0)
        return rows, self.cell[rows]

    def touched(self, limit: int) -> np.ndarray:
        """The different cells, ascending; all are below `limit`."""
        return different(self.located()[1], limit)


@jit
def in_order(times):  # type: ignore[no-untyped-def]
    """Whether times never go back; looked at in chunks, so that disorder is found early."""
    count = times.shape[0]
    begin = 1
    while begin < count:
        end = min(begin + 4096, count)
        # Views that begin at 0: LLVM vectorizes loops over them, not loops over an inner range.
        here, before = times[begin:end], times[begin - 1 : end - 1]
        fine = True
        for i in range(here.shape[0]):
            fine &= here[i] >= before[i]
        if not fine:
            return False
        begin = end
    return True


@jit
def extent(times):  # type: ignore[no-untyped-def]
    """The smallest and the largest time."""
    low = high = times[0]
    for i in range(times.shape[0]):
        low = min(low, times[i])
        high = max(high, times[i])
    return low, high


def scan_times(times: np.ndarray) -> tuple[Any, Any, bool]:
    """(smallest, largest, whether in order), the first two as Python's own numbers, which do not overflow."""
    if len(times) == 1 or in_order(times):
        return times[0].item(), times[-1].item(), True
    low, high = extent(times)
    return low, high, False


@jit
def run_end(times, begin, until, step=1):  # type: ignore[no-untyped-def]
    """The first event behind `begin` that is at or after `until`; times ascend, and `step` is how far to look first."""
    count = times.shape[0]
    low = begin
    while begin + step < count and times[begin + step] < until:
        low = begin + step
        step *= 2
    high = min(count, begin + step)
    while low < high:
        middle = (low + high) // 2
        if times[middle] < until:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def cut_in_order(times, edges, low, high, position):  # type: ignore[no-untyped-def]
    """Runs of a sorted column: `position[r]` is the slice of events low[r] .. high[r]-1."""
    count = times.shape[0]
    runs = 0
    i = 0
    j = 0
    sparse = edges.shape[0] * 16 < count
    while i < count:
        while edges[j + 1] <= times[i]:
            j += 1
        end = edges[j + 1]
        begin = i
        if sparse:
            i = run_end(times, i, end, 64)
        else:
            i += 1
            while i < count and times[i] < end:
                i += 1
        low[runs] = begin
        high[runs] = i
        position[runs] = j
        runs += 1
    return runs


@jit
def find_runs(times, ordered, starts, ends, low, high, position):  # type: ignore[no-untyped-def]
    """Runs of neighbouring events that lie in one and the same of these slices; -1 if one lies in none.

    starts, ends: of the slices, ascending; there is at least one. `position[r]` is the slice of events low[r] .. high[r]-1.
    """
    count = times.shape[0]
    runs = 0
    i = 0
    j = starts.shape[0] - 1
    while i < count:
        t = times[i]
        if not starts[j] <= t < ends[j]:
            j = np.searchsorted(starts, t, side="right") - 1
            if j < 0 or t >= ends[j]:
                return -1
        low[runs] = i
        if ordered:
            i = run_end(times, i, ends[j], 64)
        else:
            i += 1
            while i < count and starts[j] <= times[i] < ends[j]:
                i += 1
        high[runs] = i
        position[runs] = j
        runs += 1
    return runs


@jit
def cut_into_equal(times, base, step, position):  # type: ignore[no-untyped-def]
    """The slice of each event, where all slices are of one length; `step` is an int32, and all distances fit in one.

    A quotient that was rounded is at most one off, which costs no branch, so that LLVM vectorizes the loop.
    """
    inverse = 1.0 / step
    for i in range(times.shape[0]):
        gap = np.int32(times[i] - base)
        j = np.int32(gap * inverse)
        j -= np.int32(j * step > gap)
        j += np.int32((j + 1) * step <= gap)
        position[i] = j


@jit
def count_hits(position, hits):  # type: ignore[no-untyped-def]
    """How many events each slice has, in four counts of a quarter of the events each.

    Neighbours in one slice would wait for each other's count; those of different quarters do not.
    """
    quarter = position.shape[0] // 4
    for i in range(quarter):
        for part in range(4):
            hits[part, position[part * quarter + i]] += 1
    for i in range(4 * quarter, position.shape[0]):
        hits[3, position[i]] += 1


@jit
def put_together(values, position, cursor, out):  # type: ignore[no-untyped-def]
    """Write the values of each slice side by side, in the order in which they came.

    cursor: where the values of each quarter and slice go, as `count_hits` counts them.
    """
    quarter = position.shape[0] // 4
    for i in range(quarter):
        for part in range(4):
            k = part * quarter + i
            place = cursor[part, position[k]]
            out[place] = values[k]
            cursor[part, position[k]] = place + 1
    for k in range(4 * quarter, position.shape[0]):
        place = cursor[3, position[k]]
        out[place] = values[k]
        cursor[3, position[k]] = place + 1


@jit
def cut_out_of_order(times, edges, base, scale, shift, table, position):  # type: ignore[no-untyped-def]
    """The slice of each event, through the lookup table."""
    top = table.shape[0] - 1
    for i in range(times.shape[0]):
        t = times[i]
        j = table[min(max(np.int64((t - base) * scale) >> shift, 0), top)]
        while edges[j] > t:
            j -= 1
        while edges[j + 1] <= t:
            j += 1
        position[i] = j


@jit
def spread_runs(low, high, cell, keys, out):  # type: ignore[no-untyped-def]
    """One cell per event, from runs of slices and the key of each event."""
    for r in range(low.shape[0]):
        base = cell[r]
        for i in range(low[r], high[r]):
            out[i] = base + keys[i] if base >= 0 else -1


@jit
def spread_slices(position, base, out):  # type: ignore[no-untyped-def]
    """One cell per event, from the slice of each event; there is one key."""
    for i in range(position.shape[0]):
        out[i] = base[position[i]]


@jit
def spread_positions(position, base, keys, out):  # type: ignore[no-untyped-def]
    """One cell per event, from the slice and the key of each event."""
    for i in range(position.shape[0]):
        cell = base[position[i]]
        out[i] = cell + keys[i] if cell >= 0 else -1


@jit
def find_extents(position, times, first, last):  # type: ignore[no-untyped-def]
    """Lower `first` and raise `last` to the times of the events at each position."""
    for i in range(times.shape[0]):
        p = position[i]
        first[p] = min(first[p], times[i])
        last[p] = max(last[p], times[i])


@dataclass
class Cut:
    """Events assigned to slices, before the slices have a place.

    `slices` are those that are hit, and `sizes` how many events hit them.
    """

    slices: np.ndarray
    sizes: np.ndarray
    _low: np.ndarray | None = None
    _high: np.ndarray | None = None
    _position: np.ndarray | None = None
    _edges: int = 0
    _counts: np.ndarray | None = None

    @property
    def can_be_gathered(self) -> bool:
        """Whether neighbours lie in different slices, each of which has many events."""
        return self._counts is not None

    def gathered(self, base: np.ndarray, *columns: np.ndarray) -> tuple[Runs, list[np.ndarray]]:
        """Columns of scattered events with those of each slice side by side, and the runs that they are then.

        There is one key, and `base` is as for `place`. A column costs one pass, and a run is folded faster than cells are.
        """
        assert self._counts is not None
        ends = np.cumsum(self._counts.sum(axis=0))
        cursor = np.cumsum(self._counts, axis=0) - self._counts
        cursor += ends - self._counts.sum(axis=0)
        out = [np.empty_like(column) for column in columns]
        for column, target in zip(columns, out, strict=True):
            put_together(column, self._position, cursor.copy(), target)
        high = ends[self.slices]
        there = base >= 0
        return Runs((high - self.sizes)[there], high[there], base[there]), out

    def extents(self, times: np.ndarray, low: Any, high: Any) -> tuple[np.ndarray, np.ndarray]:
        """The times of the first and the last event of each slice that is hit; all are in [low, high]."""
        if self._low is not None and self._high is not None:
            return times[self._low], times[self._high - 1]
        first = np.full(self._edges, high, times.dtype)
        last = np.full(self._edges, low, times.dtype)
        find_extents(self._position, times, first, last)
        return first[self.slices], last[self.slices]

    def place(self, base: np.ndarray, keys: np.ndarray | None, count: int) -> Runs | Cells:
        """Segments, once `base[i]` is known: the first cell of slice `slices[i]`, or -1."""
        if self._low is not None and self._high is not None and keys is None:
            keep = base >= 0
            if keep.all():
                return Runs(self._low, self._high, base)
            return Runs(self._low[keep], self._high[keep], base[keep])
        cell = np.empty(count, np.int64)
        if self._low is not None:
            spread_runs(self._low, self._high, base, keys, cell)
            return Cells(cell)
        table = np.full(self._edges, -1, np.int64)
        table[self.slices] = base
        if keys is None:
            spread_slices(self._position, table, cell)
        else:
            spread_positions(self._position, table, keys, cell)
        return Cells(cell)


def cut_by_slices(times: np.ndarray, starts: np.ndarray, ends: np.ndarray, *, ordered: bool) -> Cut | None:
    """Assign each event to one of these slices; None if an event lies in none of them.

    As `cut`, but neighbours of events that are out of order may hit the same slice, so that it occurs several times.
    """
    most = min(len(times), len(starts)) if ordered else len(times)
    low, high, position = np.empty((3, most), np.int64)
    runs = find_runs(times, ordered, starts, ends, low, high, position)
    low, high = low[: max(runs, 0)], high[: max(runs, 0)]
    return None if runs < 0 else Cut(position[:runs], high - low, low, high)


def cut(times: np.ndarray, edges: np.ndarray, *, ordered: bool) -> Cut:
    """Assign each event to its slice; `edges` must enclose all times."""
    if ordered:
        most = min(len(edges), len(times))
        low, high, position = (np.empty(most, np.int64) for _ in range(3))
        runs = cut_in_order(times, edges, low, high, position)
        low, high = low[:runs], high[:runs]
        return Cut(position[:runs], high - low, low, high)
    position = np.empty(len(times), np.int32)
    step = _equal_step(edges)
    if step:
        cut_into_equal(times, edges[0], np.int32(step), position)
    else:
        # The outermost edges may be the ends of the number range, for times outside every window.
        low = edges[1] if len(edges) > 2 else times[0]
        table = lookup(edges[:-1], low, max(low, edges[-2]))
        cut_out_of_order(times, edges, *table, position)
    counts = None
    if len(times) < MANY_IN_A_SLICE * len(edges):
        hits = np.bincount(position, minlength=len(edges))
    else:
        counts = np.zeros((4, len(edges)), np.int64)
        count_hits(position, counts)
        hits = counts.sum(axis=0)
    slices = np.flatnonzero(hits)
    return Cut(slices, hits[slices], _position=position, _edges=len(edges), _counts=counts)


def _equal_step(edges: np.ndarray) -> int:
    """The length of all slices between these edges; 0 if there are several, or distances that are no int32."""
    if edges.dtype.kind == "f":
        return 0
    step = int(edges[1]) - int(edges[0])
    if int(edges[-1]) - int(edges[0]) + step >= 2**31 or (np.diff(edges) != step).any():
        return 0
    return step

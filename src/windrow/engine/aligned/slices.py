"""The live slices: when they begin and end, and in which slot of the arena their partials lie.

    time order      0         1         2         3
    slices       [0, 4)    [4, 6)    [9, 12)   [12, 16)      a slice exists only where events are
    slots           5         0         1         3           free: 2, 4

Slices are kept in time order and never overlap; slots are reused as slices die, so nothing moves in
memory when the watermark passes. The partials of a slice are `stride` cells, one per key.

`starts`, `ends` and `slots` are views of arrays with room behind them. A slice behind all others costs O(1), amortised; so
does one that is evicted, and one between others as many moves as there are slices behind it.

Normally a slice lies between two neighbouring edges. After a window was added or removed, and where
slices were coalesced, older slices may be wider or narrower than that: up to `mixed_until`, edges are
reconciled with the slices that are there, and a slice is never split.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.arrays import ascending
from windrow.measure import Tick


class Joinable(NamedTuple):
    """Slices that can be joined, all of them `among` the first: slots `into` absorb slots `taken`, in time order.

    `leads` says which of these slices stay, and `ends` where they end then.
    """

    among: int
    leads: np.ndarray
    ends: np.ndarray
    into: np.ndarray
    taken: np.ndarray


@jit
def find_starts(known, starts, at):  # type: ignore[no-untyped-def]
    """Where each start is in `known`, or -1 - the place where it would be; both ascend. How many are not there."""
    missing = 0
    j = known.shape[0]
    if starts.shape[0] > 0 and j > 0 and starts[0] <= known[j - 1]:
        j = np.searchsorted(known, starts[0])
    for i in range(starts.shape[0]):
        while j < known.shape[0] and known[j] < starts[i]:
            j += 1
        at[i] = j
        if j == known.shape[0] or known[j] > starts[i]:
            at[i] = -1 - j
            missing += 1
    return missing


@jit
def insert_slices(starts, ends, slots, count, at, new_starts, new_ends, free, fresh, found):  # type: ignore[no-untyped-def]
    """Put the slices that are not there before their places, as `find_starts` gives them in `at`; slot of each in `found`.

    The `count` slices have room behind them; free: slots for the new ones, the first for the last, which are also
    written to `fresh`, in order of time.
    """
    source = count
    target = count + fresh.shape[0]
    new = 0
    for i in range(at.shape[0] - 1, -1, -1):
        if at[i] >= 0:
            found[i] = slots[at[i]]
            continue
        while source > -1 - at[i]:
            source -= 1
            target -= 1
            starts[target] = starts[source]
            ends[target] = ends[source]
            slots[target] = slots[source]
        target -= 1
        starts[target] = new_starts[i]
        ends[target] = new_ends[i]
        found[i] = slots[target] = free[new]
        new += 1
        fresh[fresh.shape[0] - new] = found[i]


class Slices:
    """All live slices of an engine, in order of time; `capacity` slots of the arena are theirs or free."""

    def __init__(self, dtype: np.dtype) -> None:
        self.capacity = 0
        self.mixed_until: Tick | None = None
        self._free = np.empty(0, np.int64)
        self._free_count = 0
        self._columns = (np.empty(0, dtype), np.empty(0, dtype), np.empty(0, np.int64))
        self._show(0, 0)

    def _show(self, begin: int, count: int) -> None:
        """Let the views be these places of the columns."""
        self._begin = begin
        self.starts, self.ends, self.slots = (column[begin : begin + count] for column in self._columns)

    def __len__(self) -> int:
        return len(self.starts)

    def reconcile(self, edges: np.ndarray) -> np.ndarray:
        """Edges that respect the slices that exist: none inside a slice, all of a slice's own."""
        if self.mixed_until is None or not len(self) or edges[0] >= self.mixed_until:
            return edges
        near = slice(
            int(np.searchsorted(self.ends, edges[0])),
            int(np.searchsorted(self.starts, edges[-1], side="right")),
        )
        edges = ascending(edges, self.starts[near], self.ends[near])
        return edges[~self.splits(edges)]

    def splits(self, edges: np.ndarray) -> np.ndarray:
        """Whether each edge lies strictly inside a slice."""
        at = np.searchsorted(self.starts, edges, side="right") - 1
        return (at >= 0) & (self.starts[at] < edges) & (edges < self.ends[at])

    def shorten_last(self, end: Tick, seen: Tick) -> None:
        """Let the last slice end earlier, if no event at or after `end` was seen."""
        if seen < end < self.ends[-1]:
            self.ends[-1] = end

    def enclose(self, low: Tick, high: Tick) -> bool:
        """Whether times from `low` to `high` lie between the first and the last slice; some may lie in none."""
        return len(self) > 0 and bool(self.starts[0] <= low and high < self.ends[-1])

    def find(self, starts: np.ndarray) -> tuple[np.ndarray, int]:
        """Where slices with these starts are (-1 - i: one would be at i), and how many are not there."""
        at = np.empty(len(starts), np.int64)
        return at, find_starts(self.starts, starts, at)

    def resolve(
        self, starts: np.ndarray, ends: np.ndarray, at: np.ndarray, need: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The slot of each slice, made where it does not exist, and the slots that are new.

        `at` and `need` are what `find` gives, and there must be `room`.
        """
        if need == 0:
            return self.slots[at], self.slots[:0]
        self._free_count -= need
        free = self._free[self._free_count : self._free_count + need]
        slots, fresh = np.empty(len(starts), np.int64), np.empty(need, np.int64)
        count = len(self)
        if self._begin + count + need > len(self._columns[0]):
            self._columns = tuple(  # type: ignore[assignment]
                np.concatenate([column, np.empty(need + count // 2 + 8, column.dtype)])
                for column in (self.starts, self.ends, self.slots)
            )
            self._begin = 0
        columns = (column[self._begin :] for column in self._columns)
        insert_slices(*columns, count, at, starts, ends, free, fresh, slots)
        self._show(self._begin, count + need)
        return slots, fresh

    def room(self, need: int, *, tight: bool) -> int:
        """The capacity that is needed to make `need` more slices (the present one, if it is enough).

        `tight` adds a quarter and no more, for slices that are large because there are many keys, or for very many.
        """
        if need <= self._free_count:
            return self.capacity
        least = len(self) + need
        return least + (least // 4 if tight else least + 8)

    def repack(self, capacity: int) -> None:
        """The slices move to slots 0, 1, 2, ... of an arena of `capacity` slots."""
        self.slots[:] = np.arange(len(self))
        self._free = np.arange(capacity - 1, -1, -1)
        self._free_count = capacity - len(self)
        self.capacity = capacity

    def restore(self, starts: np.ndarray, ends: np.ndarray, capacity: int) -> None:
        """Have these slices, in slots 0, 1, 2, ..."""
        self._columns = (starts.copy(), ends.copy(), np.empty(len(starts), np.int64))
        self._show(0, len(starts))
        self.repack(capacity)

    def _release(self, slots: np.ndarray) -> None:
        """These slots are free again."""
        self._free[self._free_count : self._free_count + len(slots)] = slots
        self._free_count += len(slots)

    def forget(self, slots: np.ndarray) -> None:
        """Let go of the slices in these slots, as if they had never been made."""
        keep = ~np.isin(self.slots, slots)
        self._columns = (self.starts[keep], self.ends[keep], self.slots[keep])
        self._show(0, len(self._columns[0]))
        self._release(slots)

    def ending_by(self, horizon: Tick) -> int:
        """How many slices end at or before `horizon`."""
        return int(self.ends.searchsorted(self.ends.dtype.type(horizon), "right"))

    def evict_before(self, threshold: Tick) -> np.ndarray:
        """Let go of the slices that begin before `threshold`; the slots they had."""
        count = int(self.starts.searchsorted(self.starts.dtype.type(threshold)))
        freed = self.slots[:count].copy()
        if count:
            self._release(freed)
            self._show(self._begin + count, len(self) - count)
        return freed

    def joinable(self, boundaries: np.ndarray, horizon: Tick) -> Joinable | None:
        """Neighbours that end at or before `horizon` and have no boundary between them; None if there are none."""
        count = self.ending_by(horizon)
        group = np.searchsorted(boundaries, self.starts[:count], side="right")
        leads = np.ones(count, bool)
        leads[1:] = group[1:] != group[:-1]
        if leads.all():
            return None
        leading = np.flatnonzero(leads)
        leader = leading[np.cumsum(leads) - 1]
        last = np.append(leading[1:], count) - 1
        return Joinable(count, leads, self.ends[last], self.slots[leader[~leads]], self.slots[:count][~leads])

    def join(self, found: Joinable, horizon: Tick) -> None:
        """Join slices whose partials have been joined; O(slices that end at or before the horizon)."""
        count, leads = found.among, found.leads
        gone = len(found.taken)
        self.starts[gone:count] = self.starts[:count][leads]
        self.slots[gone:count] = self.slots[:count][leads]
        self.ends[gone:count] = found.ends
        self._show(self._begin + gone, len(self) - gone)
        self._release(found.taken)
        self.mix(horizon)

    def mix(self, until: Tick) -> None:
        """From now on, do not trust that slices before `until` lie between neighbouring edges."""
        self.mixed_until = until if self.mixed_until is None else max(self.mixed_until, until)

    @property
    def nbytes(self) -> int:
        return sum(column.itemsize for column in self._columns) * len(self) + int(self._free.nbytes)

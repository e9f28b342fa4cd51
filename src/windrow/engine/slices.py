"""The live slices: when they begin and end, and in which slot of the arena their partials lie.

    time order      0         1         2         3
    slices       [0, 4)    [4, 6)    [9, 12)   [12, 16)      a slice exists only where events are
    slots           5         0         1         3           free: 2, 4

Slices are kept in time order and never overlap; slots are reused as slices die, so nothing moves in
memory when the watermark passes. The partials of a slice are `stride` cells, one per key.

Normally a slice lies between two neighbouring edges. After a window was added or removed, and where
slices were coalesced, older slices may be wider or narrower than that: up to `mixed_until`, edges are
reconciled with the slices that are there, and a slice is never split.
"""

from __future__ import annotations

import numpy as np

from windrow.engine.arrays import ascending
from windrow.measure import Tick


class Slices:
    """See the module."""

    def __init__(self, dtype: np.dtype) -> None:
        self.starts = np.empty(0, dtype)
        self.ends = np.empty(0, dtype)
        self.slots = np.empty(0, np.int64)
        self.capacity = 0
        self.mixed_until: Tick | None = None
        self._free = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self.starts)

    def reconcile(self, edges: np.ndarray) -> np.ndarray:
        """Edges that respect the slices that exist: none inside a slice, all of a slice's own."""
        if self.mixed_until is None or not len(self) or edges[0] >= self.mixed_until:
            return edges
        near = (self.ends >= edges[0]) & (self.starts <= edges[-1])
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

    def find(self, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where slices with these starts are or would be, and whether they are there."""
        if not len(self) or (len(starts) and starts[0] > self.starts[-1]):
            return np.full(len(starts), len(self)), np.zeros(len(starts), bool)
        at = np.searchsorted(self.starts, starts)
        there = at < len(self)
        there[there] = self.starts[at[there]] == starts[there]
        return at, there

    def resolve(
        self, starts: np.ndarray, ends: np.ndarray, at: np.ndarray, there: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The slot of each slice, made where it does not exist, and the slots that are new.

        `at` and `there` are what `find` gives, and there must be `room`.
        """
        need = len(starts) - int(np.count_nonzero(there))
        slots = fresh = self._free[:need]
        self._free = self._free[need:]
        new: np.ndarray | slice = slice(None)
        if need < len(starts):
            new = ~there
            slots = np.empty(len(starts), np.int64)
            slots[there], slots[new] = self.slots[at[there]], fresh
        if need == 0:
            return slots, fresh
        if at[np.argmin(there)] == len(self):
            self.starts = np.concatenate([self.starts, starts[new]])
            self.ends = np.concatenate([self.ends, ends[new]])
            self.slots = np.concatenate([self.slots, fresh])
        else:
            self.starts = np.insert(self.starts, at[new], starts[new])
            self.ends = np.insert(self.ends, at[new], ends[new])
            self.slots = np.insert(self.slots, at[new], fresh)
        return slots, fresh

    def room(self, need: int, *, tight: bool) -> int:
        """The capacity that is needed to make `need` more slices (the present one, if it is enough).

        `tight` adds a quarter and no more, for slices that are large because there are many keys, or for very many.
        """
        if need <= len(self._free):
            return self.capacity
        least = len(self) + need
        return least + (least // 4 if tight else least + 8)

    def repack(self, capacity: int) -> None:
        """The slices move to slots 0, 1, 2, ... of an arena of `capacity` slots."""
        self.slots = np.arange(len(self))
        self._free = np.arange(len(self), capacity)
        self.capacity = capacity

    def forget(self, slots: np.ndarray) -> None:
        """Let go of the slices in these slots, as if they had never been made."""
        keep = ~np.isin(self.slots, slots)
        self.starts, self.ends, self.slots = self.starts[keep], self.ends[keep], self.slots[keep]
        self._free = np.concatenate([self._free, slots])

    def evict_before(self, threshold: Tick) -> np.ndarray:
        """Let go of the slices that begin before `threshold`; the slots they had."""
        count = int(np.searchsorted(self.starts, threshold))
        freed = self.slots[:count]
        if count:
            self._free = np.concatenate([self._free, freed])
            self.starts = self.starts[count:].copy()
            self.ends = self.ends[count:].copy()
            self.slots = self.slots[count:].copy()
        return freed

    def coalesce(self, boundaries: np.ndarray, horizon: Tick) -> tuple[np.ndarray, np.ndarray] | None:
        """Join neighbours that end at or before `horizon` and have no boundary between them.

        Gives (into, taken): the slots to absorb and the slots absorbed, in time order; None if there
        is nothing to join.
        """
        count = int(np.searchsorted(self.ends, horizon, side="right"))
        group = np.searchsorted(boundaries, self.starts[:count], side="right")
        leads = np.ones(count, bool)
        leads[1:] = group[1:] != group[:-1]
        if leads.all():
            return None
        leader = np.flatnonzero(leads)[np.cumsum(leads) - 1]
        into, taken = self.slots[leader[~leads]], self.slots[:count][~leads]
        last = np.append(np.flatnonzero(leads)[1:], count) - 1
        self.ends = np.concatenate([self.ends[:count][last], self.ends[count:]])
        self.starts = np.concatenate([self.starts[:count][leads], self.starts[count:]])
        self.slots = np.concatenate([self.slots[:count][leads], self.slots[count:]])
        self._free = np.concatenate([self._free, taken])
        self.mix(horizon)
        return into, taken

    def mix(self, until: Tick) -> None:
        """From now on, do not trust that slices before `until` lie between neighbouring edges."""
        self.mixed_until = until if self.mixed_until is None else max(self.mixed_until, until)

    @property
    def nbytes(self) -> int:
        return int(self.starts.nbytes + self.ends.nbytes + self.slots.nbytes + self._free.nbytes)

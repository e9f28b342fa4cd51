"""The live slices of each key, and the slots of their partials.

    rank       0         3         7        how many events of the key come before it
    slices   | o o o   | o o o o | o o ..

A slice is a stretch of one key's events, in order, between which no window begins or ends. The last one of a key grows, new ones
come behind it, and what no window needs any more leaves at the front.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.engine import IDLE_BYTES, Engine
from windrow.engine.partials import Multisets
from windrow.engine.sequence.queues import BEGIN, END, KeyQueues
from windrow.engine.staging import Staged
from windrow.errors import LimitError

RANK, OPENING, CLOSING, SLOT = range(4)
FIRST, LAST = range(2)


class Slots:
    """Where the partials of slices lie: all stores of an engine have one cell for each slot."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.capacity = 0
        self._free = np.empty(0, np.int64)
        self._left = 0

    @property
    def live(self) -> int:
        """How many slots are in use."""
        return self.capacity - self._left

    def free(self, most: int) -> np.ndarray:
        """Free slots, at least this many; `take` takes those at the end."""
        if most > self._left:
            self._grow(self.live + most + (self.live + most) // 2 + 8)
        return self._free[: self._left]

    def take(self, need: int, staged: Staged | None = None) -> np.ndarray:
        """This many free slots, emptied, until a rollback; slots that are in use stay where they are."""
        if not need:
            return self._free[:0]
        limit = self._engine.settings.max_slices
        if self.live + need > limit:
            raise LimitError(
                f"{self.live + need:,} live slices would be more than the limit of max_slices={limit:,}; "
                "the operator is as it was before"
            )
        slots = self.free(need)[-need:].copy()
        self._left -= need
        for store in self._engine.stores():
            store.reset(slots)
        if staged is not None:
            staged.on_rollback(partial(self.give_back, slots))
        return slots

    def _grow(self, capacity: int) -> None:
        old = np.arange(self.capacity)
        for store in self._engine.stores():
            store.repack(old, capacity, 1, slice(0, 1))
        free = np.empty(capacity, np.int64)
        free[: self._left] = self._free[: self._left]
        more = capacity - self.capacity
        free[self._left : self._left + more] = np.arange(capacity - 1, self.capacity - 1, -1)
        self._free, self._left, self.capacity = free, self._left + more, capacity

    def give_back(self, slots: np.ndarray) -> None:
        """These slots are free again."""
        self._free[self._left : self._left + len(slots)] = slots
        self._left += len(slots)
        for store in self._engine.binding.stores.values():
            if isinstance(store, Multisets):
                store.reset(slots)

    def is_wasteful(self, keys: int) -> bool:
        """Whether memory is far more than the slices need."""
        if self.capacity > 4 * self.live + keys + 64:
            return True
        return (
            not self.live
            and self.capacity > 0
            and sum(store.nbytes for store in self._engine.stores()) > IDLE_BYTES
        )

    def pack(self, used: list[np.ndarray]) -> None:
        """Move the slots that are used to the front, in this order."""
        slots = np.concatenate(used)
        capacity = 2 * len(slots) + 8
        for store in self._engine.stores():
            store.repack(slots, capacity, 1, slice(0, 1))
        self.fill(len(slots), capacity)

    def fill(self, count: int, capacity: int) -> None:
        """Of `capacity` slots the first `count` are in use."""
        self.capacity = capacity
        self._left = capacity - count
        self._free = np.empty(capacity, np.int64)
        self._free[: self._left] = np.arange(capacity - 1, count - 1, -1)


@jit
def find_ranks(key, rank, edges, numbers):  # type: ignore[no-untyped-def]
    """Where the first slice of each key at or after each rank is, or the end of its slices."""
    out = np.empty(key.shape[0], np.int64)
    for i in range(key.shape[0]):
        low, high = edges[BEGIN, key[i]], edges[END, key[i]]
        while low < high:
            middle = (low + high) // 2
            if numbers[RANK, middle] < rank[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low
    return out


@jit
def take_before(keys, needed, few, edges, numbers):  # type: ignore[no-untyped-def]
    """Take the slices of each key that begin before the rank that is needed out of its queue: their slots, and the keys k
    that have more than few[k] slices then."""
    total = 0
    for s in range(keys.shape[0]):
        i = edges[BEGIN, keys[s]]
        while i < edges[END, keys[s]] and numbers[RANK, i] < needed[s]:
            i += 1
        total += i - edges[BEGIN, keys[s]]
    slots, many = np.empty(total, np.int64), np.empty(keys.shape[0], np.int64)
    n = m = 0
    for s in range(keys.shape[0]):
        i = edges[BEGIN, keys[s]]
        while i < edges[END, keys[s]] and numbers[RANK, i] < needed[s]:
            slots[n] = numbers[SLOT, i]
            n += 1
            i += 1
        edges[BEGIN, keys[s]] = i
        if edges[END, keys[s]] - i > few[keys[s]]:
            many[m] = keys[s]
            m += 1
    return slots, many[:m]


@jit
def cut(flags, apart, keys, bounds, before, arrival, arrivals, times, edges, old, old_ticks, free):  # type: ignore[no-untyped-def]
    """Stretches of the rows of a run, which begin at the first row of each segment, and at each row that has a flag.

    The first one of a segment goes on with the last slice of its key, if there is one, its row has no flag, and slices need
    not stay `apart`. All others are new slices, whose slots are the last ones of `free`. The first row of each stretch, the
    row behind it and its slot; how many new slices each segment has, and these as columns; of each slice that goes on its
    place, slot, and what its CLOSING and LAST were before. Event i has arrivals[i], or arrival + i if there are none.
    """
    count = grow = 0
    for i in range(flags.shape[0]):
        count += flags[i]
    for s in range(keys.shape[0]):
        count += not flags[bounds[s]]
        grow += not (apart or flags[bounds[s]]) and edges[BEGIN, keys[s]] < edges[END, keys[s]]
    stretch, counts = np.empty((3, count), np.int64), np.zeros(keys.shape[0], np.int64)
    numbers, ticks = np.empty((4, count - grow), np.int64), np.empty((2, count - grow), times.dtype)
    grown, grown_last = np.empty((3, grow), np.int64), np.empty(grow, times.dtype)
    i = n = g = 0
    for s in range(keys.shape[0]):
        low = bounds[s]
        while low < bounds[s + 1]:
            high = low + 1
            while high < bounds[s + 1] and not flags[high]:
                high += 1
            closing = arrivals[high - 1] if arrivals.shape[0] else arrival + high - 1
            stretch[0, i], stretch[1, i] = low, high
            first = low == bounds[s] and not (apart or flags[low])
            if first and edges[BEGIN, keys[s]] < edges[END, keys[s]]:
                place = edges[END, keys[s]] - 1
                grown[0, g], grown[1, g], grown[2, g] = place, old[SLOT, place], old[CLOSING, place]
                grown_last[g] = old_ticks[LAST, place]
                old[CLOSING, place], old_ticks[LAST, place] = closing, times[high - 1]
                stretch[2, i] = old[SLOT, place]
                g += 1
            else:
                counts[s] += 1
                numbers[RANK, n], numbers[CLOSING, n] = before[s] + low - bounds[s], closing
                numbers[OPENING, n] = arrivals[low] if arrivals.shape[0] else arrival + low
                stretch[2, i] = numbers[SLOT, n] = free[free.shape[0] - 1 - n]
                ticks[FIRST, n], ticks[LAST, n] = times[low], times[high - 1]
                n += 1
            i += 1
            low = high
    return stretch, counts, numbers, ticks, grown, grown_last


@jit
def lay_out(windows, shown, edges, numbers, ticks, place):  # type: ignore[no-untyped-def]
    """The slots of the slices that windows need, key after key; and of each window, as rows, the range of its slices among
    them, the arrival numbers of its first event and behind its last one, and the times of these and its start.

    The rows of `windows` are those of `WindowRanges`: its key, its ranks, and whether `shown` is its start; else that is the
    time of its first event. `place` has -1 for each key, before and after.
    """
    key, begin, end, named = windows
    owner, low, high = np.empty((3, key.shape[0]), np.int64)
    found, times = np.empty((4, key.shape[0]), np.int64), np.empty((3, key.shape[0]), ticks.dtype)
    keys = 0
    found[0], found[1] = find_ranks(key, begin, edges, numbers), find_ranks(key, end, edges, numbers)
    for i in range(key.shape[0]):
        first, last = found[0, i], found[1, i]
        found[2, i], found[3, i] = numbers[OPENING, first], numbers[CLOSING, last - 1] + 1
        times[0, i], times[1, i] = ticks[FIRST, first], ticks[LAST, last - 1]
        times[2, i] = shown[i] if named[i] > 0 else ticks[FIRST, first]
        p = place[key[i]]
        if p < 0:
            p = keys
            place[key[i]] = p
            owner[p], low[p], high[p] = key[i], first, last
            keys += 1
        else:
            low[p], high[p] = min(low[p], first), max(high[p], last)
    total = 0
    for p in range(keys):
        total += high[p] - low[p]
    slots = np.empty(total, np.int64)
    total = 0
    for p in range(keys):
        for i in range(low[p], high[p]):
            slots[total + i - low[p]] = numbers[SLOT, i]
        size = high[p] - low[p]
        high[p] = total
        total += size
    for i in range(key.shape[0]):
        p = place[key[i]]
        found[0, i] += high[p] - low[p]
        found[1, i] += high[p] - low[p]
    for p in range(keys):
        place[owner[p]] = -1
    return slots, found, times


class Slices(KeyQueues):
    """The slices of each key. `numbers` are the rows RANK, OPENING and CLOSING (the arrival numbers of the first and the
    last event) and SLOT; `ticks` are the times FIRST and LAST."""

    def __init__(self, tick: np.dtype[Any]) -> None:
        super().__init__(4, 2, tick)
        self._place = np.empty(0, np.int64)

    def at_rank(self, key: np.ndarray, rank: np.ndarray) -> np.ndarray:
        """See `find_ranks`: O(log slices of the key) each."""
        at: np.ndarray = find_ranks(key, rank, self.edges, self.numbers)
        return at

    def end_at(self, at: np.ndarray, closing: np.ndarray, last: np.ndarray) -> None:
        """The last events of the slices at these places are these, as before a call that failed."""
        self.numbers[CLOSING, at], self.ticks[LAST, at] = closing, last

    def evict(self, keys: np.ndarray, needed: np.ndarray, few: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Forget the slices of these keys before the ranks that are needed: see `take_before`."""
        slots, many = take_before(keys, needed, few, self.edges, self.numbers)
        self.rows -= len(slots)
        return slots, many

    def laid_out(self, windows: np.ndarray, tick: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """See `lay_out`."""
        if len(self._place) < self.edges.shape[1]:
            self._place = np.full(self.edges.shape[1], -1)
        return lay_out(windows, tick, self.edges, self.numbers, self.ticks, self._place)

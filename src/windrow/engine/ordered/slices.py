"""The live slices of each key, and the slots of their partials.

    rank       0         3         7        how many events of the key come before it
    slices   | o o o   | o o o o | o o ..
    marked     x         x                  a window begins or ends here

A slice is a stretch of one key's events, in order, between which no window begins or ends. New ones come behind the
others, and what no window needs any more leaves at the front.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.engine.cache import jit
from windrow.engine.engine import IDLE_BYTES, Engine
from windrow.engine.partials import Multisets
from windrow.engine.sequence.queues import KeyQueues, ranges
from windrow.errors import LimitError


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

    def take(self, need: int) -> np.ndarray:
        """So many free slots, emptied; slots that are in use stay where they are."""
        limit = self._engine.settings.max_slices
        if self.live + need > limit:
            raise LimitError(
                f"{self.live + need:,} live slices would be more than the limit of max_slices={limit:,}; "
                "the operator is as it was before"
            )
        if need > self._left:
            self._grow(self.live + need + (self.live + need) // 2 + 8)
        self._left -= need
        slots = self._free[self._left : self._left + need].copy()
        self.reset(slots)
        return slots

    def reset(self, slots: np.ndarray) -> None:
        """Empty these slots."""
        for store in self._engine.stores():
            store.reset(slots)

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

    def forget(self, slots: np.ndarray) -> None:
        """As `give_back`, of slots whose content must not be looked at again."""
        self.reset(slots)
        self.give_back(slots)

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
        """The first slots are in use, and there are so many."""
        self.capacity = capacity
        self._left = capacity - count
        self._free = np.empty(capacity, np.int64)
        self._free[: self._left] = np.arange(capacity - 1, count - 1, -1)


@jit
def find_ranks(key, rank, begin, end, ranks, out):  # type: ignore[no-untyped-def]
    """Where the first slice of each key at or after each rank is, or the end of its slices."""
    for i in range(key.shape[0]):
        low, high = begin[key[i]], end[key[i]]
        while low < high:
            middle = (low + high) // 2
            if ranks[middle] < rank[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low


@jit
def count_before(keys, needed, begin, end, ranks, count):  # type: ignore[no-untyped-def]
    """How many slices at the front of each key lie before the rank that is needed."""
    for s in range(keys.shape[0]):
        i = begin[keys[s]]
        while i < end[keys[s]] and ranks[i] < needed[s]:
            i += 1
        count[s] = i - begin[keys[s]]


@jit
def find_joints(keys, since, begin, end, ranks, marked, at, owner):  # type: ignore[no-untyped-def]
    """The slices that begin at the rank `since` of their key, behind another and without a mark; how many."""
    count = 0
    for s in range(keys.shape[0]):
        k = keys[s]
        i = end[k] - 1
        while i > begin[k] and ranks[i] > since[s]:
            i -= 1
        if i > begin[k] and ranks[i] == since[s] and marked[i] == 0:
            at[count], owner[count] = i, k
            count += 1
    return count


@jit
def lay_out(key, first, last, slot, place, low, high, owner, new_first, new_last):  # type: ignore[no-untyped-def]
    """The slots of the slices that windows need, key after key, and where those of each window are among them.

    `place` has -1 for each key, before and after; low, high and owner have room for as many keys as windows.
    """
    keys = 0
    for i in range(key.shape[0]):
        p = place[key[i]]
        if p < 0:
            p = keys
            place[key[i]] = p
            owner[p], low[p], high[p] = key[i], first[i], last[i]
            keys += 1
        else:
            low[p], high[p] = min(low[p], first[i]), max(high[p], last[i])
    total = 0
    for p in range(keys):
        total += high[p] - low[p]
    slots = np.empty(total, np.int64)
    total = 0
    for p in range(keys):
        for i in range(low[p], high[p]):
            slots[total + i - low[p]] = slot[i]
        size = high[p] - low[p]
        high[p] = total
        total += size
    for i in range(key.shape[0]):
        p = place[key[i]]
        new_first[i], new_last[i] = high[p] + first[i] - low[p], high[p] + last[i] - low[p]
    for p in range(keys):
        place[owner[p]] = -1
    return slots


class Slices(KeyQueues):
    """The slices of each key; see the module. `first` and `last` are times, `opening` and `closing` arrival numbers."""

    NAMES = ("rank", "first", "last", "opening", "closing", "marked", "slot")

    def __init__(self, tick: np.dtype[Any]) -> None:
        super().__init__((np.int64, tick, tick, np.int64, np.int64, np.uint8, np.int64))
        self._place = np.empty(0, np.int64)

    @property
    def rank(self) -> np.ndarray:
        return self.columns[0]

    @property
    def first(self) -> np.ndarray:
        return self.columns[1]

    @property
    def last(self) -> np.ndarray:
        return self.columns[2]

    @property
    def opening(self) -> np.ndarray:
        return self.columns[3]

    @property
    def closing(self) -> np.ndarray:
        return self.columns[4]

    @property
    def marked(self) -> np.ndarray:
        return self.columns[5]

    @property
    def slot(self) -> np.ndarray:
        return self.columns[6]

    def at_rank(self, key: np.ndarray, rank: np.ndarray) -> np.ndarray:
        """See `find_ranks`: O(log slices of the key) each."""
        out = np.empty(len(key), np.int64)
        find_ranks(key, rank, self.begin, self.end, self.rank, out)
        return out

    def evict(self, keys: np.ndarray, needed: np.ndarray) -> np.ndarray:
        """Forget the slices of these keys before the ranks that are needed: their slots."""
        count = np.empty(len(keys), np.int64)
        count_before(keys, needed, self.begin, self.end, self.rank, count)
        begin = self.begin[keys]
        slots = self.slot[ranges(begin, begin + count)]
        self.pop(keys, count)
        return slots

    def joints(self, keys: np.ndarray, since: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where slices begin at these ranks that need not be apart from the one before, and their keys."""
        at, owner = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        count = find_joints(keys, since, self.begin, self.end, self.rank, self.marked, at, owner)
        return at[:count], owner[:count]

    def remove(self, at: np.ndarray, key: np.ndarray) -> None:
        """The slice at each place has been joined to the one before it; one for each of these keys."""
        self.last[at - 1] = self.last[at]
        self.closing[at - 1] = self.closing[at]
        behind = ranges(at + 1, self.end[key])
        for column in self.columns:
            column[behind - 1] = column[behind]
        self.end[key] -= 1
        self.rows -= len(at)

    def laid_out(
        self, key: np.ndarray, first: np.ndarray, last: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """See `lay_out`: slots, and the ranges of windows among them."""
        if len(self._place) < len(self.begin):
            self._place = np.full(len(self.begin), -1)
        low, high, owner, begin, end = (np.empty(len(key), np.int64) for _ in range(5))
        slots = lay_out(key, first, last, self.slot, self._place, low, high, owner, begin, end)
        return slots, begin, end

"""Which keys have something to do once time has come to a point: a heap of (time, key).

A key has one entry that counts, the earliest; `armed` says when. Entries that were overtaken by an earlier one stay in
the heap and are passed over when they come up, so nothing is ever searched for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.heaps import push, sink
from windrow.engine.sequence.ticks import clipped, last_tick
from windrow.measure import Tick

FIRST_ROOM = 256
# To take a key from a heap costs as much as to look at this many keys.
FEW = 16


@jit
def push_entries(times, keys, armed, heap_time, heap_key, size):  # type: ignore[no-untyped-def]
    """Add an entry for each key whose time is earlier than that which it is armed for; how many there are then."""
    for i in range(keys.shape[0]):
        t, k = times[i], keys[i]
        if t < armed[k]:
            armed[k] = t
            push(heap_time, heap_key, size, t, k)
            size += 1
    return size


@jit
def pop_entries(point, never, armed, heap_time, heap_key, size, out):  # type: ignore[no-untyped-def]
    """Take all entries up to `point`, as far as there is room in `out`: how many are left, and keys that were due."""
    count = 0
    while size > 0 and heap_time[0] <= point and count < out.shape[0]:
        if armed[heap_key[0]] == heap_time[0]:
            out[count] = heap_key[0]
            armed[heap_key[0]] = never
            count += 1
        size -= 1
        heap_time[0], heap_key[0] = heap_time[size], heap_key[size]
        sink(heap_time, heap_key, size, 0)
    return size, count


@jit
def sweep(point, never, armed, heap_time, heap_key):  # type: ignore[no-untyped-def]
    """All keys that are due, by a look at each, and the heap anew of the others: keys, and how many entries there are."""
    out = np.empty(armed.shape[0], np.int64)
    count = size = 0
    for k in range(armed.shape[0]):
        if armed[k] == never:
            continue
        if armed[k] <= point:
            out[count] = k
            count += 1
            armed[k] = never
        else:
            heap_time[size], heap_key[size] = armed[k], k
            size += 1
    for i in range(size // 2 - 1, -1, -1):
        sink(heap_time, heap_key, size, i)
    return out[:count], size


class Timers:
    """A heap of the times at which keys have something to do. A key at the last tick is not armed."""

    def __init__(self, tick: np.dtype[Any]) -> None:
        self.never = last_tick(tick)
        self.armed = np.empty(0, tick)
        self._time = np.empty(FIRST_ROOM, tick)
        self._key = np.empty(FIRST_ROOM, np.int64)
        self._size = 0

    def grow(self, keys: int) -> None:
        known = len(self.armed)
        if keys > known:
            self.armed = np.append(
                self.armed, np.full(max(keys, 2 * known) - known, self.never, self.armed.dtype)
            )

    def arm(self, keys: np.ndarray, times: np.ndarray) -> None:
        """These keys have something to do at these times, unless it is earlier already: O(log keys) each."""
        need = self._size + len(keys)
        if need > len(self._time):
            more = max(need, 2 * len(self._time)) - len(self._time)
            self._time = np.append(self._time, np.empty(more, self._time.dtype))
            self._key = np.append(self._key, np.empty(more, np.int64))
        self._size = push_entries(times, keys, self.armed, self._time, self._key, self._size)

    def due(self, point: Tick) -> np.ndarray:
        """The keys with something to do up to a point, each once; they are not armed any more."""
        at = self.armed.dtype.type(clipped(point, self.armed.dtype))
        heap = (self.armed, self._time, self._key)
        found = []
        # One by one, until it is cheaper to look at all.
        for room in (FIRST_ROOM, len(self.armed) // FEW + 1):
            out = np.empty(room, np.int64)
            self._size, count = pop_entries(at, self.never, *heap, self._size, out)
            found.append(out[:count])
            if count < room:
                break
        else:
            rest, self._size = sweep(at, self.never, *heap)
            found.append(rest)
        return found[0] if len(found) == 1 else np.concatenate(found)

    @property
    def nbytes(self) -> int:
        return int(self.armed.nbytes + self._time.nbytes + self._key.nbytes)

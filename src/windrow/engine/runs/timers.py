"""When a slice is to be looked at again: a binary heap of times, at most one for each slice.

A slice that grows does not move in the heap: it comes out no later than it should, and is put back if its time has not come.
A slice that is gone stays in the heap until it comes out. So growing and joining cost nothing here, and a slice costs
O(log slices) when it comes and when it ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.engine.cache import jit
from windrow.engine.runs.table import ALIVE, FREE, Slices


@jit
def push(times, slices, size, time, s):  # type: ignore[no-untyped-def]
    """Add an entry to a heap of `size` entries."""
    i = size
    while i > 0 and times[(i - 1) // 2] > time:
        times[i], slices[i] = times[(i - 1) // 2], slices[(i - 1) // 2]
        i = (i - 1) // 2
    times[i], slices[i] = time, s


@jit
def drop_first(times, slices, size):  # type: ignore[no-untyped-def]
    """Remove the earliest of `size` entries."""
    time, s = times[size - 1], slices[size - 1]
    i = 0
    while 2 * i + 1 < size - 1:
        child = 2 * i + 1
        if child + 1 < size - 1 and times[child + 1] < times[child]:
            child += 1
        if times[child] >= time:
            break
        times[i], slices[i] = times[child], slices[child]
        i = child
    times[i], slices[i] = time, s


@jit
def push_all(times, slices, size, table, bit, when, added):  # type: ignore[no-untyped-def]
    """Add slices that are alive and not there yet; how many entries there are then."""
    flags = table["flags"]
    for i in range(added.shape[0]):
        s = added[i]
        if flags[s] & ALIVE and not flags[s] & bit:
            push(times, slices, size, when[i], s)
            size += 1
            flags[s] |= bit
    return size


@jit
def pop_due(times, slices, size, table, bit, point, free, counts, out):  # type: ignore[no-untyped-def]
    """Take out slices that reach less far than `point`; how many these are, and how many entries are left."""
    flags, reach = table["flags"], table["reach"]
    count = 0
    while size > 0 and times[0] < point:
        s = slices[0]
        drop_first(times, slices, size)
        size -= 1
        if not flags[s] & ALIVE:
            flags[s] &= ~bit
            if not flags[s]:
                free[counts[FREE]] = s
                counts[FREE] += 1
        elif reach[s] >= point:
            push(times, slices, size, reach[s], s)
            size += 1
        else:
            flags[s] &= ~bit
            out[count] = s
            count += 1
    return count, size


class Timers:
    """A heap; `bit` is the flag of slices that are in it."""

    def __init__(self, tick: np.dtype[Any], bit: np.uint8) -> None:
        self._bit = bit
        self._times = np.empty(0, tick)
        self._slices = np.empty(0, np.int32)
        self._size = 0

    def push(self, of: Slices, added: np.ndarray, when: np.ndarray | None = None) -> None:
        """Look at these slices again once the point has passed their reach, or at other times."""
        if self._size + len(added) > len(self._times):
            room = 2 * (self._size + len(added))
            self._times = np.append(self._times[: self._size], np.empty(room - self._size, self._times.dtype))
            self._slices = np.append(self._slices[: self._size], np.empty(room - self._size, np.int32))
        when = of.table["reach"][added] if when is None else when
        self._size = push_all(self._times, self._slices, self._size, of.table, self._bit, when, added)

    def pop(self, of: Slices, point: Any) -> np.ndarray:
        """Take out the slices that reach less far than `point`."""
        if not self._size or self._times[0] >= point:
            return np.empty(0, np.int64)
        out = np.empty(self._size, np.int64)
        point = self._times.dtype.type(point)
        count, self._size = pop_due(
            self._times, self._slices, self._size, of.table, self._bit, point, of.free, of.counts, out
        )
        return out[:count].copy()

    def clear(self) -> None:
        """Have no entry."""
        self._size = 0

    @property
    def nbytes(self) -> int:
        return int(self._times.nbytes + self._slices.nbytes)

"""When a slice is to be looked at again: a binary heap of times, at most one for each slice.

A slice that grows does not move in the heap: it comes out no later than it should, and is put back if its time has not come.
A slice that is gone stays in the heap until it comes out. In append mode only the oldest slice of a lane is there. So growing
and joining cost nothing here, and a slice costs O(log slices).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.heaps import push, sink
from windrow.engine.sessions.table import ALIVE, FREE, Slices


@jit
def push_all(times, slices, size, table, bit, oldest, added):  # type: ignore[no-untyped-def]
    """Add slices that are alive and not there yet, or the `oldest` ones of their lanes; how many entries there are then."""
    flags, reach, earlier = table["flags"], table["reach"], table["earlier"]
    for s in added:
        if flags[s] & ALIVE and not flags[s] & bit and not (oldest and earlier[s] >= 0):
            push(times, slices, size, reach[s], s)
            size += 1
            flags[s] |= bit
    return size


@jit
def leave(flags, s, bit, free, counts, out, count):  # type: ignore[no-untyped-def]
    """A slice is out of the heap: it is due, or it is gone and its row is free; how many are due now."""
    flags[s] &= ~bit
    if flags[s] & ALIVE:
        out[count] = s
        return count + 1
    if not flags[s]:
        free[counts[FREE]] = s
        counts[FREE] += 1
    return count


@jit
def pop_due(times, slices, size, table, bit, point, free, counts, out):  # type: ignore[no-untyped-def]
    """Take out slices that reach less far than `point`; how many these are, and how many entries are left.

    Where one in 32 entries has come out, the rest is looked at one after another, and the heap is made anew.
    """
    flags, reach = table["flags"], table["reach"]
    count = looked_at = 0
    most = size // 32 + 16
    while size > 0 and times[0] < point and looked_at < most:
        s = slices[0]
        looked_at += 1
        if flags[s] & ALIVE and reach[s] >= point:
            times[0] = reach[s]
            sink(times, slices, size, 0)
            continue
        size -= 1
        times[0], slices[0] = times[size], slices[size]
        sink(times, slices, size, 0)
        count = leave(flags, s, bit, free, counts, out, count)
    if size == 0 or times[0] >= point:
        return count, size
    left = 0
    for i in range(size):
        time, s = times[i], slices[i]
        if time < point and flags[s] & ALIVE and reach[s] >= point:
            time = reach[s]
        if time >= point:
            times[left], slices[left] = time, s
            left += 1
        else:
            count = leave(flags, s, bit, free, counts, out, count)
    for i in range(left // 2 - 1, -1, -1):
        sink(times, slices, left, i)
    return count, left


class Timers:
    """A heap; `bit` is the flag of slices that are in it."""

    def __init__(self, tick: np.dtype[Any], bit: np.uint8) -> None:
        self._bit = bit
        self._times = np.empty(0, tick)
        self._slices = np.empty(0, np.int32)
        self._size = 0

    def push(self, of: Slices, added: np.ndarray, *, oldest: bool = False) -> None:
        """Look at these slices again once the point has passed their reach; `oldest`: at the oldest ones of their lanes."""
        if self._size + len(added) > len(self._times):
            room = 2 * (self._size + len(added))
            self._times = np.append(self._times[: self._size], np.empty(room - self._size, self._times.dtype))
            self._slices = np.append(self._slices[: self._size], np.empty(room - self._size, np.int32))
        self._size = push_all(self._times, self._slices, self._size, of.table, self._bit, oldest, added)

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
        self._times, self._slices = self._times[:0].copy(), self._slices[:0].copy()

    @property
    def nbytes(self) -> int:
        return int(self._times.nbytes + self._slices.nbytes)

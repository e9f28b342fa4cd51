"""A binary heap of times, in two columns: the earliest entry comes first, and what it is about stands beside it."""

from __future__ import annotations

from windrow.compiling.tiers import jit


@jit
def push(times, items, size, time, item):  # type: ignore[no-untyped-def]
    """Add an entry to a heap of `size` entries; there is room."""
    i = size
    while i > 0 and times[(i - 1) >> 1] > time:
        times[i], items[i] = times[(i - 1) >> 1], items[(i - 1) >> 1]
        i = (i - 1) >> 1
    times[i], items[i] = time, item


@jit
def sink(times, items, size, i):  # type: ignore[no-untyped-def]
    """Move entry i down to its place among `size` entries; the entries below it are in order."""
    time, item = times[i], items[i]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and times[child + 1] < times[child]:
            child += 1
        if times[child] >= time:
            break
        times[i], items[i] = times[child], items[child]
        i = child
    times[i], items[i] = time, item

"""Where an event lies, from its first to its last instant: in which slices, and in which windows.

rest > 0     number 2k is the first `rest` ticks of slide k, number 2k+1 what follows (Pairs)
rest = 0     number k is slide k

slices      |  0  |1|  2  |3|  4  |5|
event           |-----------|             starts in slice 0, ends in slice 4
"""

from __future__ import annotations

import numpy as np

from benchmarks.techniques.fragments import fragment_at
from benchmarks.techniques.wheel import number_at
from windrow.compiling.tiers import jit
from windrow.engine.windows import first_ending_after

NO_FLOOR = np.iinfo(np.int64).min


@jit
def slices_over(starts, lasts, every, offset, rest, floor, first, last):
    """The slices of each event, first and last, none before `floor`; first > last if there are none."""
    for times, numbers in ((starts, first), (lasts, last)):
        # Times before `until` and not before `since` are in slice `number`: no need to divide again.
        since, until, number = times[0], times[0], np.int64(0)
        for e in range(times.shape[0]):
            t = times[e]
            if t < since or t >= until:
                found, end = fragment_at(t, every, offset, rest)
                since = min(since, t) if found == number and end == until else t
                number, until = found, end
            numbers[e] = number
    for e in range(first.shape[0]):
        first[e] = max(first[e], floor)


@jit
def windows_over(starts, lasts, every, offset, whole, rest, floor, first, last):
    """The windows of each event, first and last, none before `floor`; first > last if there are none."""
    since, until, number = starts[0], starts[0], np.int64(0)
    for e in range(starts.shape[0]):
        t = starts[e]
        if t < since or t >= until:
            found = first_ending_after(t, every, offset, whole, rest)
            since = min(since, t) if found == number and since < until else t
            number, until = found, offset + (found + whole) * every + rest
        first[e] = max(number, floor)
    since, until, number = lasts[0], lasts[0], np.int64(0)
    for e in range(lasts.shape[0]):
        t = lasts[e]
        if t < since or t >= until:
            found = number_at(t, every, offset)
            since = min(since, t) if found == number and since < until else t
            number, until = found, offset + (found + 1) * every
        last[e] = number

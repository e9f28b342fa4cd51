"""Which windows are due, and which slices each of them covers.

One compiled loop walks all periodic windows of all specs. It enumerates only windows that hold at
least one slice: where a window is empty it jumps to the next one that reaches a slice, so a gap of
years costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from windrow.engine.lookup import first_not_before, lookup
from windrow.engine.slices import Slices
from windrow.measure import Tick
from windrow.planner.window_set import WindowSet


@dataclass
class Due:
    """Windows to answer: `spec[i]` in `[start[i], end[i])` covers slices first[i] .. last[i]-1."""

    spec: np.ndarray
    start: np.ndarray
    end: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def __len__(self) -> int:
        return len(self.spec)

    def where(self, keep: np.ndarray | slice) -> Due:
        return Due(self.spec[keep], self.start[keep], self.end[keep], self.first[keep], self.last[keep])


@njit(cache=True, nogil=True)
def first_ending_after(point, every, offset, whole, rest):  # type: ignore[no-untyped-def]
    """The number k of the first window that ends after `point`."""
    k = np.int64((point - offset - rest) // every) - whole
    while offset + (k + whole) * every + rest > point:
        k -= 1
    while offset + (k + whole) * every + rest <= point:
        k += 1
    return k


@njit(cache=True, nogil=True)
def list_due(every, offset, whole, rest, after, until, starts, base, inverse, table, room):  # type: ignore[no-untyped-def]
    """Windows that end in (after, until] and hold a slice.

    starts: of the slices, ascending, not empty, with their lookup table. Gives parallel arrays placement, start, end, first,
    last; `room` is a guess of how many there are.
    """
    placement = np.empty(room, np.int64)
    begin = np.empty(room, starts.dtype)
    finish = np.empty(room, starts.dtype)
    first = np.empty(room, np.int64)
    last = np.empty(room, np.int64)
    count = 0
    slices = starts.shape[0]
    for i in range(every.shape[0]):
        step, shift, slides, rem = every[i], offset[i], whole[i], rest[i]
        k = first_ending_after(max(after, starts[0]), step, shift, slides, rem)
        # Where windows touch, the first slice of one is the first slice after the one before.
        touching = slides == 1 and rem == 0
        b = np.int64(-1)
        while True:
            start = shift + k * step
            end = shift + (k + slides) * step + rem
            if end > until:
                break
            a = b if touching and b >= 0 else first_not_before(starts, start, base, inverse, table)
            if a == slices:
                break
            if starts[a] >= end:
                k = max(k + 1, first_ending_after(starts[a], step, shift, slides, rem))
                b = np.int64(-1)
                continue
            b = first_not_before(starts, end, base, inverse, table)
            if count == placement.shape[0]:
                placement = np.concatenate((placement, np.empty_like(placement)))
                begin = np.concatenate((begin, np.empty_like(begin)))
                finish = np.concatenate((finish, np.empty_like(finish)))
                first = np.concatenate((first, np.empty_like(first)))
                last = np.concatenate((last, np.empty_like(last)))
            placement[count] = i
            begin[count] = start
            finish[count] = end
            first[count] = a
            last[count] = b
            count += 1
            k += 1
    return placement[:count], begin[:count], finish[:count], first[:count], last[:count]


def due_windows(windows: WindowSet, slices: Slices, after: Tick, until: Tick) -> Due:
    """Windows that end in (after, until] and hold a slice, spec by spec, in time order."""
    starts = slices.starts
    parts = []
    if len(starts) and len(windows.every):
        parameters = (windows.every, windows.offset, windows.whole, windows.rest)
        table = lookup(starts, starts[0], starts[-1])
        span = starts.dtype.type(after), starts.dtype.type(until)
        room = 64 + len(windows.every)
        placement, begin, finish, first, last = list_due(*parameters, *span, starts, *table, room)
        parts.append(Due(windows.owner[placement], begin, finish, first, last))
    for owner, placement_ in windows.irregular:
        if not len(starts):
            continue
        begin, finish = placement_.windows(starts[0], starts[-1])
        keep = (finish > after) & (finish <= until)
        begin, finish = begin[keep], finish[keep]
        first, last = np.searchsorted(starts, begin), np.searchsorted(starts, finish)
        full = last > first
        spec = np.full(int(full.sum()), owner)
        parts.append(Due(spec, begin[full], finish[full], first[full], last[full]))
    if len(parts) == 1:
        return parts[0]
    if not parts:
        none = np.empty(0, np.int64)
        return Due(none, starts[:0], starts[:0], none, none)
    names = ("spec", "start", "end", "first", "last")
    return Due(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))

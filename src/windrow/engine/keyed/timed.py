"""Windows that time places, for each key: context-free ones, sessions and snapshots.

All of them are ranges of a key's slices. A session of a larger gap is made of the slices of the
smallest one (Scotty, sections 6.1 and 7.3.1): its *virtual session slices* are never stored, they are
read off the first and last times of the slices that there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from windrow.engine.arrays import ranges
from windrow.engine.cache import jit
from windrow.engine.keyed.slices import KeyedSlices
from windrow.engine.sequence.ticks import after
from windrow.engine.windows import FIRST_ROOM, Due, first_ending_after, joined, periodic_due
from windrow.measure import Tick
from windrow.planner.window_set import WindowSet

STATIC = np.int64(2**32 - 1)
# Sessions with a gap from a column have a bit each above, and the sign is not used.
MOST_DYNAMIC = 31


@dataclass(frozen=True)
class Sessions:
    """The session windows of a query.

    Static gaps are sorted: `spec[i]` has the gap `ticks[i]`. `dynamic[d]` is the window whose gap comes
    from column d. A slice is `closed` for the sessions that are final: a session of a larger gap never
    ends before one of a smaller gap, so the lower half of `closed` counts the static ones; each dynamic
    one has a bit above.
    """

    spec: np.ndarray
    ticks: np.ndarray
    dynamic: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.spec) + len(self.dynamic)

    def due(self, slices: KeyedSlices, after: Tick, until: Tick) -> list[Due]:
        """Sessions whose end lies in [after, until): at its very end a session still takes an event."""
        parts = []
        if len(self.spec):
            dtype = slices.first.dtype
            known = (slices.key, slices.first, slices.last, slices.closed, self.ticks)
            bounds = (dtype.type(after), dtype.type(until))
            kinds = (np.int64, dtype, dtype, np.int64, np.int64)
            count = list_static(*known, *bounds, *(np.empty(0, d) for d in kinds))
            number, begin, finish, low, high = (np.empty(count, d) for d in kinds)
            list_static(*known, *bounds, number, begin, finish, low, high)
            parts.append(Due(self.spec[number], begin, finish, low, high, slices.key[low]))
        for d, spec in enumerate(self.dynamic):
            all_ = self._dynamic(d, spec, slices)
            parts.append(all_.where((all_.end >= after) & (all_.end < until)))
        return parts

    def _dynamic(self, d: int, spec: int, slices: KeyedSlices) -> Due:
        count, dtype = len(slices), slices.first.dtype
        found = [np.empty(count, t) for t in (dtype, dtype, np.int64, np.int64)]
        closed = (slices.closed >> (32 + d)) & 1 > 0
        count = list_dynamic(slices.key, slices.first, slices.reach[d], closed, *found)
        begin, finish, low, high = (column[:count] for column in found)
        # Events of a session that is final may lie in its time, and are not in its slices.
        none = np.zeros(count, np.int64)
        order = (slices.first[low], none, after(slices.last[high - 1]), none)
        return Due(np.full(count, spec), begin, finish, low, high, slices.key[low], order)

    def close(self, slices: KeyedSlices, horizon: Tick) -> np.ndarray:
        """Mark the sessions that end before `horizon` as final; which slices are in one that is not."""
        point = slices.first.dtype.type(horizon)
        close_static(slices.key, slices.first, slices.last, slices.closed, self.ticks, point)
        alive = (slices.closed & STATIC) < len(self.ticks)
        for d, spec in enumerate(self.dynamic):
            done = self._dynamic(d, spec, slices)
            done = done.where(done.end < horizon)
            slices.closed[ranges(done.first, done.last)] |= np.int64(1) << (32 + d)
            alive |= (slices.closed >> (32 + d)) & 1 == 0
        return alive

    def without(self, spec: int, slices: KeyedSlices) -> KeyedSlices:
        """Slices as they are once this window is gone: what is closed is numbered anew."""
        static, upper = slices.closed & STATIC, slices.closed >> 32
        if spec in self.spec:
            static = static - (static > int(np.flatnonzero(self.spec == spec)[0]))
        reach = slices.reach
        if spec in self.dynamic:
            d = self.dynamic.index(spec)
            below = upper & ((np.int64(1) << d) - 1)
            upper = below | (upper >> (d + 1) << d)
            reach = np.delete(reach, d, axis=0)
        return replace(slices, closed=(upper << 32) | static, reach=reach)

    def apart(self, slices: KeyedSlices) -> np.ndarray:
        """Whether a session that is not final may end between each slice and the one before it."""
        count = slices.closed & STATIC
        apart = np.zeros(len(slices), bool)
        if len(self.ticks):
            # The smallest gap that is not final for the slice decides.
            least = self.ticks[np.minimum(count[1:], len(self.ticks) - 1)]
            ended = slices.first[1:] > slices.last[:-1] + least
            apart[1:] = (count[1:] < len(self.ticks)) & ended
        for d in range(len(self.dynamic)):
            open_ = (slices.closed[1:] >> (32 + d)) & 1 == 0
            apart[1:] |= open_ & (slices.first[1:] > slices.reach[d, :-1])
        return apart


@jit
def first_not_before_in(first, point, low, high):  # type: ignore[no-untyped-def]
    """The first position in low .. high whose time is at or after `point`, by steps that grow."""
    step = 1
    while low + step < high and first[low + step] < point:
        low += step
        step *= 2
    high = min(high, low + step + 1)
    while low < high:
        middle = (low + high) // 2
        if first[middle] < point:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def list_periodic(  # type: ignore[no-untyped-def]
    every, offset, whole, rest, after, until, first, bounds, placement, begin, finish, low, high
):
    """Periodic windows that end in (after, until] and hold a slice, key by key; -1 if there is no room."""
    count = 0
    for s in range(bounds.shape[0] - 1):
        head, tail = bounds[s], bounds[s + 1]
        for i in range(every.shape[0]):
            k = first_ending_after(max(after, first[head]), every[i], offset[i], whole[i], rest[i])
            a = head
            while True:
                start = offset[i] + k * every[i]
                end = offset[i] + (k + whole[i]) * every[i] + rest[i]
                if end > until:
                    break
                a = first_not_before_in(first, start, a, tail)
                if a == tail:
                    break
                if first[a] >= end:
                    k = max(k + 1, first_ending_after(first[a], every[i], offset[i], whole[i], rest[i]))
                    continue
                if count == placement.shape[0]:
                    return -1
                placement[count] = i
                begin[count] = start
                finish[count] = end
                low[count] = a
                high[count] = first_not_before_in(first, end, a, tail)
                count += 1
                k += 1
    return count


@jit
def list_static(  # type: ignore[no-untyped-def]
    key, first, last, closed, gaps, after, until, number, begin, finish, low, high
):
    """Sessions of each gap whose end lies in [after, until), of slices that are not closed; how many.

    They are written as far as there is room.
    """
    count = 0
    for g in range(gaps.shape[0]):
        i = 0
        while i < key.shape[0]:
            if (closed[i] & STATIC) > g:
                i += 1
                continue
            j = i + 1
            end = last[i] + gaps[g]
            while j < key.shape[0] and key[j] == key[i] and first[j] <= end and (closed[j] & STATIC) <= g:
                end = max(end, last[j] + gaps[g])
                j += 1
            if after <= end < until:
                if count < number.shape[0]:
                    number[count] = g
                    begin[count] = first[i]
                    finish[count] = end
                    low[count] = i
                    high[count] = j
                count += 1
            i = j
    return count


@jit
def close_static(key, first, last, closed, gaps, horizon):  # type: ignore[no-untyped-def]
    """Count, for each slice, the gaps whose sessions end before `horizon`."""
    for g in range(gaps.shape[0]):
        i = 0
        while i < key.shape[0]:
            if (closed[i] & STATIC) > g:
                i += 1
                continue
            j = i + 1
            end = last[i] + gaps[g]
            while j < key.shape[0] and key[j] == key[i] and first[j] <= end and (closed[j] & STATIC) <= g:
                end = max(end, last[j] + gaps[g])
                j += 1
            if end < horizon:
                for r in range(i, j):
                    closed[r] = (closed[r] & ~STATIC) | (g + 1)
            i = j


@jit
def list_dynamic(key, first, reach, closed, begin, finish, low, high):  # type: ignore[no-untyped-def]
    """Sessions of slices that are not closed, which reach as far as they say; how many there are."""
    count = 0
    opened = False
    for i in range(key.shape[0]):
        if closed[i]:
            opened = False
            continue
        if opened and key[i] == key[i - 1] and first[i] <= finish[count - 1]:
            finish[count - 1] = max(finish[count - 1], reach[i])
            high[count - 1] = i + 1
            continue
        opened = True
        begin[count] = first[i]
        finish[count] = reach[i]
        low[count] = i
        high[count] = i + 1
        count += 1
    return count


def periodic(windows: WindowSet, slices: KeyedSlices, bounds: np.ndarray, after: Tick, until: Tick) -> Due:
    """The periodic windows that end in (after, until]."""
    if len(bounds) == 2:
        due = periodic_due(windows, slices.first, after, until)
        due.key = np.full(len(due), slices.key[0])
        return due
    dtype = slices.first.dtype
    parameters = (windows.every, windows.offset, windows.whole, windows.rest)
    room = 2 * len(slices) * len(windows.every) + 64
    room = min(room, FIRST_ROOM)
    while True:
        found = [np.empty(room, d) for d in (np.int64, dtype, dtype, np.int64, np.int64)]
        count = list_periodic(*parameters, dtype.type(after), dtype.type(until), slices.first, bounds, *found)
        if count >= 0:
            placement, begin, finish, low, high = (column[:count] for column in found)
            return Due(windows.owner[placement], begin, finish, low, high, slices.key[low])
        room *= 4


def irregular(
    owner: int,
    placement: Any,
    origin: Tick | None,
    slices: KeyedSlices,
    bounds: np.ndarray,
    after: Tick,
    until: Tick,
) -> Due:
    """Windows of a calendar, a band or a landmark that end in (after, until].

    Those that all begin at one point, the `origin`, are there for a key if their last step holds a slice of it.
    """
    starts, ends = placement.windows_at(slices.first)
    at = np.searchsorted(starts, slices.first, side="right") - 1
    inside = (at >= 0) & (slices.first < ends[at]) if len(starts) else np.zeros(len(slices), bool)
    inside &= (ends[at] > after) & (ends[at] <= until) if len(starts) else False
    low, high = groups(slices.key, at, inside)
    spec, key = np.full(len(low), owner), slices.key[low]
    if origin is None:
        return Due(spec, starts[at[low]], ends[at[low]], low, high, key)
    since = np.flatnonzero(slices.first >= origin)
    begin = bounds[np.searchsorted(bounds, low, side="right") - 1]
    head = since[np.searchsorted(since, begin)] if len(low) else low
    return Due(spec, np.full(len(low), origin, starts.dtype), ends[at[low]], head, high, key)


def groups(key: np.ndarray, number: np.ndarray, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranges of neighbours that are inside, of one key and of one number."""
    at = np.flatnonzero(inside)
    new = np.ones(len(at), bool)
    new[1:] = (np.diff(at) > 1) | (np.diff(key[at]) != 0) | (np.diff(number[at]) != 0)
    begin = np.flatnonzero(new)
    return at[begin], at[np.append(begin[1:], len(at)) - 1] + 1 if len(at) else at


def snapshots(spec: int, slices: KeyedSlices, after: Tick, until: Tick) -> Due:
    """One window for every distinct time of a key."""
    first = slices.first
    end = np.nextafter(first, np.inf) if first.dtype.kind == "f" else first + 1
    number = np.cumsum(np.append(0, np.diff(first) != 0)) if len(first) else first
    low, high = groups(slices.key, number, (end > after) & (end <= until))
    return Due(np.full(len(low), spec), first[low], end[low], low, high, slices.key[low])


def together(parts: list[Due], dtype: np.dtype) -> Due:
    """Several lists of windows as one."""
    parts = [part for part in parts if len(part)]
    if parts:
        return parts[0] if len(parts) == 1 else joined(parts)
    whole, ticks = np.empty(0, np.int64), np.empty(0, dtype)
    return Due(whole, ticks, ticks, whole, whole, whole)

"""Which windows are due, and which of a queue's entries each of them holds, found by binary search.

Entries (tuples, or slices by their first event) lie in the order of time in a ring per key: entry p of key k is in
place `base[k] + (p & mask[k])`, and the live ones are front[k] .. end[k]-1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.techniques.sessions import Over
from windrow.compiling.tiers import jit
from windrow.engine.windows import first_ending_after
from windrow.measure import Tick
from windrow.planner.window_set import WindowSet

# Entries first .. last-1 are in a window, which is named by its place in a list: three columns.
Pieces = tuple[np.ndarray, np.ndarray, np.ndarray]


@jit
def first_at(clock, base, mask, low, high, point):
    """The first entry of low .. high-1 whose time is at or after `point`; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if clock[base + (middle & mask)] < point:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def first_behind(clock, base, mask, low, high, point):
    """The first entry of low .. high-1 whose time is after `point`; `high` if there is none."""
    while low < high:
        middle = (low + high) // 2
        if clock[base + (middle & mask)] <= point:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def find_entries(clock, base, mask, front, end, key, start, last, low, high):
    """The entries of each key from `start` to `last`, which is the time of the last of them."""
    for w in range(key.shape[0]):
        k = key[w]
        low[w] = first_at(clock, base[k], mask[k], front[k], end[k], start[w])
        high[w] = first_behind(clock, base[k], mask[k], low[w], end[k], last[w])


@jit
def list_windows(every, offset, whole, rest, after, until, clock, base, mask, front, end, out):
    """Windows that end in (after, until] and hold an entry; how many, or -1 if there is no room in `out`.

    out: placement, key, start, end, first entry, entry behind the last one.
    """
    placement, key, begin, finish, first, last = out
    count = 0
    for q in range(front.shape[0]):
        if front[q] == end[q]:
            continue
        oldest = clock[base[q] + (front[q] & mask[q])]
        newest = clock[base[q] + ((end[q] - 1) & mask[q])]
        for i in range(every.shape[0]):
            step, origin, slides, rem = every[i], offset[i], whole[i], rest[i]
            k = first_ending_after(max(after, oldest), step, origin, slides, rem)
            while True:
                start = origin + k * step
                stop = origin + (k + slides) * step + rem
                if stop > until or start > newest:
                    break
                a = first_at(clock, base[q], mask[q], front[q], end[q], start)
                t = clock[base[q] + (a & mask[q])]
                if t >= stop:
                    k = max(k + 1, first_ending_after(t, step, origin, slides, rem))
                    continue
                if count == placement.shape[0]:
                    return -1
                placement[count] = i
                key[count] = q
                begin[count] = start
                finish[count] = stop
                first[count] = a
                last[count] = first_at(clock, base[q], mask[q], a, end[q], stop)
                count += 1
                k += 1
    return count


@jit
def evict_before(clock, base, mask, front, end, threshold):
    """Let each queue begin with its first entry at or after its threshold."""
    for q in range(front.shape[0]):
        front[q] = first_at(clock, base[q], mask[q], front[q], end[q], threshold[q])


@dataclass
class Queues:
    """Where the entries of each key lie; see the module."""

    clock: np.ndarray
    base: np.ndarray
    mask: np.ndarray
    front: np.ndarray
    end: np.ndarray

    def evict(self, threshold: Tick | np.ndarray) -> None:
        """Let go of all entries before `threshold`, which may be one for each queue."""
        points = np.full(len(self.front), threshold, self.clock.dtype)
        evict_before(self.clock, self.base, self.mask, self.front, self.end, points)


@dataclass
class Windows:
    """Windows that are due: which, of which key, where, and their entries first .. last-1."""

    spec: np.ndarray
    key: np.ndarray
    start: np.ndarray
    end: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def __len__(self) -> int:
        return len(self.spec)

    def where(self, part: slice | np.ndarray) -> Windows:
        columns = (self.spec, self.key, self.start, self.end, self.first, self.last)
        return Windows(*(column[part] for column in columns))


def sessions_due(sessions: Over, queues: Queues) -> Windows:
    """Sessions that are over, as windows of the entries between their first and their last one."""
    q, s = queues, sessions
    first, last = np.empty(len(s), np.int64), np.empty(len(s), np.int64)
    find_entries(q.clock, q.base, q.mask, q.front, q.end, s.key, s.start, s.last, first, last)
    return Windows(s.spec, s.key, s.start, s.end, first, last)


def pieces_of(windows: Windows, sessions: Over, queues: Queues) -> Pieces:
    """The entries of `sessions_due`, less those that lie among them and are not in the session."""
    q, aside, count = queues, sessions.aside, len(sessions)
    if not len(aside):
        return pieces(windows)
    # Around each of these lies the last session of its key that begins no later.
    keys, times = np.append(sessions.key, aside.key), np.append(sessions.start, aside.time)
    order = np.lexsort((np.arange(len(keys)) >= count, times, keys))
    before = np.maximum.accumulate(np.where(order < count, np.arange(len(order)), 0))
    around = np.empty(len(order), np.int64)
    around[order] = order[before]
    owner = around[count:]
    low, high = np.empty(len(aside), np.int64), np.empty(len(aside), np.int64)
    find_entries(q.clock, q.base, q.mask, q.front, q.end, aside.key, aside.time, aside.time, low, high)
    # A piece begins where the session does or behind a hole, and ends before a hole or where the session does.
    every = np.append(np.arange(count), owner)
    first, last = np.append(windows.first, high), np.append(windows.last, high - aside.count)
    begin, end = np.lexsort((first, every)), np.lexsort((last, every))
    window, first, last = every[begin], first[begin], last[end]
    full = first < last
    return window[full], first[full], last[full]


def pieces(windows: Windows) -> Pieces:
    """All entries of each window."""
    return np.arange(len(windows)), windows.first, windows.last


def windows_due(windows: WindowSet, queues: Queues, after: Tick, until: Tick) -> Windows:
    """The windows that end in (after, until] and hold an entry."""
    dtype = windows.measure.dtype
    room = 1024
    while True:
        integer = np.int64
        out = tuple(np.empty(room, d) for d in (integer, integer, dtype, dtype, integer, integer))
        count = list_windows(
            windows.every,
            windows.offset,
            windows.whole,
            windows.rest,
            dtype.type(after),
            dtype.type(until),
            queues.clock,
            queues.base,
            queues.mask,
            queues.front,
            queues.end,
            out,
        )
        if count >= 0:
            placement, *others = (column[:count] for column in out)
            return Windows(windows.owner[placement], *others)
        room *= 4

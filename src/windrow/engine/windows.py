"""Which windows are due, and which slices each of them covers.

One compiled loop walks all periodic windows of all specs. It enumerates only windows that hold at
least one slice: where a window is empty it jumps to the next one that reaches a slice, so a gap of
years costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.aligned.lookup import first_not_before, lookup, unguided
from windrow.measure import Tick
from windrow.planner.window_set import NEVER, WindowSet

STRETCH = 8192
FIRST_ROOM = 1 << 20
# Among so few slices one is found without a table.
FEW_SLICES = 32


@dataclass
class ClosedWindows:
    """Windows to answer: `spec[i]` in `[start[i], end[i])` covers slices first[i] .. last[i]-1.

    `key` is the key of each window where slices are kept per key; without it, windows are for all keys.
    `order` says which events a window holds where time alone does not: those from (time, arrival) =
    (order[0][i], order[1][i]) on and before (order[2][i], order[3][i]).
    """

    spec: np.ndarray
    start: np.ndarray
    end: np.ndarray
    first: np.ndarray
    last: np.ndarray
    key: np.ndarray | None = None
    order: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None
    # The first slice of the last step of each window, where a key has a window only if it has an event there.
    shown: np.ndarray | None = None
    # Which windows are final, where rows say so.
    final: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.spec)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The slices that the windows cover together: from the first one to behind the last one."""
        return int(self.first.min()), int(self.last.max())

    @cached_property
    def covered(self) -> int:
        """How many slices the windows cover, each counted once per window."""
        return int(np.add.reduce(self.last - self.first))

    @cached_property
    def queued(self) -> int:
        """How many slices enter a queue that holds the slices of one window after another.

        It begins anew where a window is not the next one: where it begins or ends before the one before it, or
        begins behind its end.
        """
        first, last = self.first, self.last
        anew = (first[1:] < first[:-1]) | (last[1:] < last[:-1]) | (first[1:] >= last[:-1])
        entered = last[1:] - np.where(anew, first[1:], last[:-1])
        return int(last[0] - first[0] + entered.sum())

    def where(self, keep: np.ndarray | slice) -> ClosedWindows:
        key = None if self.key is None else self.key[keep]
        o = self.order
        order = None if o is None else (o[0][keep], o[1][keep], o[2][keep], o[3][keep])
        shown = None if self.shown is None else self.shown[keep]
        edges = self.start[keep], self.end[keep]
        final = None if self.final is None else self.final[keep]
        return ClosedWindows(
            self.spec[keep], *edges, self.first[keep], self.last[keep], key, order, shown, final
        )

    @property
    def deciding(self) -> ClosedWindows:
        """The slices that decide for which keys there is a window: all of its slices, or those of its last step."""
        return self if self.shown is None else replace(self, first=self.shown)


@jit
def first_ending_after(point, every, offset, whole, rest):  # type: ignore[no-untyped-def]
    """The number k of the first window that ends after `point`."""
    k = np.int64((point - offset - rest) // every) - whole
    while offset + (k + whole) * every + rest > point:
        k -= 1
    while offset + (k + whole) * every + rest <= point:
        k += 1
    return k


@jit
def first_end(every, offset, whole, rest, after):  # type: ignore[no-untyped-def]
    """The first end of a window after an instant; there must be some windows."""
    k = first_ending_after(after, every[0], offset[0], whole[0], rest[0])
    first = offset[0] + (k + whole[0]) * every[0] + rest[0]
    for i in range(1, every.shape[0]):
        k = first_ending_after(after, every[i], offset[i], whole[i], rest[i])
        first = min(first, offset[i] + (k + whole[i]) * every[i] + rest[i])
    return first


@jit
def first_open(every, offset, whole, rest, horizon, floor):  # type: ignore[no-untyped-def]
    """The earliest start of a window that ends after `horizon`, of each kind no earlier than its floor."""
    k = first_ending_after(horizon, every[0], offset[0], whole[0], rest[0])
    first = max(offset[0] + k * every[0], floor[0])
    for i in range(1, every.shape[0]):
        k = first_ending_after(horizon, every[i], offset[i], whole[i], rest[i])
        first = min(first, max(offset[i] + k * every[i], floor[i]))
    return first


@jit
def list_due(  # type: ignore[no-untyped-def]
    every,
    offset,
    whole,
    rest,
    after,
    until,
    starts,
    base,
    scale,
    shift,
    table,
    placement,
    begin,
    finish,
    first,
    last,
):
    """Windows that end in (after, until] and hold a slice; how many, or -1 if there is no room.

    starts: of the slices, ascending, not empty, with their lookup table. Fills the parallel arrays
    placement, begin, finish, first, last. Time is walked in stretches that fit in cache, and within a
    stretch placement by placement.
    """
    count = 0
    room = placement.shape[0]
    slices = starts.shape[0]
    following = np.empty(every.shape[0], np.int64)
    # Where windows touch, the first slice of one is the first slice after the one before.
    reached = np.full(every.shape[0], -1)
    for i in range(every.shape[0]):
        following[i] = first_ending_after(max(after, starts[0]), every[i], offset[i], whole[i], rest[i])
    stretch = 0
    while stretch < slices:
        stretch += STRETCH
        limit = until if stretch >= slices else min(until, starts[stretch])
        for i in range(every.shape[0]):
            step, origin, slides, rem = every[i], offset[i], whole[i], rest[i]
            touching = slides == 1 and rem == 0
            k = following[i]
            b = reached[i]
            while True:
                start = origin + k * step
                end = origin + (k + slides) * step + rem
                if end > limit:
                    break
                a = b if touching and b >= 0 else first_not_before(starts, start, base, scale, shift, table)
                if a == slices:
                    break
                if starts[a] >= end:
                    k = max(k + 1, first_ending_after(starts[a], step, origin, slides, rem))
                    b = np.int64(-1)
                    continue
                b = first_not_before(starts, end, base, scale, shift, table)
                if count == room:
                    return -1
                placement[count] = i
                begin[count] = start
                finish[count] = end
                first[count] = a
                last[count] = b
                count += 1
                k += 1
            following[i] = k
            reached[i] = b
    return count


def periodic_due(windows: WindowSet, starts: np.ndarray, after: Tick, until: Tick) -> ClosedWindows:
    """The periodic windows of `due_windows`; there is at least one slice."""
    parameters = (windows.every, windows.offset, windows.whole, windows.rest)
    bounds = (starts.dtype.type(after), starts.dtype.type(until))
    if len(starts) <= FEW_SLICES:
        table, room = unguided(starts), 8 * (len(starts) + len(windows.every))
    else:
        table = lookup(starts, starts[0], starts[-1])
        spread = min(float(until), float(starts[-1] + windows.longest)) - max(float(after), float(starts[0]))
        guess = float((max(spread, 0.0) / windows.every).sum()) + 2 * len(windows.every)
        room = int(min(guess, max(FIRST_ROOM, len(starts)))) + 64
    while True:
        dtypes = (np.int64, starts.dtype, starts.dtype, np.int64, np.int64)
        found = [np.empty(room, d) for d in dtypes]
        count = list_due(*parameters, *bounds, starts, *table, *found)
        if count >= 0:
            placement, begin, finish, first, last = (column[:count] for column in found)
            return ClosedWindows(windows.owner[placement], begin, finish, first, last)
        room *= 4


class Ends:
    """The ends of windows, of which the next one is known."""

    def __init__(self, windows: WindowSet) -> None:
        self._windows = windows
        self._since, self._next = windows.measure.highest, windows.measure.lowest

    def some(self, after: Tick, until: Tick) -> bool:
        """Whether a window may end in (after, until]; False is certain."""
        windows = self._windows
        if windows.irregular:
            return after < until
        if not self._since <= after < self._next:
            point = windows.measure.dtype.type(after)
            self._since = after
            self._next = first_end(windows.every, windows.offset, windows.whole, windows.rest, point)
        return self._next <= until


def first_open_start(windows: WindowSet, horizon: Tick, since: Mapping[str, Tick] = NEVER) -> Tick:
    """The earliest start of a window that ends after `horizon`; all before it is finished. See `WindowSet.are_over`.

    Windows of a name that `since` knows are there from that start on.
    """
    lowest = windows.measure.lowest
    candidates = []
    if len(windows.every):
        floor = windows.lowest
        if since:
            floor = np.array([since.get(name, lowest) for name in windows.names], floor.dtype)[windows.owner]
        point = windows.every.dtype.type(horizon)
        first = first_open(windows.every, windows.offset, windows.whole, windows.rest, point, floor)
        candidates.append(first)
    for owner, placement in windows.irregular:
        first = placement.first_open(horizon, since.get(windows.names[owner], lowest))
        candidates += [] if first is None else [first]
    return min(candidates, default=horizon)


def due_windows(windows: WindowSet, starts: np.ndarray, after: Tick, until: Tick) -> ClosedWindows:
    """Windows that end in (after, until] and hold one of the slices that begin at `starts`, which ascend.

    It costs as much as there are windows to give, and slices from the start of the first of them on.
    """
    near = slice(0, int(starts.searchsorted(starts.dtype.type(until))))
    if near.stop and after - windows.margin > starts[0].item():
        near = slice(int(starts.searchsorted(starts.dtype.type(after - windows.margin))), near.stop)
    due = _due_among(windows, starts[near], after, until)
    for places in (due.first, due.last, due.shown) if near.start else ():
        if places is not None:
            places += near.start
    for owner, origin in windows.origins.items() if len(due) else ():
        due.first[due.spec == owner] = starts.searchsorted(starts.dtype.type(origin))
    return due


def _due_among(windows: WindowSet, starts: np.ndarray, after: Tick, until: Tick) -> ClosedWindows:
    """As `due_windows`, among these slices alone; where windows begin at one point, `first` is not known."""
    if not len(starts):
        none = np.empty(0, np.int64)
        return ClosedWindows(none, starts, starts, none, none)
    parts = []
    if len(windows.every):
        parts.append(periodic_due(windows, starts, after, until))
    for owner, placement_ in windows.irregular:
        begin, finish = placement_.windows_at(starts)
        keep = (finish > after) & (finish <= until)
        begin, finish = begin[keep], finish[keep]
        first, last = np.searchsorted(starts, begin), np.searchsorted(starts, finish)
        full = last > first
        begin, finish, first, last = begin[full], finish[full], first[full], last[full]
        shown = None
        if owner in windows.origins:
            shown, begin = first.copy(), np.full(len(begin), windows.origins[owner], begin.dtype)
        parts.append(ClosedWindows(np.full(len(begin), owner), begin, finish, first, last, shown=shown))
    return parts[0] if len(parts) == 1 else joined(parts)


def joined(parts: list[ClosedWindows]) -> ClosedWindows:
    """Several lists of windows as one; either all or none of them are of single keys."""
    names = ("spec", "start", "end", "first", "last")
    spec, start, end, first, last = (np.concatenate([getattr(p, name) for p in parts]) for name in names)
    key = np.concatenate([p.key for p in parts if p.key is not None]) if parts[0].key is not None else None
    shown = None
    if any(part.shown is not None for part in parts):
        shown = np.concatenate([p.first if p.shown is None else p.shown for p in parts])
    order = None
    if any(part.order is not None for part in parts):
        o = [part.order or by_time(part) for part in parts]
        t0, a0, t1, a1 = (np.concatenate([columns[i] for columns in o]) for i in range(4))
        order = (t0, a0, t1, a1)
    return ClosedWindows(spec, start, end, first, last, key, order, shown)


def by_time(due: ClosedWindows) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`Due.order` of windows that hold all events of their time."""
    none = np.zeros(len(due), np.int64)
    return due.start, none, due.end, none

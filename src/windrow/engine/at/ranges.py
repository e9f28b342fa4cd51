"""Which events a window holds at each point: one range of rows, as events are sorted by key and time.

    key          a           b
    events       1  4  4  7  2  3  9          rows 0 .. 6
    points          4                5        trailing(3), left closed: times 1 .. 3, and 2 .. 4
    ranges       [0, 1)      [4, 6)

Points are sorted by key and time as well, so that neither end of a range ever goes back within a key: that is what makes every aggregate cheap
(see `two_ends`). A window says which times it holds at t, from the first one to the one behind the last; of windows with edges, of those that hold t the one that
ends first is asked, as far as t. Sessions and windows of rows are found by the rows before t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.partials.multisets import lower_bound
from windrow.errors import QueryError
from windrow.measure import INT64_MAX, INT64_MIN, Measure, Tick
from windrow.windows.base import Irregular, Periodic, Window, placements


@dataclass
class InOrder:
    """Rows by key and time: row order[i] comes i-th; those of segment s are bounds[s] .. bounds[s + 1] - 1, of key keys[s]."""

    times: np.ndarray
    order: np.ndarray | None
    keys: np.ndarray
    bounds: np.ndarray

    def sorted(self, column: np.ndarray) -> np.ndarray:
        """A column in this order."""
        return column if self.order is None else column[self.order]

    @property
    def places(self) -> np.ndarray:
        """Where each row of the order comes from."""
        return np.arange(len(self.times)) if self.order is None else self.order


@jit
def first_not_before(times, low, high, time):  # type: ignore[no-untyped-def]
    """The first place from `low` on whose time is not before; in steps that double, as it mostly is near."""
    step = 1
    reach = low
    while reach < high and times[reach] < time:
        low = reach + 1
        reach += step
        step *= 2
    return lower_bound(times, time, low, min(reach, high))


@jit
def find_rows(first, until, bounds, begin, end, times, low, high):  # type: ignore[no-untyped-def]
    """Rows low[p] .. high[p] - 1 of each point: those from time first[p] on and before until[p].

    Points of segment s are bounds[s] .., and its events are rows begin[s] .. end[s] - 1.
    """
    for s in range(begin.shape[0]):
        a = begin[s]
        b = begin[s]
        for p in range(bounds[s], bounds[s + 1]):
            a = first_not_before(times, a, end[s], first[p])
            b = first_not_before(times, max(a, b), end[s], until[p])
            low[p] = a
            high[p] = b


@jit
def keep_last(bounds, begin, rows, high, low):  # type: ignore[no-untyped-def]
    """The last `rows` events up to `high`."""
    for s in range(begin.shape[0]):
        for p in range(bounds[s], bounds[s + 1]):
            low[p] = max(begin[s], high[p] - rows)


@jit
def keep_tile(bounds, begin, rows, high, low):  # type: ignore[no-untyped-def]
    """The events up to `high` since the last multiple of `rows` of them."""
    for s in range(begin.shape[0]):
        for p in range(bounds[s], bounds[s + 1]):
            low[p] = high[p] - (high[p] - begin[s]) % rows


@jit
def keep_session(bounds, begin, gap, times, at, high, low):  # type: ignore[no-untyped-def]
    """The events up to `high` since the last silence, unless it has lasted until now.

    Times ascend: where the distance of two of them is negative, no int64 can hold it.
    """
    for s in range(begin.shape[0]):
        start = begin[s]
        read = begin[s]
        for p in range(bounds[s], bounds[s + 1]):
            while read < high[p]:
                if read > begin[s] and not 0 <= times[read] - times[read - 1] <= gap:
                    start = read
                read += 1
            over = high[p] == begin[s] or not 0 <= at[p] - times[high[p] - 1] <= gap
            low[p] = high[p] if over else start


def require_askable(name: str, window: Window) -> None:
    """An error if a window has no meaning at a point."""
    tiles = window.counts and window.repeats_after is not None
    silence = window.layout == "sessions" and window.gap is not None
    if window.layout in ("points", "aligned") or tiles or silence:
        return
    raise QueryError(
        f"window {name!r} ({window}) cannot be asked at a point in time: trailing and around windows can, windows of time, "
        "sessions with one gap, and tumbling windows of rows"
    )


class Ranges:
    """Finds the rows of windows for points in order; `is_each` says that the points are the events themselves."""

    def __init__(self, events: InOrder, points: InOrder, measure: Measure, *, is_each: bool) -> None:
        self._events, self._points, self._measure, self._is_each = events, points, measure, is_each
        self._begin, self._end = self._segments()

    def _segments(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the events of each segment of points begin and end."""
        if self._is_each:
            return self._events.bounds[:-1].copy(), self._events.bounds[1:].copy()
        highest = int(max(self._events.keys.max(initial=0), self._points.keys.max(initial=0)))
        begin = np.zeros(highest + 1, np.int64)
        end = np.zeros(highest + 1, np.int64)
        begin[self._events.keys], end[self._events.keys] = self._events.bounds[:-1], self._events.bounds[1:]
        # A key without events still has a place, so that ranges never go back from key to key either.
        begin, end = begin[self._points.keys], end[self._points.keys]
        return begin, end

    def of(self, window: Window) -> tuple[np.ndarray, np.ndarray]:
        """The first row and the one behind the last, of each point."""
        if window.layout == "points":
            return self._at_distance(window)
        if window.layout == "aligned":
            starts, holds = window_starts(window, self._measure, self._points.times)
            return self._rows(np.where(holds, starts, self._points.times), self._points.times)
        low, high = self._rows(self._points.times, self._points.times)
        if window.repeats_after is not None:
            if self._is_each:
                high = np.arange(len(high))
            keep_tile(self._points.bounds, self._begin, window.repeats_after, high, low)
            return low, high
        assert window.gap is not None
        gap = self._measure.ticks(window.gap, what="gap")
        times = self._points.times, high, low
        keep_session(self._points.bounds, self._begin, gap, self._events.times, *times)
        return low, high

    def _at_distance(self, window: Window) -> tuple[np.ndarray, np.ndarray]:
        first, last = window.stretch(self._measure)
        times, closed = self._points.times, window.closed
        if window.last_rows is not None:
            if self._is_each and last == 0:
                high = np.arange(len(times)) + (closed == "right")
                low = np.empty_like(high)
            else:
                until = _moved(times, last)
                low, high = self._rows(until, self._behind(until) if closed == "right" else until)
            keep_last(self._points.bounds, self._begin, window.last_rows, high, low)
            return low, high
        begins, ends = _moved(times, first), _moved(times, last)
        if closed in ("right", "neither"):
            begins = self._behind(begins)
        if closed in ("right", "both"):
            ends = self._behind(ends)
        return self._rows(begins, ends)

    def _rows(self, first: np.ndarray, until: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.empty(len(first), np.int64), np.empty(len(first), np.int64)
        points = self._points.bounds, self._begin, self._end
        find_rows(first, until, *points, self._events.times, low, high)
        return low, high

    def _behind(self, times: np.ndarray) -> np.ndarray:
        """The instants behind these."""
        if self._measure.floating:
            return np.nextafter(times, np.inf)
        return np.where(times == INT64_MAX, INT64_MAX, times + 1)


def _moved(times: np.ndarray, distance: Tick) -> np.ndarray:
    """Times at a distance from these; what no int64 can hold is the last one that it can, where no event is."""
    if times.dtype.kind == "f" or not distance:
        return times + distance
    if distance < 0:
        lowest = INT64_MIN - int(distance) if distance >= INT64_MIN else INT64_MAX
        return np.where(times < lowest, INT64_MIN, times + max(int(distance), INT64_MIN))
    highest = INT64_MAX - min(int(distance), INT64_MAX)
    return np.where(times > highest, INT64_MAX, times + min(int(distance), INT64_MAX))


def window_starts(window: Window, measure: Measure, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the windows that hold each time, the start of the one that ends first; and whether there is one."""
    if window.since is not None:
        since = measure.point(window.since, what="since")
        return np.full(len(times), since, times.dtype), times >= since
    starts = times.copy()
    ends = np.zeros(len(times), times.dtype)
    holds = np.zeros(len(times), bool)
    for placement in placements(window, measure):
        found, until, inside = _holding(placement, times)
        sooner = inside & (~holds | (until < ends))
        starts, ends, holds = np.where(sooner, found, starts), np.where(sooner, until, ends), holds | inside
    return starts, holds


def _holding(placement: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start and end of the first window to end behind each time, and whether it has begun."""
    if isinstance(placement, Periodic):
        every, offset, whole, rest = placement.every, placement.offset, placement.whole, placement.rest
        k = np.floor_divide(times - offset - rest, every) - whole + 1
        if times.dtype.kind == "f":  # division may be off by one in the last bit
            k -= offset + (k - 1 + whole) * every + rest > times
            k += offset + (k + whole) * every + rest <= times
        start, end = offset + k * every, offset + (k + whole) * every + rest
        return start, end, start <= times
    assert isinstance(placement, Irregular)
    starts, ends = placement.windows_at(np.unique(times)) if len(times) else (times, times)
    if not len(starts):
        return times, times, np.zeros(len(times), bool)
    at = np.maximum(np.searchsorted(starts, times, side="right") - 1, 0)
    return starts[at], ends[at], (starts[at] <= times) & (times < ends[at])

"""Window edges in a range of time: where slices begin and end.

    windows      |-----A-----|-----A-----|          edges of A: every 6
                 |---B---|---B---|---B---|          edges of B: every 4
    edges        |       |   |   |       |
    slices         0       1   2     3

`edges_between` gives every edge in a range, the last one at or before it and the first one after
it. Where a range holds far more edges than events (one event dated 2099), `edges_around` gives only
the edges next to the events, and `edges_in` those of the stretches that events last.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.arrays import ascending, distances
from windrow.measure import INT64_MAX, Tick
from windrow.planner.window_set import WindowSet

# Small batches make edges for so many batches ahead, as long as these are not too many.
AHEAD = 64
MOST_AHEAD = 10_000
# Edges between the first event and the last one are all made, as long as they are no more than these and some for each event.
ALWAYS, FOR_EACH = 1_000_000, 8


@jit
def mark_progressions(periods, phases, base, high, step, marks):  # type: ignore[no-untyped-def]
    """Mark every edge in (base, high] on a grid of `step` that begins at `base`."""
    for i in range(periods.shape[0]):
        period, phase = periods[i], phases[i]
        edge = (base - phase) // period * period + phase
        while edge <= base:
            edge += period
        while edge <= high:
            marks[(edge - base) // step] = True
            edge += period


@jit
def list_stretches(periods, phases, rests, low, high, out):  # type: ignore[no-untyped-def]
    """Write the edges of each stretch [low[s], high[s]] to `out`, the last one before it and the first one after it.

    Stretches ascend and do not overlap; each edge is written once, and so `out` ascends. How many there are.
    """
    count = 0
    following = np.empty(periods.shape[0], np.int64)
    for s in range(low.shape[0]):
        for i in range(periods.shape[0]):
            period, phase, rest = periods[i], phases[i], rests[i]
            k = np.int64((low[s] - phase - rest) // period)
            while phase + (k + 1) * period + rest <= low[s]:
                k += 1
            while phase + k * period + rest > low[s]:
                k -= 1
            following[i] = k
        edge = phases[0] + following[0] * periods[0] + rests[0]
        for i in range(1, periods.shape[0]):
            edge = max(edge, phases[i] + following[i] * periods[i] + rests[i])
        for i in range(periods.shape[0]):
            following[i] += 1
        while True:
            if count == 0 or edge > out[count - 1]:
                out[count] = edge
                count += 1
            if edge > high[s]:
                break
            edge = phases[0] + following[0] * periods[0] + rests[0]
            for i in range(1, periods.shape[0]):
                edge = min(edge, phases[i] + following[i] * periods[i] + rests[i])
            for i in range(periods.shape[0]):
                following[i] += np.int64(phases[i] + following[i] * periods[i] + rests[i] == edge)
    return count


@jit
def widen(periods, phases, rests, times, before, after):  # type: ignore[no-untyped-def]
    """Raise `before` and lower `after` to the edges of the progressions next to each time."""
    for i in range(times.shape[0]):
        t = times[i]
        for j in range(periods.shape[0]):
            period, phase, rest = periods[j], phases[j], rests[j]
            k = np.int64((t - phase - rest) // period)
            while phase + (k + 1) * period + rest <= t:
                k += 1
            while phase + k * period + rest > t:
                k -= 1
            before[i] = max(before[i], phase + k * period + rest)
            after[i] = min(after[i], phase + (k + 1) * period + rest)


def neighbours(windows: WindowSet, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each time, the last edge at or before it and the first edge after it."""
    measure = windows.measure
    low: Tick = -np.inf if measure.floating else np.iinfo(np.int64).min
    high: Tick = np.inf if measure.floating else np.iinfo(np.int64).max
    before = np.full(len(times), low, measure.dtype)
    after = np.full(len(times), high, measure.dtype)
    widen(windows.periods, windows.phases, windows.rests, times, before, after)
    for edges in irregular_edges(windows, times):
        at = np.searchsorted(edges, times, side="right")
        found = at > 0
        before[found] = np.maximum(before[found], edges[at[found] - 1])
        found = at < len(edges)
        after[found] = np.minimum(after[found], edges[at[found]])
    return before, after


def irregular_edges(windows: WindowSet, times: np.ndarray) -> list[np.ndarray]:
    """The edges of each window around `times` that lie on no progression, sorted."""
    return [placement.edges(times) for placement in windows.uneven]


def edges_between(windows: WindowSet, low: Tick, high: Tick) -> np.ndarray:
    """All edges in [low, high], the last one before it and the first one after it, ascending."""
    ends = np.array([low, high], windows.measure.dtype)
    before, after = neighbours(windows, ends)
    base, beyond = before[0], after[1]
    # Ticks as numbers of Python: their difference need not be an int64.
    inner = [_periodic_edges(windows, base.item(), low, high)]
    for placement in windows.uneven:
        edges = np.union1d(*placement.windows(low, high))
        inner.append(edges[(edges > base) & (edges <= ends[1])])
    middle = inner[0] if len(inner) == 1 else ascending(*inner)
    return np.concatenate([before[:1], middle, np.array([beyond], middle.dtype)])


def edges_in(windows: WindowSet, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """As `edges_between`, of several stretches of time, which ascend and do not overlap; O(edges)."""
    if windows.uneven:
        parts = [edges_between(windows, a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        # Neighbours have at most the edges between them in common.
        cut = [np.searchsorted(b, a[-1], side="right") for a, b in pairwise(parts)]
        return np.concatenate([parts[0], *(part[c:] for part, c in zip(parts[1:], cut, strict=True))])
    return _listed(windows, low, high)


def _listed(windows: WindowSet, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    edges = np.empty(stretched(windows, low, high), windows.measure.dtype)
    return edges[: list_stretches(windows.periods, windows.phases, windows.rests, low, high, edges)]


def stretched(windows: WindowSet, low: np.ndarray, high: np.ndarray) -> int:
    """As `estimate`, of all stretches; never too few."""
    return estimate(windows, 0.0, distances(low, high).sum()) + (2 + 2 * len(windows.periods)) * len(low)


def _periodic_edges(windows: WindowSet, base: Tick, low: Tick, high: Tick) -> np.ndarray:
    """Edges of the periodic windows in (base, high]; base is at or before low."""
    if not len(windows.periods) or not base < high:
        return np.empty(0, windows.measure.dtype)
    base = max(base, low - windows.margin)
    count = estimate(windows, base, high)
    step = windows.grid
    on_grid = not windows.measure.floating and (base - int(windows.phases[0])) % step == 0
    if on_grid and high - base <= INT64_MAX and (high - base) // step <= 96 * count + 4096:
        marks = np.zeros(int((high - base) // step) + 1, np.bool_)
        mark_progressions(windows.periods, windows.phases, base, high, step, marks)
        return np.flatnonzero(marks) * step + base
    return _listed(windows, np.array([base], windows.measure.dtype), np.array([high], windows.measure.dtype))[
        1:-1
    ]


def estimate(windows: WindowSet, low: Tick, high: Tick) -> int:
    """About how many edges lie between two times; never too few by more than two per progression."""
    span = float(high) - float(low)
    edges = (span / windows.periods.astype(np.float64)).sum()
    # A date is a hundred times dearer than an edge of a periodic window.
    edges += sum(100 * span / p.slide for p in windows.uneven if p.slide)
    return int(min(edges, 1e18)) + 2 * len(windows.periods)


def are_few(windows: WindowSet, low: Tick, high: Tick, events: int) -> bool:
    """Whether there are not many more edges between two times than events."""
    return estimate(windows, low, high) <= FOR_EACH * events + ALWAYS


def edges_around(windows: WindowSet, times: np.ndarray) -> np.ndarray:
    """The edges next to each of `times`: enough to cut these events, however far apart they are."""
    return ascending(*neighbours(windows, ascending(times)))


class Edges:
    """The edges of some windows, of which a stretch is kept from batch to batch."""

    def __init__(self, windows: WindowSet) -> None:
        self._windows = windows
        self._known = np.empty(0, windows.measure.dtype)

    def enclosing(self, times: np.ndarray, low: Tick, high: Tick, limit: Tick) -> np.ndarray:
        """Edges that enclose all times, of which low and high are the extremes; none beyond `limit`."""
        known, windows = self._known, self._windows
        if not (len(known) and known[0] <= low and high < known[-1]):
            beyond = min(high + AHEAD * (high - low), limit)
            if estimate(windows, low, beyond) <= MOST_AHEAD:
                known = edges_between(windows, low, beyond)
                self._known = known
            elif are_few(windows, low, high, len(times)):
                return edges_between(windows, low, high)
            else:
                return edges_around(windows, times)
        first, last = known.searchsorted(low, "right"), known.searchsorted(high, "right")
        return known[first - 1 : last + 1]

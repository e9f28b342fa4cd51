"""All windows of a query, placed on one measure, as arrays.

Periodic windows (tumbling, sliding, each step of a cumulate window) are five numbers each; the
engine's loops run over these arrays. Irregular ones (calendar, band, the steps of a landmark) stay objects. For slicing,
every periodic window is one or two arithmetic progressions of *edges*: its starts, and its ends
where they fall between starts (Scotty, section 7.1.2). `fuse` drops the progressions whose edges
others already have (section 7.3.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from windrow.errors import QueryError
from windrow.measure import INT64_MAX, INT64_MIN, Measure, Tick
from windrow.windows.base import Irregular, Periodic, Window, placements

# Finished slices are coalesced once there are more than UNMERGED per live window and FEW besides;
# fewer keys and strings than FEW are not worth collecting.
UNMERGED = 3
FEW = 1024
NEVER: Mapping[str, Tick] = MappingProxyType({})


@dataclass(frozen=True)
class WindowSet:
    """`owner[i]` is the position in `names` of the window that periodic placement i belongs to."""

    measure: Measure
    names: tuple[str, ...]
    owner: np.ndarray
    every: np.ndarray
    offset: np.ndarray
    whole: np.ndarray
    rest: np.ndarray
    irregular: tuple[tuple[int, Irregular], ...]
    # Those of the irregular ones whose edges lie on no progression.
    uneven: tuple[Irregular, ...]
    # Where windows begin that all begin at one point, by their position; what is placed of them are their last steps.
    origins: Mapping[int, Tick]
    periods: np.ndarray
    phases: np.ndarray
    rests: np.ndarray
    unfused: int
    grid: int

    @classmethod
    def of(cls, windows: Mapping[str, Window], measure: Measure) -> WindowSet:
        periodic: list[tuple[int, Periodic]] = []
        irregular: list[tuple[int, Irregular]] = []
        longest = (measure.highest - measure.lowest) / 4
        for position, window in enumerate(windows.values()):
            for placement in placements(window, measure) if window.layout == "aligned" else ():
                if isinstance(placement, Periodic):
                    if placement.length + 2 * placement.every > longest:
                        raise QueryError(f"{window} is longer than {measure.describe()} can express")
                    periodic.append((position, placement))
                else:
                    irregular.append((position, placement))
        dtype = measure.dtype
        simpler = [window.progressions(measure) for window in windows.values()]
        progressions = _progressions(simpler, periodic)
        periods, phases, rests = fuse(*(np.array([p[i] for p in progressions], dtype) for i in range(3)))
        return cls(
            measure=measure,
            names=tuple(windows),
            owner=np.array([i for i, _ in periodic], np.int64),
            every=np.array([p.every for _, p in periodic], dtype),
            offset=np.array([p.offset for _, p in periodic], dtype),
            whole=np.array([p.whole for _, p in periodic], np.int64),
            rest=np.array([p.rest for _, p in periodic], dtype),
            irregular=tuple(irregular),
            uneven=tuple(p for i, p in irregular if simpler[i] is None),
            origins={
                i: measure.point(window.since, what="since")
                for i, window in enumerate(windows.values())
                if window.since is not None and window.layout == "aligned"
            },
            periods=periods,
            phases=phases,
            rests=rests,
            unfused=len(progressions),
            grid=0 if measure.floating else _common_grid(periods, phases),
        )

    @cached_property
    def labels(self) -> pa.Array:
        """The names, as an Arrow array."""
        return pa.array(self.names, pa.string())

    @cached_property
    def lowest(self) -> np.ndarray:
        """For each periodic placement, the lowest tick."""
        return np.full(len(self.every), self.measure.lowest, self.every.dtype)

    @cached_property
    def longest(self) -> Tick:
        """The longest window."""
        lengths = [0, *(self.whole * self.every + self.rest).tolist(), *(p.length for _, p in self.irregular)]
        return max(lengths)

    @cached_property
    def margin(self) -> Tick:
        """How far from an event arithmetic on its windows and their neighbours can lead."""
        slides = self.every.tolist() + [p.slide for _, p in self.irregular]
        return self.longest + 2 * max(slides, default=0) + 2

    @cached_property
    def reach(self) -> tuple[Tick, Tick]:
        """The first and the last time whose windows fit the measure's type, with room for arithmetic."""
        measure = self.measure
        if measure.floating:
            low, high = measure.lowest + self.longest, measure.highest - self.longest
            # Beyond this, window numbers are no longer exact in a float.
            furthest = min(float(self.every.min(initial=np.inf)) * 2.0**51, 2.0**1000)
            low, high = max(low, -furthest), min(high, furthest)
        else:
            low, high = self._expressible(int(measure.lowest), int(measure.highest))
            low, high = max(low, INT64_MIN + self.margin), min(high, INT64_MAX - self.margin)
        return low, high

    def _expressible(self, lowest: int, highest: int) -> tuple[int, int]:
        """The first and the last integer tick all of whose windows lie within [lowest, highest]."""
        low, high = lowest, highest
        columns = (self.every, self.offset, self.whole, self.rest)
        for every, offset, whole, rest in zip(*(c.tolist() for c in columns), strict=True):
            first = -((offset - lowest) // every)  # the first window that begins at or after lowest
            low = max(low, offset + (first - 1 + whole) * every + rest)
            last = (highest - offset - rest) // every - whole  # the last one that ends at or before highest
            high = min(high, offset + (last + 1) * every - 1)
        for _, placement in self.irregular:
            first, last = placement.within(lowest, highest)
            low, high = max(low, int(first)), min(high, int(last))
        return low, high

    @cached_property
    def may_leave_gaps(self) -> bool:
        """Whether there may be instants that belong to no window."""
        return not bool(np.any(self.whole >= 1)) and not any(p.gapless for _, p in self.irregular)

    @cached_property
    def windows_per_event(self) -> float:
        """How many windows hold an event, at most."""
        return float(np.ceil(self.whole + (self.rest > 0)).sum()) + len(self.irregular)

    def are_over(self, horizon: Tick, since: Mapping[str, Tick] = NEVER) -> bool:
        """Whether no window ends after `horizon`, and none ever will; of a name that `since` knows, from that start on."""
        return not len(self.every) and all(
            p.first_open(horizon, since.get(self.names[owner], self.measure.lowest)) is None
            for owner, p in self.irregular
        )

    def last_closed(self, point: Tick) -> list[tuple[str, Tick, Tick]]:
        """Name, start and end of the last window of each kind that ends at or before `point`."""
        found: list[tuple[int, Tick, Tick]] = []
        if len(self.every):
            k = np.floor_divide(point - self.offset - self.rest, self.every).astype(np.int64) - self.whole
            columns = (column.tolist() for column in (self.owner, self.starts(k), self.ends(k)))
            found += zip(*columns, strict=True)
        for owner, placement in self.irregular:
            last = placement.last_closed(point)
            found += [] if last is None else [(owner, *last)]
        return [(self.names[owner], start, end) for owner, start, end in found]

    def live_starts(self, horizon: Tick, threshold: Tick) -> np.ndarray:
        """The starts, up to `horizon`, of windows that end after it, and `threshold`, the first of them.

        Where all windows begin at one point, that point and the start of the step that is not over.
        """
        last = np.floor_divide(horizon - self.offset, self.every).astype(np.int64) + 2
        first = np.floor_divide(horizon - self.offset - self.rest, self.every).astype(np.int64)
        count = last - (first - self.whole - 1)
        number = np.arange(int(count.sum())) + np.repeat(last - np.cumsum(count), count)
        starts = np.repeat(self.offset, count) + number * np.repeat(self.every, count)
        found = [np.array([threshold, *self.origins.values()], self.measure.dtype), starts]
        for _, placement in self.irregular:
            found.append(placement.windows(horizon, horizon)[0])
        return np.unique(np.concatenate(found))

    def starts(self, k: np.ndarray) -> np.ndarray:
        return self.offset + k * self.every

    def ends(self, k: np.ndarray) -> np.ndarray:
        return self.offset + (k + self.whole) * self.every + self.rest

    def missed(
        self, starts: np.ndarray, lasts: np.ndarray, threshold: Tick, since: Mapping[str, Tick] = NEVER
    ) -> tuple[np.ndarray, np.ndarray]:
        """Masks of the stretches of time that end before the threshold, and of those among them that `meets` finds."""
        early = lasts < threshold
        if not self.may_leave_gaps and not since:
            return early, early
        late = early.copy()
        late[early] = self.meets(starts[early], lasts[early], since)
        return early, late

    def covers(self, times: np.ndarray) -> np.ndarray:
        """Whether each time lies in some window."""
        return self.meets(times, times)

    def meets(self, starts: np.ndarray, lasts: np.ndarray, since: Mapping[str, Tick] = NEVER) -> np.ndarray:
        """Whether a stretch of time, from its first to its last instant, shares an instant with some window.

        Windows of a name that `since` knows are there from that start on. Of the windows of one kind, the last one to
        begin is also the last one to end, so that it is enough to look at that.
        """
        found = np.zeros(len(lasts), bool)
        for i in range(len(self.every)):
            one = self._only(i)
            k = np.floor_divide(lasts - one.offset, one.every).astype(np.int64)
            if self.measure.floating:
                k += one.starts(k + 1) <= lasts
                k -= one.starts(k) > lasts
            begun = one.starts(k) >= since.get(self.names[self.owner[i]], self.measure.lowest)
            found |= begun & (one.ends(k) > starts)
        for owner, placement in self.irregular:
            if len(lasts):
                # A band may lie between the two ends of a stretch, and hold neither.
                begin, end = placement.windows_at(np.concatenate([starts, lasts]))
                at = np.searchsorted(begin, lasts, side="right") - 1
                if len(begin):
                    begun = begin[at] >= since.get(self.names[owner], self.measure.lowest)
                    found |= (at >= 0) & begun & (end[at] > starts)
        return found

    def earliest_ends(self, times: np.ndarray) -> np.ndarray:
        """For each time, the end of the first of its windows to end; the highest tick if it has none."""
        highest = np.inf if self.measure.floating else INT64_MAX
        found = np.full(len(times), highest, self.measure.dtype)
        for i in range(len(self.every)):
            one = self._only(i)
            k = np.floor_divide(times - one.offset - one.rest, one.every).astype(np.int64) - one.whole + 1
            if self.measure.floating:
                k += one.ends(k) <= times
                k -= one.ends(k - 1) > times
            inside = one.starts(k) <= times
            found[inside] = np.minimum(found[inside], one.ends(k)[inside])
        for _, placement in self.irregular:
            if len(times):
                starts, ends = placement.windows_at(times)
                at = np.searchsorted(starts, times, side="right") - 1
                inside = (at >= 0) & (ends[at] > times) if len(starts) else np.zeros(len(times), bool)
                found[inside] = np.minimum(found[inside], ends[at[inside]])
        return found

    def _only(self, i: int) -> WindowSet:
        part = {name: getattr(self, name)[i : i + 1] for name in ("every", "offset", "whole", "rest")}
        rest = {n: getattr(self, n) for n in self.__dataclass_fields__ if n not in part}
        return WindowSet(**part, **rest)


def _progressions(
    simpler: list[tuple[tuple[Tick, Tick, Tick], ...] | None], periodic: list[tuple[int, Periodic]]
) -> list[tuple[Tick, Tick, Tick]]:
    """The edges of all windows that repeat; the many steps of a cumulate window are one progression."""
    found = [progression for known in simpler for progression in known or ()]
    for position, placement in periodic:
        found += _edges(placement) if simpler[position] is None else []
    return found


def _edges(placement: Periodic) -> list[tuple[Tick, Tick, Tick]]:
    """The progressions on which starts and ends of a window lie: edges `(phase + k*period) + rest`.

    On a float measure the ends keep their rest apart, because it is added last where windows are
    computed, and an edge must be the same number to the last bit.
    """
    every, offset, rest = placement.every, placement.offset, placement.rest
    starts = (every, offset, 0 * rest)
    if not rest:
        return [starts]
    return [starts, (every, offset, rest) if isinstance(rest, float) else (every, (offset + rest) % every, 0)]


def fuse(
    periods: np.ndarray, phases: np.ndarray, rests: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Drop each progression whose edges all belong to another one that is kept.

    Progression b is covered by a where b's period is a multiple of a's and their phases differ by
    a multiple of a's period (Scotty, section 7.3.2 and Algorithm 2). On floats the remainder is
    exact, so equal edges are equal numbers.
    """
    order = np.lexsort((rests, phases, periods))
    periods, phases, rests = periods[order], phases[order], rests[order]
    kept = np.ones(len(periods), bool)
    for i in range(len(periods)):
        if not kept[i]:
            continue
        later = slice(i + 1, len(periods))
        covered = (np.fmod(periods[later], periods[i]) == 0) & (
            np.fmod(phases[later] - phases[i], periods[i]) == 0
        )
        if periods.dtype.kind == "f":
            # phase + k*period is rounded twice, so a shifted phase may differ in the last bit.
            covered &= (phases[later] == phases[i]) & (rests[later] == rests[i])
        kept[later] &= ~covered
    return periods[kept], phases[kept], rests[kept]


def _common_grid(periods: np.ndarray, phases: np.ndarray) -> int:
    """The largest step such that every edge lies on `phases[0] + i*step`."""
    step = 0
    for period, phase in zip(periods.tolist(), phases.tolist(), strict=True):
        step = math.gcd(step, period, phase - int(phases[0]))
    return step

"""Windows of hours and minutes on the clock; see `calendar`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np

from windrow.errors import QueryError
from windrow.measure import Tick
from windrow.windows.zones import Consecutive, first_instant, last_instant, offset_at

DAY_SECONDS = 86_400


@lru_cache(maxsize=50_000)
def _edges_of(day: int, step: int, offset: int, zone: str) -> np.ndarray:
    """The seconds since 1970 at which windows begin on a day, a number of days since 1970, as clocks show it."""
    shown = datetime(1970, 1, 1) + timedelta(days=day, seconds=offset)
    first = first_instant(shown, zone)
    hours = first + 3_600 * np.arange(-1, 26)
    if len({offset_at(second, zone) for second in hours.tolist()}) == 1:
        return first + step * np.arange(DAY_SECONDS // step)
    clock = [shown + timedelta(seconds=seconds) for seconds in range(0, DAY_SECONDS, step)]
    return np.unique([instant(each, zone) for each in clock for instant in (first_instant, last_instant)])


@dataclass(frozen=True)
class PlacedClock(Consecutive):
    """Windows that begin when a clock shows a multiple of `step` seconds since midnight and `offset`, or jumps over one."""

    step: int
    offset: int
    zone: str
    tick_nanoseconds: int

    @property
    def length(self) -> Tick:
        """A clock that is set back, by a day at most, makes a window longer."""
        return (self.step + DAY_SECONDS) * 10**9 // self.tick_nanoseconds

    def windows(self, first: Tick, last: Tick) -> tuple[np.ndarray, np.ndarray]:
        low, high = (int(tick) * self.tick_nanoseconds // (DAY_SECONDS * 10**9) for tick in (first, last))
        edges = self._edges(np.arange(low - 2, high + 4))
        keep = np.flatnonzero((edges[1:] > first) & (edges[:-1] <= last))
        return edges[:-1][keep], edges[1:][keep]

    def windows_at(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends of the windows that hold one of `times`; computed by date, so that gaps between these cost nothing."""
        days = np.unique(times // (DAY_SECONDS * 10**9 // self.tick_nanoseconds))
        edges = self._edges(np.unique(days[:, None] + np.arange(-2, 4)))
        held = np.unique(np.searchsorted(edges, times, side="right") - 1)
        return edges[held], edges[held + 1]

    def _edges(self, days: np.ndarray) -> np.ndarray:
        """The ticks at which windows begin on these days, ascending."""
        try:
            found = [_edges_of(day, self.step, self.offset, self.zone) for day in days.tolist()]
        except (OverflowError, ValueError) as problem:
            raise QueryError("a calendar window lies outside the years 1 to 9999") from problem
        ticks = 10**9 // self.tick_nanoseconds
        bounds = -(2**63 // ticks) + 1, 2**63 // ticks - 1  # behind them lies no time
        return np.unique(np.clip(np.concatenate(found), *bounds)) * ticks

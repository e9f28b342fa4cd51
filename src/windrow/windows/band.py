"""A fixed band: one window, with a start and a length of its own.

    time    0    1    2    3    4    5    6
                 |--------------|                band(1, length=3)

Context free. Events outside the band belong to no window of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.measure import Measure, PointLike, Tick
from windrow.windows.arguments import require_positive
from windrow.windows.base import Window


@dataclass(frozen=True)
class PlacedBand:
    """The one window `[start, end)` in ticks."""

    start: Tick
    end: Tick

    slide = 0
    gapless = False

    @property
    def length(self) -> Tick:
        return self.end - self.start

    def edges(self, times: np.ndarray) -> np.ndarray:
        return np.array([self.start, self.end], times.dtype)

    def within(self, lowest: Tick, highest: Tick) -> tuple[Tick, Tick]:
        return lowest, highest

    def first_open(self, horizon: Tick, floor: Tick) -> Tick | None:
        return self.start if self.end > horizon and self.start >= floor else None

    def last_closed(self, point: Tick) -> tuple[Tick, Tick] | None:
        return (self.start, self.end) if self.end <= point else None

    def first_start(self, point: Tick) -> Tick | None:
        return self.start if self.start >= point else None

    def windows_at(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.windows(times.min(), times.max())

    def windows(self, first: Tick, last: Tick) -> tuple[np.ndarray, np.ndarray]:
        dtype = np.float64 if isinstance(self.start, float) else np.int64
        hit = int(self.start <= last and self.end > first)
        return np.array([self.start] * hit, dtype), np.array([self.end] * hit, dtype)


@dataclass(frozen=True)
class Band(Window):
    """One window of `length` from `start` on."""

    start: PointLike
    length: Duration

    def place(self, measure: Measure) -> tuple[PlacedBand, ...]:
        start = measure.point(self.start, what="the start of a band")
        end = start + measure.ticks(self.length, what="length")
        if start < measure.lowest or end > measure.highest:
            raise QueryError(f"{self} reaches beyond what {measure.describe()} can express")
        return (PlacedBand(start, end),)

    def __str__(self) -> str:
        return f"band from {self.start} for {self.length}"


def band(start: PointLike, *, length: DurationLike) -> Band:
    """The single window `[start, start + length)`.

    Events outside of it belong to no window.

    Parameters
    ----------
    start
        A `datetime`, a date, an Arrow or NumPy timestamp, or a plain number in the unit of the time column.
    length
        A duration such as `"12 hours"`, a `timedelta`, or a plain number.

    Returns
    -------
    Band
        A context-free window.

    Raises
    ------
    QueryError
        If `length` is not longer than zero.

    Examples
    --------
    >>> import windrow as wr
    >>> from datetime import datetime
    >>> str(wr.band(datetime(2013, 7, 4), length="12 hours"))
    'band from 2013-07-04 00:00:00 for 12 hours'
    """
    window = Band(start, parse_duration(length, what="length"))
    require_positive(window.length, what="the length of a band")
    return window

"""Landmark windows: they all start at one point and reach further and further.

    time    0    1    2    3    4    5    6
                 |---------|                           landmark(since=1, every=2)
                 |-------------------|
                 |-----------------------------|

A window is emitted for a key only if its last step holds an event of that key. Events before the
landmark belong to no window. Context free (Cutty, section 3.2: lower-bound landmark windows).

It is placed by its steps, which lie side by side from the landmark on: the window that ends with a step begins at the
landmark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.measure import Measure, Point, PointLike, Tick, parse_point
from windrow.windows.arguments import require_positive
from windrow.windows.base import Window


@dataclass(frozen=True)
class Steps:
    """The steps `[since + k*every, since + (k+1)*every)`, for k = 0, 1, ..; see `windrow.windows.base.Irregular`."""

    since: Tick
    every: Tick

    gapless = False

    @property
    def length(self) -> Tick:
        return self.every

    @property
    def slide(self) -> Tick:
        return self.every

    def number(self, times: np.ndarray) -> np.ndarray:
        """The step that holds each time, which is no earlier than the landmark."""
        if times.dtype.kind == "f":
            step = np.floor_divide(times - self.since, self.every)
            # Division may be off by one step in the last bit.
            step += self.edge(step + 1) <= times
            step -= self.edge(step) > times
            return step
        # As unsigned numbers, which the distance from any tick to any other fits into.
        since = np.array(self.since, np.int64).view(np.uint64)
        return (times.astype(np.int64).view(np.uint64) - since) // np.uint64(self.every)

    def edge(self, step: np.ndarray) -> np.ndarray:
        """Where each step begins."""
        if step.dtype.kind == "f":
            return self.since + step * self.every
        since = np.array(self.since, np.int64).view(np.uint64)
        return (since + step.astype(np.uint64) * np.uint64(self.every)).view(np.int64)

    def windows(self, first: Tick, last: Tick) -> tuple[np.ndarray, np.ndarray]:
        kind = np.float64 if isinstance(self.since, float) else np.int64
        if last < self.since:
            return np.empty(0, kind), np.empty(0, kind)
        low, high = self.number(np.array([max(first, self.since), last], kind))
        step = np.arange(int(high) - int(low) + 1).astype(low.dtype) + low
        return self.edge(step), self.edge(step + step.dtype.type(1))

    def windows_at(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        step = np.unique(self.number(times[times >= self.since]))
        return self.edge(step), self.edge(step + step.dtype.type(1))

    def edges(self, times: np.ndarray) -> np.ndarray:
        return np.unique(np.concatenate([*self.windows_at(times), np.array([self.since], times.dtype)]))

    def within(self, lowest: Tick, highest: Tick) -> tuple[Tick, Tick]:
        return lowest, highest - self.every

    def first_open(self, horizon: Tick, floor: Tick) -> Tick | None:
        return self.first_start(floor)

    def last_closed(self, point: Tick) -> tuple[Tick, Tick] | None:
        starts, _ = self.windows(point, point)
        return (self.since, starts[0].item()) if len(starts) and starts[0] > self.since else None

    def first_start(self, point: Tick) -> Tick | None:
        return self.since if self.since >= point else None


@dataclass(frozen=True)
class Landmark(Window):
    """Windows that all start at `since` and end at multiples of `every` after it."""

    since: Point = field()
    every: Duration

    def place(self, measure: Measure) -> tuple[Steps, ...]:
        since = measure.point(self.since, what="since")
        every = measure.ticks(self.every, what="every")
        if not measure.lowest <= since <= measure.highest:
            raise QueryError(f"{self}: since {since} is beyond what {measure.describe()} can express")
        if every > measure.highest:
            raise QueryError(f"{self}: its step is longer than {measure.describe()} can express")
        return (Steps(since, every),)

    def progressions(self, measure: Measure) -> tuple[tuple[Tick, Tick, Tick], ...] | None:
        """On a float measure, `since + k*every` must be the very numbers that its windows end at: no progression from zero."""
        if measure.floating:
            return None
        (steps,) = self.place(measure)
        return ((steps.every, steps.since % steps.every, 0),)

    @property
    def sizes(self) -> Mapping[str, Duration]:
        return {"every": self.every}

    @property
    def ends_after(self) -> Duration:
        return self.every

    def __str__(self) -> str:
        return f"landmark since {_shown(self.since)} every {self.every}"


def _shown(point: Point) -> str:
    if point.nanoseconds is None:
        return str(point.number)
    moment = str(np.datetime64(point.nanoseconds // 1000, "us"))
    finer = f"{point.nanoseconds % 1000:03}"
    return (moment + finer).removesuffix(".000000000").removesuffix("000")


def landmark(*, since: PointLike, every: DurationLike) -> Landmark:
    """Windows `[since, since + k*every)` for `k = 1, 2, ..`.

    A window is emitted for a key only if its last step holds an event of that key. Events before `since`
    belong to no window.

    Parameters
    ----------
    since
        Where all windows start: a `datetime`, a date, an Arrow or NumPy timestamp, or a plain number.
    every
        How much longer each window is than the one before: a duration, a `timedelta`, or a plain number.

    Returns
    -------
    Landmark
        A context-free window.

    Raises
    ------
    QueryError
        If `every` is not longer than zero.

    Examples
    --------
    >>> import windrow as wr
    >>> from datetime import datetime
    >>> str(wr.landmark(since=datetime(2024, 1, 1), every="1 day"))
    'landmark since 2024-01-01T00:00:00 every 1 day'
    """
    window = Landmark(
        parse_point(since, what="since of a landmark window"),
        parse_duration(every, what="every of a landmark window"),
    )
    require_positive(window.every, what="the step (every) of a landmark window")
    return window

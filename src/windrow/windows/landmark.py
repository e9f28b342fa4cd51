"""Landmark windows: they all start at one point and reach further and further.

    time    0    1    2    3    4    5    6
                 |---------|                           landmark(since=1, every=2)
                 |-------------------|
                 |-----------------------------|

A window is given out for a key only if its last step holds an event of that key. Events before the
landmark belong to no window. Context free (Cutty, section 3.2: lower-bound landmark windows).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.measure import Point, PointLike, parse_point
from windrow.windows.arguments import require_positive
from windrow.windows.base import Window


@dataclass(frozen=True)
class Landmark(Window):
    """See `landmark`."""

    since: Point = field()
    every: Duration

    layout = "keyed"

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

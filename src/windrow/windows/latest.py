"""The latest events, looked at every so often.

    time      0    1    2    3    4    5    6    7    8
    events      o    o o   o         o        o
    looked at             |              |              |        latest(rows=3, every=3)
                  |-------|
                         |-------------|
                              |-----------------------|

At every T = k*every + offset for which the key had an event since the last look, a window holds the
`rows` last events before T. It starts at the time of the first of them and ends at T. Cutty's
example of a window that is not deterministic (section 3.2): forward context aware.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.measure import INT64_MAX
from windrow.windows.arguments import require_count, require_positive
from windrow.windows.base import Window


@dataclass(frozen=True)
class Latest(Window):
    """The last `rows` events before each multiple of `every`."""

    rows: int
    every: Duration
    offset: Duration

    context = "forward context aware"
    layout = "ordered"

    @property
    def sizes(self) -> Mapping[str, Duration]:
        return {"every": self.every, "offset": self.offset}

    @property
    def ends_after(self) -> Duration:
        return self.every

    def __str__(self) -> str:
        shift = f" offset {self.offset}" if self.offset.magnitude else ""
        return f"the latest {self.rows} rows every {self.every}{shift}"


def next_look_integer(time, every, offset):  # type: ignore[no-untyped-def]
    """The first `k*every + offset` after an integer time; the last tick of all if it lies beyond."""
    remainder = time % every
    distance = offset - remainder if remainder < offset else every - (remainder - offset)
    return time + distance if time <= INT64_MAX - distance else INT64_MAX


def next_look_float(time, every, offset):  # type: ignore[no-untyped-def]
    """The first `k*every + offset` after a float time."""
    k = np.floor((time - offset) / every) + 1.0
    while offset + (k - 1.0) * every > time:
        k -= 1.0
    while offset + k * every <= time:
        k += 1.0
    return offset + k * every


def latest(*, rows: int, every: DurationLike, offset: DurationLike = 0) -> Latest:
    """The last events before each `T = k*every + offset`, where an event has come since the `T` before.

    A window starts at the time of the first of these events and ends at `T`.

    Parameters
    ----------
    rows
        How many events a window holds at most.
    every
        How far one `T` lies from the next: a duration, a `timedelta`, or a plain number.
    offset
        How far the `T` lie behind multiples of `every` since the epoch; 0 by default.

    Returns
    -------
    Latest
        A window that is forward context aware.

    Raises
    ------
    QueryError
        If `rows` is no whole number from 1 on, or `every` is not longer than zero.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.latest(rows=10, every="5 seconds"))
    'the latest 10 rows every 5 seconds'
    """
    window = Latest(
        require_count(rows, what="rows"),
        parse_duration(every, what="every"),
        parse_duration(offset, what="offset"),
    )
    require_positive(window.every, what="the step (every) of latest")
    if window.offset.magnitude and not window.offset.same_kind(window.every):
        raise QueryError(f"{window}: give every and offset both as durations or both as plain numbers")
    return window

"""Windows of a fixed length, one after every `every_rows` events.

    time       0    1    2    3    4    5    6
    events     1    2    3         4  5     6          numbered from 1
         ------------|                                 slide_by_rows(3, every_rows=2)
                  |--------------|
                             |--------------|

Whenever `every_rows` more events have come, a window looks back over `length`: it holds the events
in (t - length, t], where t is the time of the event that gave rise to it. Where a window starts is
known only when it ends: forward context aware (Li et al.; Scotty, section 4.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.windows.arguments import require_count, require_positive
from windrow.windows.base import Window


@dataclass(frozen=True)
class SlideByRows(Window):
    """The events of the last `length`, once every `every_rows` events."""

    length: Duration
    every_rows: int

    context = "forward context aware"
    layout = "ordered"

    @property
    def sizes(self) -> Mapping[str, Duration]:
        return {"length": self.length}

    @property
    def begins_before(self) -> Duration:
        return self.length

    def __str__(self) -> str:
        return f"the last {self.length} every {self.every_rows} rows"


def slide_by_rows(length: DurationLike, *, every_rows: int) -> SlideByRows:
    """The events of the last `length` of time, once every `every_rows` events of the key.

    A window holds the events in `(t - length, t]`, where `t` is the time of the event that completes the
    count.

    Parameters
    ----------
    length
        A duration, a `timedelta`, or a plain number.
    every_rows
        How many events come between two windows.

    Returns
    -------
    SlideByRows
        A window that is forward context aware.

    Raises
    ------
    QueryError
        If `length` is not longer than zero, or `every_rows` no whole number from 1 on.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.slide_by_rows("10 minutes", every_rows=100))
    'the last 10 minutes every 100 rows'
    """
    window = SlideByRows(parse_duration(length, what="length"), require_count(every_rows, what="every_rows"))
    require_positive(window.length, what="the length of a window that slides by rows")
    return window

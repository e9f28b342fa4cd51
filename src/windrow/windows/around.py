"""Windows around a point: some time before it, and some behind it.

    time    0    1    2    3    4    5    6
                           t=3
                 |-------------------|        around(before=2, after=2)     [t - 2, t + 2]

What SQL says with PRECEDING and FOLLOWING, and pandas with `center`. Like trailing windows they have no ends of their own, and are asked
with `Query.at`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from windrow.durations import Duration, DurationLike
from windrow.errors import QueryError
from windrow.measure import Measure, Tick
from windrow.windows.base import Window
from windrow.windows.trailing import Closed, not_negative, require_closed


@dataclass(frozen=True)
class Around(Window):
    """From `before` before t to `after` behind it."""

    before: Duration
    after: Duration
    closed: Closed = field()

    layout = "points"

    def stretch(self, measure: Measure) -> tuple[Tick, Tick]:
        """As `Window.stretch`."""
        return -measure.ticks(self.before, what="before"), measure.ticks(self.after, what="after")

    def __str__(self) -> str:
        closed = "" if self.closed == "both" else f" closed {self.closed}"
        return f"from {self.before} before to {self.after} after{closed}"


def around(*, before: DurationLike, after: DurationLike, closed: Closed = "both") -> Around:
    """At a time t, the events from `before` before it to `after` behind it: `[t - before, t + after]`.

    Such a window looks ahead, so it is for data that is all there; it is asked with `Query.at`.

    Parameters
    ----------
    before, after
        Durations such as `"5 minutes"`, `timedelta`, or plain numbers in the unit of the time column; not both zero, unless both edges
        belong to the window.
    closed
        Which of its two edges belong to the window: "both" (default), "left", "right" or "neither".

    Returns
    -------
    Around
        A window to be asked at points in time.

    Raises
    ------
    QueryError
        If a length is negative, or the window could hold nothing.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.around(before="1 hour", after="10 minutes"))
    'from 1 hour before to 10 minutes after'
    """
    require_closed(closed)
    window = Around(not_negative(before, what="before"), not_negative(after, what="after"), closed)
    lengths = window.before.magnitude, window.after.magnitude
    if all(lengths) and not window.before.same_kind(window.after):
        raise QueryError("give before and after both as durations or both as plain numbers")
    if not any(lengths) and closed != "both":
        raise QueryError("a window of no length holds nothing: before or after must be longer than zero")
    return window

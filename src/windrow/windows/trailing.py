"""Trailing windows: at a time t, the events of the last length of time, or the last number of events.

    time    0    1    2    3    4    5    6
                           t=3  .
                 |---------|                  trailing(2)               [t - 2, t)
            |---------|                       trailing(2, lag=1)        [t - 3, t - 1)

They have no ends of their own: who asks says when, with `Query.at`. By default an event at t itself is not in the window, so that what is
computed for a label never looks at the event that the label is of. In terms of Cutty, a window of time that ends at a point is context
free; the last events before one are forward context free.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, overload

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.measure import Measure, Tick
from windrow.windows.arguments import require_count, require_positive
from windrow.windows.base import Window
from windrow.wording import choices

Closed: TypeAlias = Literal["left", "right", "both", "neither"]
CLOSED: tuple[Closed, ...] = ("left", "right", "both", "neither")
BRACKETS = {"left": "[)", "right": "(]", "both": "[]", "neither": "()"}


@dataclass(frozen=True)
class Trailing(Window):
    """The last `length` of time, or the last `rows` events, up to `lag` before t. One of `length` and `rows` is set."""

    length: Duration | None
    rows: int | None
    closed: Closed = field()
    lag: Duration

    layout = "points"

    @property
    def last_rows(self) -> int | None:  # type: ignore[override]
        return self.rows

    def stretch(self, measure: Measure) -> tuple[Tick, Tick]:
        """As `Window.stretch`; of a number of rows, where the last one may lie."""
        lag = measure.ticks(self.lag, what="lag")
        if self.length is None:
            return -lag, -lag
        return -lag - measure.ticks(self.length, what="length"), -lag

    def __str__(self) -> str:
        size = f"{self.rows} rows" if self.length is None else str(self.length)
        lag = f" lag {self.lag}" if self.lag.magnitude else ""
        return f"trailing {size}{lag}{'' if self.closed == 'left' else f' closed {self.closed}'}"


@overload
def trailing(length: DurationLike, *, closed: Closed = "left", lag: DurationLike = 0) -> Trailing: ...
@overload
def trailing(*, rows: int, closed: Closed = "left", lag: DurationLike = 0) -> Trailing: ...
def trailing(
    length: DurationLike | None = None,
    *,
    rows: int | None = None,
    closed: Closed = "left",
    lag: DurationLike = 0,
) -> Trailing:
    """At a time t, the events of the last `length`: `[t - lag - length, t - lag)`. With `rows`, the last events before.

    Such a window is asked with `Query.at`; it has no end at which `Query.run` could emit it.

    Parameters
    ----------
    length
        A duration such as `"30 days"`, a `timedelta`, or a plain number in the unit of the time column.
    rows
        Instead of `length`: how many events.
    closed
        Which of its two edges belong to the window: "left" (default: events at t itself do not count), "right", "both" or "neither". Of
        the last rows, "left" leaves out events at t, and "right" counts them. Where events themselves are the points, these are the rows
        before each row, or up to it.
    lag
        How long before t the window ends; 0 by default.

    Returns
    -------
    Trailing
        A window to be asked at points in time.

    Raises
    ------
    QueryError
        If the length is not longer than zero, the lag negative, or arguments do not go together.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.trailing("30 days", lag="1 day"))
    'trailing 30 days lag 1 day'
    >>> str(wr.trailing(rows=100, closed="right"))
    'trailing 100 rows closed right'
    """
    if (length is None) == (rows is None):
        raise QueryError("trailing takes a length of time, or rows: one of the two")
    require_closed(closed)
    window = Trailing(
        None if length is None else parse_duration(length, what="length"),
        None if rows is None else require_count(rows, what="rows"),
        closed,
        not_negative(lag, what="lag"),
    )
    if window.length is not None:
        require_positive(window.length, what="the length of a trailing window")
        if window.lag.magnitude and not window.length.same_kind(window.lag):
            raise QueryError(f"{window}: give length and lag both as durations or both as plain numbers")
    elif closed not in ("left", "right"):
        raise QueryError(
            f'the last {rows} rows begin with a row, and not at an edge: closed is "left" or "right", not {closed!r}'
        )
    return window


def require_closed(closed: object) -> None:
    """An error unless it says which edges belong to a window."""
    if closed not in CLOSED:
        raise QueryError(
            f"closed must be left, right, both or neither, not {closed!r}{choices(closed, CLOSED)}"
        )


def not_negative(value: DurationLike, *, what: str) -> Duration:
    """A duration of zero or more."""
    duration = parse_duration(value, what=what)
    if duration.magnitude < 0:
        raise QueryError(f"{what} must not be negative, and is {duration}")
    return duration

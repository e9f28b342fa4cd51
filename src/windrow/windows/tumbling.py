"""Tumbling windows: one after the other, no gap, no overlap.

    time    0    1    2    3    4    5    6
            |---------|---------|---------|      tumbling(2)
                 |---------|---------|           tumbling(2, offset=1)

Context free: every edge is known before the first event (Scotty, section 2 and Figure 1). Counted
in events they are `rows.Rows`, on another column `advancing.Advancing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.measure import Measure
from windrow.windows.advancing import Advancing, advancing_window
from windrow.windows.arguments import require_positive
from windrow.windows.base import Periodic, Window
from windrow.windows.rows import Rows, refuse_with_rows, rows_window


@dataclass(frozen=True)
class Tumbling(Window):
    """Windows of `length`, one after the other, shifted by `offset`."""

    length: Duration
    offset: Duration

    tiles = True

    def place(self, measure: Measure) -> tuple[Periodic, ...]:
        length = measure.ticks(self.length, what="length")
        offset = measure.ticks(self.offset, what="offset")
        return (Periodic.of(length=length, every=length, offset=offset),)

    def __str__(self) -> str:
        shift = f" offset {self.offset}" if self.offset.magnitude else ""
        return f"tumbling {self.length}{shift}"


@overload
def tumbling(length: DurationLike, *, offset: DurationLike = 0) -> Tumbling: ...
@overload
def tumbling(*, rows: int) -> Rows: ...
@overload
def tumbling(length: int | float, *, on: str, offset: int | float = 0) -> Advancing: ...
def tumbling(
    length: DurationLike | None = None,
    *,
    offset: DurationLike = 0,
    rows: int | None = None,
    on: str | None = None,
) -> Tumbling | Rows | Advancing:
    """Windows `[k*length + offset, (k+1)*length + offset)` for every integer k.

    With `rows`, windows of a number of events. With `on`, windows on the running maximum of another column.

    Parameters
    ----------
    length
        A duration such as `"1 minute"`, a `timedelta`, or a plain number in the unit of the time column.
    offset
        How far starts lie behind multiples of `length` since the epoch; 0 by default.
    rows
        Instead of `length`: how many events a window holds.
    on
        A numeric column that advances with the events, such as kilometres driven; `length` and `offset` are
        then plain numbers in its unit. None (default) is the time column.

    Returns
    -------
    Tumbling, Rows or Advancing
        A context-free window; one over rows or on a column is forward context free.

    Raises
    ------
    QueryError
        If the length is not longer than zero, or arguments do not go together.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.tumbling("1 minute", offset="15 seconds"))
    'tumbling 1 minute offset 15 seconds'
    >>> str(wr.tumbling(rows=100))
    'tumbling 100 rows'
    >>> str(wr.tumbling(5, on="km"))
    "tumbling 5 on 'km'"
    """
    if rows is not None:
        refuse_with_rows(length=length, offset=offset, on=on, what="tumbling")
        return rows_window(rows, rows)
    if length is None:
        raise QueryError("tumbling needs a length or a number of rows")
    if on is not None:
        return advancing_window(on, length, length, offset)
    window = Tumbling(parse_duration(length, what="length"), parse_duration(offset, what="offset"))
    require_positive(window.length, what="the length of a tumbling window")
    return window

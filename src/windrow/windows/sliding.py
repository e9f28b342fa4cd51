"""Sliding windows: a fixed length, started anew at every slide.

    time    0    1    2    3    4    5    6
            |--------------|                     sliding(3, every=1)
                 |--------------|
                      |--------------|

The length need not be a multiple of the slide, and a slide longer than the length leaves gaps
that belong to no window. Context free (Scotty, section 2 and Figure 1); for slicing, the starts
and the ends are two sets of edges (section 7.1.2). Counted in events they are `rows.Rows`, on
another column `advancing.Advancing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.measure import Measure
from windrow.windows.advancing import Advancing, advancing_window
from windrow.windows.arguments import refuse_too_many, require_positive
from windrow.windows.base import Periodic, Window
from windrow.windows.rows import Rows, refuse_with_rows, rows_window


@dataclass(frozen=True)
class Sliding(Window):
    """Windows of `length`, one more each `every`, shifted by `offset`."""

    length: Duration
    every: Duration
    offset: Duration

    def place(self, measure: Measure) -> tuple[Periodic, ...]:
        length = measure.ticks(self.length, what="length")
        every = measure.ticks(self.every, what="every")
        refuse_too_many(length / every, what=str(self))
        offset = measure.ticks(self.offset, what="offset")
        return (Periodic.of(length=length, every=every, offset=offset),)

    def __str__(self) -> str:
        shift = f" offset {self.offset}" if self.offset.magnitude else ""
        return f"sliding {self.length} every {self.every}{shift}"


@overload
def sliding(length: DurationLike, *, every: DurationLike, offset: DurationLike = 0) -> Sliding: ...
@overload
def sliding(*, rows: int, every_rows: int) -> Rows: ...
@overload
def sliding(length: int | float, *, every: int | float, on: str, offset: int | float = 0) -> Advancing: ...
def sliding(
    length: DurationLike | None = None,
    *,
    every: DurationLike | None = None,
    offset: DurationLike = 0,
    rows: int | None = None,
    every_rows: int | None = None,
    on: str | None = None,
) -> Sliding | Rows | Advancing:
    """Windows `[k*every + offset, k*every + offset + length)` for every integer k.

    With `rows` and `every_rows`, windows of a number of events. With `on`, windows on the running maximum of
    another column.

    Parameters
    ----------
    length
        A duration such as `"1 hour"`, a `timedelta`, or a plain number in the unit of the time column.
    every
        How far one window starts behind the one before.
    offset
        How far starts lie behind multiples of `every` since the epoch; 0 by default.
    rows, every_rows
        Instead of `length` and `every`: how many events a window holds, and after how many the next one
        starts.
    on
        A numeric column that advances with the events, such as kilometres driven; `length`, `every` and
        `offset` are then plain numbers in its unit. None (default) is the time column.

    Returns
    -------
    Sliding, Rows or Advancing
        A context-free window; one over rows or on a column is forward context free.

    Raises
    ------
    QueryError
        If a length is not longer than zero, or arguments do not go together.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.sliding("1 hour", every="1 second"))
    'sliding 1 hour every 1 second'
    >>> str(wr.sliding(rows=100, every_rows=10))
    'sliding 100 rows every 10 rows'
    >>> str(wr.sliding(10, every=5, on="km"))
    "sliding 10 every 5 on 'km'"
    """
    if rows is not None:
        if every is not None:
            raise QueryError(
                "sliding over rows takes every_rows; for a look every so often use windrow.latest"
            )
        refuse_with_rows(length=length, offset=offset, on=on, what="sliding")
        if every_rows is None:
            raise QueryError("sliding over rows needs every_rows: after how many rows the next window starts")
        return rows_window(rows, every_rows)
    if every_rows is not None:
        raise QueryError("every_rows goes with rows; for a length of time use windrow.slide_by_rows")
    if length is None or every is None:
        raise QueryError("sliding needs a length and every, or rows and every_rows")
    if on is not None:
        return advancing_window(on, length, every, offset)
    window = Sliding(
        parse_duration(length, what="length"),
        parse_duration(every, what="every"),
        parse_duration(offset, what="offset"),
    )
    require_positive(window.length, what="the length of a sliding window")
    require_positive(window.every, what="the slide (every) of a sliding window")
    if not window.length.same_kind(window.every):
        raise QueryError(f"{window}: give length and slide both as durations or both as plain numbers")
    refuse_too_many(window.length.magnitude / window.every.magnitude, what=str(window))
    return window

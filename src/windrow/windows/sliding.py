"""Sliding windows: a fixed length, started anew at every slide.

    time    0    1    2    3    4    5    6
            |--------------|                     sliding(3, every=1)
                 |--------------|
                      |--------------|

The length need not be a multiple of the slide, and a slide longer than the length leaves gaps
that belong to no window. Context free (Scotty, section 2 and Figure 1); for slicing, the starts
and the ends are two sets of edges (section 7.1.2).
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.errors import QueryError
from windrow.measure import Measure
from windrow.windows.base import Periodic, Window, refuse_too_many, require_positive


@dataclass(frozen=True)
class Sliding(Window):
    """See `sliding`."""

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


def sliding(length: DurationLike, *, every: DurationLike, offset: DurationLike = 0) -> Sliding:
    """Windows `[k*every + offset, k*every + offset + length)` for every integer k.

    >>> import windrow as wr
    >>> str(wr.sliding("1 hour", every="1 second"))
    'sliding 1 hour every 1 second'
    """
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

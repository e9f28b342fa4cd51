"""Tumbling windows: one after the other, no gap, no overlap.

    time    0    1    2    3    4    5    6
            |---------|---------|---------|      tumbling(2)
                 |---------|---------|           tumbling(2, offset=1)

Context free: every edge is known before the first event (Scotty, section 2 and Figure 1).
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.durations import Duration, DurationLike, parse_duration
from windrow.measure import Measure
from windrow.windows.base import Periodic, Window, require_positive


@dataclass(frozen=True)
class Tumbling(Window):
    """See `tumbling`."""

    length: Duration
    offset: Duration

    def place(self, measure: Measure) -> tuple[Periodic, ...]:
        length = measure.ticks(self.length, what="length")
        offset = measure.ticks(self.offset, what="offset")
        return (Periodic.of(length=length, every=length, offset=offset),)

    def __str__(self) -> str:
        shift = f" offset {self.offset}" if self.offset.magnitude else ""
        return f"tumbling {self.length}{shift}"


def tumbling(length: DurationLike, *, offset: DurationLike = 0) -> Tumbling:
    """Windows `[k*length + offset, (k+1)*length + offset)` for every integer k.

    >>> import windrow as wr
    >>> str(wr.tumbling("1 minute", offset="15 seconds"))
    'tumbling 1 minute offset 15 seconds'
    """
    window = Tumbling(parse_duration(length, what="length"), parse_duration(offset, what="offset"))
    require_positive(window.length, what="the length of a tumbling window")
    return window

"""What goes into a discretizer and what comes out of it.

    run     key 3            key 7                    key number of each segment
            o  o  o  o       o  o                     rows, sorted by (key, time, arrival)
            bounds 0         4     6                  where each segment begins
    rank    12 13 14 15      0  1                     position in the key's sequence: seen[3] = 12

    windows (key 3, begin 10, end 14), (key 7, begin 0, end 2), ...

Each event is released once, in the order of its key's sequence, so a rank never changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from windrow.engine.arrays import ranges


@dataclass
class Run:
    """Events of several keys, released together.

    `inputs` are what the step of the window reads, a number per row each. `times` has one tick per row, `keys` the key number of each segment (ascending, distinct), and
    segment s is the rows `bounds[s] .. bounds[s+1]-1`, never none, the first of which has the rank
    `ranks[s]`. Later ties of its last events may still come. `tail_times(keys, ranks)` gives the times of
    events of earlier runs that lie in the tail of a discretizer.
    """

    inputs: list[np.ndarray]
    times: np.ndarray
    keys: np.ndarray
    bounds: np.ndarray
    ranks: np.ndarray
    tail_times: Callable[[np.ndarray, np.ndarray], np.ndarray]

    @cached_property
    def lengths(self) -> np.ndarray:
        """The number of rows in each segment."""
        return self.bounds[1:] - self.bounds[:-1]

    def without(self, count: np.ndarray) -> Run:
        """The same without `count[s]` rows at the front of segment s."""
        left = np.flatnonzero(self.lengths > count)
        low, high = (self.bounds[:-1] + count)[left], self.bounds[1:][left]
        rows, bounds = ranges(low, high), np.append(0, np.cumsum(high - low))
        inputs, ranks = [column[rows] for column in self.inputs], (self.ranks + count)[left]
        return Run(inputs, self.times[rows], self.keys[left], bounds, ranks, self.tail_times)


@dataclass
class Windows:
    """Windows whose end is known; parallel arrays.

    `begin` is the rank of the first event, `end` the rank behind the last one (greater than
    `begin`). `finish` is the end to show and to compare with the watermark, `start` the start to
    show; None stands for the time of the first event. `which` is the window's number in a discretizer
    that serves several.
    """

    key: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    finish: np.ndarray
    start: np.ndarray | None = None
    which: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def none(cls, dtype: np.dtype[Any], *, started: bool = False) -> Windows:
        """No windows, on a measure whose ticks are of this dtype."""
        empty = np.empty(0, np.int64)
        return cls(empty, empty, empty, np.empty(0, dtype), np.empty(0, dtype) if started else None)

    def where(self, mask: np.ndarray) -> Windows:
        """Only the windows for which `mask` holds."""
        if mask.all():
            return self
        start = None if self.start is None else self.start[mask]
        which = None if self.which is None else self.which[mask]
        return Windows(self.key[mask], self.begin[mask], self.end[mask], self.finish[mask], start, which)


def spread(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All integers of the ranges `low[i] .. high[i]-1`, and which range each belongs to."""
    return np.repeat(np.arange(len(low)), high - low), ranges(low, high)

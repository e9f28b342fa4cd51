"""Which windows have which lanes of a key.

lane of a key     0         1         2           3
                  gap 2     gap 5     gap 30      gap of a column
                  static, from the smallest gap up
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from windrow.engine.intake.numbers import frozen
from windrow.measure import Measure, Tick
from windrow.windows.base import Window


def gap_of(window: Window, measure: Measure) -> Tick:
    """The gap of a window in ticks; zero for a snapshot window, or where it comes from a column."""
    return 0 if window.gap is None else measure.ticks(window.gap, what="gap")


@dataclass(frozen=True)
class Lanes:
    """The windows of a query in the order of their lanes: static gaps, from the smallest up, then gaps of columns.

    spec[j] is the place of lane j's window in the query, gap[j] its gap in ticks for the `static` first ones.
    """

    windows: tuple[Window, ...]
    names: tuple[str, ...]
    spec: np.ndarray
    gap: tuple[Tick, ...]
    closed: np.ndarray  # whether the end that is shown is the tick behind the last event
    dtype: np.dtype[np.generic]

    @classmethod
    def of(cls, windows: Mapping[str, Window], measure: Measure) -> Lanes:
        known = list(windows.items())
        static = sorted((gap_of(w, measure), i) for i, (_, w) in enumerate(known) if w.gap_column is None)
        spec = [i for _, i in static] + [i for i, (_, w) in enumerate(known) if w.gap_column is not None]
        chosen = tuple(known[i][1] for i in spec)
        closed = np.array([w.pointwise for w in chosen])
        names, gaps = tuple(known[i][0] for i in spec), tuple(gap for gap, _ in static)
        return cls(chosen, names, np.array(spec), gaps, closed, measure.dtype)

    def __len__(self) -> int:
        return len(self.windows)

    @cached_property
    def static(self) -> int:
        """How many lanes have a static gap."""
        return len(self.gap)

    @cached_property
    def gaps(self) -> np.ndarray:
        """The static gaps, as a matrix of one column."""
        return frozen(np.array(self.gap, self.dtype)[:, None])

    @cached_property
    def some_closed(self) -> bool:
        return bool(self.closed.any())

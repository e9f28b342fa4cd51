"""Panes: each query's time cut into pieces of gcd(range, slide), and windows folded from them.

range 10, slide 3     gcd = 1
panes                 |-|-|-|-|-|-|-|-|-|-|-|-|-|
windows               |-------------------|
                            |-------------------|

order       in order only
windows     periodic windows of time in whole ticks
aggregates  those with a partial of fixed size
time        1 combine per event and query, range/gcd - 1 per window
space       range/gcd partials per query
paper       Li, Maier, Tufte, Papadimos and Tucker, No pane, no gain: efficient evaluation of
            sliding-window aggregates over data streams, SIGMOD Record 2005
"""

from __future__ import annotations

import numpy as np

from benchmarks.techniques.base import CUT_BEFOREHAND, Technique
from benchmarks.techniques.fragments import Fragmented, Fragments
from windrow.errors import QueryError


class _Panes(Fragmented):
    def fragments(self) -> Fragments:
        if self.measure.floating:
            raise QueryError(f"{self.measure.describe()} has no whole ticks, and panes need a common divisor")
        w = self.windows
        length = w.whole * w.every + w.rest
        pane = np.gcd(length, w.every)
        return Fragments(pane, w.offset, np.zeros_like(pane), w.every // pane, length // pane)


class Panes(Technique):
    """See the module."""

    method = _Panes
    no_sessions = CUT_BEFOREHAND

"""Pairs: each slide cut in two, where windows begin and where they end, and windows folded from that.

    range 10, slide 3     10 mod 3 = 1
    fragments             |-|---|-|---|-|---|-|---|-|
    windows               |-------------------|
                                |-------------------|

Where the slide divides the range, one fragment per slide is enough. Queries share nothing; in `pairs_plus` they do.

    order       in order only
    windows     periodic windows of time
    aggregates  those with a partial of fixed size
    time        1 combine per event and query, at most 2 ceil(range/slide) - 1 per window
    space       2 ceil(range/slide) partials per query
    paper       Krishnamurthy, Wu and Franklin, On-the-fly sharing for streamed aggregation, SIGMOD 2006
"""

from __future__ import annotations

import numpy as np

from benchmarks.techniques.base import CUT_BEFOREHAND, Technique
from benchmarks.techniques.fragments import Fragmented, Fragments
from windrow.planner.window_set import WindowSet


def pairs_of(windows: WindowSet) -> Fragments:
    """Where pairs cut these windows."""
    w = windows
    paired = w.rest > 0
    per = np.where(paired, 2, 1)
    return Fragments(w.every, w.offset, w.rest, per, np.where(paired, 2 * w.whole + 1, w.whole))


class _Pairs(Fragmented):
    def fragments(self) -> Fragments:
        return pairs_of(self.windows)


class Pairs(Technique):
    """See the module."""

    method = _Pairs
    no_sessions = CUT_BEFOREHAND

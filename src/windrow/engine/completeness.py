"""From when on a window that was added to a running operator is complete.

    slices     |----|--------|----|
    added      |---------|---------|      its first window would split a slice: not complete
                             ^ complete from the next start on

A slice that holds events cannot be split, because its events are gone. So a new window is complete
from its first start after the last of its edges that lies inside a slice.
"""

from __future__ import annotations

import math

import numpy as np

from windrow.engine.aligned.edges import edges_between
from windrow.engine.aligned.slices import Slices
from windrow.measure import Tick
from windrow.planner.window_set import WindowSet


def first_complete(alone: WindowSet, slices: Slices, floor: Tick | None) -> Tick | None:
    """The first complete start of the window in `alone`; None if there is no limit.

    `floor` is the time before which events may be gone already, if there is one.
    """
    broken = floor
    if len(slices):
        edges = edges_between(alone, slices.starts[0].item(), slices.ends[-1].item())
        inside = edges[slices.splits(edges)]
        if len(inside):
            after = next_after(inside[-1].item())
            broken = after if broken is None else max(broken, after)
    return None if broken is None else first_start(alone, broken)


def next_after(tick: Tick) -> Tick:
    """The tick that follows: the next integer, or the next float."""
    return math.nextafter(tick, math.inf) if isinstance(tick, float) else tick + 1


def first_start(windows: WindowSet, point: Tick) -> Tick:
    """The first start of a window at or after `point`."""
    candidates = []
    if len(windows.every):
        k = np.floor_divide(point - windows.offset, windows.every).astype(np.int64) - 1
        while np.any(windows.starts(k) < point):
            k += windows.starts(k) < point
        candidates.append(windows.starts(k).min())
    firsts = (placement.first_start(point) for _, placement in windows.irregular)
    candidates += [first for first in firsts if first is not None]
    return min(candidates, default=windows.measure.highest)

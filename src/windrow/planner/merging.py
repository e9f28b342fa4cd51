"""Which store merges the slices of the windows that are due: a small cost model.

The engine answers many windows at once, so each store has a form for a whole list of windows, and takes so many
combines for it:

    lazy                 slices of all windows, counted once per window
    subtract_on_evict    slices + windows: running totals, then one difference per window
    flat_fat             2 x slices + windows x 2 log2(slices per window)
    two_stacks_lite      2 x slices that pass through the queue + windows

A combine costs so much for itself and so much for each key; `python -m benchmarks.choice constants` measures
that. Where windows come one by one, far apart, nothing is shared and lazy is the best there is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log2

import numpy as np

from windrow.aggregates.base import Scalars, Sketch
from windrow.planner.window_set import WindowSet

NAMES = ("lazy", "subtract_on_evict", "flat_fat", "two_stacks_lite")


@dataclass(frozen=True)
class Load:
    """Windows to answer, and the slices of theirs.

    `covered` counts slices once per window, `spread` once. `queued` counts those that enter a queue which holds
    the slices of one window after another: more than once where a window is not the next one of its kind.
    """

    windows: int
    covered: int
    spread: int
    queued: int
    keys: int = 1


@dataclass(frozen=True)
class Cost:
    """Nanoseconds of a combine: for itself, and for each key."""

    step: float
    key: float


COSTS = {
    "lazy": Cost(3.6, 2.4),
    "subtract_on_evict": Cost(2.7, 5.2),
    "flat_fat": Cost(3.4, 2.0),
    "two_stacks_lite": Cost(1.2, 4.6),
}


def possible(partial: Scalars | Sketch, *, exact: bool) -> tuple[str, ...]:
    """The stores that may be chosen for a partial; `exact` says that its fields are integers.

    A float must never be subtracted, not even by an inverse of the user's own.
    """
    if isinstance(partial, Sketch):
        return "lazy", "two_stacks_lite"
    if exact and partial.invert is not None:
        return "lazy", "subtract_on_evict"
    return "lazy", "flat_fat", "two_stacks_lite"


@dataclass(frozen=True)
class Estimate:
    """A store, how many combines it takes, and how long that is in nanoseconds."""

    store: str
    combines: float
    nanoseconds: float


def steady_load(windows: WindowSet) -> Load:
    """A long stretch of a stream in which no slice is empty, per key."""
    stretch = 1000.0 * float(windows.longest)
    slices = float((stretch / windows.periods).sum())
    lengths = windows.whole * windows.every + windows.rest
    count = stretch / windows.every
    covered = float((count * np.maximum(1.0, lengths * (slices / stretch))).sum())
    kinds = len(windows.every)
    return Load(int(count.sum()), int(covered), int(slices), int(slices * kinds))


def estimates(load: Load, stores: Iterable[str] = NAMES) -> list[Estimate]:
    """What these stores cost, the cheapest first."""
    per_window = max(1.0, load.covered / max(1, load.windows))
    combines = {
        "lazy": float(load.covered),
        "subtract_on_evict": float(load.spread + load.windows),
        "flat_fat": 2.0 * load.spread + load.windows * 2.0 * log2(per_window),
        "two_stacks_lite": 2.0 * load.queued + load.windows,
    }
    found = []
    for store in stores:
        cost = COSTS[store]
        found.append(Estimate(store, combines[store], combines[store] * (cost.step + cost.key * load.keys)))
    return sorted(found, key=lambda estimate: estimate.nanoseconds)

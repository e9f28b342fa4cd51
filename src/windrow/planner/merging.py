"""Which store merges the slices of the windows that are due: a small cost model.

The engine answers many windows at once, so each store has a form for a whole list of windows. Some of its combines
serve all windows, the others one window each:

                         for all windows               for each window
    lazy                                               its slices
    subtract_on_evict    slices: running totals        1: a difference
    flat_fat             2 x slices: a tree            2 log2(its slices)
    two_stacks_lite      2 x slices that pass          1
                         through the queue

A store also takes some time to begin, which is all that counts where few windows are due: most of all two-stacks lite
with few keys, which it takes one after another. A combine costs so much for itself, and so much for each number in
it: the fields of a partial, for each key. `python -m benchmarks.choice constants` measures that. Where windows come
one by one, far apart, nothing is shared and lazy is the best there is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log2

import numpy as np

from windrow.aggregates.base import Scalars, Sketch
from windrow.planner.window_set import WindowSet

NAMES = ("lazy", "subtract_on_evict", "flat_fat", "two_stacks_lite")
# From this number of keys on, two-stacks lite is faster with one step for all keys than with all steps for each key.
MANY_KEYS = 8
KEY_BY_KEY = "two_stacks_lite, key by key"


@dataclass(frozen=True)
class Load:
    """Windows to answer, and the slices of theirs.

    `covered` counts slices once per window, `spread` once. `queued` counts those that enter a queue which holds
    the slices of one window after another: more than once where a window is not the next one of its kind.
    `width` is how many numbers a partial has.
    """

    windows: int
    covered: int
    spread: int
    queued: int
    keys: int = 1
    width: int = 1


@dataclass(frozen=True)
class Combine:
    """Nanoseconds of a combine: for itself, and for each number in it."""

    step: float
    number: float


@dataclass(frozen=True)
class Cost:
    """Nanoseconds to begin, of a combine that serves all windows, and of one that serves a single window."""

    begin: float
    shared: Combine
    single: Combine


COSTS = {
    "lazy": Cost(4665, Combine(0.00, 0.00), Combine(1.65, 0.83)),
    "subtract_on_evict": Cost(7077, Combine(2.70, 1.58), Combine(0.90, 1.55)),
    "flat_fat": Cost(6984, Combine(2.45, 1.16), Combine(1.93, 0.46)),
    "two_stacks_lite": Cost(4813, Combine(7.19, 1.09), Combine(6.52, 1.46)),
    "two_stacks_lite, key by key": Cost(28174, Combine(0.07, 0.94), Combine(8.34, 0.46)),
}


def form_of(store: str, keys: int) -> str:
    """Under which name a store stands in the table of costs."""
    return KEY_BY_KEY if store == "two_stacks_lite" and keys < MANY_KEYS else store


def width_of(partial: Scalars | Sketch) -> int:
    """How many numbers a partial has."""
    return sum(field.width or 1 for field in partial.fields)


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


def combines(load: Load) -> dict[str, tuple[float, float]]:
    """How many combines each store takes for all windows together, and for single windows."""
    per_window = max(1.0, load.covered / max(1, load.windows))
    return {
        "lazy": (0.0, load.covered),
        "subtract_on_evict": (load.spread, load.windows),
        "flat_fat": (2.0 * load.spread, load.windows * 2.0 * log2(per_window)),
        "two_stacks_lite": (2.0 * load.queued, load.windows),
    }


def estimates(load: Load, stores: Iterable[str] = NAMES) -> list[Estimate]:
    """What these stores cost, the cheapest first."""
    numbers = load.keys * load.width
    taken = combines(load)
    found = []
    for store in stores:
        cost, (shared, single) = COSTS[form_of(store, load.keys)], taken[store]
        time = cost.begin
        time += shared * (cost.shared.step + cost.shared.number * numbers)
        time += single * (cost.single.step + cost.single.number * numbers)
        found.append(Estimate(store, shared + single, time))
    return sorted(found, key=lambda estimate: estimate.nanoseconds)

"""Which store keeps the partials of a rolling window: a small cost model, as `merging` is for the engine.

An answer takes some nanoseconds whatever the window (`answer`), and more for each number of a partial beyond the first
(`further`; one number is what processors take several of at once); with `lazy`, more for each slice in the window (`slice`), and
with others more where it is too long for the processor's cache (`far`). Once in a window a store does something special
(`turn`), as SBA when a chunk is full: the shorter the window, the more often.

    answer  +  further x (numbers - 1)  +  far x numbers  +  slice x slices x numbers  +  turn / sqrt(slices)

Only stores that can be the best somewhere are looked at. `python -m benchmarks.choice constants` measures the
numbers, with windows that end with each row; their order counts, more than what they are for one aggregate.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from windrow.planner.merging import Estimate

# Numbers that fit in the processor's cache.
NUMBERS_NEARBY = 1 << 15


@dataclass(frozen=True)
class Cost:
    """Nanoseconds for each answer, for each further number in it, for each of a slice or far away, and for what is special."""

    answer: float
    further: float
    slice: float
    turn: float
    far: float

    def of(self, slices: int, width: int) -> float:
        """Nanoseconds of an answer from `slices` slices, whose partials have `width` numbers."""
        parts = (self.answer, self.further, self.slice, self.turn, self.far)
        return sum(cost * times for cost, times in zip(parts, shares(slices, width), strict=True))


def shares(slices: int, width: int) -> tuple[float, ...]:
    """How often each part of a cost counts for an answer."""
    return 1, width - 1, width * slices, 1 / sqrt(slices), width * (slices * width > NUMBERS_NEARBY)


COSTS = {
    "lazy": Cost(3.0, 5.6, 0.35, 0.0, 0.0),
    "subtract_on_evict": Cost(1.1, 1.1, 0, 1.9, 0.5),
    "two_stacks_lite": Cost(3.4, 2.2, 0, 0.0, 0.7),
    "sba": Cost(2.5, 2.0, 0, 4.8, 0.3),
    "pba": Cost(0.7, 0.4, 0, 0.0, 1.6),
}
# With shorter windows, two threads take longer to meet than one takes for all of it.
LEAST_FOR_TWO_THREADS = 1 << 17


def estimates(
    slices: int, *, exact: bool, row_by_row: bool, processors: int, width: int = 1
) -> list[Estimate]:
    """What the stores cost for windows of `slices` slices, the cheapest first.

    exact:       the aggregate has an exact inverse
    row_by_row:  a window ends with each row; else SBA has no loop that sees its work ahead
    width:       numbers of a partial
    """
    found = ["lazy", "two_stacks_lite"]
    found += ["subtract_on_evict"] if exact else []
    found += ["sba"] if row_by_row else []
    found += ["pba"] if row_by_row and slices >= LEAST_FOR_TWO_THREADS and processors > 1 else []
    combines = {"lazy": float(slices), "subtract_on_evict": 2.0}
    ranked = [Estimate(store, combines.get(store, 3.0), COSTS[store].of(slices, width)) for store in found]
    return sorted(ranked, key=lambda estimate: estimate.nanoseconds)

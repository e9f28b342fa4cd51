"""Which store keeps the partials of a rolling window: a small cost model, as `merging` is for the engine.

An answer takes so many nanoseconds whatever the window; with `lazy`, so many more for each slice in it. Once in a
window a store does something special, as SBA when a chunk is full: the shorter the window, the more often.

    nanoseconds      answer  +  slice x slices  +  turn / slices

Only stores that can be the best somewhere are looked at. `python -m benchmarks.choice constants` measures the
numbers, with windows that end with each row; their order counts, more than what they are for one aggregate.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.planner.merging import Estimate


@dataclass(frozen=True)
class Cost:
    """Nanoseconds for each answer, each slice in a window, and each time that a window has passed."""

    answer: float
    slice: float
    turn: float

    def of(self, slices: int) -> float:
        """Nanoseconds of an answer from so many slices."""
        return self.answer + self.slice * slices + self.turn / slices


COSTS = {
    "lazy": Cost(9.1, 0.57, 3.0),
    "subtract_on_evict": Cost(3.6, 0, 4.3),
    "two_stacks_lite": Cost(7.0, 0, 0.0),
    "sba": Cost(5.1, 0, 11.6),
    "pba": Cost(4.4, 0, 15.7),
}
# With shorter windows, two threads take longer to meet than one takes for all of it.
LEAST_FOR_TWO_THREADS = 1 << 16


def estimates(slices: int, *, exact: bool, row_by_row: bool, processors: int) -> list[Estimate]:
    """What the stores cost for windows of so many slices, the cheapest first.

    exact:       the aggregate has an exact inverse
    row_by_row:  a window ends with each row; else SBA has no loop that sees its work ahead
    """
    found = ["lazy", "two_stacks_lite"]
    found += ["subtract_on_evict"] if exact else []
    found += ["sba"] if row_by_row else []
    found += ["pba"] if row_by_row and slices >= LEAST_FOR_TWO_THREADS and processors > 1 else []
    combines = {"lazy": float(slices), "subtract_on_evict": 2.0}
    ranked = [Estimate(store, combines.get(store, 3.0), COSTS[store].of(slices)) for store in found]
    return sorted(ranked, key=lambda estimate: estimate.nanoseconds)

"""Which store keeps the partials of a rolling window: a small cost model, as `merging` is for the engine.

An answer takes so many nanoseconds, whatever the window; with `lazy`, so many more for each slice in it. Only
stores that can be the best somewhere are looked at. The numbers are those of `max` and `sum` of integers over many
rows on one machine: their order counts. `python -m benchmarks choice` shows where they mislead.
"""

from __future__ import annotations

from windrow.planner.merging import Estimate

# Nanoseconds per answer, and per slice.
COSTS = {
    "lazy": (3.0, 1.6),
    "subtract_on_evict": (2.4, 0.0),
    "two_stacks_lite": (4.0, 0.0),
    "sba": (3.6, 0.0),
    "pba": (2.2, 0.0),
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
    costs = {store: COSTS[store][0] + COSTS[store][1] * slices for store in found}
    combines = {"lazy": float(slices), "subtract_on_evict": 2.0}
    ranked = [Estimate(store, combines.get(store, 3.0), cost) for store, cost in costs.items()]
    return sorted(ranked, key=lambda estimate: estimate.nanoseconds)

"""Is the store that the planner picks the best one?

Windows over slices, merged by each store that has a form for lists of windows, and by the one that the planner
picks from the numbers of windows, slices and keys alone. Rolling windows, answered by each store that the aggregate
permits. Regret is the time of the pick over that of the best.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.support.harness import SCALES, Line, Scale, Table, at_most, clocked, race
from windrow.aggregates.base import Aggregate
from windrow.engine.cutting import Cells
from windrow.engine.pairing import chosen
from windrow.engine.partials import Numbers, store_for
from windrow.engine.windows import Due
from windrow.planner.merging import NAMES, Load, estimates, possible
from windrow.rolling import Rolling
from windrow.stores import STORES

REGRET = "regret"
AGGREGATES: dict[str, tuple[Aggregate, pa.DataType]] = {
    "max of integers": (wr.max("x"), pa.int64()),
    "sum of integers": (wr.sum("x"), pa.int64()),
    "sum of floats": (wr.sum("x"), pa.float64()),
    "variance": (wr.variance("x"), pa.float64()),
}
# Slices per window, and slices from one window to the next.
SHAPES = ((2, 1), (8, 1), (64, 1), (1_000, 1), (64, 16), (1_000, 100))
KEYS = (1, 10, 100)
KINDS = (1, 20)
# Slices per window, and rows per slice.
ROLLING = ((2, 1), (8, 1), (64, 1), (1_000, 1), (100_000, 1), (4, 10), (100, 10), (10_000, 10))
MOST_FOR_LAZY = 100


@dataclass(frozen=True)
class Workload:
    """`kinds` of windows over the same slices: the second kind is one slice longer than the first, and so on."""

    aggregate: str
    length: int
    every: int
    keys: int
    kinds: int

    def __str__(self) -> str:
        kinds = f", {self.kinds} kinds" if self.kinds > 1 else ""
        return f"{self.aggregate}: {self.length:,} slices every {self.every}, {self.keys} keys{kinds}"

    def partials(self, slices: int) -> Numbers:
        """Slices of one event each."""
        aggregate, type_ = AGGREGATES[self.aggregate]
        numbers: Any = store_for(aggregate.bind((type_,)), np.dtype(np.int64))
        numbers.repack(np.empty(0, np.int64), slices, self.keys, slice(None))
        values = np.random.default_rng(0).integers(0, 1_000, slices * self.keys)
        typed = values.astype(np.float64 if pa.types.is_floating(type_) else np.int64)
        numbers.fold(Cells(np.arange(slices * self.keys)), [typed], ())
        return numbers

    def due(self, slices: int) -> Due:
        """All windows that fit, kind by kind, as the engine lists them."""
        kinds = [np.arange(0, slices - self.length - kind, self.every) for kind in range(self.kinds)]
        first = np.concatenate(kinds)
        last = first + np.repeat(self.length + np.arange(self.kinds), [len(kind) for kind in kinds])
        return Due(np.repeat(np.arange(self.kinds), [len(kind) for kind in kinds]), first, last, first, last)


def workloads() -> Iterator[Workload]:
    for aggregate in AGGREGATES:
        for length, every in SHAPES:
            for keys in KEYS:
                for kinds in KINDS:
                    if keys < 100 or kinds == 1:
                        yield Workload(aggregate, length, every, keys, kinds)


def times(workload: Workload, scale: Scale) -> tuple[Load, dict[str, float], str]:
    """What is to be done, the seconds that each store takes for it, and the store that the planner picks."""
    slices = max(1_200, min(8_192, scale.events // 250) // max(1, workload.keys // 10))
    numbers, due, slots = workload.partials(slices), workload.due(slices), np.arange(slices)
    picked = numbers.merging.chosen(due, workload.keys)
    exact = all(dtype.kind == "i" for dtype in numbers.dtypes)
    stores = [s for s in NAMES if s in possible(numbers.spec, exact=exact) or s == "two_stacks_lite"]

    def merge(store: str) -> None:
        numbers.merging.store = store
        numbers.merge(due, slots, workload.keys)

    for store in stores:
        merge(store)
    # The grid is wide and each workload short: a few rounds of each are enough.
    best = race({store: clocked(partial(merge, store)) for store in stores}, replace(scale, seconds=0))
    spread = due.span[1] - due.span[0]
    return Load(len(due), due.covered, spread, due.queued, workload.keys), best, picked


@dataclass(frozen=True)
class RollingWorkload:
    """A window of so many slices of `every` rows."""

    aggregate: str
    slices: int
    every: int

    def __str__(self) -> str:
        return f"{self.aggregate}: {self.slices:,} slices of {self.every} rows"

    def times(self, scale: Scale) -> tuple[dict[str, float], str]:
        """The seconds that each store takes, and the store that the planner picks."""
        aggregate, type_ = AGGREGATES[self.aggregate]
        rows = max(4 * self.slices * self.every, scale.events // 10)
        values = np.random.default_rng(0).integers(0, 1_000_000, rows)
        table = pa.table({"x": pa.array(values).cast(type_)})
        picked = chosen("auto", aggregate, table.schema, slices=self.slices, row_by_row=self.every == 1)

        def run(store: str) -> None:
            Rolling(aggregate, rows=self.slices * self.every, every=self.every, store=store).process(table)

        stores = []
        for store in STORES:
            if store == "lazy" and self.slices > MOST_FOR_LAZY:
                continue
            try:
                run(store)
            except wr.QueryError:
                continue  # the aggregate does not permit it
            stores.append(store)
        best = race({store: clocked(partial(run, store)) for store in stores}, replace(scale, seconds=0))
        return best, picked.name


def regrets(title: str, found: Iterable[tuple[str, dict[str, float], str]]) -> Table:
    """A line for each workload, from the seconds of each store and the name of the pick; the worst comes first."""
    lines = []
    for workload, best, picked in found:
        fastest = min(best, key=lambda store: best[store])
        figures = {REGRET: best[picked] / best[fastest], "picked": picked, "best": fastest}
        lines.append(Line(workload, figures, at_most(REGRET, 1.5)))
    worst = max(lines, key=lambda line: float(line.figures[REGRET] or 0))
    summary = Line(f"the worst of {len(lines)} workloads", worst.figures, at_most(REGRET, 1.5), headline=True)
    return Table(title, (summary, *lines), REGRET)


def measure(scale: Scale) -> list[Table]:
    few = scale.name == "tiny"
    merged = list(workloads())[:: 12 if few else 1]
    rolling = [
        RollingWorkload(aggregate, slices, every)
        for aggregate in (list(AGGREGATES)[:1] if few else AGGREGATES)
        for slices, every in (((16, 1),) if few else ROLLING)
    ]
    return [
        regrets("Slices merged into windows", ((str(w), *times(w, scale)[1:]) for w in merged)),
        regrets("Rolling windows", ((str(w), *w.times(scale)) for w in rolling)),
    ]


def constants() -> dict[str, tuple[float, float]]:
    """Nanoseconds per combine of each store: for itself and for each key, by least squares of relative errors."""
    rows: dict[str, list[tuple[float, float, float]]] = {name: [] for name in NAMES}
    for workload in workloads():
        load, best, _ = times(workload, SCALES["small"])
        for estimate in estimates(load, best):
            time = best[estimate.store] * 1e9
            rows[estimate.store].append((estimate.combines, estimate.combines * workload.keys, time))
    found = {}
    for store, measured in rows.items():
        table = np.array(measured)
        parts, *_ = np.linalg.lstsq(table[:, :2] / table[:, 2:], np.ones(len(table)), rcond=None)
        found[store] = (float(parts[0]), float(parts[1]))
    return found


if __name__ == "__main__":
    if sys.argv[1:] != ["constants"]:
        sys.exit("python -m benchmarks.choice constants prints the constants of the cost model")
    for store, (step, key) in constants().items():
        print(f'    "{store}": Cost({step:.1f}, {key:.1f}),')

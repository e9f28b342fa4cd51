"""Is the store that the planner picks the best one?

Windows over slices, merged by each store that has a form for lists of windows, and by the one that the planner
picks from the numbers of windows, slices and keys alone. Rolling windows, answered by each store that the aggregate
permits; rows come in batches too short to be shared by two threads, unless windows are long. Regret is the time of
the pick over that of the best. Time is that of the processor; where two threads work, of the busier one.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.support.harness import SCALES, Figure, Line, Scale, Table, at_most
from windrow.aggregates.base import Aggregate
from windrow.aggregates.extremes import PLAIN
from windrow.engine.aligned.cutting import Cells
from windrow.engine.functions.store_compatibility import chosen
from windrow.engine.partials import Numbers, store_for
from windrow.engine.spanning.carry_over import Crossings, Extent, crossed_by
from windrow.engine.spanning.placing import Ranges
from windrow.engine.windows import ClosedWindows
from windrow.planner import rolling
from windrow.planner.merging import COSTS, NAMES, Load, combines, form_of, possible, width_of
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
# Slices whose windows are due at once: after a long batch, and after a short one.
MANY, FEW = 8_192, 300
# Slices per window, and rows per slice.
ROLLING = (
    *((slices, 1) for slices in (2, 3, 4, 8, 16, 64, 1_000, 20_000, 100_000, 300_000)),
    *((slices, 10) for slices in (4, 100, 10_000)),
)
# Compiling takes longer than measuring. A float sum behaves as variance does.
ROLLED = ("max of integers", "sum of integers", "variance")
# FiBA is for partials that come too late, and far behind in order; of two stores the lite form does for both.
IN_ORDER = tuple(store for store in STORES if store not in ("fiba", "two_stacks", "daba"))
A_FEW = ("two_stacks_lite", "sba")
BATCH = 80_000
MOST_FOR_LAZY = 100
# So many rounds for those that may be the best, a few for the others, and one for those that are far behind.
ROUNDS, FEW_ROUNDS = 16, 5
NEAR, FAR = 2.5, 20.0


def seconds(work: Callable[[], object]) -> float:
    """Processor time of the busier thread: what the work takes where nothing else runs."""
    everyone, own = time.process_time(), time.thread_time()
    work()
    own = time.thread_time() - own
    everyone = time.process_time() - everyone
    return max(own, everyone - own)


def race(run: Callable[[str], object], stores: Sequence[str], picked: str, scale: Scale) -> dict[str, float]:
    """The best time of each store. They take turns, and who falls behind has fewer of them, unless it is the pick."""
    best = dict.fromkeys(stores, np.inf)
    gc.collect()
    gc.disable()
    try:
        for done in range(1 if scale.name == "tiny" else ROUNDS):
            behind = FAR if done < FEW_ROUNDS else NEAR
            least = min(best.values())
            for store in stores:
                if done == 0 or store == picked or best[store] <= behind * least:
                    best[store] = min(best[store], seconds(lambda store=store: run(store)))  # type: ignore[misc]
    finally:
        gc.enable()
    return best


@dataclass(frozen=True)
class Found:
    """The best seconds of each store, and the store that the planner picks."""

    best: dict[str, float]
    picked: str


@dataclass(frozen=True)
class Workload:
    """`kinds` of windows over `slices`: the second kind is one slice longer than the first, and so on."""

    aggregate: str
    length: int
    every: int
    keys: int
    kinds: int
    slices: int

    def __str__(self) -> str:
        kinds = f", {self.kinds} kinds" if self.kinds > 1 else ""
        few = ", few windows" if self.slices == FEW else ""
        return f"{self.aggregate}: {self.length:,} slices every {self.every}, {self.keys} keys{kinds}{few}"

    def partials(self) -> Numbers:
        """Slices of one event each."""
        aggregate, type_ = AGGREGATES[self.aggregate]
        numbers: Any = store_for(aggregate.bind((type_,)), np.dtype(np.int64))
        numbers.repack(np.empty(0, np.int64), self.slices, self.keys, slice(None))
        values = np.random.default_rng(0).integers(0, 1_000, self.slices * self.keys)
        typed = values.astype(np.float64 if pa.types.is_floating(type_) else np.int64)
        numbers.fold(Cells(np.arange(self.slices * self.keys)), [typed], ())
        return numbers

    def due(self) -> ClosedWindows:
        """All windows that fit, kind by kind, as the engine lists them."""
        kinds = [np.arange(0, self.slices - self.length - kind, self.every) for kind in range(self.kinds)]
        first = np.concatenate(kinds)
        last = first + np.repeat(self.length + np.arange(self.kinds), [len(kind) for kind in kinds])
        return ClosedWindows(
            np.repeat(np.arange(self.kinds), [len(kind) for kind in kinds]), first, last, first, last
        )

    def load(self) -> Load:
        """What is to be done, as the planner sees it."""
        due, (aggregate, type_) = self.due(), AGGREGATES[self.aggregate]
        width = width_of(aggregate.bind((type_,)).partial)  # type: ignore[arg-type]
        return Load(len(due), due.covered, due.span[1] - due.span[0], due.queued, self.keys, width)

    def times(self, scale: Scale) -> Found:
        """Each store merges the windows that are due."""
        numbers, due, slots = self.partials(), self.due(), np.arange(self.slices)
        picked = numbers.merging.chosen(due, self.keys)
        exact = all(dtype.kind == "i" for dtype in numbers.dtypes)
        stores = [s for s in NAMES if s in possible(numbers.spec, exact=exact) or s == "two_stacks_lite"]

        def merge(store: str, windows: ClosedWindows = due) -> None:
            numbers.merging.store = store
            numbers.merge(windows, slots, self.keys)

        for store in stores:
            merge(store, due.where(slice(0, 2)))  # compiles
        return Found(race(merge, stores, picked, scale), picked)


def workloads() -> Iterator[Workload]:
    for aggregate in AGGREGATES:
        for length, every in SHAPES:
            for keys in KEYS:
                for kinds in KINDS:
                    slices = max(1_200, MANY // max(1, keys * kinds // 20))
                    if keys < 100 or kinds == 1:
                        yield Workload(aggregate, length, every, keys, kinds, slices)
                    if length < FEW and keys < 100 and kinds == 1:
                        yield Workload(aggregate, length, every, keys, kinds, FEW)


@dataclass(frozen=True)
class RollingWorkload:
    """A window of so many slices of `every` rows."""

    aggregate: str
    slices: int
    every: int

    def __str__(self) -> str:
        return f"{self.aggregate}: {self.slices:,} slices of {self.every} rows"

    def rows(self, scale: Scale) -> int:
        return max(4 * self.slices * self.every, min(BATCH, scale.events))

    def times(self, scale: Scale, among: Sequence[str] = IN_ORDER) -> Found:
        """Each store answers the windows of a batch."""
        aggregate, type_ = AGGREGATES[self.aggregate]
        values = np.random.default_rng(0).integers(0, 1_000_000, self.rows(scale))
        table = pa.table({"x": pa.array(values).cast(type_)})
        picked = chosen("auto", aggregate, table.schema, slices=self.slices, row_by_row=self.every == 1)

        def run(store: str) -> None:
            Rolling(aggregate, rows=self.slices * self.every, every=self.every, store=store).process(table)

        stores = []
        for store in A_FEW if scale.name == "tiny" else among:
            if store == "lazy" and self.slices > MOST_FOR_LAZY:
                continue
            try:
                run(store)  # compiles
            except wr.QueryError:
                continue  # the aggregate does not permit it
            stores.append(store)
        return Found(race(run, stores, picked.name, scale), picked.name)


def rolling_workloads() -> list[RollingWorkload]:
    return [RollingWorkload(aggregate, slices, every) for aggregate in ROLLED for slices, every in ROLLING]


def regrets(title: str, found: Iterable[tuple[str, Found]]) -> Table:
    """A line for each workload, from the seconds of each store and the name of the pick; the worst comes first."""
    lines = []
    for workload, raced in found:
        best, picked = raced.best, raced.picked
        fastest = min(best, key=lambda store: best[store])
        figures: dict[str, Figure] = {REGRET: best[picked] / best[fastest], "picked": picked, "best": fastest}
        lines.append(Line(workload, figures, at_most(REGRET, 1.5)))
    worst = max(lines, key=lambda line: float(line.figures[REGRET] or 0))
    summary = Line(f"the worst of {len(lines)} workloads", worst.figures, at_most(REGRET, 1.5), headline=True)
    return Table(title, (summary, *lines), REGRET)


def measure(scale: Scale) -> list[Table]:
    merged, rolled = list(workloads()), rolling_workloads()
    if scale.name == "tiny":
        # One without an inverse and one with it: each store is in one of them.
        merged = [Workload(aggregate, 64, 16, 1, 1, FEW) for aggregate in list(AGGREGATES)[:2]]
        rolled = [RollingWorkload(ROLLED[0], 16, 1)]
    return [
        regrets("Slices merged into windows", ((str(w), w.times(scale)) for w in merged)),
        regrets("Rolling windows", ((str(w), w.times(scale)) for w in rolled)),
    ]


def fitted(rows: Sequence[Sequence[float]], nanoseconds: Sequence[float]) -> np.ndarray:
    """What each column costs, by least squares of relative errors. Nothing costs less than nothing."""
    table = np.array(rows, float) / np.array(nanoseconds)[:, np.newaxis]
    kept, costs = table.any(axis=0), np.zeros(table.shape[1])
    while True:
        costs[:] = 0.0
        costs[kept] = np.linalg.lstsq(table[:, kept], np.ones(len(table)), rcond=None)[0]
        if (costs >= 0).all():
            return costs
        kept &= costs > 0


def merging_constants(scale: Scale) -> Iterator[str]:
    """The table of `planner.merging`, line by line."""
    rows: dict[str, list[list[float]]] = {form: [] for form in COSTS}
    times: dict[str, list[float]] = {form: [] for form in COSTS}
    for workload in workloads():
        load = workload.load()
        numbers = load.keys * load.width
        for store, best in workload.times(scale).best.items():
            shared, single = combines(load)[store]
            form = form_of(store, load.keys)
            rows[form].append([1, shared, shared * numbers, single, single * numbers])
            times[form].append(best * 1e9)
    for form in COSTS:
        begin, *parts = fitted(rows[form], times[form])
        told = [f"Combine({parts[i]:.2f}, {parts[i + 1]:.2f})" for i in (0, 2)]
        yield f'    "{form}": Cost({begin:.0f}, {", ".join(told)}),'


def rolling_constants(scale: Scale) -> Iterator[str]:
    """The table of `planner.rolling`, line by line."""
    rows: dict[str, list[list[float]]] = {store: [] for store in rolling.COSTS}
    times: dict[str, list[float]] = {store: [] for store in rolling.COSTS}
    for workload in rolling_workloads():
        if workload.every == 1:
            aggregate, type_ = AGGREGATES[workload.aggregate]
            width = width_of(aggregate.bind((type_,)).partial)  # type: ignore[arg-type]
            for store, best in workload.times(scale, tuple(rolling.COSTS)).best.items():
                if store == "pba" and workload.slices < rolling.LEAST_FOR_TWO_THREADS:
                    continue  # it is SBA there
                one, further, slice_, turn, far = rolling.shares(workload.slices, width)
                rows[store].append([one, further, slice_ if store == "lazy" else 0, turn, far])
                times[store].append(best * 1e9 / workload.rows(scale))
    for store in rows:
        answer, further, slice_, turn, far = fitted(rows[store], times[store])
        yield f'    "{store}": Cost({answer:.1f}, {further:.1f}, {slice_:.2g}, {turn:.1f}, {far:.1f}),'


def spanning_constants(scale: Scale) -> Iterator[str]:
    """The constants of `planner.spanning`, line by line."""
    events, slices = scale.events // 10, 20_000
    generator = np.random.default_rng(1)
    values = [generator.integers(0, 1_000_000, events)]
    rows, times = [], []
    for length, keys in product((4, 32, 256), (1, 10)):
        low = generator.integers(0, slices - length, events)
        key = generator.integers(0, keys, events)
        ranges = Ranges(np.arange(1, events + 1), low, low + length - 1, key, np.arange(slices) * keys, keys)
        crossed = Crossings(PLAIN["max", "i"], 1, np.dtype(np.int64))
        crossed.repack(np.empty(0, np.int64), slices, keys, slice(0, 0))
        extent = Extent(*crossed_by(ranges.low, ranges.high))
        rows.append([events * length, 0, 0])
        times.append(1e9 * min(seconds(partial(crossed.fold_at_each, ranges, values)) for _ in range(3)))
        for height in (3, 6, 9):
            tree = partial(crossed.fold_through_tree, ranges, values, extent, np.arange(keys), key, height)
            rows.append([0, events * (height + length / 2**height), extent.slices * keys])
            times.append(1e9 * min(seconds(tree) for _ in range(3)))
    for name, cost in zip(("START", "NODE", "PUSH"), fitted(rows, times), strict=True):
        yield f"{name} = {cost:.1f}"


if __name__ == "__main__":
    if sys.argv[1:] != ["constants"]:
        sys.exit("python -m benchmarks.choice constants prints the constants of the cost models")
    models = {"merging": merging_constants, "rolling": rolling_constants, "spanning": spanning_constants}
    for model, lines in models.items():
        print(f"constants of planner/{model}.py")
        print(*lines(SCALES["small"]), sep="\n")

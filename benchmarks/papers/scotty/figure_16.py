"""Figure 16: how long an answer takes once its window has ended, by the number of entries that it is merged from.

    16a          a store in compiled code, as the paper's microbenchmark has it: lazy merging (lazy slicing, tuple
                 buffers), a tree (eager slicing, aggregate trees), and the one partial of a bucket
    16a, call    sum, and
    16c          median: a whole `advance` that gives out one window, with the row that comes out of it

An entry is a slice or an event: it makes no difference to a store. A bucket has one, whatever came.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.papers import findings
from benchmarks.papers.contenders import CANNOT, CONTENDERS, SLICING
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.support.harness import Figure, clocked
from windrow import QueryError
from windrow.engine.functions.bound_kernels import compiled, operations_of
from windrow.stores import STORES
from windrow.stores.operations import evict, insert, lift, put, query

LAZY, TREE, BUCKET = "lazy slicing, tuple buffer", "eager slicing, aggregate tree", "buckets"
STORE_OF = {LAZY: "lazy", TREE: "flat_fat", BUCKET: "lazy"}
NAMES = [SLICING, "aggregate buckets", "tuple buckets", "tuple buffer", "aggregate tree"]
AXIS = "entries in the window"
STORE_TIME, CALL_TIME = "ns per answer", "µs per window"
CALLS = 9


def fill(inputs, entries, state, cells, notes):
    """A window that has slid on by half, so that it runs over the end of a ring."""
    for i in range(entries):
        state = insert(state, cells, notes, lift(inputs, i))
    for i in range(entries // 2):
        state = evict(state, cells, notes)
        state = insert(state, cells, notes, lift(inputs, i))
    return state


def ask(state, cells, notes, times, out):
    """The same question again and again; `out` could be the store's own memory for all the compiler knows."""
    for i in range(times):
        put(out, i, query(state, cells, notes))


def answering(name: str, entries: int) -> float:
    """Nanoseconds for an answer of a store that holds so many sums."""
    held = 1 if name == BUCKET else entries
    store, given = STORES[STORE_OF[name]], operations_of(wr.sum("value").bind((pa.int64(),)))
    cells, notes = given.cells(store.cells(held)), np.zeros(store.notes(held), np.int64)
    values = np.random.default_rng(16).integers(0, 1_000, held)
    state = compiled(fill, store, given)((values,), held, store.create(held, given.identity), cells, notes)
    run = compiled(ask, store, given)
    times = max(10, 2_000_000 // entries) if name == LAZY else 20_000
    out = given.cells(times)
    best = min(clocked(lambda: run(state, cells, notes, times, out))() for _ in range(5))
    assert out[0][0] == values.sum(), f"{name}: not the sum of what it holds"
    return best / times * 1e9


def calling(name: str, entries: int, aggregate: wr.Aggregate) -> Figure:
    """Microseconds for an `advance` that gives out one window of so many entries."""
    windows: dict[str, wr.Window] = {"w": wr.tumbling(entries)}
    if name == SLICING:
        windows["slices"] = wr.tumbling(1)  # so that each event is a slice; one of these windows ends, too
    asked = wr.query(time="ts", windows=windows, aggregates={"answer": aggregate})
    try:
        operator: Any = CONTENDERS[name].make(asked)
    except QueryError:
        return CANNOT
    seconds = []
    for call in range(CALLS):
        times = np.arange(call * entries, (call + 1) * entries)
        values = np.random.default_rng(call).integers(0, 1_000, entries)
        operator.process(pa.table({"ts": times, "value": values}))
        operator.advance(int(times[-1]))
        begin = time.perf_counter()
        rows = operator.advance(int(times[-1]) + 1)
        seconds.append(time.perf_counter() - begin)
        assert len(rows) == len(windows), f"{name}: {len(rows)} windows at once"
    return min(seconds) * 1e6


def measure(setting: Setting) -> Outcome:
    scale = setting.scale
    entries = scale.pick(
        tiny=(10, 100), small=(10, 100, 1_000, 10_000, 100_000), full=(10, 100, 1_000, 10_000, 100_000)
    )
    stores = {name: {n: answering(name, n) for n in entries} for name in STORE_OF}
    sums = {name: {n: calling(name, n, wr.sum("value")) for n in entries} for name in NAMES}
    medians = {name: {n: calling(name, n, wr.median("value")) for n in entries} for name in NAMES}
    logarithmic = {"log_x": True, "log_y": True}
    panels = [
        Panel("scotty-16a", "Figure 16a, sum, in the store", AXIS, STORE_TIME, stores, **logarithmic),
        Panel("scotty-16a-call", "Figure 16a, sum, a whole call", AXIS, CALL_TIME, sums, **logarithmic),
        Panel(
            "scotty-16c",
            "Figure 16c, median, a whole call",
            AXIS,
            CALL_TIME,
            medians,
            notes=[f"{CANNOT}: a partial of a median has no fixed size, and this technique keeps no events."],
            **logarithmic,
        ),
    ]
    return Outcome(panels, points(stores, sums, medians))


def points(stores: Any, sums: Any, medians: Any) -> list[findings.Finding]:
    most = list(stores[LAZY])[-1]
    lazy, tree, bucket = (stores[name][most] for name in (LAZY, TREE, BUCKET))
    return [
        findings.at_least(
            f"with {most:,} entries, an answer takes lazily {lazy:,.0f} ns, beside a tree", lazy / tree, 10
        ),
        findings.at_most("a tree takes", tree, 5_000, "ns"),
        findings.at_most("a bucket takes", bucket, 30, "ns"),
        findings.at_least(
            "a whole call of general slicing takes, for a median beside a sum,",
            medians[SLICING][most] / sums[SLICING][most],
            1,
        ),
    ]


EXPERIMENT = Experiment(
    "scotty-16",
    "Latency of answers",
    "Merging lazily takes up to a millisecond for 10^5 entries, a tree stays below five microseconds, buckets below 30 ns; "
    "holistic answers take longer where slices are merged, and no longer in buckets.",
    "Sum in compiled stores (16a, and once more as whole calls that give out a row), and median as whole calls (16c). "
    "General slicing picks its way of merging by itself.",
    measure,
)

"""A clock for compiled code: the nanoseconds that each window takes, told from inside the loop.

A loop of machine code cannot call Python's clock, but it can call the system's. `clock_gettime` is a function of
the C library, and its name is all that a compiled loop needs. It is read once per row, when the answer is there:

    rows        i           i + 1             i + 2
    clock          |  taken    |    taken       |
                   answer      answer           answer

So what happens between two rows counts as well, such as handing a chunk to a second thread. Reading the clock
takes time itself, which `overhead` measures; it is in all figures. Other work on the machine only ever makes a window
slower, so a window's figure is the least of several runs over the same rows.
"""

from __future__ import annotations

import inspect
import time
from contextlib import nullcontext
from typing import Any

import numpy as np
import pyarrow as pa
from numba import types

from benchmarks.papers.native import native
from benchmarks.papers.pba.handing import PUBLISHED, second_thread
from windrow.aggregates.base import Aggregate
from windrow.compiling.compiler import kernel
from windrow.engine.functions.bound_kernels import Operations, compiled, operations_of
from windrow.stores import STORES
from windrow.stores.base import Store
from windrow.stores.operations import evict, insert, lift, put, query

MONOTONIC = time.CLOCK_MONOTONIC
# By its name: an address would be another one in the next process, and code that holds one is not kept on disk.
clock_gettime = types.ExternalFunction("clock_gettime", types.intc(types.intc, types.voidptr))


def now(moment):  # type: ignore[no-untyped-def]
    """Nanoseconds since some time in the past; `moment` is room for seconds and nanoseconds."""
    clock_gettime(MONOTONIC, moment.ctypes)
    return moment[0] * 1_000_000_000 + moment[1]


def read_often(times, moment):  # type: ignore[no-untyped-def]
    """Nanoseconds for so many looks at the clock."""
    begin = now(moment)
    for _ in range(times):
        now(moment)
    return now(moment) - begin


def overhead(times: int = 100_000) -> float:
    """Nanoseconds that one look at the clock takes, at its best."""
    moment = np.zeros(2, np.int64)
    run = native(kernel(inspect.getsource(read_often), "read_often", {"now": now}))
    return min(run(times, moment) for _ in range(10)) / times


def latencies(store: str, aggregate: Aggregate, column: pa.Array, size: int, *, runs: int = 7) -> np.ndarray:
    """Nanoseconds for each window of `size` rows over a column, slide 1, of a store one row at a time."""
    bound = aggregate.bind((column.type,))
    given = operations_of(bound)
    inputs = (column.to_numpy(),)
    best = np.full(len(column) - size + 1, np.iinfo(np.int64).max)
    chosen = PUBLISHED if store == "pba" else STORES[store]
    run = native(compiled(timed_slides, chosen, given))
    for _ in range(runs):
        best = np.minimum(best, _once(chosen, given, run, inputs, size))
    # The first window has waited for all of its rows.
    return best[1:]


def _once(store: Store, given: Operations, run: Any, inputs: Any, size: int) -> np.ndarray:
    rows = len(inputs[0])
    cells, notes = given.cells(store.cells(size)), np.zeros(store.notes(size), np.int64)
    taken, moment = np.zeros(rows - size + 1, np.int64), np.zeros(3, np.int64)
    out = (*given.cells(rows - size + 1), taken)
    with second_thread(given, cells, notes) if store is PUBLISHED else nullcontext():
        run(inputs, rows, size, 0, store.create(size, given.identity), cells, notes, out, taken, moment)
    return taken


def timed_slides(inputs, rows, size, held, state, cells, notes, out, taken, moment):  # type: ignore[no-untyped-def]
    """`loops.slide_by_one` with a clock; `moment` also holds when the last answer was there."""
    made = 0
    for i in range(rows):
        if held == size:
            state = evict(state, cells, notes)
        else:
            held += 1
        state = insert(state, cells, notes, lift(inputs, i))
        if held == size:
            put(out, made, query(state, cells, notes))
            answered = now(moment)
            taken[made] = answered - moment[2]
            moment[2] = answered
            made += 1
    return state, held, made


def summary(taken: np.ndarray) -> dict[str, float]:
    """What the paper's Tables 2 and 3 tell of latencies."""
    low, median, high = np.percentile(taken, [25, 50, 75])
    return {
        "min": float(taken.min()),
        "max": float(taken.max()),
        "mean": float(taken.mean()),
        "std": float(taken.std()),
        "lower quartile": float(low),
        "median": float(median),
        "upper quartile": float(high),
    }

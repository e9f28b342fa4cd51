"""How fast are the stores by themselves?

*One at a time*: a maximum over a count window, slide 1, one event after another inside compiled code: `evict`, `insert`,
`query`. Out of order, each event comes behind so many others that are later. *In a batch*: a column goes in, and a
column of answers comes out. Beside them stand IBM's C++ (`-O3`) and the Java of PBA's authors, measured once on a
machine of the same kind. Time is that of the processor; where two threads work, of the busier one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.choice import seconds
from benchmarks.support.harness import Figure, Line, Scale, Table, at_least, at_most, race, rate
from windrow.aggregates.base import Aggregate
from windrow.engine.functions.bound_kernels import compiled, operations_of
from windrow.rolling import Rolling
from windrow.rolling.loops import slide_by_one
from windrow.rolling.out_of_order import BY_TIME, slide_to_greatest
from windrow.stores import STORES
from windrow.stores.fiba import FIBA

TIMES_SBA = "times sba"
NANOSECONDS, CPLUSPLUS, JAVA, RESULTS = "ns per result", "C++, ns", "Java, M/s", "M results/s"
MAX, SUM = wr.max("x"), wr.sum("x")
# Store, aggregate, sizes of windows, nanoseconds in C++, and how many times that is still good.
SINGLY: tuple[tuple[str, Aggregate, tuple[int, ...], float | None, float | None], ...] = (
    ("daba_lite", MAX, (1 << 10, 1 << 17), 9.7, 1.3),
    ("two_stacks_lite", MAX, (1 << 10, 1 << 17), 10.8, 1.3),
    ("flat_fit", MAX, (1 << 10, 1 << 17), 17, 1.3),
    ("fiba", MAX, (1 << 13, 1 << 17), 52, 1.5),
    ("subtract_on_evict", SUM, (1 << 10, 1 << 17), 3.2, None),
    ("sba", MAX, (1 << 10, 1 << 17), None, None),
    ("slick_deque", MAX, (1 << 10, 1 << 17), None, None),
)
# How many later events have come before each; C++ for the second.
DISTANCES = {128: None, 1024: 149.0}
LATE_WINDOWS = (1 << 13, 1 << 17)
# Store, aggregate, size of a window, million results a second in Java, and what to reach.
IN_BATCHES: tuple[tuple[str, Aggregate, int, float | None, float | None], ...] = (
    ("sba", MAX, 1 << 10, None, 200),
    ("sba", MAX, 1 << 14, None, 200),
    ("sba", MAX, 1 << 17, 40, 200),
    ("pba", MAX, 1 << 17, 55, None),
    ("subtract_on_evict", SUM, 1 << 10, None, 300),
    ("subtract_on_evict", SUM, 1 << 17, None, 300),
)
# A stream is so many times as long as a window, so that filling it does not count.
LEAST_WINDOWS = 4


def column(rows: int) -> np.ndarray:
    """Values as Arrow gives them, which cannot be written."""
    values = np.random.default_rng(0).integers(0, 1_000_000, rows)
    values.flags.writeable = False
    return values


def greatest_of(values: np.ndarray, size: int) -> np.ndarray:
    """The greatest of each `size` values, by blocks and from both sides: van Herk's way."""
    whole = np.resize(values, (-(-len(values) // size), size))
    whole.reshape(-1)[len(values) :] = values.min()
    ahead = np.maximum.accumulate(whole, axis=1).reshape(-1)
    behind = np.maximum.accumulate(whole[:, ::-1], axis=1)[:, ::-1].reshape(-1)
    return np.maximum(behind[: len(values) - size + 1], ahead[size - 1 : len(values)])


def answers(aggregate: Aggregate, values: np.ndarray, size: int) -> np.ndarray:
    """What any store must give."""
    if aggregate is MAX:
        return greatest_of(values, size)
    running = np.concatenate([[0], np.cumsum(values)])
    return running[size:] - running[:-size]


def named(store: str, aggregate: Aggregate, size: int) -> str:
    return f"{store}, {'max' if aggregate is MAX else 'sum'}, {size:,} events"


def in_order(store: str, aggregate: Aggregate, values: np.ndarray, size: int) -> Callable[[], float]:
    """A store over a stream in order, one event at a time."""
    given, kind = operations_of(aggregate.bind((pa.int64(),))), STORES[store]
    run = compiled(slide_by_one, kind, given)

    def work() -> float:
        kept = given.cells(kind.cells(size)), np.zeros(kind.notes(size), np.int64), given.cells(len(values))
        state = kind.create(size, given.identity)
        begin = time.thread_time()
        _, _, made = run((values,), len(values), size, 0, state, *kept)
        taken = time.thread_time() - begin
        np.testing.assert_array_equal(kept[2][0][:made], answers(aggregate, values, size), store)
        return taken

    return work


def out_of_order(values: np.ndarray, size: int, distance: int) -> Callable[[], float]:
    """FiBA over events of which each comes behind `distance` others that are later; the first ones are those."""
    rows = len(values)
    given = operations_of(MAX.bind((pa.int64(),)))
    run = compiled(slide_to_greatest, BY_TIME, given)
    times = np.concatenate([np.arange(rows - distance, rows), np.arange(rows - distance)])
    begins = np.where(np.arange(rows) < distance, 0, np.maximum(0, times - size + 1))
    places = size + distance + 4

    def work() -> float:
        kept = given.cells(FIBA.cells(places)), np.zeros(FIBA.notes(places), np.int64), given.cells(rows)
        state = FIBA.create(places, given.identity)
        begin = time.thread_time()
        run((values,), times, begins, rows, state, *kept)
        taken = time.thread_time() - begin
        expected = np.maximum(greatest_of(values[distance:], size), values[:distance].max())
        np.testing.assert_array_equal(kept[2][0][distance + size - 1 :], expected, "out of order")
        return taken

    return work


def in_a_batch(store: str, aggregate: Aggregate, values: np.ndarray, size: int) -> Callable[[], float]:
    """A store over a whole column, from the second window on."""
    first, rest = (pa.table({"x": part}) for part in (values[:size], values[size:]))

    def work() -> float:
        window, found = Rolling(aggregate, rows=size, store=store), []
        window.process(first)
        taken = seconds(lambda: found.append(window.process(rest)))
        np.testing.assert_array_equal(found[0].to_numpy(), answers(aggregate, values, size)[1:], store)
        return taken

    return work


def singly(scale: Scale) -> Table:
    values = column(max(scale.events // 5, min(scale.events, 1 << 20)))
    cases: list[tuple[int, str, Callable[[], float], float | None, float | None]] = []
    for store, aggregate, sizes, rival, times in SINGLY:
        for size in sizes:
            work = in_order(store, aggregate, values, size)
            cases.append((size, named(store, aggregate, size), work, rival, times))
    for distance, rival in DISTANCES.items():
        for size in LATE_WINDOWS:
            title = f"{named('fiba', MAX, size)}, {distance:,} too late"
            cases.append((size, title, out_of_order(values, size, distance), rival, 1.5))
    lines = []
    for size, title, work, rival, times in cases:
        if LEAST_WINDOWS * size > len(values):
            continue
        work()  # compiles
        best = race({title: work}, scale)[title]
        figures: dict[str, Figure] = {NANOSECONDS: best / len(values) * 1e9, CPLUSPLUS: rival}
        target = at_most(NANOSECONDS, rival * times) if rival is not None and times is not None else None
        lines.append(Line(title, figures, target))
    return Table("One event at a time", tuple(lines), NANOSECONDS, CPLUSPLUS)


def batches(scale: Scale) -> Table:
    values = column(scale.events)
    cases = [case for case in IN_BATCHES if LEAST_WINDOWS * case[2] <= len(values)]
    contenders = {case[:3]: in_a_batch(case[0], case[1], values, case[2]) for case in cases}
    for work in contenders.values():
        work()  # compiles
    best = race(contenders, scale)
    lines = []
    for store, aggregate, size, rival, target in cases:
        speed = rate(len(values) - size, best[store, aggregate, size])
        figures: dict[str, Figure] = {RESULTS: speed, JAVA: rival}
        wanted = None if target is None else at_least(RESULTS, target)
        lines.append(Line(named(store, aggregate, size), figures, wanted, headline=True))
    both = [("sba", MAX, 1 << 17), ("pba", MAX, 1 << 17)]
    if all(case in best for case in both):
        beside, pba = best[both[0]] / best[both[1]], rate(len(values) - both[1][2], best[both[1]])
        figures = {RESULTS: pba, TIMES_SBA: beside}
        lines.append(Line("pba on two cores", figures, at_least(TIMES_SBA, 1.5), headline=True))
    return Table("A batch of events", tuple(lines), RESULTS, JAVA)


def measure(scale: Scale) -> list[Table]:
    return [singly(scale), batches(scale)]

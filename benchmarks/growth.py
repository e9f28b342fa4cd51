"""What does a call cost, by how much history is held?

A call is `process` of 100 events and `advance` to the last of them. 1,000 keys, an event at each tick, integer sum; the
lateness is the history: as many ticks, and so as many events, are not final yet. What a call costs should follow from
the events that it takes in and the rows that it gives out, and not from what is held. First all events are in order.
Then the first of each call is late, by a quarter to three quarters of the history, so that it is never too late; in
update mode it revises all windows that it changes, which the rows per call show. Times are the medians of 20 to 200
calls in processor time, after the history was filled in large batches. The rows of a short stream are the
oracle's, and no event is late for any window in what is timed.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.support.harness import Figure, Line, Scale, Table, at_most
from tests.referee import oracle
from windrow.testing import assert_same, replay

KEYS = 1_000
CALL = 100
TENTH = 10
HISTORIES = {
    "tiny": (1_000, 2_000),
    "small": (1_000, 10_000, 100_000),
    "full": (1_000, 10_000, 100_000, 1_000_000),
}
MODES = ("append", "update")
# What is filled in beyond the history is final, so that each call evicts. The longest window has 5,000 ticks.
BEYOND = 10_000
MOST_IN_A_BATCH = 100_000
LONGEST_SPAN = 150
# Calls before the first that is timed, and calls that are compared with the oracle.
FIRST_CALLS, CHECKED_CALLS = 3, 10
SAME, ALONE = 2, 3
RATIO, TIMES = "last / first", "times tumbling"


@dataclass(frozen=True)
class Bounds:
    """At least `few` calls; up to `enough` within `patience` seconds, up to `many` within `seconds`.

    Tumbling windows end in every tenth call: unless patience is at its end, calls are a multiple of ten.
    """

    few: int = 3
    enough: int = 20
    many: int = 200
    patience: float = 4.0
    seconds: float = 0.5

    def reached(self, calls: int, spent: float) -> bool:
        if calls < self.enough:
            return calls >= self.few and spent >= self.patience
        return calls >= self.many or (calls % TENTH == 0 and spent >= self.seconds)


BOUNDS = {"tiny": Bounds(enough=10, seconds=0), "small": Bounds(), "full": Bounds(patience=10, seconds=1)}


def every_third(seen, value):  # type: ignore[no-untyped-def]
    """A window begins with every third event of a key, and ends the one before."""
    if seen % 3:
        return seen + 1, 0, 0
    return seen + 1, 1, 1 if seen else 0


TUMBLING, SESSION, PAIR, SPANS = "tumbling", "session", "tumbling and session", "spans"
WINDOWS: dict[str, dict[str, wr.Window]] = {
    TUMBLING: {"tumbling": wr.tumbling(1_000)},
    SESSION: {"session": wr.session(500)},
    PAIR: {"tumbling": wr.tumbling(1_000), "session": wr.session(500)},
    "rows": {"rows": wr.tumbling(rows=10)},
    "punctuated": {"punctuated": wr.punctuated("mark")},
    "deterministic": {"deterministic": wr.deterministic(every_third, state=0, name="every third")},
    SPANS: {"tumbling": wr.tumbling(1_000)},
    "ten mixed": {
        **{f"tumbling {length}": wr.tumbling(length) for length in (1_000, 2_000, 5_000)},
        **{f"sliding {length}": wr.sliding(length, every=length // 4) for length in (2_000, 4_000)},
        **{f"session {gap}": wr.session(gap) for gap in (250, 500, 1_000)},
        "10 rows": wr.tumbling(rows=10),
        "10 rows every 5": wr.sliding(rows=10, every_rows=5),
    },
}


def query_of(name: str) -> wr.Query:
    when = wr.span("since", "ts") if name == SPANS else "ts"
    return wr.query(time=when, key=["key"], windows=WINDOWS[name], aggregates={"total": wr.sum("value")})


@dataclass
class Source:
    """Events of consecutive ticks; a span event has lasted for 50 to 150 ticks when it ends."""

    history: int
    late: bool
    now: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(41)

    def next(self, count: int, *, late: bool = False) -> pa.RecordBatch:
        """As many events; with `late`, the time of the first is in the middle half of the history."""
        times = np.arange(self.now + 1, self.now + count + 1)
        if late:
            times[0] = self.now - self.random.integers(self.history // 4, 3 * self.history // 4)
        self.now += count
        columns = {"ts": times, "since": times - self.random.integers(50, LONGEST_SPAN + 1, count)}
        columns |= {
            "key": self.random.integers(0, KEYS, count),
            "value": self.random.integers(0, 1_000, count),
        }
        return pa.record_batch(columns | {"mark": self.random.random(count) < 0.25})

    def filling(self) -> Iterator[pa.RecordBatch]:
        """The history and some more, in order."""
        batch = min(self.history, MOST_IN_A_BATCH)
        for _ in range(-(-(self.history + BEYOND) // batch)):
            yield self.next(batch)

    def call(self) -> pa.RecordBatch:
        return self.next(CALL, late=self.late)


def call(operator: Any, batch: pa.RecordBatch, watermark: int) -> pa.Table:
    operator.process(batch)
    return operator.advance(watermark)


def check(name: str, *, late: bool) -> None:
    """What comes out of a short stream, in either mode, is what the oracle finds in all of its events."""
    query, source = query_of(name), Source(HISTORIES["tiny"][0], late)
    batches = [(source.next(2 * source.history), source.now)]
    batches += [(source.call(), source.now) for _ in range(CHECKED_CALLS)]
    expected = oracle(query, pa.Table.from_batches([batch for batch, _ in batches]))
    for mode in MODES:
        operator = query.operator(mode=mode, lateness=source.history)
        rows = pa.concat_tables([*(call(operator, *each) for each in batches), operator.finish()])
        rows = replay(rows) if mode == "update" else rows
        assert_same(expected, rows, note=f"{name}, {mode}, late: {late}")


@dataclass(frozen=True)
class Cost:
    """What calls cost: milliseconds of the median and of the slowest one, and rows per call."""

    median: float
    slowest: float
    rows: float


def cost(name: str, mode: str, source: Source, bounds: Bounds) -> Cost:
    """Calls of an operator that holds the whole history."""
    operator = query_of(name).operator(mode=mode, lateness=source.history)
    for batch in source.filling():
        call(operator, batch, source.now)
    for _ in range(FIRST_CALLS):
        call(operator, source.call(), source.now)
    times: list[float] = []
    rows = 0
    gc.collect()
    gc.disable()
    try:
        while not bounds.reached(len(times), sum(times)):
            batch = source.call()
            start = time.process_time()
            out = call(operator, batch, source.now)
            times.append(time.process_time() - start)
            rows += out.num_rows
    finally:
        gc.enable()
    seen = operator.metrics()
    assert seen.late == seen.partly_late == 0, f"{name}, {mode}: events that should count came too late"
    return Cost(1e3 * float(np.median(times)), 1e3 * max(times), rows / len(times))


Costs = dict[tuple[str, str, int], Cost]


def costs(late: bool, scale: Scale) -> Costs:
    """Of each query, mode and history."""
    found = {}
    for name in WINDOWS:
        check(name, late=late)
    for name, mode in product(WINDOWS, MODES):
        for history in HISTORIES[scale.name]:
            found[name, mode, history] = cost(name, mode, Source(history, late), BOUNDS[scale.name])
    return found


def by_history(title: str, found: Costs, histories: tuple[int, ...], *, late: bool) -> Table:
    """A line for each query and mode."""
    first, last = histories[0], histories[-1]
    columns = {history: f"{history:,} held, ms" for history in histories}
    lines = []
    for name, mode in product(WINDOWS, MODES):
        each = {history: found[name, mode, history] for history in histories}
        figures: dict[str, Figure] = {columns[history]: each[history].median for history in histories}
        figures[RATIO] = each[last].median / each[first].median
        figures["slowest, ms"] = each[last].slowest
        figures |= {f"rows a call, {history:,} held": each[history].rows for history in (first, last)}
        target = None if late else at_most(RATIO, SAME)
        lines.append(Line(f"{name}, {mode}", figures, target, headline=target is not None))
    note = "Milliseconds of processor time per call of 100 events; the slowest call is that of the longest history."
    *also, ours = columns.values()
    return Table(title, tuple(lines), ours=ours, beside=columns[first], note=note, also=tuple(also))


def pairs(found: dict[bool, Costs], histories: tuple[int, ...]) -> Table:
    """A tumbling window and a session in one query, beside the tumbling window alone."""
    lines = []
    for late, mode, history in product((False, True), MODES, histories):
        ms = {name: found[late][name, mode, history].median for name in (PAIR, TUMBLING, SESSION)}
        figures: dict[str, Figure] = {f"{name}, ms": value for name, value in ms.items()}
        figures[TIMES] = ms[PAIR] / ms[TUMBLING]
        name = f"{history:,} held, {mode}, {'a late event' if late else 'in order'}"
        lines.append(Line(name, figures, at_most(TIMES, ALONE), headline=history == histories[-1]))
    title = "A tumbling window and a session, per call"
    return Table(title, tuple(lines), ours=f"{PAIR}, ms", beside=f"{TUMBLING}, ms")


def measure(scale: Scale) -> list[Table]:
    histories = HISTORIES[scale.name]
    found = {late: costs(late, scale) for late in (False, True)}
    return [
        by_history("Calls with all events in order", found[False], histories, late=False),
        by_history("Calls with one late event each", found[True], histories, late=True),
        pairs(found, histories),
    ]

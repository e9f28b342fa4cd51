"""What do windows cost that are added while an operator runs?

An operator that has begun with one window and was given ten more, a call after the other, beside one that has had the
same eleven from the start. Integer sum, 1,000 keys, an event at each tick, 10,000 events a call, a lateness of one call. Windows
are of one kind, or half of one and half of another. Both operators take the same calls in turns once all that was
there before the last window came is final: medians of processor time, and the bytes that `metrics` tells of. The
rows of both are the same; those of added windows of so many events, which count from where they were added,
are the same as over the events since then.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import windrow as wr
from benchmarks.support.harness import Figure, Line, Scale, Table, at_most
from tests.referee import oracle
from windrow.testing import assert_same

KEYS = 1_000
CALL = 10_000
ADDED = 10
# Calls that are timed, by scale.
CALLS = {"tiny": 3, "small": 15, "full": 50}
# Calls from the last window that was added to the first that is timed. No window is longer than two, but what memory
# is kept for follows after some more.
SETTLING = 12
# What is compared with the oracle: events a call, keys, and ticks from one event to the next.
CHECKED = {"call": 300, "keys": 50, "step": 5}
CHECKED_CALLS = 4
MOST = 1.3
WHICH = ("added", "from the start")
TIME, SIZE = "time, ratio", "bytes, ratio"
MADE = {
    "tumblings": lambda i: wr.tumbling(1_000 + 500 * i),
    "sessions": lambda i: wr.session(200 + 100 * i),
    "counts": lambda i: wr.tumbling(rows=10 + i),
}
MIXED = (("tumblings", "sessions"), ("tumblings", "counts"), ("sessions", "counts"))


def windows_of(kinds: Sequence[str]) -> dict[str, wr.Window]:
    """One window, and ten more of these kinds in turns."""
    chosen = [kinds[i % len(kinds)] for i in range(ADDED + 1)]
    return {f"{kind} {i}": MADE[kind](i) for i, kind in enumerate(chosen)}


def query_of(windows: dict[str, wr.Window]) -> wr.Query:
    return wr.query(time="ts", key=["key"], windows=windows, aggregates={"total": wr.sum("value")})


def counts_rows(name: str) -> bool:
    return name.startswith("counts")


class Pair:
    """Two operators that take the same calls: windows were added to one, and the other had them from the start."""

    def __init__(self, kinds: Sequence[str], *, call: int = CALL, keys: int = KEYS, step: int = 1) -> None:
        self.windows, self.call, self.keys, self.step = windows_of(kinds), call, keys, step
        first = next(iter(self.windows))
        self.queries = {"added": {first: self.windows[first]}, "from the start": self.windows}
        self.operators: dict[str, Any] = {
            name: query_of(windows).operator(mode="append", lateness=call * step)
            for name, windows in self.queries.items()
        }
        self.random = np.random.default_rng(43)
        self.now = 0
        # From which time on an added window is complete, and after how many events it was added.
        self.complete: dict[str, int] = {}
        self.since: dict[str, int] = {}

    def events(self) -> pa.RecordBatch:
        times = self.now + self.step * np.arange(self.call)
        self.now += self.step * self.call
        key, value = (self.random.integers(0, most, self.call) for most in (self.keys, 1_000))
        return pa.record_batch({"ts": times, "key": key, "value": value})

    def take(self, name: str, batch: pa.RecordBatch) -> pa.Table:
        self.operators[name].process(batch)
        return self.operators[name].advance(self.now - self.step)

    def add_all(self) -> tuple[list[pa.RecordBatch], dict[str, list[pa.Table]]]:
        """A call before each window that is added; what went in, and what came out of each operator."""
        batches: list[pa.RecordBatch] = []
        out: dict[str, list[pa.Table]] = {name: [] for name in self.operators}
        for window in list(self.windows)[1:]:
            batches.append(self.events())
            for name in out:
                out[name].append(self.take(name, batches[-1]))
            self.complete[window] = self.operators["added"].add_window(window, self.windows[window])
            self.since[window] = len(batches) * self.call
        return batches, out

    def settle(self) -> None:
        for _ in range(SETTLING):
            batch = self.events()
            for name in self.operators:
                self.take(name, batch)


def rows_of(table: pa.Table, window: str, start: int) -> pa.Table:
    """The rows of a window that begin at `start` or later."""
    return table.filter((pc.field("window").cast(pa.string()) == window) & (pc.field("start") >= start))


def check(kinds: Sequence[str]) -> None:
    """Short calls: the oracle's rows from the start, and the same rows of windows that were added."""
    pair = Pair(kinds, **CHECKED)
    batches, out = pair.add_all()
    for _ in range(CHECKED_CALLS):
        batches.append(pair.events())
        for name, tables in out.items():
            tables.append(pair.take(name, batches[-1]))
    rows = {name: pa.concat_tables([*out[name], pair.operators[name].finish()]) for name in out}
    events = pa.Table.from_batches(batches)
    assert_same(
        oracle(query_of(pair.windows), events), rows["from the start"], note=f"{kinds}, from the start"
    )
    for window, start in pair.complete.items():
        expected = rows["from the start"]
        if counts_rows(window):
            expected = query_of({window: pair.windows[window]}).run(events.slice(pair.since[window]))
        found = rows_of(rows["added"], window, start)
        assert found.num_rows, f"{window} has no rows"
        assert_same(rows_of(expected, window, start), found, note=f"{window}, added")


def line(name: str, kinds: Sequence[str], scale: Scale) -> tuple[Line, Line]:
    """The time and the size of both operators, from the same calls."""
    check(kinds)
    pair = Pair(kinds)
    pair.add_all()
    pair.settle()
    times: dict[str, list[float]] = {name: [] for name in pair.operators}
    sizes: dict[str, list[int]] = {name: [] for name in pair.operators}
    rows = dict.fromkeys(pair.operators, 0)
    gc.collect()
    gc.disable()
    try:
        for _ in range(CALLS[scale.name]):
            batch = pair.events()
            for which, operator in pair.operators.items():
                start = time.process_time()
                out = pair.take(which, batch)
                times[which].append(time.process_time() - start)
                sizes[which].append(operator.metrics().bytes)
                rows[which] += len(out)
    finally:
        gc.enable()
    # Windows of so many events were added at another event, and so are not always as many in a call.
    assert "counts" in kinds or rows["added"] == rows["from the start"], f"{name}: not as many rows"
    ms = {which: 1e3 * float(np.median(each)) for which, each in times.items()}
    mib = {which: float(np.median(each)) / 2**20 for which, each in sizes.items()}
    lines = []
    for column, unit, each in ((TIME, "ms", ms), (SIZE, "MiB", mib)):
        figures: dict[str, Figure] = {f"{which}, {unit}": figure for which, figure in each.items()}
        figures[column] = each["added"] / each["from the start"]
        lines.append(Line(name, figures, at_most(column, MOST), headline=True))
    return lines[0], lines[1]


def measure(scale: Scale) -> list[Table]:
    cases = {f"ten {kind}": (kind,) for kind in MADE}
    cases |= {f"five {one}, five {other}": (one, other) for one, other in MIXED}
    lines = [line(name, kinds, scale) for name, kinds in cases.items()]
    times, sizes = zip(*lines, strict=True)
    return [
        Table(
            f"Windows added to a running operator, {what}", chosen, *(f"{which}, {unit}" for which in WHICH)
        )
        for what, chosen, unit in (("time per call", times, "ms"), ("size", sizes, "MiB"))
    ]

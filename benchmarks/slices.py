"""How much is kept and combined, beside the least that a paper promises?

Counted, not timed. Table 1 of the paper on Cutty gives the least of all techniques for a window of range r that
slides by s, if windows are merged lazily: up to ceil(r/s) + 1 slices, one `combine` per event, up to ceil(r/s) + 1
per window. Sessions and punctuated windows follow one another, so that for them r = s. Events come in order, one
at a time with a watermark after each; and 100 at a time, as the engine is made for: windows that end inside a
batch then need slices of their own. An aggregate in plain Python counts who calls its `combine`: loops that take
in events, that join slices, or that merge the slices of a window. Slices are counted after each call; those of
count and punctuated windows are made when the watermark passes, and gone if it has passed their windows too;
until then their events wait.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.support.harness import Figure, Line, Scale, Table, at_most
from windrow.compiling.compiler import InterpretedWarning
from windrow.engine.operator import Operator

CUTTY = "Cutty, Table 1"
MOST_EVENTS = 1_000
TOGETHER = 100
BURST, SILENCE, GAP = 20, 10, 5
# Name, window, range and slide; both in events, which come 1 ms apart.
CASES: tuple[tuple[str, wr.Window, int, int], ...] = (
    ("sliding 60 ms every 10 ms", wr.sliding(60, every=10), 60, 10),
    ("sliding 10 ms every 3 ms", wr.sliding(10, every=3), 10, 3),
    ("sliding 60 rows every 10", wr.sliding(rows=60, every_rows=10), 60, 10),
    ("sliding 10 rows every 3", wr.sliding(rows=10, every_rows=3), 10, 3),
    ("session", wr.session(GAP), BURST, BURST),
    ("punctuated", wr.punctuated("mark"), BURST, BURST),
)
# What the loops that call `combine` are for, by how their names begin.
PURPOSES = {"fold": "folds", "absorb": "joins", "merge": "merges"}


@dataclass
class Tally:
    """What one run took."""

    events: int
    windows: int = 0
    live_slices: int = 0
    waiting: int = 0
    combines: Counter[str] = field(default_factory=Counter)

    def look(self, operator: Operator) -> None:
        """Note the sizes of the operator, if they are the largest so far."""
        metrics = operator.metrics()
        self.live_slices = max(self.live_slices, metrics.live_slices)
        self.waiting = max(self.waiting, metrics.pending)

    def per_event(self) -> dict[str, float]:
        return {purpose: self.combines[purpose] / self.events for purpose in PURPOSES.values()}

    def per_window(self) -> float:
        return self.combines["merges"] / self.windows


COMBINES: Counter[str] = Counter()


def combine(a, b):
    """A sum that counts its calls by who calls it, which Numba cannot compile."""
    frame = sys._getframe(1)
    while (purpose := PURPOSES.get(frame.f_code.co_name.split("_")[0])) is None:
        assert frame.f_back is not None
        frame = frame.f_back  # a function of a store, or what lies between it and this one
    COMBINES[purpose] += 1
    return a + b


COUNTED_SUM = wr.aggregate(lift=lambda value: value, combine=combine, identity=0.0, name="counted sum")


def events_of(count: int) -> pa.Table:
    """A mark every 20 events, and a silence before it."""
    steps = np.arange(count)
    values = np.random.default_rng(29).integers(0, 1_000, count)
    return pa.table({"ts": steps, "value": values, "mark": steps % BURST == 0})


def with_silences(events: pa.Table) -> pa.Table:
    steps = events["ts"].to_numpy()
    return events.set_column(0, "ts", pa.array(steps + steps // BURST * SILENCE))


def run(window: wr.Window, events: pa.Table, batch: int) -> Tally:
    """Feed the events in batches, a watermark after each, and count; the answer is that of a plain sum."""
    COMBINES.clear()
    tally = Tally(len(events))
    query = wr.query(
        time="ts",
        windows={"w": window},
        aggregates={"total": COUNTED_SUM, "sum": wr.sum("value")},
    )
    operator = query.operator()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InterpretedWarning)
        for begin in range(0, len(events), batch):
            part = events.slice(begin, batch)
            operator.process(part)
            tally.look(operator)
            emitted = [operator.advance(part["ts"][-1].as_py())]
            tally.look(operator)
            if begin + batch >= len(events):
                emitted.append(operator.finish())
            for table in emitted:
                tally.windows += len(table)
                assert table["total"].to_pylist() == table["sum"].to_pylist(), "the counted sum is no sum"
    tally.combines.update(COMBINES)
    return tally


def measure(scale: Scale) -> list[Table]:
    events = events_of(min(scale.events // 100, MOST_EVENTS))
    slices, updates, merges = [], [], []
    for name, window, length, every in CASES:
        fed = with_silences(events) if name == "session" else events
        single, together = run(window, fed, 1), run(window, fed, TOGETHER)
        least = math.ceil(length / every) + 1
        kept: dict[str, Figure] = {
            "live slices": single.live_slices,
            CUTTY: least,
            "events that wait": single.waiting,
            f"live slices, {TOGETHER} at a time": together.live_slices,
        }
        slices.append(Line(name, kept, at_most("live slices", least), headline=True))
        each, many = single.per_event(), together.per_event()
        work: dict[str, Figure] = {
            "combines": each["folds"] + each["joins"],
            CUTTY: 1,
            "of them joins": each["joins"],
            f"combines, {TOGETHER} at a time": many["folds"] + many["joins"],
        }
        updates.append(Line(name, work, at_most("combines", 1)))
        answers: dict[str, Figure] = {
            "combines": single.per_window(),
            CUTTY: least,
            f"combines, {TOGETHER} at a time": together.per_window(),
        }
        merges.append(Line(name, answers, at_most("combines", least)))
    return [
        Table("Live slices, the most after any call", tuple(slices), ours="live slices", beside=CUTTY),
        Table("Combines per event", tuple(updates), ours="combines", beside=CUTTY),
        Table("Combines per window", tuple(merges), ours="combines", beside=CUTTY),
    ]

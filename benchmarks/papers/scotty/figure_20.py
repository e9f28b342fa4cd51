"""Figure 20: how long it takes to compute the aggregate of a slice anew from its events."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.papers import findings
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.support.harness import clocked
from benchmarks.support.streams import on_one_thread

AGGREGATES = {"sum": wr.sum("value"), "median": wr.median("value")}
MICROSECONDS = "µs"


def recomputing(aggregate: wr.Aggregate, tuples: int, repeats: int) -> float:
    """Microseconds to fold the events of a slice and lower the result."""
    values = np.random.default_rng(20).integers(0, 84_232, tuples)
    events = pa.table({"ts": np.arange(tuples), "value": values})
    query = wr.query(time="ts", windows={"slice": wr.tumbling(tuples)}, aggregates={"answer": aggregate})
    query.run(events)
    return min(clocked(partial(on_one_thread(query), events))() for _ in range(repeats)) * 1e6


def measure(setting: Setting) -> Outcome:
    scale = setting.scale
    sizes = scale.pick(
        tiny=(100, 1_000),
        small=(100, 1_000, 10_000, 100_000, 1_000_000, 4_000_000),
        full=(100, 1_000, 10_000, 100_000, 1_000_000, 4_000_000, 16_000_000),
    )
    series = {
        name: {size: recomputing(aggregate, size, scale.repeats + 1) for size in sizes}
        for name, aggregate in AGGREGATES.items()
    }
    floor = min(figures[sizes[0]] for figures in series.values())
    notes = [
        f"A call takes nearly {floor:,.0f} µs before it sees an event, which is what the left end shows."
    ]
    panel = Panel(
        "scotty-20",
        "Figure 20",
        "tuples in the slice",
        MICROSECONDS,
        series,
        log_x=True,
        log_y=True,
        notes=notes,
    )
    return Outcome([panel], points(series))


def points(series: dict[str, dict[int, float]]) -> list[findings.Finding]:
    found = []
    for name, figures in series.items():
        (small, before), (large, after) = list(figures.items())[-2:]
        slope = math.log(after / before) / math.log(large / small)
        words = f"{name}: from {small:,} to {large:,} tuples time grows with the power {slope:.2f} of their number"
        found.append(findings.Finding(0.8 <= slope <= 1.25, f"{words} (bound: 0.8 to 1.25)"))
    largest = list(series["sum"])[-1]
    dearer = series["median"][largest] / series["sum"][largest]
    found.append(findings.at_least("a median takes, beside a sum,", dearer, 1))
    return found


EXPERIMENT = Experiment(
    "scotty-20",
    "Time for recomputing aggregates",
    "When a slice is split, its aggregate is computed anew, in a time that grows linearly with its events; a median takes "
    "longer than a sum.",
    "One slice of so many events, folded from the beginning and lowered, sum and median. It is what a split would cost: "
    "windrow never splits a slice that holds events.",
    measure,
)

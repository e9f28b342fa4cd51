"""Figure 7 with Tables 2 and 3: how long each window takes, and whether one now and then takes much longer.

    Table 2    max, slide 1, ranges of 2^13 and 2^14 rows
    Table 3    MomentSketch, slide 1 s, ranges of 1 and 2 hours: a slice is a second, a window 3,600 or 7,200 of them

Latencies are read inside the compiled loop (`clock.py`), one row or slice at a time, and a window's figure is the
least of several runs: what is left is what the algorithm does. The plots show the slowest window of each stretch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.papers import clock, findings
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.papers.pba.rolling import require_agreement, uniform
from benchmarks.support.harness import Line, Table

STORES = ["two_stacks", "slick_deque", "daba_lite", "sba", "pba"]
SKETCHED = ["two_stacks", "daba_lite", "sba", "pba"]
SPIKES, FLAT = ("two_stacks", "sba"), ("daba_lite", "pba")
STRETCHES = 200
DEGREE = 10
HOURS = {1: 3_600, 2: 7_200}
# What a worst case may grow by when the window doubles, and still be called flat; and what a spike grows by.
STEADY, GROWING = 1.5, 1.5
Taken = dict[str, dict[int, np.ndarray]]


def measure(setting: Setting) -> Outcome:
    scale = setting.scale
    ranges = scale.pick(tiny=(2**6, 2**7), small=(2**13, 2**14), full=(2**13, 2**14))
    windows = scale.pick(tiny=2_000, small=200_000, full=1_000_000)
    runs = scale.pick(tiny=1, small=7, full=9)
    values = uniform(windows + ranges[-1])
    require_agreement(values[:40_000], ranges[0], 1, STORES)
    column = pa.array(values)
    maxima: Taken = {
        store: {rows: taken(store, wr.max("value"), column[: windows + rows], rows, runs) for rows in ranges}
        for store in STORES
    }
    seconds = tuple(HOURS.values()) if scale.name != "tiny" else ranges
    slices = pa.array(values[: seconds[-1] + scale.pick(tiny=500, small=40_000, full=1_000_000)] + 0.5)
    sketch = wr.moments("value", k=DEGREE, logs=True)
    sketches: Taken = {
        store: {rows: taken(store, sketch, slices, rows, runs) for rows in seconds} for store in SKETCHED
    }
    panels = [
        panel("pba-7a", "max", maxima, ranges[-1], "rows"),
        panel("pba-7b", "MS", sketches, seconds[-1], "slices"),
    ]
    tables = [
        table("Table 2: ns per window, max, count windows", maxima, {rows: f"{rows:,}" for rows in ranges}),
        table(
            "Table 3: ns per window, MomentSketch", sketches, dict(zip(seconds, ("1 h", "2 h"), strict=True))
        ),
    ]
    return Outcome(
        panels, [*points("max", maxima, ranges), *points("MomentSketch", sketches, seconds)], tables
    )


def taken(store: str, aggregate: wr.Aggregate, column: pa.Array, rows: int, runs: int) -> np.ndarray:
    """Nanoseconds of each window; the first 3 % are left out, as in the paper."""
    found = clock.latencies(store, aggregate, column, rows, runs=runs)
    return found[len(found) * 3 // 100 :]


def panel(name: str, what: str, found: Taken, rows: int, unit: str) -> Panel:
    """The slowest window of each stretch, for the longer range."""
    series = {}
    for store, by_range in found.items():
        stretch = max(1, len(by_range[rows]) // STRETCHES)
        count = len(by_range[rows]) // stretch
        slowest = by_range[rows][: count * stretch].reshape(count, stretch).max(axis=1)
        series[store] = {i * stretch: int(ns) for i, ns in enumerate(slowest)}
    title = f"Figure 7, {what}, {rows:,} {unit}: the slowest window of each stretch of {stretch}"
    return Panel(name, title, "window", "ns", series, log_y=True, tabled=False)


def table(title: str, found: Taken, labels: dict[int, str]) -> Table:
    lines = [
        Line(f"{store}, {labels[rows]}", clock.summary(latencies))
        for rows in labels
        for store, latencies in ((store, by_range[rows]) for store, by_range in found.items())
    ]
    note = (
        f"Reading the clock takes {clock.overhead():.0f} ns, which is in all figures. Least of several runs."
    )
    return Table(title, tuple(lines), ours="max", note=note)


def points(what: str, found: Taken, ranges: Sequence[int]) -> list[findings.Finding]:
    small, large = ranges
    worst = {store: {rows: float(found[store][rows].max()) for rows in ranges} for store in found}
    result = []
    for store in FLAT:
        growth = worst[store][large] / worst[store][small]
        result.append(
            findings.at_most(
                f"{what}: the worst of {store} goes from {worst[store][small]:,.0f} to {worst[store][large]:,.0f} ns "
                "when the window doubles,",
                growth,
                STEADY,
            )
        )
    for store in SPIKES:
        spike = worst[store][large] / float(np.median(found[store][large]))
        result.append(
            findings.at_least(
                f"{what}: the worst of {store} is {worst[store][large]:,.0f} ns, beside its median", spike, 20
            )
        )
    spikes = min(worst[store][large] for store in SPIKES)
    result.append(
        findings.at_most(
            f"{what}: the worst of pba beside that of the better of these", worst["pba"][large] / spikes, 0.5
        )
    )
    return result


EXPERIMENT = Experiment(
    "pba-7",
    "Latency of each window, with Tables 2 and 3",
    "PBA and SlickDeque have no spikes, whatever the size of the window, and PBA is the fastest on the whole; two-stacks "
    "and SBA have one whenever a stack is turned or a chunk is full, and it grows with the window.",
    "Max over count windows of 2^13 and 2^14 rows, slide 1 (Table 2); MomentSketch with l = 10 over windows of 1 and 2 hours "
    "with a slide of a second, whose slices are the rows here (Table 3): `wr.moments` with logarithms, "
    "as in the paper: count, extremes, ten sums of powers of values and ten of powers of their logarithms; here each sum "
    "carries what it has lost to rounding. SlickDeque needs an aggregate that "
    "selects one of its values, which MomentSketch is not.",
    measure,
)

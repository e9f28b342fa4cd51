"""Figure 18: the throughput of general slicing under one aggregate after another."""

from __future__ import annotations

import statistics

import windrow as wr
from benchmarks.papers import findings
from benchmarks.papers.contenders import SLICING
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.papers.files import stream
from benchmarks.papers.scotty.workload import (
    LATE_SHARE,
    LONGEST_DELAY,
    THROUGHPUT,
    counted,
    query,
    tumbling,
    with_session,
)
from benchmarks.papers.streams import PER_SECOND, disordered
from benchmarks.papers.timing import Sweep

WINDOWS = 20
HOLISTIC = ("median", "90-percentile")
NAIVE = "sum w/o invert"
TIME, COUNT = "time-based", "count-based"


def lift(x):  # type: ignore[no-untyped-def]
    return x


def add(a, b):  # type: ignore[no-untyped-def]
    return a + b


AGGREGATES = {
    "count": wr.count(),
    "sum": wr.sum("value"),
    NAIVE: wr.aggregate(lift=lift, combine=add, identity=0, columns=["value"]),
    "avg": wr.mean("value"),
    "geomean": wr.geometric_mean("positive"),
    "stddev": wr.stddev("value"),
    "min": wr.min("value"),
    "max": wr.max("value"),
    "min count": wr.min_count("value"),
    "max count": wr.max_count("value"),
    "arg min": wr.argmin("positive", by="value"),
    "arg max": wr.argmax("positive", by="value"),
    "median": wr.median("value"),
    "90-percentile": wr.quantile("value", 0.9),
}


def measure(setting: Setting) -> Outcome:
    scale = setting.scale
    source = stream(setting, "football", scale.events)
    table = source.table.append_column("positive", [source.table["value"].to_numpy() + 1.0])
    source = disordered(type(source)(source.name, table, source.times), LATE_SHARE, LONGEST_DELAY)
    names = scale.pick(tiny=("sum", NAIVE, "max", "median"), small=tuple(AGGREGATES), full=tuple(AGGREGATES))
    series = {}
    for kind, windows in (
        (TIME, with_session(tumbling(WINDOWS))),
        (COUNT, counted(WINDOWS, scale.pick(tiny=50, small=PER_SECOND, full=PER_SECOND))),
    ):
        found = Sweep([SLICING], scale)
        for name in names:
            found.run(name, query(windows, AGGREGATES[name]), source)
        series[kind] = found.series[SLICING]
    notes = ["General slicing alone, as in the paper; `sum w/o invert` is a sum of the user's own."]
    panel = Panel("scotty-18", "Figure 18", "aggregate", THROUGHPUT, series, "bars", log_y=True, notes=notes)
    return Outcome([panel], points(series))


def points(series: dict[str, dict[float | str, object]]) -> list[findings.Finding]:
    figures = {kind: {k: float(v) for k, v in values.items()} for kind, values in series.items()}  # type: ignore[arg-type]
    plain = [rate for name, rate in figures[TIME].items() if name not in HOLISTIC]
    holistic = [rate for name, rate in figures[TIME].items() if name in HOLISTIC]
    counts = statistics.median(
        figures[COUNT][name] / figures[TIME][name] for name in figures[TIME] if name not in HOLISTIC
    )
    return [
        findings.at_most(
            "time-based: the fastest aggregate of fixed size beside the slowest", max(plain) / min(plain), 5
        ),
        findings.at_least("they are, beside holistic ones,", statistics.median(plain) / max(holistic), 2),
        findings.at_most("count-based windows run, beside time-based ones, at", counts, 1, "%"),
        findings.at_most(
            "count-based: a sum without inverse beside one with it",
            figures[COUNT][NAIVE] / figures[COUNT]["sum"],
            0.5,
            "%",
        ),
    ]


EXPERIMENT = Experiment(
    "scotty-18",
    "Throughput by aggregation function",
    "With windows of time all distributive and algebraic functions run at about the same speed, holistic ones are "
    "much slower; with windows of rows all are slower, and those without an inverse suffer most, because each late "
    "event shifts events from slice to slice.",
    "20 windows (time-based: with a session), 20 % of the events up to 2 s late, football. windrow does not shift: "
    "events of count windows wait until their order is known, so that an inverse is not needed.",
    measure,
)

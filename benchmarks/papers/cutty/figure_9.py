"""Figure 9: windows between changes of a sensor's state, for more and more sensors.

9b   throughput      9c   partials kept      9d   calls of combine, by purpose
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.papers import findings
from benchmarks.papers.contenders import SLICING, answers
from benchmarks.papers.cutty.counting import numbered
from benchmarks.papers.cutty.marked import Answered, Marks, marks_of, run
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.papers.files import stream
from benchmarks.papers.streams import Source
from benchmarks.papers.timing import Work, measured, operating
from benchmarks.support.harness import Figure, clocked

NAMES = ["cutty", "RA"]
QUERIES = "queries"
ACTIVE = 20
# Rows between two changes of a sensor's state, on average, for the most and the least active one.
SHORTEST, LONGEST = 100, 10_000
Series = dict[str, dict[float | str, Figure]]


def changes(setting: Setting, rows: int, queries: int) -> np.ndarray:
    """Where the state of each query's sensor changes: from the user's file, or at random as 20 sensors would."""
    table = stream(setting, "machine", rows, per_second=100).table
    sensors = [name for name in table.column_names if name.startswith("sensor_")]
    random = np.random.default_rng(9)
    if sensors:
        states = [table[sensors[i % len(sensors)]].to_numpy()[:rows] for i in range(queries)]
        return np.array([np.diff(state, prepend=state[0]) != 0 for state in states])
    steps = np.geomspace(SHORTEST, LONGEST, ACTIVE)
    return np.array([random.random(rows) < 1 / random.choice(steps) for _ in range(queries)])


def engine_query(queries: int) -> wr.Query:
    windows = {f"{i:03}": wr.punctuated(f"mark_{i}") for i in range(queries)}
    return wr.query(time="row", windows=windows, aggregates={"answer": wr.sum("value")})


def require_agreement(marks: Marks, found: dict[str, Answered], engine: pa.Table) -> None:
    """Cutty and RA give the same windows, and those of the engine are the same, but for open ones and the first."""
    mine, theirs = (found[name].sums for name in NAMES)
    np.testing.assert_array_equal(mine, theirs)
    # The engine also gives out what lies before the first mark and behind the last one of each query.
    assert len(engine) >= len(mine)
    missing = set(mine.tolist()) - set(engine["answer"].to_pylist())
    assert not missing, f"windows that the engine does not have: {sorted(missing)[:3]}"


def measure(setting: Setting) -> Outcome:
    scale = setting.scale
    rows = scale.pick(tiny=2_000, small=200_000, full=2_000_000)
    values = (
        stream(setting, "machine", rows, per_second=100).table["value"].to_numpy()[:rows].astype(np.int64)
    )
    rates: Series = {name: {} for name in (SLICING, *NAMES)}
    kept: Series = {name: {} for name in NAMES}
    calls: Series = {f"{name}, {part}": {} for name in NAMES for part in ("update", "merge")}
    for queries in scale.pick(tiny=(1, 4), small=(1, 10, 40), full=(1, 10, 20, 40, 60, 80)):
        columns = changes(setting, rows, queries)
        marks = marks_of(columns)
        cuts = {"cutty": marks.cuts(rows), "RA": np.ones(rows, np.bool_)}
        found = {name: run(values, cuts[name], marks) for name in NAMES}
        table = numbered({"value": values, **{f"mark_{i}": column for i, column in enumerate(columns)}})
        source = Source("machine", table, table["row"].to_numpy())
        query = engine_query(queries)
        require_agreement(marks, found, answers(query.operator(), source.first(rows, scale.batch)))
        works: dict[str, Work] = {name: timed(values, cuts[name], marks) for name in NAMES}
        works[SLICING] = operating(lambda asked: asked.operator(), query, source, scale.batch)
        for name, figure in measured(works, scale, rows).items():
            rates[name][queries] = figure.rate
        for name in NAMES:
            kept[name][queries] = found[name].held
            calls[f"{name}, update"][queries] = found[name].update
            calls[f"{name}, merge"][queries] = found[name].merge
    panels = [
        Panel("cutty-9b", "Figure 9b", QUERIES, "events/s", rates, log_y=True),
        Panel("cutty-9c", "Figure 9c", QUERIES, "partials kept", kept, log_y=True),
        Panel("cutty-9d", "Figure 9d", QUERIES, "combine calls", calls, "bars", log_y=True),
    ]
    return Outcome(panels, points(rates, kept, calls))


def timed(values: np.ndarray, cuts: np.ndarray, marks: Marks) -> Work:
    """The first so many events, with the marks among them. Marks are found before the clock starts."""

    def work(events: int) -> float:
        few = marks.row < events
        part = Marks(marks.row[few], marks.query[few], marks.queries)
        return clocked(partial(run, values[:events], cuts[:events], part))()

    return work


def points(rates: Series, kept: Series, calls: Series) -> list[findings.Finding]:
    places = list(rates["cutty"])
    most = places[-1]

    def least(series: Series, above: str, below: str) -> float:
        return min(float(series[above][p]) / float(series[below][p]) for p in places)  # type: ignore[arg-type]

    totals: Series = {
        name: {p: float(calls[f"{name}, update"][p]) + float(calls[f"{name}, merge"][p]) for p in places}  # type: ignore[arg-type]
        for name in NAMES
    }
    merges = float(calls["RA, merge"][most]) / float(calls["cutty, merge"][most])  # type: ignore[arg-type]
    return [
        findings.at_least("throughput of cutty beside RA, at the least", least(rates, "cutty", "RA"), 10),
        findings.at_least("RA keeps, beside cutty, at the least", least(kept, "RA", "cutty"), 10),
        findings.at_least("RA makes, beside cutty, calls, at the least", least(totals, "RA", "cutty"), 10),
        findings.at_most(f"merges of RA beside those of cutty, {most} queries,", merges, 10),
    ]


EXPERIMENT = Experiment(
    "cutty-9",
    "Non-periodic queries",
    "On windows that the data places, slicing with Cutty is orders of magnitude ahead of RA in throughput, memory and "
    "calls of combine; only merges of windows take about as many calls.",
    "Windows from one change of a sensor to the next, for 1 to 80 sensors whose changes come every 100 to 10,000 rows; "
    "sum, machine. The techniques of this library take no windows that the data places, so Cutty and RA are one loop here, over slices "
    "and over events, which is told the changes; general slicing is windrow's engine with `punctuated` windows, which "
    "finds them itself.",
    measure,
)

"""Figure 21: windows of time, of another measure that advances, and of rows."""

from __future__ import annotations

import pyarrow as pa

import windrow as wr
from benchmarks.papers import findings
from benchmarks.papers.contenders import SLICING
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.papers.files import stream
from benchmarks.papers.scotty.workload import (
    CONCURRENT,
    LATE_SHARE,
    LENGTHS,
    LONGEST_DELAY,
    THROUGHPUT,
    counted,
    counts,
    query,
    tumbling,
)
from benchmarks.papers.streams import PER_SECOND, SECOND, Source, disordered
from benchmarks.papers.timing import Sweep

TIME, MEASURE, ROWS = "slicing, time", "slicing, arbitrary measure", "slicing, count"
BUFFER = "tuple buffer, count"
RIVAL = "tuple buffer of rows"


def measure(setting: Setting) -> Outcome:
    scale = setting.scale
    source = disordered(stream(setting, "football", scale.events), LATE_SHARE, LONGEST_DELAY)
    measured = distance(source)
    by_time, by_measure, by_rows = (
        Sweep([SLICING], scale),
        Sweep([SLICING], scale),
        Sweep([SLICING, RIVAL], scale),
    )
    rows = scale.pick(tiny=50, small=PER_SECOND, full=PER_SECOND)
    for count in counts(scale):
        by_time.run(count, query(tumbling(count)), source)
        by_measure.run(count, query(metres(count)), measured)
        by_rows.run(count, query(counted(count, rows)), source)
    series = {
        TIME: by_time.series[SLICING],
        MEASURE: by_measure.series[SLICING],
        ROWS: by_rows.series[SLICING],
        BUFFER: by_rows.series[RIVAL],
    }
    panel = Panel(
        "scotty-21",
        "Figure 21",
        CONCURRENT,
        THROUGHPUT,
        series,
        log_x=True,
        log_y=True,
        notes=[by_rows.note()],
    )
    return Outcome([panel], points(by_time, by_measure, by_rows))


def distance(source: Source) -> Source:
    """The same events by a distance that they have covered, a plain number, instead of a time."""
    table = source.table.set_column(0, "ts", pa.array(source.times))
    return Source(source.name, table, source.times, source.slack)


def metres(count: int) -> dict[str, wr.Window]:
    return {f"{i}": wr.tumbling((i % LENGTHS + 1) * SECOND) for i in range(count)}


def points(by_time: Sweep, by_measure: Sweep, by_rows: Sweep) -> list[findings.Finding]:
    places = list(by_time.series[SLICING])
    most = places[-1]
    steady = min(by_time.at(SLICING, p) for p in places) / by_time.at(SLICING, places[0])
    alike = min(
        min(a / b, b / a) for a, b in ((by_time.at(SLICING, p), by_measure.at(SLICING, p)) for p in places)
    )
    return [
        findings.at_least("time-based windows keep, of their throughput with one,", steady, 0.5, "%"),
        findings.at_least("an arbitrary measure and time are alike to", alike, 0.5, "%"),
        findings.at_most(
            f"with {most:,} windows, count-based ones run, beside time-based ones, at",
            by_rows.at(SLICING, most) / by_time.at(SLICING, most),
            1,
            "%",
        ),
        findings.at_least(
            f"with {most:,} count-based windows slicing is, beside the tuple buffer,",
            by_rows.at(SLICING, most) / by_rows.at(RIVAL, most),
            10,
        ),
    ]


EXPERIMENT = Experiment(
    "scotty-21",
    "Throughput by window measure",
    "Windows of time, or of any measure that advances, cost the same however many there are; windows of rows get "
    "slower with their number, but slicing stays an order of magnitude ahead of the fastest rival, tuple buffers.",
    "Windows of 1 to 20 s, of as much of a measure that is a plain number, and of as many rows; 20 % of the events up "
    "to 2 s late, football.",
    measure,
)

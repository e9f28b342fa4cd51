"""Figure 6: windows of time, over readings that come 100 times a second.

The readings come at even steps, so that a window of time is a window of rows: six minutes are 36,000 readings,
and a slide of 10 ms is one. Beside the stores stands the engine, which is told times.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.papers import findings
from benchmarks.papers.contenders import SLICING, exhaust
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.papers.pba.rolling import (
    SAMPLE,
    STORES,
    THROUGHPUT,
    TOO_SLOW,
    Sizes,
    able,
    readings,
    require_agreement,
    rolling,
)
from benchmarks.papers.streams import SECOND, Source, source
from benchmarks.papers.timing import Work, measured
from benchmarks.support.harness import clocked
from benchmarks.support.streams import START
from windrow.rolling import Rolling

PER_MINUTE = 6_000
STEP = SECOND // 100


def asked(rows: int, every: int) -> wr.Query:
    """The windows in time."""
    window = wr.sliding(f"{rows * STEP} microseconds", every=f"{every * STEP} microseconds")
    return wr.query(time="ts", windows={"w": window}, aggregates={"answer": wr.max("value")})


def readings_at(column: np.ndarray) -> Source:
    """Readings with their times."""
    times = START * 1_000 + np.arange(len(column), dtype=np.int64) * STEP
    return source("machine", times, {"value": column})


def engine(values: np.ndarray, rows: int, every: int, batch: int) -> Work:
    """The engine on the same windows, in time. Here, too, the window is filled before the clock starts."""

    def work(events: int) -> float:
        given = readings_at(np.resize(values, rows + events))
        rest = Source(given.name, given.table.slice(rows), given.times[rows:]).first(events, batch)
        operator = asked(rows, every).operator()
        operator.process(given.table.slice(0, rows))
        operator.advance(given.table["ts"][rows - 1])
        return clocked(partial(exhaust, operator, rest))()

    return work


def require_the_engine_agrees(values: np.ndarray, rows: int, every: int) -> None:
    """Full windows of the engine have the answers of a store."""
    given = readings_at(np.resize(values, rows + SAMPLE))
    expected = Rolling(wr.max("value"), rows=rows, every=every, store="sba").process(given.table)
    found = asked(rows, every).run(given.table).sort_by("start")
    start, end = (found[name].cast(pa.int64()).to_numpy() for name in ("start", "end"))
    full = (start >= given.times[0]) & (end <= given.times[-1] + STEP)
    np.testing.assert_array_equal(found["answer"].to_numpy()[full], expected.to_numpy())


class TimeSizes(Sizes):
    """As `Sizes`, with the engine."""

    def run(self, place: float, values: np.ndarray, rows: int, every: int) -> None:
        stores = able(rows, every, self.scale)
        require_agreement(values, rows, every, [store for store in stores if store != "lazy"])
        require_the_engine_agrees(values, rows, every)
        works = {store: rolling(values, rows, every, store) for store in stores}
        works[SLICING] = engine(values, rows, every, self.scale.batch)
        found = measured(works, self.scale, min(self.scale.events, 2_000_000))
        for name in (*STORES, SLICING):
            self.series.setdefault(name, {})[place] = found[name].rate if name in found else TOO_SLOW


def measure(setting: Setting) -> Outcome:
    scale = setting.scale
    values = readings(setting, scale.events)
    minutes = scale.pick(tiny=(0.1, 0.2), small=(6, 30, 60), full=(6, 12, 24, 36, 48, 60))
    slides = scale.pick(tiny=(1, 3), small=(1, 2, 5, 10), full=tuple(range(1, 11)))
    by_range, by_slide = TimeSizes(scale), TimeSizes(scale)
    for minute in minutes:
        by_range.run(minute, values, int(minute * PER_MINUTE), 1)
    longest = int(minutes[-1] * PER_MINUTE)
    for slide in slides:
        by_slide.run(10 * slide, values, longest, slide)
    panels = [
        Panel("pba-6a", "Figure 6a, slide 10 ms", "range in minutes", THROUGHPUT, by_range.series),
        Panel(
            "pba-6b", f"Figure 6b, range {minutes[-1]:g} minutes", "slide in ms", THROUGHPUT, by_slide.series
        ),
    ]
    return Outcome(panels, points(by_range, by_slide))


def points(by_range: TimeSizes, by_slide: TimeSizes) -> list[findings.Finding]:
    def least(sizes: TimeSizes, store: str) -> float:
        return min(sizes.beside_rivals(store, place) for place in sizes.places)

    return [
        findings.at_least(
            "over all ranges, SBA beside the better of two-stacks and SlickDeque at its least",
            least(by_range, "sba"),
            1,
        ),
        findings.at_least("PBA", least(by_range, "pba"), 1),
        findings.at_least("over all slides, SBA", least(by_slide, "sba"), 1),
        findings.at_least("PBA", least(by_slide, "pba"), 1),
    ]


EXPERIMENT = Experiment(
    "pba-6",
    "Throughput of time windows",
    "On windows of time it is as with windows of rows: PBA is the fastest, and SBA is ahead of two-stacks and SlickDeque.",
    "Maximum, machine at 100 readings per second: ranges of 6 to 60 minutes with a slide of 10 ms (a), slides of 10 to "
    "100 ms with a range of an hour (b). The readings come at even steps, so stores are driven by rows; general slicing "
    "is windrow's engine on the same windows in time, with timestamps, a watermark and three columns of results.",
    measure,
)

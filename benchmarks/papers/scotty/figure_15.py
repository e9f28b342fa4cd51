"""Figure 15: what is kept for events that may come late, in bytes, as counted.

    a, b    windows of time      over slices (50,000 tuples), over tuples (500 slices)
    c, d    windows of rows      the same

A tuple is counted as 16 bytes (time and value), a partial as 24 (an edge, a sum and a number of events): the
same for all techniques, so that their counts are compared and not the padding of their arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import windrow as wr
from benchmarks.papers import findings
from benchmarks.papers.contenders import CANNOT, CONTENDERS, SLICING
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.papers.scotty.count_buffer import CountBuffer
from benchmarks.papers.scotty.workload import NON_SLICING, query
from benchmarks.papers.streams import SECOND, Source, source
from benchmarks.support.harness import Figure
from benchmarks.support.streams import START
from windrow import QueryError
from windrow.engine.operator import Operator

NAMES = [SLICING, "aggregate buckets", "tuple buckets", *NON_SLICING[1:]]
TUPLE, PARTIAL = 16, 24
TUPLES, SLICES = 50_000, 500
OVERLAP = 2  # windows that an event is in
HORIZON = 50 * SECOND  # how long late events are waited for
BYTES = "bytes"
BUFFER = "tuple buffer"


def events_of(tuples: int) -> Source:
    """So many tuples within the horizon, one of them late so that nobody can rely on the order."""
    steps = np.arange(tuples, dtype=np.int64)
    times = START * 1_000 + steps * HORIZON // tuples
    values = np.random.default_rng(15).integers(0, 1_000, tuples)
    return source("even", times, {"value": values})


def kept(operator: Any, given: Source) -> int:
    """Bytes that an operator keeps while all tuples may still be followed by late ones."""
    (batch,) = given.first(len(given), len(given)).batches
    operator.process(batch)
    operator.advance(given.table["ts"][0])
    if isinstance(operator, Operator):
        metrics = operator.metrics()
        return TUPLE * metrics.pending + PARTIAL * metrics.live_slices
    counters = operator.counters
    return TUPLE * counters.tuples + PARTIAL * counters.partials


def time_windows(slices: int) -> dict[str, wr.Window]:
    every = HORIZON // slices
    return {"w": wr.sliding(f"{OVERLAP * every} microseconds", every=f"{every} microseconds")}


def count_windows(slices: int, tuples: int) -> dict[str, wr.Window]:
    every = max(1, tuples // slices)
    return {"w": wr.sliding(rows=OVERLAP * every, every_rows=every)}


def panel(name: str, rows: bool, by_slices: bool, places: tuple[int, ...], setting: Setting) -> Panel:
    series: dict[str, dict[float | str, Figure]] = {technique: {} for technique in NAMES}
    tuples_at_most = setting.scale.pick(tiny=2_000, small=TUPLES, full=TUPLES)
    for place in places:
        slices, tuples = (place, tuples_at_most) if by_slices else (SLICES, place)
        windows = count_windows(slices, tuples) if rows else time_windows(slices)
        for technique in NAMES:
            try:
                operator = maker(technique, rows)(query(windows))
            except QueryError:
                series[technique][place] = CANNOT
            else:
                series[technique][place] = kept(operator, events_of(tuples))
    kind = "count-based" if rows else "time-based"
    fixed = f"{tuples_at_most:,} tuples" if by_slices else f"{SLICES} slices"
    axis = "slices in the allowed lateness" if by_slices else "tuples in the allowed lateness"
    title = f"Figure {name.removeprefix('scotty-')}, {kind} windows, {fixed}"
    notes = [f"{CANNOT}: it takes windows of time."] if rows else []
    return Panel(name, title, axis, BYTES, series, log_x=True, log_y=True, notes=notes)


def maker(technique: str, rows: bool) -> Callable[[wr.Query], Any]:
    """The technique as an operator; a tuple buffer for windows of rows is one of its own."""
    return CountBuffer if rows and technique == BUFFER else CONTENDERS[technique].make


def growth(panel: Panel, technique: str) -> float:
    """How many times as much is kept at the right end as at the left."""
    first, *_, last = (float(figure) for figure in panel.series[technique].values())  # type: ignore[arg-type]
    return last / max(first, 1.0)


def points(a: Panel, b: Panel, d: Panel) -> list[findings.Finding]:
    wider, more = a.places[-1] / a.places[0], b.places[-1] / b.places[0]  # type: ignore[operator]
    return [
        findings.at_most(
            f"time-based, {more:,.0f} times the tuples: general slicing keeps", growth(b, SLICING), 2
        ),
        findings.at_least("a tuple buffer", growth(b, BUFFER), more / 2),
        findings.at_least(
            f"{wider:,.0f} times the slices: general slicing keeps", growth(a, SLICING), wider / 4
        ),
        findings.at_least(
            "count-based, with the tuples of the right end: general slicing beside a tuple buffer",
            float(d.series[SLICING][d.places[-1]]) / float(d.series[BUFFER][d.places[-1]]),  # type: ignore[arg-type]
            0.9,
        ),
    ]


def measure(setting: Setting) -> Outcome:
    by_slices = setting.scale.pick(
        tiny=(10, 100), small=(10, 100, 1_000, 10_000), full=(1, 10, 100, 1_000, 10_000)
    )
    by_tuples = setting.scale.pick(
        tiny=(1_000, 2_000), small=(500, 5_000, 50_000), full=(500, 1_000, 5_000, 10_000, 50_000, 100_000)
    )
    panels = [
        panel(f"scotty-15{letter}", rows, slices, by_slices if slices else by_tuples, setting)
        for letter, rows, slices in (
            ("a", False, True),
            ("b", False, False),
            ("c", True, True),
            ("d", True, False),
        )
    ]
    a, b, _, d = panels
    return Outcome(panels, points(a, b, d))


EXPERIMENT = Experiment(
    "scotty-15",
    "Memory, out-of-order streams",
    "With windows of time, slicing and buckets keep partials, as many as there are slices and however many events "
    "there are; buffers and trees keep every event. With windows of rows everybody keeps every event.",
    "All events of 50 s are in, none may be let go yet; windows overlap twofold. Counted, not weighed: 16 bytes "
    "for a tuple, 24 for a partial with its edge. General slicing holds the events of count windows back until their "
    "order is known, and cuts them then.",
    measure,
)

"""The streams and the query of section 6.1: span events, one that ends at each tick, and three aggregates.

    synthetic    an event ends at each tick; how long it lasted is normal, with deviation 10
    ss7          a stand-in for a minute of a telephone network, which is not public: span events of 16 s in the
                 mean, many of them short and some for hours (log-normal); ticks are milliseconds

How long windows wait before they are released is the paper's time to postpone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.papers.experiment import Panel, Scale
from benchmarks.papers.streams import Source
from benchmarks.papers.timing import Sweep
from benchmarks.support.harness import Figure

WINDROW, SLICING, SWEEPING = "windrow", "SE-Slicing", "Sweeping"
BUCKETS = ["Aggregate Buckets", "Tuple Buckets"]
SINGLE = [WINDROW, SLICING, *BUCKETS, SWEEPING]

THROUGHPUT = "events/s"
RANGE = "range in ticks"
POSTPONE = 15_000
DEVIATION = 10
SECOND = 1_000
MINUTE = 60 * SECOND
SS7_MEAN = 16 * SECOND
SS7_POSTPONE = 9_000 * SECOND
SS7_SPREAD = 1.5
AGGREGATES = {"count": wr.count(), "sum": wr.sum("value"), "max": wr.max("value")}


def levels(scale: Scale) -> list[str]:
    """Slicing in levels, of these heights."""
    heights = scale.pick(tiny=(2,), small=(2, 7, 20), full=(2, 3, 7, 15, 20))
    return [f"SE-ML-Slicing, d = {height}" for height in heights]


def scaled(scale: Scale, events: int = 2_000_000) -> Scale:
    """As much work as the paper at full scale, and enough to see a difference otherwise."""
    return scale.pick(
        tiny=scale,
        small=replace(scale, events=100_000, least=10_000, batch=50_000, seconds=0.04, repeats=2),
        full=replace(scale, events=events, least=50_000, batch=100_000, seconds=0.5, repeats=3),
    )


@cache
def synthetic(events: int, size: int) -> Source:
    """An event of about `size` ticks ends at each tick."""
    random = np.random.default_rng(size)
    ends = np.arange(events, dtype=np.int64) + 10 * POSTPONE
    sizes = np.maximum(1, np.rint(random.normal(size, DEVIATION, events))).astype(np.int64)
    columns = {"since": ends - sizes, "until": ends, "value": random.integers(0, 1_000, events)}
    return Source("synthetic", pa.table(columns), ends)


@cache
def ss7(events: int) -> Source:
    """The events of a minute."""
    random = np.random.default_rng(7)
    ends = np.sort(random.integers(0, MINUTE, events)) + 2 * SS7_POSTPONE
    sizes = random.lognormal(np.log(SS7_MEAN) - SS7_SPREAD**2 / 2, SS7_SPREAD, events)
    sizes = np.clip(np.rint(sizes), 1, SS7_POSTPONE).astype(np.int64)
    columns = {"since": ends - sizes, "until": ends, "value": random.integers(0, 1_000, events)}
    return Source("ss7", pa.table(columns), ends)


def query(size: int, every: int, postpone: int = POSTPONE) -> wr.Query:
    """Count, sum and max over sliding windows of span events."""
    return wr.query(
        time=wr.span("since", "until", release=postpone),
        windows={"window": wr.sliding(size, every=every)},
        aggregates=AGGREGATES,
    )


def ratio(found: Sweep, ours: str, others: list[str], place: float | str) -> float:
    """The throughput of a technique beside the best of the others."""
    return found.at(ours, place) / max(found.at(other, place) for other in others)


def places(found: Sweep) -> list[float | str]:
    return list(found.series[WINDROW])


def panel(name: str, title: str, axis: str, found: Sweep) -> Panel:
    """Slices in one level beside buckets and sweeping."""
    beside = {
        "SE-Slicing / buckets": {place: ratio(found, SLICING, BUCKETS, place) for place in places(found)},
        "windrow / SE-Slicing": {place: ratio(found, WINDROW, [SLICING], place) for place in places(found)},
    }
    return _panel(name, title, axis, found, beside)


def levels_panel(name: str, title: str, axis: str, found: Sweep) -> Panel:
    """Slices in levels beside slices in one, and sweeping."""
    best = {place: max(found.at(level, place) for level in levels(found.scale)) for place in places(found)}
    beside = {
        "best height / SE-Slicing": {place: best[place] / found.at(SLICING, place) for place in best},
        "windrow / best height": {place: found.at(WINDROW, place) / best[place] for place in best},
    }
    return _panel(name, title, axis, found, beside)


def _panel(
    name: str, title: str, axis: str, found: Sweep, beside: Mapping[str, Mapping[float | str, Figure]]
) -> Panel:
    return Panel(
        name,
        title,
        axis,
        THROUGHPUT,
        found.series,
        log_x=True,
        log_y=True,
        beside=beside,
        notes=[found.note()],
    )

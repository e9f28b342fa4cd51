"""What does an event cost that lasts?

Count, sum and max together, one key, an event that ends at each tick, in batches of 100,000 with a watermark after
each. First events of different lengths: inside one slice of 100 ticks, across 100 slices, across 1,000; windows have
five slices and wait for the longest event. Then the grid of the paper on spanning events (section 6.2): its
event sizes and ranges, five steps to a range, released 15,000 ticks later; at small scale, the full one is
`python -m benchmarks.papers spanning`. Beside windrow stands the best of the paper's techniques in each place, all of them written
here in the same language (`windrow.techniques.spanning`): SE-Slicing, SE-ML-Slicing, buckets of aggregates and of
tuples, and plane sweeping. They give the same rows before any is timed; slow ones are timed on fewer events. The
paper's own programs, in C++ on its own machine, reach 0.55 M events/s at most. At last a year of flights, from departure
to landing: how many are in the air in each hour, anew every 15 minutes, per airport, in windrow and as other
libraries find it, with the same rows.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.opponents import SPANS, rows
from benchmarks.opponents.worker import Opponent, cores, forms
from benchmarks.papers import experiment
from benchmarks.papers.spanning.workload import BUCKETS, SLICING, SWEEPING, WINDROW, query, synthetic
from benchmarks.papers.streams import Source
from benchmarks.papers.timing import Sweep
from benchmarks.support.flights import FLIGHTS, flights_job
from benchmarks.support.harness import (
    FULL_EVENTS,
    Contender,
    Figure,
    Line,
    Scale,
    Table,
    at_least,
    clocked,
    race,
    rate,
)
from benchmarks.support.streams import Stream, cut, drain

EVENTS, BATCH = 2_000_000, 100_000
SLICE, SLICES = 100, 5
LENGTHS = {"inside one slice": 1, "across 100 slices": 100, "across 1,000 slices": 1_000}
TECHNIQUES = [SLICING, "SE-ML-Slicing, d = 7", "SE-ML-Slicing, d = 20", *BUCKETS, SWEEPING]
SIZES = (100, 2_000, 10_000)
RANGES = (500, 5_000, 20_000, 100_000)
TIMES = "times as fast"
# How much less is done in each place of the grid.
SMALLER = 4
PEAK = "paper's peak, C++, M/s (cited)"
LIBRARIES = ("polars", "duckdb")
FASTER = "faster by"
# Library, number of the form and threads of what is timed.
Entry = tuple[str, int, int]
OURS: Entry = (WINDROW, 0, 1)
BATCHES: Entry = (WINDROW, 1, 1)
LIMIT: Entry = ("numpy.sum", 0, 1)
IN_THE_AIR = wr.query(
    time=wr.span("departed", "landed", release="12 hours"),
    key="origin",
    windows={"hour": wr.sliding("1 hour", every="15 minutes")},
    aggregates={"flights": wr.count(), "minutes": wr.sum("minutes"), "longest": wr.max("minutes")},
)


@cache
def inside(events: int) -> Source:
    """An event ends with each tick, and began in the same slice."""
    random = np.random.default_rng(31)
    lasts = np.arange(events, dtype=np.int64)
    starts = lasts - random.integers(0, lasts % SLICE + 1)
    columns = {"since": starts, "until": lasts + 1, "value": random.integers(0, 1_000, events)}
    return Source("inside", pa.table(columns), lasts + 1)


def timing(scale: Scale) -> experiment.Scale:
    """As many events as the paper has at full scale, and for each technique the seconds to show what it can."""
    events = EVENTS * scale.events // FULL_EVENTS
    least = max(events // 40, 1_000)
    return experiment.Scale(
        scale.name, events, least, min(BATCH, events // 2), scale.seconds / 4, scale.repeats
    )


def limit(source: Source, timed: experiment.Scale, scale: Scale) -> float:
    stream = source.first(timed.events, timed.batch)
    return rate(len(stream), race({"limit": clocked(stream.limit)}, replace(scale, seconds=0))["limit"])


def line(name: str, found: Sweep, place: float | str, extra: dict[str, Figure], *, headline: bool) -> Line:
    """windrow beside the best of the techniques."""
    ours = found.at(WINDROW, place)
    best = max(TECHNIQUES, key=lambda technique: found.at(technique, place))
    figures: dict[str, Figure] = {
        "M events/s": ours / 1e6,
        "best technique": best,
        "M/s": found.at(best, place) / 1e6,
        TIMES: ours / found.at(best, place),
    }
    return Line(name, figures | extra, at_least(TIMES, 1), headline=headline)


def lengths(scale: Scale) -> Table:
    """Events inside one slice, and across many."""
    timed, lines = timing(scale), []
    found = Sweep([WINDROW, *TECHNIQUES], timed)
    for name, slices in LENGTHS.items():
        source = inside(timed.events) if slices == 1 else synthetic(timed.events, slices * SLICE)
        longest = int((source.times - source.table["since"].to_numpy()).max())
        found.run(name, query(SLICES * SLICE, SLICE, longest), source)
        extra: dict[str, Figure] = {PEAK: 0.55, "limit, M/s": limit(source, timed, scale)}
        lines.append(line(f"events {name}", found, name, extra, headline=True))
    return Table(
        "Events of different lengths", tuple(lines), ours="M events/s", beside="M/s", note=found.note()
    )


def grid(scale: Scale) -> Table:
    """Sizes of events and ranges of windows as in the paper, at small scale."""
    tiny, timed, lines = scale.name == "tiny", timing(scale), []
    timed = replace(timed, events=timed.events // SMALLER, seconds=timed.seconds / SMALLER)
    found = Sweep([WINDROW, *TECHNIQUES], timed)
    for size in SIZES[:1] if tiny else SIZES:
        for length in RANGES[:2] if tiny else RANGES:
            name = f"events of {size:,}, windows of {length:,}"
            found.run(name, query(length, length // SLICES), synthetic(timed.events, size))
            lines.append(line(name, found, name, {}, headline=False))
    return Table("The paper's grid, small", tuple(lines), ours="M events/s", beside="M/s", note=found.note())


def landings(flights: pa.Table) -> Stream:
    """The flights as they land, in batches with a watermark after each."""
    times = flights["landed"].cast(pa.int64()).to_numpy()
    numbers = flights.drop_columns("origin")
    return replace(cut(flights, times, 10_000), columns=cut(numbers, times, len(times)).columns)


def verify(opponent: Opponent, flights: pa.Table, folder: Path) -> None:
    """Each form of the opponent finds our windows."""
    ours = rows(SPANS, IN_THE_AIR.run(flights))
    for i, form in enumerate(forms(opponent.library, SPANS)):
        (theirs,) = opponent.rows(i, folder / "rows")
        if not ours.equals(theirs):
            raise AssertionError(f"{opponent.library}, {form.name}: not the same windows as ours")


def in_the_air(scale: Scale) -> Table:
    """Ours, the limit and all forms of other libraries, in turns."""
    events = min(FLIGHTS, scale.events // 20)
    flights = flights_job(events)
    stream = landings(flights)
    contenders: dict[Entry, Contender] = {
        OURS: clocked(partial(IN_THE_AIR.run, flights)),
        BATCHES: clocked(partial(drain, IN_THE_AIR, stream)),
        LIMIT: clocked(stream.limit),
    }
    drain(IN_THE_AIR, stream)  # so that it is compiled
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for library in LIBRARIES:
            for threads in sorted({1, cores()}):
                opponent = stack.enter_context(Opponent(library, threads, events, SPANS))
                verify(opponent, flights, folder)
                for i in range(len(forms(library, SPANS))):
                    contenders[library, i, threads] = partial(opponent.seconds, i)
        times = race(contenders, scale)
    return tabulate(times, events)


def tabulate(times: dict[Entry, float], events: int) -> Table:
    ours = times[OURS]
    first: dict[str, Figure] = {
        "M flights/s": rate(events, ours),
        "limit, M/s": rate(events, times[LIMIT]),
    }
    lines = [
        Line("windrow, all at once", first),
        Line("windrow, 10,000 at a time", {"M flights/s": rate(events, times[BATCHES])}),
    ]
    fastest = min(seconds for entry, seconds in times.items() if entry[0] in LIBRARIES)
    for library in LIBRARIES:
        for i, form in enumerate(forms(library, SPANS)):
            one, several = times[library, i, 1], times[library, i, cores()]
            columns: dict[str, Figure] = {"M flights/s": rate(events, one), FASTER: one / ours}
            if cores() > 1:
                columns[f"{cores()} threads, M/s"] = rate(events, several)
                columns[f"{FASTER} ({cores()} threads)"] = several / ours
            lines.append(Line(f"{library}: {form.name}", columns, headline=fastest in (one, several)))
    note = (
        f"{events:,} flights. How many times as fast windrow is, all at once, stands beside each form. "
        "Limit: numpy.sum over the columns of numbers."
    )
    return Table("Flights in the air", tuple(lines), ours=FASTER, beside="M flights/s", note=note)


def measure(scale: Scale) -> list[Table]:
    return [lengths(scale), grid(scale), in_the_air(scale)]

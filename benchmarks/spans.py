"""What does an event cost that lasts?

Count, sum and max together, one key, an event that ends at each tick, in batches of 100,000 with a watermark after
each. First events of different lengths: inside one slice of 100 ticks, across 100 slices, across 1,000; windows have
five slices and wait for the longest event. Then a grid around that of the paper on spanning events (section 6.2):
events of 10 to 15,000 ticks, windows of 1 to 10,000 steps, released 15,000 ticks later; the paper's own figures are
`python -m benchmarks.papers spanning`. Beside windrow stands the best of the paper's techniques in each place, all of
them written here in the same language (`benchmarks.techniques.spanning`): SE-Slicing, SE-ML-Slicing, buckets of
aggregates and of tuples, and plane sweeping. They give the same rows before any is timed; slow ones are timed on fewer events. The
paper's own programs, in C++ on its own machine, reach 0.55 M events/s at most. At last a year of flights, from departure
to landing: how many are in the air in each hour, anew every 15 minutes, per airport, in windrow and as other
libraries find it, with the same rows. And one span event that is as long as millions of windows: what each of them costs.
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
    Target,
    at_least,
    at_most,
    clocked,
    race,
    rate,
)
from benchmarks.support.streams import Stream, cut, drain, on_one_thread

EVENTS, BATCH = 2_000_000, 100_000
SLICE, SLICES = 100, 5
LENGTHS = {"inside one slice": 1, "across 100 slices": 100, "across 1,000 slices": 1_000}
# Million events per second that there should be at least.
TARGETS = {1: 20.0, 100: 5.0}
TECHNIQUES = [SLICING, "SE-ML-Slicing, d = 7", "SE-ML-Slicing, d = 20", *BUCKETS, SWEEPING]
SIZES = (10, 500, 2_000, 15_000)
# Steps in a range and ticks in a step; five steps of 1,000 ticks are the paper's.
WINDOWS = ((1, 10), (5, 1_000), (100, 100), (10_000, 10))
# Buckets share nothing: an event is in a bucket for each window that holds it, and there is no room for so many.
MOST_IN_BUCKETS = 100
TIMES = "times as fast"
# No more than 1.3 times the time of the best technique.
NOT_SLOWER = 0.77
# How much less is done in each place of the grid.
SMALLER = 4
# Slices that one event crosses; what each costs must not follow their number, but for memory that no cache holds.
GROWTH = (500_000, 1_000_000, 2_000_000, 4_000_000)
MOST_GROWTH = 3.0
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


def line(
    name: str,
    found: Sweep,
    place: float | str,
    extra: dict[str, Figure],
    target: Target,
    *,
    headline: bool,
) -> Line:
    """windrow beside the best of the techniques."""
    ours = found.at(WINDROW, place)
    best = max(found.names[1:], key=lambda technique: found.at(technique, place))
    figures: dict[str, Figure] = {
        "M events/s": ours / 1e6,
        "best technique": best,
        "M/s": found.at(best, place) / 1e6,
        TIMES: ours / found.at(best, place),
    }
    return Line(name, figures | extra, target, headline=headline)


def lengths(scale: Scale) -> Table:
    """Events inside one slice, and across many."""
    timed, lines = timing(scale), []
    found = Sweep([WINDROW, *TECHNIQUES], timed)
    for name, slices in LENGTHS.items():
        source = inside(timed.events) if slices == 1 else synthetic(timed.events, slices * SLICE)
        longest = int((source.times - source.table["since"].to_numpy()).max())
        found.run(name, query(SLICES * SLICE, SLICE, longest), source)
        extra: dict[str, Figure] = {PEAK: 0.55, "limit, M/s": limit(source, timed, scale)}
        aim = TARGETS.get(slices)
        target = at_least(TIMES, 1) if aim is None else at_least("M events/s", aim)
        lines.append(line(f"events {name}", found, name, extra, target, headline=True))
    return Table(
        "Events of different lengths", tuple(lines), ours="M events/s", beside="M/s", note=found.note()
    )


def grid(scale: Scale) -> Table:
    """Short and long events, windows that do not overlap and that overlap very much."""
    tiny, timed, lines = scale.name == "tiny", timing(scale), []
    timed = replace(timed, events=timed.events // SMALLER, seconds=timed.seconds / SMALLER)
    notes = []
    for steps, step in WINDOWS[:2] if tiny else WINDOWS:
        rivals = [name for name in TECHNIQUES if steps <= MOST_IN_BUCKETS or name not in BUCKETS]
        found = Sweep([WINDROW, *rivals], timed)
        for size in SIZES[:1] if tiny else SIZES:
            name = f"events of {size:,} ticks, windows of {steps:,} x {step:,}"
            found.run(name, query(steps * step, step), synthetic(timed.events, size))
            lines.append(line(name, found, name, {}, at_least(TIMES, NOT_SLOWER), headline=False))
        notes.append(found.note())
    note = " ".join(dict.fromkeys(filter(None, notes)))
    return Table("A grid of sizes and ranges", tuple(lines), ours="M events/s", beside="M/s", note=note)


def landings(flights: pa.Table) -> Stream:
    """The flights as they land, in batches with a watermark after each."""
    times = flights["landed"].cast(pa.int64()).to_numpy()
    numbers = flights.drop_columns("origin")
    stream = cut(flights, times, 10_000, time="landed")
    return replace(stream, columns=cut(numbers, times, len(times)).columns)


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
        OURS: clocked(partial(on_one_thread(IN_THE_AIR), flights)),
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


def growth(scale: Scale) -> Table:
    """One event across more and more slices, each of them a window: taken in, and all windows given out."""
    sizes = GROWTH[:1] if scale.name == "tiny" else GROWTH
    asked = wr.query(
        time=wr.span("since", "until"), windows={"w": wr.tumbling(1)}, aggregates={"n": wr.count()}
    )
    tables = {size: pa.table({"since": [0], "until": [size]}) for size in sizes}
    contenders = {size: clocked(partial(on_one_thread(asked), table)) for size, table in tables.items()}
    asked.run(tables[sizes[0]])  # so that it is compiled
    times = race(contenders, scale)
    first = times[sizes[0]] / sizes[0]
    lines = []
    for size in sizes:
        each = times[size] / size
        figures: dict[str, Figure] = {"ns per slice": 1e9 * each, "times the first": each / first}
        target = at_most("times the first", MOST_GROWTH)
        lines.append(Line(f"one event across {size:,} slices", figures, target))
    return Table("One long event", tuple(lines), ours="ns per slice")


def measure(scale: Scale) -> list[Table]:
    return [lengths(scale), grid(scale), in_the_air(scale), growth(scale)]

"""Figure 14: the workload of Figure 13 with a session beside it, and with events out of order."""

from __future__ import annotations

from benchmarks.papers import findings, streams
from benchmarks.papers.contenders import SLICING
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.papers.files import stream
from benchmarks.papers.scotty.workload import (
    CONCURRENT,
    LATE_SHARE,
    LONGEST_DELAY,
    NON_SLICING,
    THROUGHPUT,
    counts,
    query,
    tumbling,
    with_session,
)
from benchmarks.papers.streams import Source, disordered
from benchmarks.papers.timing import Sweep
from benchmarks.support.harness import at_least

NAMES = [SLICING, "cutty", "pairs+", *NON_SLICING]
RATIO = "slicing / best rival"
FASTER = 20


def sweep(setting: Setting, source: Source, unit: str) -> Sweep:
    found = Sweep(NAMES, setting.scale)
    for count in counts(setting.scale):
        found.run(count, query(with_session(tumbling(count, unit), f"1 {unit}")), source)
    return found


def ratios(found: Sweep) -> dict[float | str, float]:
    return {
        place: found.at(SLICING, place) / max(found.at(name, place) for name in NON_SLICING)
        for place in found.series[SLICING]
    }


def panel(name: str, title: str, found: Sweep) -> Panel:
    beside = ratios(found)
    return Panel(
        name,
        title,
        CONCURRENT,
        THROUGHPUT,
        found.series,
        log_x=True,
        log_y=True,
        beside={RATIO: beside},
        targets={place: at_least(RATIO, FASTER) for place in beside},
        notes=[found.note()],
    )


def points(name: str, found: Sweep) -> list[findings.Finding]:
    beside = ratios(found)
    lowest, most = min(beside, key=lambda place: beside[place]), list(beside)[-1]
    return [
        findings.at_least(
            f"{name}, {most:,} windows: general slicing beside the best technique that does not slice",
            beside[most],
            FASTER,
        ),
        findings.at_least(
            f"{name}, at its least, which is with {lowest:,} window{'s' if lowest != 1 else ''},",
            beside[lowest],
            FASTER,
        ),
    ]


def measure(setting: Setting) -> Outcome:
    panels, found = [], []
    for name in ("football", "machine"):
        source = disordered(stream(setting, name, setting.scale.events), LATE_SHARE, LONGEST_DELAY)
        swept = sweep(setting, source, "second")
        panels.append(panel(f"scotty-14-{name}", f"Figure 14, {name}", swept))
        found += points(name, swept)
    flights = sweep(setting, streams.flights(by_departure=True), "hour")
    panels.append(panel("scotty-14-flights", "Figure 14, flights as they left", flights))
    return Outcome(panels, found)


EXPERIMENT = Experiment(
    "scotty-14",
    "Throughput out of order, with a session",
    "With late events and a session, general slicing is an order of magnitude ahead of everything that does not "
    "slice, at any number of windows and on either data set.",
    "As scotty-13, with a session of gap 1 s and 20 % of the events up to 2 s late, on football and machine; on "
    "flights the gap is 1 h, and events come in the order in which flights really left (some 40 an hour: with 1,000 windows most "
    "of the time goes into several rows of results per event). All techniques have the session, too: buckets have one for "
    "it, which are fused where a late event joins two sessions, and buffer and tree find its tuples by time. Pairs and Cutty "
    "need events in order.",
    measure,
)

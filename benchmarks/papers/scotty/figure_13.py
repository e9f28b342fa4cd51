"""Figure 13: events in order, tumbling windows alone, more and more of them."""

from __future__ import annotations

from benchmarks.papers import findings, streams
from benchmarks.papers.contenders import SLICING
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.papers.files import stream
from benchmarks.papers.scotty.workload import CONCURRENT, NON_SLICING, THROUGHPUT, counts, query, tumbling
from benchmarks.papers.streams import Source
from benchmarks.papers.timing import Sweep
from benchmarks.support.harness import at_least

SLICERS = ["cutty", "pairs+"]
NAMES = [SLICING, *SLICERS, "pairs", *NON_SLICING]
BUCKETS = "aggregate buckets"
RATIO = "slicing / buckets"
SHARE = "slicing, of one window"
KEPT, FASTER = 0.8, 100


def sweep(setting: Setting, source: Source, unit: str) -> Sweep:
    found = Sweep(NAMES, setting.scale)
    for count in counts(setting.scale):
        found.run(count, query(tumbling(count, unit)), source)
    return found


def panel(name: str, title: str, found: Sweep) -> Panel:
    places = list(found.series[SLICING])
    one, most = places[0], places[-1]
    beside = {
        SHARE: {place: found.at(SLICING, place) / found.at(SLICING, one) for place in places},
        RATIO: {place: found.at(SLICING, place) / found.at(BUCKETS, place) for place in places},
    }
    return Panel(
        name,
        title,
        CONCURRENT,
        THROUGHPUT,
        found.series,
        log_x=True,
        log_y=True,
        beside=beside,
        targets={most: at_least(RATIO, FASTER)},
        notes=[found.note()],
    )


def points(found: Sweep) -> list[findings.Finding]:
    places = list(found.series[SLICING])
    most = places[-1]
    least = min(found.at(SLICING, place) for place in places) / found.at(SLICING, places[0])
    slicers = min(found.at(name, most) for name in SLICERS) / max(found.at(n, most) for n in NON_SLICING)
    return [
        findings.at_least("general slicing keeps, of its throughput with one window,", least, KEPT, "%"),
        findings.at_least(
            f"at {most:,} windows its throughput is, beside buckets,",
            found.at(SLICING, most) / found.at(BUCKETS, most),
            FASTER,
        ),
        findings.at_least(
            "the slower of cutty and pairs+ beside the fastest non-slicing technique", slicers, 1
        ),
    ]


def measure(setting: Setting) -> Outcome:
    football = sweep(setting, stream(setting, "football", setting.scale.events), "second")
    flights = sweep(setting, streams.flights(), "hour")
    panels = [
        panel("scotty-13", "Figure 13, football", football),
        panel("scotty-13-flights", "Figure 13, flights, windows of 1 to 20 hours", flights),
    ]
    return Outcome(panels, points(football))


EXPERIMENT = Experiment(
    "scotty-13",
    "Throughput in order, context free windows",
    "Slicing takes millions of events per second however many windows run at once, while buckets, buffers and "
    "trees over events do work for each event and window, and fall by orders of magnitude.",
    "Sum over tumbling windows of 1 to 20 whole seconds, each query with one of its own, football stream in order, "
    "20,000 events per second of event time; the same over a year of flights, in hours. The verdict is on football. Pairs shares "
    "nothing between queries, pairs+ does. Some 40 flights leave in an hour, so that with 1,000 windows there are several "
    "rows of results for each of them, and these are most of the work.",
    measure,
)

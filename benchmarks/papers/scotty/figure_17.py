"""Figure 17: more late events (a), later ones (b)."""

from __future__ import annotations

from benchmarks.papers import findings
from benchmarks.papers.contenders import SLICING
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.papers.files import stream
from benchmarks.papers.scotty.workload import (
    LATE_SHARE,
    LONGEST_DELAY,
    NON_SLICING,
    THROUGHPUT,
    query,
    tumbling,
    with_session,
)
from benchmarks.papers.streams import disordered
from benchmarks.papers.timing import Sweep

NAMES = [SLICING, *NON_SLICING]
WINDOWS = 20
STEADY = 0.5
Delay = tuple[float, float]


def measure(setting: Setting) -> Outcome:
    scale = setting.scale
    source = stream(setting, "football", scale.events)
    asked = query(with_session(tumbling(WINDOWS)))
    shares = scale.pick(tiny=(0, 40), small=(0, 20, 60, 100), full=(0, 20, 40, 60, 80, 100))
    by_share = Sweep(NAMES, scale)
    for share in shares:
        by_share.run(share, asked, disordered(source, share / 100, LONGEST_DELAY))
    delays: tuple[Delay, ...] = ((0, 1), (1, 2), (2, 4), (4, 8), (8, 16))
    by_delay = Sweep(NAMES, scale)
    for low, high in scale.pick(tiny=delays[:2], small=delays[::2], full=delays):
        by_delay.run(f"{low:g}-{high:g}", asked, disordered(source, LATE_SHARE, high, low))
    panels = [
        Panel(
            "scotty-17a",
            "Figure 17a",
            "share of late events, %",
            THROUGHPUT,
            by_share.series,
            log_y=True,
            notes=[by_share.note()],
        ),
        Panel(
            "scotty-17b",
            "Figure 17b",
            "delay of late events, s",
            THROUGHPUT,
            by_delay.series,
            log_y=True,
            notes=[by_delay.note()],
        ),
    ]
    return Outcome(panels, points(by_share, by_delay))


def kept(found: Sweep, name: str) -> float:
    """The throughput at the right end, of that at the left."""
    places = list(found.series[name])
    return found.at(name, places[-1]) / found.at(name, places[0])


def points(by_share: Sweep, by_delay: Sweep) -> list[findings.Finding]:
    shares = list(by_share.series[SLICING])
    losers = ("tuple buffer", "aggregate tree")
    worst = min(losers, key=lambda name: kept(by_share, name))
    # From the first share above nothing on: without late events, general slicing runs another loop.
    late = by_share.at(SLICING, shares[-1]) / by_share.at(SLICING, shares[1])
    return [
        findings.at_least(
            f"with {shares[-1]} instead of {shares[1]} % late events general slicing keeps", late, STEADY, "%"
        ),
        findings.at_least(
            "buckets keep, of theirs in order,", kept(by_share, "aggregate buckets"), STEADY, "%"
        ),
        findings.at_most(
            f"the {worst} keeps, of its throughput in order,", kept(by_share, worst), STEADY, "%"
        ),
        findings.at_least(
            "with the longest delays general slicing keeps", kept(by_delay, SLICING), STEADY, "%"
        ),
    ]


EXPERIMENT = Experiment(
    "scotty-17",
    "Throughput by disorder",
    "Slicing and buckets take late events as fast as others, however many and however late; buffers and trees over "
    "events lose throughput the more of them come.",
    "20 tumbling windows and a session, football; late events with random delays of up to 2 s, from none to all of "
    "them (a), and 20 % of them with longer and longer delays (b).",
    measure,
)

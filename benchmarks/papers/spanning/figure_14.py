"""Figure 14: a minute of a telephone network, windows of different ranges."""

from __future__ import annotations

from benchmarks.papers import findings
from benchmarks.papers.experiment import Experiment, Outcome, Scale, Setting
from benchmarks.papers.spanning.workload import (
    SECOND,
    SINGLE,
    SLICING,
    SS7_POSTPONE,
    SWEEPING,
    WINDROW,
    levels,
    levels_panel,
    panel,
    places,
    query,
    ratio,
    scaled,
    ss7,
)
from benchmarks.papers.timing import Sweep

EVENTS = 3_200_000
SLICES = 5
SECONDS = "range in seconds"
GAINS = {"Tuple Buckets": 1.4, "Aggregate Buckets": 1.1, SWEEPING: 1.3}


def ranges(scale: Scale) -> tuple[int, ...]:
    return scale.pick(tiny=(60,), small=(5, 20, 120), full=(5, 10, 20, 40, 60, 120, 300))


def sweep(scale: Scale, names: list[str]) -> Sweep:
    found = Sweep(names, scale)
    for seconds in ranges(scale):
        size = seconds * SECOND
        found.run(seconds, query(size, size // SLICES, SS7_POSTPONE), ss7(scale.events))
    return found


def points(single: Sweep, several: Sweep) -> list[findings.Finding]:
    small, large = places(several)[0], places(several)[-1]
    held = [
        findings.at_least(
            f"SE-Slicing beside {name}, at the least",
            min(ratio(single, SLICING, [name], place) for place in places(single)),
            gain,
        )
        for name, gain in GAINS.items()
    ]
    best = {
        place: max(ratio(several, name, [SLICING], place) for name in levels(several.scale))
        for place in (small, large)
    }
    return [
        *held,
        findings.at_least(f"the best height beside SE-Slicing at {small} seconds", best[small], 1),
        findings.at_most(f"and at {large} seconds", best[large], 1),
    ]


def measure(setting: Setting) -> Outcome:
    scale = scaled(setting.scale, EVENTS)
    single, several = sweep(scale, SINGLE), sweep(scale, [WINDROW, SLICING, *levels(scale)])
    panels = [
        panel("spanning-14a", "Figure 14a, stand-in for SS7", SECONDS, single),
        levels_panel("spanning-14b", "Figure 14b, stand-in for SS7", SECONDS, several),
    ]
    return Outcome(panels, points(single, several))


EXPERIMENT = Experiment(
    "spanning-14",
    "Throughput by range, a minute of a telephone network",
    "SE-Slicing is at least 40 % faster than Tuple Buckets, 10 % faster than Aggregate Buckets and 30 % faster than Sweeping "
    "for all ranges. Levels help in small windows only, as most events are short.",
    "The paper's SS7 data, 3.2 million events of a minute, is not public: this is a stand-in of as many events at full scale (100,000 at "
    "small), which last 16 seconds in the mean (log-normal, up to 2.5 hours). A step is a fifth of the range; windows are released "
    "2.5 hours after their end, which is at the end of the stream.",
    measure,
)

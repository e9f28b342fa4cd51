"""Figure 11: events of different sizes in small windows, slices in levels beside slices in one and sweeping."""

from __future__ import annotations

from benchmarks.papers import findings
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Scale, Setting
from benchmarks.papers.spanning.figure_10 import EVENT_SIZE, SLICES, sizes
from benchmarks.papers.spanning.workload import (
    SLICING,
    SWEEPING,
    WINDROW,
    levels,
    levels_panel,
    places,
    query,
    ratio,
    scaled,
    synthetic,
)
from benchmarks.papers.timing import Sweep

RANGES = {"11a": 500, "11b": 5_000}


def sweep(scale: Scale, size: int) -> Sweep:
    found = Sweep([WINDROW, SLICING, *levels(scale), SWEEPING], scale)
    for event in sizes(scale):
        found.run(event, query(size, size // SLICES), synthetic(scale.events, event))
    return found


def panel(number: str, found: Sweep) -> Panel:
    return levels_panel(f"spanning-{number}", f"Figure {number}, ω = {RANGES[number]:,}", EVENT_SIZE, found)


def points(found: dict[str, Sweep]) -> list[findings.Finding]:
    small = found["11a"]
    heights = levels(small.scale)
    shortest, longest = places(small)[0], places(small)[-1]
    everywhere = [(s, place) for s in found.values() for place in places(s)]
    best = max(heights, key=lambda name: small.at(name, longest))
    return [
        findings.at_least(
            "levels beside SE-Slicing, any height and size, at the least",
            min(ratio(s, name, [SLICING], place) for s, place in everywhere for name in heights),
            1,
        ),
        findings.at_least(
            f"{best} beside SE-Slicing with the longest events in the smaller windows",
            ratio(small, best, [SLICING], longest),
            1,
        ),
        findings.at_least(
            "and how much its gain grows from the shortest events to the longest",
            ratio(small, best, [SLICING], longest) / ratio(small, best, [SLICING], shortest),
            1,
        ),
        findings.at_least("there it is, beside Sweeping,", ratio(small, best, [SWEEPING], longest), 1),
        findings.at_least(
            "and the greatest height beside the least", ratio(small, heights[-1], heights[:1], longest), 1
        ),
    ]


def measure(setting: Setting) -> Outcome:
    scale = scaled(setting.scale)
    found = {number: sweep(scale, size) for number, size in RANGES.items()}
    return Outcome([panel(number, s) for number, s in found.items()], points(found))


EXPERIMENT = Experiment(
    "spanning-11",
    "Throughput by event size, slices in levels",
    "In small windows, slices in levels are faster than slices in one for every height and all sizes of events, the more "
    "so the longer events are and the higher slices are, and they are faster than Sweeping where SE-Slicing is not.",
    "As in Figure 10, with windows of 500 and 5,000 ticks and slices of 2, 7 and 20 levels (at full scale also of 3 and 15).",
    measure,
)

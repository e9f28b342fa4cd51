"""Figure 13: windows of different ranges and steps, slices in levels."""

from __future__ import annotations

from benchmarks.papers import findings
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Scale, Setting
from benchmarks.papers.spanning.figure_12 import Overlap
from benchmarks.papers.spanning.workload import (
    RANGE,
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

OVERLAPS = (
    Overlap("13a", 500, 5),
    Overlap("13a-50", 500, 50),
    Overlap("13b", 5_000, 5),
    Overlap("13b-50", 5_000, 50),
)


def ranges(scale: Scale) -> tuple[int, ...]:
    return scale.pick(tiny=(1_000,), small=(1_000, 10_000), full=(100, 500, 1_000, 2_000, 5_000, 10_000))


def sweep(scale: Scale, overlap: Overlap) -> Sweep:
    found = Sweep([WINDROW, SLICING, *levels(scale), SWEEPING], scale)
    for size in ranges(scale):
        found.run(size, query(size, overlap.step(size)), synthetic(scale.events, overlap.event))
    return found


def panel(overlap: Overlap, found: Sweep) -> Panel:
    title = f"Figure {overlap.number}, {overlap.words}, μ = {overlap.event:,}"
    return levels_panel(f"spanning-{overlap.number}", title, RANGE, found)


def points(found: dict[str, Sweep]) -> list[findings.Finding]:
    heights = levels(found["13a"].scale)

    def least(number: str) -> float:
        s = found[number]
        return min(ratio(s, name, [SLICING], place) for place in places(s) for name in heights)

    def best(number: str) -> tuple[str, float]:
        """The best height at the largest range, and how it does beside Sweeping."""
        s, place = found[number], places(found[number])[-1]
        name = max(heights, key=lambda level: s.at(level, place))
        return name.removeprefix("SE-ML-Slicing, "), ratio(s, name, [SWEEPING], place)

    short, long = best("13a-50"), best("13b-50")
    few = min(ratio(found["13a"], name, [SLICING], places(found["13a"])[-1]) for name in heights)
    return [
        findings.at_most("at ω = 5 β, events of 500, the worst height beside SE-Slicing", few, 1),
        findings.at_least("at ω = 50 β, events of 500, any height beside SE-Slicing", least("13a-50"), 1),
        findings.at_least("events of 5,000: at ω = 5 β", least("13b"), 1),
        findings.at_least("at ω = 50 β", least("13b-50"), 1),
        findings.at_least(
            f"the best height for events of 5,000 at ω = 50 β ({long[0]}; for events of 500: {short[0]}) beside Sweeping",
            long[1],
            1,
        ),
    ]


def measure(setting: Setting) -> Outcome:
    scale = scaled(setting.scale)
    found = {overlap.number: sweep(scale, overlap) for overlap in OVERLAPS}
    return Outcome([panel(overlap, found[overlap.number]) for overlap in OVERLAPS], points(found))


EXPERIMENT = Experiment(
    "spanning-13",
    "Throughput by range and step, slices in levels",
    "With events of 500 ticks levels cost more than they spare at first, and pay from ω = 50 β on; with events of 5,000 they "
    "are faster than slices in one level for every height, and faster than Sweeping at ω = 50 β. The best height grows with events: "
    "7 for those of 500, 15 for those of 5,000.",
    "As in Figure 12, windows of 1,000 and 10,000 ticks (100 to 10,000 at full scale), slices of 2, 7 and 20 levels (at full scale also "
    "of 3 and 15).",
    measure,
)

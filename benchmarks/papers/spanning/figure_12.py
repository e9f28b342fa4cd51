"""Figure 12: windows of different ranges and steps, slices in one level beside buckets and sweeping."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.papers import findings
from benchmarks.papers.experiment import Experiment, Outcome, Scale, Setting
from benchmarks.papers.spanning.workload import (
    BUCKETS,
    RANGE,
    SINGLE,
    SLICING,
    SWEEPING,
    panel,
    places,
    query,
    ratio,
    scaled,
    synthetic,
)
from benchmarks.papers.timing import Sweep


@dataclass(frozen=True)
class Overlap:
    """A panel: how the step follows from the range, and how large events are."""

    number: str
    event: int
    steps: int
    even: bool = True

    def step(self, size: int) -> int:
        """The step; where it is not to divide the range, one more than what does."""
        return max(1, size // self.steps) + (not self.even)

    @property
    def words(self) -> str:
        return f"ω = {self.steps} β" if self.even else f"ω mod β > 0, ω ≈ {self.steps} β"


OVERLAPS = (
    Overlap("12a", 500, 5),
    Overlap("12a-50", 500, 50),
    Overlap("12a-500", 500, 500),
    Overlap("12a-odd", 500, 5, even=False),
    Overlap("12b", 5_000, 5),
)


def ranges(scale: Scale) -> tuple[int, ...]:
    return scale.pick(
        tiny=(1_000, 5_000), small=(500, 10_000), full=(500, 1_000, 2_000, 5_000, 10_000, 50_000, 100_000)
    )


def sweep(scale: Scale, overlap: Overlap) -> Sweep:
    found = Sweep(SINGLE, scale)
    for size in ranges(scale):
        found.run(size, query(size, overlap.step(size)), synthetic(scale.events, overlap.event))
    return found


def points(found: dict[str, Sweep]) -> list[findings.Finding]:
    def least(number: str) -> float:
        return min(ratio(found[number], SLICING, BUCKETS, place) for place in places(found[number]))

    long = found["12b"]
    shortest = places(long)[0]
    rates = [s.at(SWEEPING, place) for s in found.values() for place in places(s)]
    return [
        findings.at_least(
            "SE-Slicing beside the better of the buckets, ω = 5 β, at the least", least("12a"), 1
        ),
        findings.at_least("ω = 50 β", least("12a-50"), 1),
        findings.at_least("ω = 500 β", least("12a-500"), 2),
        findings.at_least("ω mod β > 0", least("12a-odd"), 1),
        findings.at_least(
            f"Sweeping beside SE-Slicing, events of 5,000 in windows of {shortest:,}",
            ratio(long, SWEEPING, [SLICING], shortest),
            1,
        ),
        findings.at_most("Sweeping at its fastest beside itself at its slowest", max(rates) / min(rates), 3),
    ]


def measure(setting: Setting) -> Outcome:
    scale = scaled(setting.scale)
    found = {overlap.number: sweep(scale, overlap) for overlap in OVERLAPS}
    panels = [
        panel(
            f"spanning-{o.number}", f"Figure {o.number}, {o.words}, μ = {o.event:,}", RANGE, found[o.number]
        )
        for o in OVERLAPS
    ]
    return Outcome(panels, points(found))


EXPERIMENT = Experiment(
    "spanning-12",
    "Throughput by range and step, slices beside buckets and sweeping",
    "SE-Slicing is faster than buckets for all steps, and far so where windows overlap much, as buckets share nothing; a step "
    "that does not divide the range costs half of the gain. Sweeping is steady, and ahead where events are longer than windows.",
    "Windows of 500 and 10,000 ticks (up to 100,000 at full scale) with steps of a 5th, 50th and 500th of the range, and a "
    "step of one tick more than a 5th; events of 500 ticks (12a) and 5,000 (12b). A step is at least one tick.",
    measure,
)

"""Figure 15: which technique is best, by how windows overlap and by how long they are beside events."""

from __future__ import annotations

from benchmarks.papers import findings
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Scale, Setting
from benchmarks.papers.spanning.workload import (
    BUCKETS,
    SLICING,
    SWEEPING,
    WINDROW,
    query,
    scaled,
    synthetic,
)
from benchmarks.papers.timing import Sweep
from benchmarks.support.harness import Figure, Line, Table

EVENT = 2_000
LEVELS = ["SE-ML-Slicing, d = 7", "SE-ML-Slicing, d = 20"]
TRIED = [SLICING, *LEVELS, SWEEPING, BUCKETS[0]]
RATIO = "range / event size (ω / μ)"
TOO_FINE = "step below a tick"


def overlaps(scale: Scale) -> tuple[int, ...]:
    return scale.pick(tiny=(5,), small=(1, 10, 100), full=(1, 2, 5, 10, 50, 100, 500))


def ratios(scale: Scale) -> tuple[float, ...]:
    return scale.pick(tiny=(1.0,), small=(0.1, 1.0, 10.0), full=(0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0))


def kind(name: str) -> str:
    """A technique without its height."""
    return name.split(",")[0]


def measure(setting: Setting) -> Outcome:
    scale = scaled(setting.scale)
    best: dict[str, dict[float | str, Figure]] = {}
    lines = []
    rates: dict[tuple[int, float], Sweep] = {}
    for overlap in overlaps(scale):
        row: dict[float | str, Figure] = {}
        beside: dict[str, Figure] = {}
        for ratio in ratios(scale):
            size = int(EVENT * ratio)
            if size < overlap:
                row[ratio] = beside[f"{ratio:g}"] = TOO_FINE
                continue
            found = Sweep([WINDROW, *TRIED], scale)
            found.run(0, query(size, size // overlap), synthetic(scale.events, EVENT))
            rates[overlap, ratio] = found
            winner = max(TRIED, key=lambda name: found.at(name, 0))
            row[ratio] = winner
            beside[f"{ratio:g}"] = found.at(WINDROW, 0) / found.at(winner, 0)
        best[f"ω = {overlap} β"] = row
        lines.append(Line(f"ω = {overlap} β", beside))
    panel = Panel("spanning-15", "Figure 15: the best technique", RATIO, "overlap", best, kind="map")
    table = Table(
        "windrow's engine beside the best technique of the paper, by overlap and ω / μ",
        tuple(lines),
        ours=f"{ratios(scale)[0]:g}",
    )
    return Outcome([panel], points(best, rates), [table])


def points(
    best: dict[str, dict[float | str, Figure]], rates: dict[tuple[int, float], Sweep]
) -> list[findings.Finding]:
    winners = [kind(str(name)) for row in best.values() for name in row.values() if name != TOO_FINE]
    slicing = sum(name in (SLICING, kind(LEVELS[0])) for name in winners)
    long = [(o, r) for o, r in rates if r == max(r for _, r in rates)]
    single = min(rates[at].at(SLICING, 0) / rates[at].at(SWEEPING, 0) for at in long)
    short = [(o, r) for o, r in rates if r == min(r for _, r in rates)]
    levels = min(max(rates[at].at(name, 0) for name in LEVELS) / rates[at].at(SLICING, 0) for at in short)
    return [
        findings.at_least("one of the two kinds of slicing is best in", slicing / len(winners), 0.5, "%"),
        findings.at_least(
            "where events are short beside windows, SE-Slicing beside Sweeping, at the least", single, 1
        ),
        findings.at_least(
            "where they are longest, the better height beside SE-Slicing, at the least", levels, 1
        ),
    ]


EXPERIMENT = Experiment(
    "spanning-15",
    "The best technique by overlap and event size",
    "SE-Slicing is best where windows are longer than events and overlap little, levels where events are longer, and Sweeping where "
    "events are long and windows overlap much.",
    "Events of 2,000 ticks; windows from a tenth to ten times that (a 20th to 50 times at full scale), which overlap once to 100 times "
    "(500). Tried are SE-Slicing, 7 and 20 levels, Sweeping and Aggregate Buckets; the second table has windrow's engine beside the best.",
    measure,
)

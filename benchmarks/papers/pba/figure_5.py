"""Figure 5: the maximum over the last 2^17 rows, an answer for every 1 to 10 rows."""

from __future__ import annotations

from benchmarks.papers import findings
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.papers.pba.rolling import RIVALS, THROUGHPUT, Sizes, readings, uniform


def measure(setting: Setting) -> Outcome:
    scale = setting.scale
    rows = scale.pick(tiny=2**6, small=2**17, full=2**17)
    slides = scale.pick(tiny=(1, 3), small=(1, 2, 4, 7, 10), full=tuple(range(1, 11)))
    panels, found = [], {}
    for name, values in (("machine", readings(setting, scale.events)), ("uniform", uniform(scale.events))):
        sizes = found[name] = Sizes(scale)
        for slide in slides:
            sizes.run(slide, values, rows, slide)
        title = f"Figure 5, {name}, {rows:,} rows"
        panels.append(Panel(f"pba-5-{name}", title, "slide in rows", THROUGHPUT, sizes.series))
    return Outcome(panels, [point for name, sizes in found.items() for point in points(name, sizes)])


def spread(sizes: Sizes, place: float) -> float:
    """How far the stores lie apart."""
    figures = [sizes.at(store, place) for store in (*RIVALS, "sba", "pba")]
    return max(figures) / min(figures)


def points(name: str, sizes: Sizes) -> list[findings.Finding]:
    first, last = sizes.places[0], sizes.places[-1]
    return [
        findings.at_least(
            f"{name}: with slide {last} instead of {first}, SBA runs",
            sizes.at("sba", last) / sizes.at("sba", first),
            1,
        ),
        findings.at_most(
            f"the fastest store beside the slowest goes from {findings.amount(spread(sizes, first))} to",
            spread(sizes, last),
            spread(sizes, first),
        ),
    ]


EXPERIMENT = Experiment(
    "pba-5",
    "Throughput of count windows by slide",
    "With a longer slide all stores get faster, because rows are folded into slices first, and they come closer to each "
    "other, because fewer slices are left to merge.",
    "Maximum over count windows of 2^17 rows, slides of 1 to 10 rows, machine and uniform.",
    measure,
)

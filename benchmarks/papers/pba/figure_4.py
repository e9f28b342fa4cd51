"""Figure 4: the maximum over the last 2^3 to 2^20 rows, an answer for each row."""

from __future__ import annotations

from benchmarks.papers import findings, streams
from benchmarks.papers.experiment import Experiment, Outcome, Panel, Setting
from benchmarks.papers.pba.rolling import THROUGHPUT, Sizes, readings, uniform

LARGE = 2**15


def measure(setting: Setting) -> Outcome:
    scale = setting.scale
    powers = scale.pick(tiny=(3, 6), small=(3, 7, 10, 13, 15, 17, 20), full=tuple(range(3, 21)))
    delays = streams.flights().table["value"].to_numpy().astype(float)
    data = {
        "machine": readings(setting, scale.events),
        "uniform": uniform(scale.events),
        "flights": delays,
    }
    panels, found = [], {}
    for name, values in data.items():
        sizes = found[name] = Sizes(scale)
        for power in powers if name != "flights" else powers[::2]:
            sizes.run(2**power, values, 2**power, 1)
        title = f"Figure 4, {name}{': departure delays' if name == 'flights' else ''}"
        panels.append(
            Panel(
                f"pba-4-{name}", title, "window size in rows, slide 1", THROUGHPUT, sizes.series, log_x=True
            )
        )
    return Outcome(panels, [point for name in ("machine", "uniform") for point in points(name, found[name])])


def points(name: str, sizes: Sizes) -> list[findings.Finding]:
    large = [place for place in sizes.places if place >= LARGE] or sizes.places[-1:]
    everywhere = min(sizes.places, key=lambda place: sizes.beside_rivals("sba", place))
    slowest = min(large, key=lambda place: sizes.at("pba", place) / sizes.at("sba", place))
    return [
        findings.at_least(
            f"{name}: SBA beside the better of two-stacks and SlickDeque, at its least ({everywhere:,} rows),",
            sizes.beside_rivals("sba", everywhere),
            1,
        ),
        findings.at_least(
            f"PBA beside them from {large[0]:,} rows on",
            min(sizes.beside_rivals("pba", place) for place in large),
            2.5,
        ),
        findings.at_least(
            f"PBA beside SBA from {large[0]:,} rows on, at its least ({slowest:,} rows),",
            sizes.at("pba", slowest) / sizes.at("sba", slowest),
            1,
        ),
    ]


EXPERIMENT = Experiment(
    "pba-4",
    "Throughput of count windows by window size",
    "SBA is faster than two-stacks and SlickDeque at any window size, and PBA, with its second thread, is the fastest "
    "of all for large windows: 2.5 times two-stacks and four times SlickDeque from 2^15 rows on.",
    "Maximum over count windows with slide 1: machine (energy, 100 Hz), uniform random numbers, and the departure "
    "delays of a year of flights, repeated. Recal (`lazy`) is left out where it is too slow. PBA uses two cores, all "
    "others one.",
    measure,
)

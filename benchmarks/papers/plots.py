"""Panels as SVG: one colour for each technique, in all plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt

from benchmarks.papers.experiment import Panel

COLOURS = {
    "general slicing": "#d1495b",
    "cutty": "#2e6f95",
    "cutty, lazy": "#7fb2d1",
    "pairs": "#3f8f5b",
    "pairs+": "#8cc49f",
    "panes": "#b8b042",
    "aggregate buckets": "#e08e2b",
    "tuple buckets": "#f0c287",
    "tuple buffer": "#6d597a",
    "aggregate tree": "#444444",
    "RA": "#444444",
    "B-Int": "#999999",
    "lazy": "#444444",
    "two_stacks": "#6d597a",
    "two_stacks_lite": "#a391b3",
    "slick_deque": "#3f8f5b",
    "daba": "#e08e2b",
    "daba_lite": "#f0c287",
    "sba": "#2e6f95",
    "pba": "#d1495b",
    "windrow": "#d1495b",
    "SE-Slicing": "#2e6f95",
    "SE-ML-Slicing, d = 2": "#c7e0cd",
    "SE-ML-Slicing, d = 3": "#a3cdae",
    "SE-ML-Slicing, d = 7": "#74b186",
    "SE-ML-Slicing, d = 15": "#3f8f5b",
    "SE-ML-Slicing, d = 20": "#215c37",
    "Aggregate Buckets": "#e08e2b",
    "Tuple Buckets": "#f0c287",
    "Sweeping": "#444444",
    "update": "#2e6f95",
    "merge": "#e08e2b",
}
OTHERS = ("#17becf", "#8c564b", "#bcbd22", "#7f7f7f")
MARKERS = "osD^vP*X<>"
# Text stays text, and nothing depends on the time or on chance: the same figures give the same file.
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "windrow", "font.size": 9, "font.family": "sans-serif"}


def draw(panel: Panel, path: Path) -> None:
    """Write the panel to `path`."""
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.0, 3.6), layout="constrained")
        DRAWING[panel.kind](axes, panel)
        axes.set_xlabel(panel.x)
        axes.set_ylabel(panel.y)
        axes.set_title(panel.title, fontsize=9, loc="left")
        if panel.log_y:
            axes.set_yscale("log")
        elif panel.kind != "map":
            axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25, linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
        shrunk = 0.5 if panel.kind == "map" else 1.0
        beside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        axes.legend(frameon=False, fontsize=7, markerscale=shrunk, **beside)
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close(figure)


def colours(panel: Panel) -> dict[str, str]:
    spare = iter(OTHERS * 3)
    return {name: COLOURS.get(name) or next(spare) for name in panel.series}


def drawn(values: Any) -> tuple[list[Any], list[float]]:
    """What can be drawn: places with a number."""
    pairs = [(place, figure) for place, figure in values.items() if isinstance(figure, (int, float))]
    return [place for place, _ in pairs], [figure for _, figure in pairs]


def lines(axes: Any, panel: Panel) -> None:
    for i, (name, colour) in enumerate(colours(panel).items()):
        places, figures = drawn(panel.series[name])
        if places:
            few = len(places) <= 40
            marker = MARKERS[i % len(MARKERS)] if few else ""
            axes.plot(places, figures, label=name, color=colour, marker=marker, markersize=4, linewidth=1.2)
    if panel.log_x:
        axes.set_xscale("log")


def bars(axes: Any, panel: Panel) -> None:
    """Places beside each other, and at each place the techniques."""
    places = panel.places
    width = 0.8 / len(panel.series)
    for i, (name, colour) in enumerate(colours(panel).items()):
        found = dict(zip(*drawn(panel.series[name]), strict=True))
        at = [places.index(place) - 0.4 + width * (i + 0.5) for place in found]
        axes.bar(at, list(found.values()), width, label=name, color=colour)
    label(axes, places)


def stacked(axes: Any, panel: Panel) -> None:
    """The techniques on top of each other: parts of a whole."""
    places = panel.places
    below = [0.0] * len(places)
    for name, colour in colours(panel).items():
        figures = [float(panel.series[name][place]) for place in places]  # type: ignore[arg-type]
        axes.bar(range(len(places)), figures, 0.7, bottom=below, label=name, color=colour)
        below = [a + b for a, b in zip(below, figures, strict=True)]
    label(axes, places)


def label(axes: Any, places: list[Any]) -> None:
    slanted = max(len(str(place)) for place in places) * len(places) > 70
    axes.set_xticks(range(len(places)), [str(place) for place in places])
    if slanted:
        plt.setp(axes.get_xticklabels(), rotation=40, ha="right", rotation_mode="anchor")


def map_(axes: Any, panel: Panel) -> None:
    """A square for each place of each series, in the colour of the technique that it names."""
    places, rows = panel.places, list(panel.series)
    named: dict[str, tuple[list[int], list[int]]] = {}
    for y, values in enumerate(panel.series.values()):
        for place, name in values.items():
            if name in COLOURS:
                across, up = named.setdefault(str(name), ([], []))
                across.append(places.index(place))
                up.append(y)
    for name, at in named.items():
        axes.scatter(*at, marker="s", s=220, color=COLOURS[name], label=name)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    label(axes, places)


DRAWING = {"lines": lines, "bars": bars, "stacked": stacked, "map": map_}

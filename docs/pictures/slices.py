"""Draws the picture of the README: events, the slices that three windows cut, and their answers.

    python docs/pictures/slices.py        writes docs/pictures/slices.svg beside this file

The numbers in it are computed, not typed: slices are cut at the edges of the three windows, events
are folded into them, and each window's sum is put together from its slices.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Polygon

EVENTS = [(0.5, 4), (1.4, 2), (2.6, 7), (3.3, 1), (4.4, 5), (5.6, 3), (6.4, 6), (7.3, 2), (8.5, 8), (9.4, 1),
          (10.6, 4), (11.5, 3)]  # fmt: skip
WINDOWS = {
    "tumbling(4)": [(0, 4), (4, 8), (8, 12)],
    "sliding(6, every=3)": [(0, 6), (3, 9), (6, 12)],
    "band(5, length=5)": [(5, 10)],
}
COLORS = {"tumbling(4)": "#2e6f95", "sliding(6, every=3)": "#d1495b", "band(5, length=5)": "#c98a1b"}
INK, FAINT, PALE = "#22262b", "#6b737d", "#eef1f4"


def slices() -> list[tuple[int, int, int]]:
    """Start, end and sum of each slice: between any two neighbouring edges of any window."""
    edges = sorted({edge for spans in WINDOWS.values() for span in spans for edge in span})
    sums = [0] * (len(edges) - 1)
    for time, value in EVENTS:
        sums[bisect_right(edges, time) - 1] += value
    return [(start, end, total) for (start, end), total in zip(pairwise(edges), sums, strict=True)]


def box(axes: Any, start: float, end: float, y: float, height: float, color: str, **look: Any) -> None:
    gap = 0.05
    shape = "round,pad=0,rounding_size=0.09"
    corner, width = (start + gap, y), end - start - 2 * gap
    axes.add_patch(FancyBboxPatch(corner, width, height, boxstyle=shape, facecolor=color, **look))


def label(axes: Any, y: float, title: str, note: str, color: str = INK) -> None:
    axes.text(-0.35, y + 0.13, title, ha="right", va="center", size=10.5, weight="bold", color=color)
    axes.text(-0.35, y - 0.2, note, ha="right", va="center", size=8.5, color=FAINT)


def draw(axes: Any) -> None:
    cut = slices()
    low, high = 0.02, 5.52

    for start, _, _ in [*cut, (cut[-1][1], 0, 0)]:
        axes.plot(
            [start, start],
            [low, high - 0.62],
            color="#cfd5dc",
            linewidth=0.8,
            linestyle=(0, (2, 2)),
            zorder=0,
        )

    label(axes, 4.95, "events", "time, value")
    axes.plot([-0.1, 12.3], [4.72, 4.72], color=INK, linewidth=1)
    axes.add_patch(Polygon([(12.45, 4.72), (12.25, 4.78), (12.25, 4.66)], color=INK))
    for time, value in EVENTS:
        axes.plot(time, 4.72, "o", color=INK, markersize=5)
        axes.text(time, 4.98, str(value), ha="center", va="center", size=10, color=INK)

    label(axes, 3.73, "slices", "each event is folded once")
    for start, end, total in cut:
        box(axes, start, end, 3.4, 0.62, INK, edgecolor="none")
        axes.text(
            (start + end) / 2,
            3.71,
            str(total),
            ha="center",
            va="center",
            size=11,
            weight="bold",
            color="white",
        )
    for time, _ in EVENTS:
        axes.annotate(
            "", (time, 4.06), (time, 4.62), arrowprops={"arrowstyle": "->", "color": FAINT, "lw": 0.8}
        )

    y = 2.62
    for name, spans in WINDOWS.items():
        color = COLORS[name]
        rows: list[list[tuple[int, int]]] = []
        for span in spans:
            row = next((row for row in rows if row[-1][1] <= span[0]), None)
            if row is None:
                rows.append(row := [])
            row.append(span)
        label(axes, y + 0.21 - 0.26 * (len(rows) - 1), name, "answered from slices", color)
        for row in rows:
            for start, end in row:
                inside = [total for a, b, total in cut if start <= a and b <= end]
                box(axes, start, end, y, 0.42, color + "26", edgecolor=color, linewidth=1.2)
                text = f"{' + '.join(map(str, inside))} = "
                axes.text(
                    (start + end) / 2,
                    y + 0.2,
                    f"{text}{sum(inside)}",
                    ha="center",
                    va="center",
                    size=9,
                    color=INK,
                )
            y -= 0.52
        y -= 0.36
    edges = [start for start, _, _ in cut] + [cut[-1][1]]
    for edge in edges:
        axes.text(edge, low - 0.16, str(edge), ha="center", va="center", size=8.5, color=FAINT)
    axes.set_xlim(-3.9, 12.6)
    axes.set_ylim(low - 0.3, high - 0.2)
    axes.axis("off")


def main() -> None:
    # Letters become paths, so it looks the same everywhere; ids are fixed, so it changes only if drawn anew.
    matplotlib.rcParams.update(
        {"svg.hashsalt": "windrow", "svg.fonttype": "path", "font.family": "DejaVu Sans"}
    )
    figure = Figure(figsize=(10, 4.2), facecolor="white")
    FigureCanvasSVG(figure)
    axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    draw(axes)
    path = Path(__file__).with_suffix(".svg")
    figure.savefig(path, metadata={"Date": None})
    print(path.name)


if __name__ == "__main__":
    main()

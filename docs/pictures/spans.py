"""Draws the pictures of docs/spans.md: what an event gives, how it is kept, and when a window is given out.

    python docs/pictures/spans.py        writes spans-*.svg beside this file

The numbers in them are computed from the events, not typed.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from slices import FAINT, INK, box, label

BLUE, RED, GOLD = "#2e6f95", "#d1495b", "#c98a1b"
RULE = "#cfd5dc"
HEIGHT = 0.42
END = 12

CALLS = {"a": (1, 4), "b": (3, 8), "c": (6, 12)}
TUMBLING = [(0, 4), (4, 8), (8, 12)]
EVENTS = [(1, 4), (2, 11), (4, 5), (5, 8), (7, 8), (7, 10), (10, 12)]
EDGES = [0, 3, 6, 9, 12]
SLIDING = [(0, 6), (3, 9), (6, 12)]
RELEASE = 5

Span = tuple[int, int]


def overlap(event: Span, window: Span) -> int:
    return max(0, min(event[1], window[1]) - max(event[0], window[0]))


def text(axes: Any, x: float, y: float, words: str, **look: Any) -> None:
    axes.text(x, y, words, **{"ha": "center", "va": "center", "size": 9.5, "color": INK} | look)


def rules(axes: Any, edges: list[int], low: float, high: float) -> None:
    """Dashed lines at the edges, with the times below."""
    for edge in edges:
        axes.plot([edge, edge], [low, high], color=RULE, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0)
        text(axes, edge, low - 0.18, str(edge), size=8.5, color=FAINT)


def bar(axes: Any, event: Span, y: float, name: str = "") -> None:
    """An event: a dark bar as long as it lasts."""
    box(axes, *event, y, 0.24, INK, edgecolor="none")
    if name:
        text(axes, sum(event) / 2, y + 0.115, name, size=8.5, weight="bold", color="white")


def cell(axes: Any, span: Span, y: float, words: str, color: str, *, filled: bool = False) -> None:
    look = {"edgecolor": "none"} if filled else {"edgecolor": color, "linewidth": 1.2}
    box(axes, *span, y, HEIGHT, color if filled else color + "26", **look)
    look = {"color": "white", "weight": "bold"} if filled else {}
    text(axes, sum(span) / 2, y + HEIGHT / 2 - 0.01, words, **look)


def contributions(axes: Any) -> None:
    """Three events, three windows, and the four ways to count."""
    rules(axes, [0, 4, 8, 12], 0, 4.1)
    label(axes, 3.66, "events", "from start to end")
    for i, (name, event) in enumerate(CALLS.items()):
        bar(axes, event, 3.88 - 0.3 * i, name)

    def at(instant: int, window: Span) -> int:
        return window[0] <= instant < window[1]

    rows = {
        "whole": ("all of it, where it overlaps", lambda e, w: overlap(e, w) > 0),
        "prorated": ("the share inside", lambda e, w: overlap(e, w) / (e[1] - e[0])),
        "start": ("at its first instant", lambda e, w: at(e[0], w)),
        "end": ("at its last instant", lambda e, w: at(e[1] - 1, w)),
    }
    for i, (name, (note, share)) in enumerate(rows.items()):
        y = 2.36 - 0.74 * i
        label(axes, y + 0.21, name, note, BLUE)
        for window in TUMBLING:
            shares = {call: share(event, window) for call, event in CALLS.items()}
            given = [f"{part:.2g} {call}" if part < 1 else call for call, part in shares.items() if part]
            total = sum(shares.values())
            shown = f"{total:.2f}" if name == "prorated" else str(int(total))
            if given:
                cell(axes, window, y, f"{' + '.join(given)} = {shown}", BLUE)
            else:
                text(axes, sum(window) / 2, y + 0.2, "no event, no row", color=FAINT)
    axes.set_ylim(-0.36, 4.3)


def slices(axes: Any) -> None:
    """What begins in each slice and what goes on at its start, and windows put together from both."""
    rules(axes, EDGES, 0, 6.15)
    label(axes, 5.26, "events", "from start to end")
    for i, event in enumerate(EVENTS):
        bar(axes, event, 5.9 - 0.27 * i)
    cut = list(pairwise(EDGES))
    begins = [sum(low <= start < high for start, _ in EVENTS) for low, high in cut]
    crossing = [[low for low, _ in cut if start < low < end] for start, end in EVENTS]
    enters = [sum(bool(c) and c[0] == low for c in crossing) for low, _ in cut]
    leaves = [sum(bool(c) and c[-1] == low for c in crossing) for low, _ in cut]
    goes_on, now = [], 0
    for come, gone in zip(enters, leaves, strict=True):
        now += come
        goes_on.append(now)
        now -= gone
    assert goes_on == [sum(low in c for c in crossing) for low, _ in cut]

    label(axes, 3.53, "begins", "in the slice", BLUE)
    label(axes, 2.74, "enters, leaves", "two notes per event", FAINT)
    label(axes, 1.95, "goes on", "at the start of the slice", RED)
    for i, span in enumerate(cut):
        cell(axes, span, 3.32, str(begins[i]), BLUE, filled=True)
        text(axes, sum(span) / 2, 2.74, f"+{enters[i]}   -{leaves[i]}", color=FAINT)
        cell(axes, span, 1.74, str(goes_on[i]), RED, filled=True)
    label(axes, 0.73, "sliding(6, every=3)", "goes on + begins", GOLD)
    for i, window in enumerate(SLIDING):
        first = EDGES.index(window[0])
        inside = begins[first : EDGES.index(window[1])]
        total = goes_on[first] + sum(inside)
        assert total == sum(overlap(event, window) > 0 for event in EVENTS)
        y = 0.88 - 0.52 * (i % 2)
        cell(axes, window, y, f"{goes_on[first]} + {' + '.join(map(str, inside))} = {total}", GOLD)
    axes.set_ylim(-0.36, 6.3)


def release(axes: Any) -> None:
    """The first window, given out at its end or some time later."""
    rules(axes, [0, 4, 8, 12], 0, 3.3)
    label(axes, 2.86, "events", "known once they have ended")
    for i, (name, event) in enumerate(CALLS.items()):
        y = 3.08 - 0.3 * i
        bar(axes, event, y, name)
        axes.plot(event[1], y + 0.12, "o", color=INK, markersize=6, markerfacecolor="white", zorder=3)
    window = TUMBLING[0]
    for y, delay in ((1.38, 0), (0.44, RELEASE)):
        point = window[1] + delay
        known = [n for n, e in CALLS.items() if overlap(e, window) and e[1] <= point]
        label(axes, y + 0.21, f"release={delay}", f"given out at watermark {point}", GOLD)
        cell(axes, window, y, f"{' + '.join(known)} = {len(known)}", GOLD)
        axes.plot([window[1], point], [y + 0.2] * 2, color=GOLD, linewidth=1.2)
        axes.plot(point, y + 0.2, "D", color=GOLD, markersize=7)
    axes.set_ylim(-0.36, 3.5)


def main() -> None:
    # As for the picture of slices: the same everywhere, and changed only if drawn anew.
    matplotlib.rcParams.update(
        {"svg.hashsalt": "windrow", "svg.fonttype": "path", "font.family": "DejaVu Sans"}
    )
    for draw, height in ((contributions, 3.2), (slices, 4.5), (release, 2.6)):
        figure = Figure(figsize=(10, height), facecolor="white")
        FigureCanvasSVG(figure)
        axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
        draw(axes)
        axes.set_xlim(-3.9, END + 0.6)
        axes.axis("off")
        path = Path(__file__).with_name(f"spans-{draw.__name__}.svg")
        figure.savefig(path, metadata={"Date": None})
        print(path.name)


if __name__ == "__main__":
    main()

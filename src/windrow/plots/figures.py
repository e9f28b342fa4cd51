"""Three kinds of figure of the same windows, in one look.

lines     a panel for each aggregate and window, a line for each key: stairs where windows follow each other, at their ends where they overlap
heatmap   a row for each key, a cell for each window
bars      a lane for each key, a bar from the start of each window to its end
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from windrow.plots.series import MOST_LINES, PALETTE, Series, fitting, require_look

# More rows and lanes than that cannot be read.
MOST_ROWS = 40
# Years, months, days, hours, minutes, seconds; and what is written where one of them begins.
FORMATS = ["%Y", "%b %Y", "%d %b", "%H:%M", "%H:%M", "%S.%f"]
ZEROS = ["", "%Y", "%b", "%d %b", "%H:%M", "%H:%M:%S"]


@dataclass(frozen=True)
class Theme:
    """Colours of what is not data."""

    paper: str
    ink: str
    faint: str
    grid: str
    # From where to where on the scale of colours; its ends are lost on such paper.
    shades: tuple[float, float]


THEMES = {
    "auto": Theme("none", "#7b858f", "#7b858f", "#80808033", (0.15, 0.92)),
    "light": Theme("white", "#22262b", "#68717b", "#e6e9ed", (0.0, 0.95)),
    "dark": Theme("#16191d", "#e8ebee", "#9aa4ae", "#2c333b", (0.2, 1.0)),
}


class Picture(Figure):
    """A figure that a notebook shows, whatever backend it has set up for matplotlib."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()


def figure_of(series: Series, *, kind: str, theme: str, title: str | None) -> Figure:
    """As `plot`."""
    require_look(kind, theme)
    if kind == "auto":
        kind = fitting(series)
    figure = KINDS[kind](series, THEMES[theme])
    if title:
        figure.suptitle(title, x=0.01, ha="left", size=14, weight="bold", color=THEMES[theme].ink)
    return figure


def _lines(series: Series, theme: Theme) -> Figure:
    rows, columns = len(series.aggregates), len(series.windows)
    figure = _figure(theme, (max(8.0, min(16.0, 5.6 * columns)), max(2.6, 1.0 + 1.9 * rows)))
    panels = figure.subplots(rows, columns, sharex=True, sharey="row", squeeze=False)
    shown = _busiest(series, MOST_LINES)
    colors = {series.labels[k]: PALETTE[i % len(PALETTE)] for i, k in enumerate(shown)}
    for i, aggregate in enumerate(series.aggregates):
        for j, window in enumerate(series.windows):
            axes = panels[i, j]
            _look(axes, series, theme, grid="y")
            for line in series.lines(aggregate, window):
                if line.key not in colors:
                    continue
                x, y = line.broken() if line.overlapping else line.stairs()
                alone = np.isfinite(line.values).sum() < 2 and line.overlapping
                axes.plot(x, y, color=colors[line.key], linewidth=1.5, marker="o" if alone else None)
            axes.yaxis.set_major_formatter(FuncFormatter(_number))
            axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
            axes.margins(x=0.01)
            if j == 0:
                axes.set_ylabel(aggregate, color=theme.ink, size=10)
            if i == 0:
                axes.set_title(window, loc="left", size=11, color=theme.ink, weight="bold")
    _legend(figure, series, colors, theme)
    return figure


def _heatmap(series: Series, theme: Theme) -> Figure:
    aggregate, shown = series.aggregates[0], _busiest(series, MOST_ROWS)
    height = max(2.2, 0.9 + 0.24 * len(shown))
    figure = _figure(theme, (11, 0.3 + height * len(series.windows)))
    panels = figure.subplots(len(series.windows), 1, sharex=True, squeeze=False)[:, 0]
    row = {series.labels[k]: i for i, k in enumerate(shown)}
    for axes, window in zip(panels, series.windows, strict=True):
        _look(axes, series, theme, grid=None)
        corners, values = [], []
        for line in series.lines(aggregate, window):
            if line.key not in row:
                continue
            corners.append(_boxes(*line.cells(), row[line.key], 0.47))
            values.append(line.values)
        shades = _shades(axes, corners, values, theme)
        _scale(figure, axes, shades, aggregate, theme)
        _keys(axes, series, shown, theme)
        axes.set_title(window, loc="left", size=11, color=theme.ink, weight="bold")
    _more(figure, series, shown, theme)
    return figure


def _bars(series: Series, theme: Theme) -> Figure:
    aggregate, shown = series.aggregates[0], _busiest(series, MOST_ROWS)
    lanes = len(shown) * len(series.windows)
    figure = _figure(theme, (11, max(2.4, 1.2 + min(0.34, 14 / lanes) * lanes)))
    axes = figure.subplots()
    _look(axes, series, theme, grid="x")
    row = {series.labels[k]: i for i, k in enumerate(shown)}
    corners, values = [], []
    many = len(series.windows)
    for j, window in enumerate(series.windows):
        for line in series.lines(aggregate, window):
            if line.key in row:
                place = row[line.key] + (j - (many - 1) / 2) * 0.8 / many
                corners.append(_boxes(line.starts, line.ends, place, 0.36 / many))
                values.append(line.values)
    shades = _shades(axes, corners, values, theme)
    _scale(figure, axes, shades, aggregate, theme)
    _keys(axes, series, shown, theme)
    names = " above ".join(series.windows)
    axes.set_title(names, loc="left", size=11, color=theme.ink, weight="bold")
    _more(figure, series, shown, theme)
    return figure


KINDS: dict[str, Callable[[Series, Theme], Figure]] = {"lines": _lines, "heatmap": _heatmap, "bars": _bars}


def _figure(theme: Theme, size: tuple[float, float]) -> Figure:
    figure = Picture(figsize=size, dpi=110, facecolor=theme.paper, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _look(axes: Any, series: Series, theme: Theme, *, grid: Any) -> None:
    axes.set_facecolor("none")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(theme.grid)
    axes.tick_params(length=0, colors=theme.faint, labelsize=9)
    axes.set_axisbelow(True)
    if grid:
        axes.grid(axis=grid, color=theme.grid, linewidth=0.8)
    if series.is_time:
        locator = AutoDateLocator(minticks=3, maxticks=9)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, formats=FORMATS, zero_formats=ZEROS))
        axes.xaxis.get_offset_text().set(color=theme.faint, size=9)
        axes.xaxis_date()
    else:
        axes.xaxis.set_major_formatter(FuncFormatter(_number))


def _busiest(series: Series, most: int) -> list[int]:
    """The keys with the most windows, in the order of their names."""
    counts = np.bincount(series.key_of, minlength=len(series.labels))
    return sorted(np.argsort(-counts, kind="stable")[:most].tolist())


def _boxes(starts: np.ndarray, ends: np.ndarray, place: float, half: float) -> np.ndarray:
    """Corners of boxes, shape (windows, 4, 2)."""
    low, high = np.full(len(starts), place - half), np.full(len(starts), place + half)
    corners = [(starts, low), (ends, low), (ends, high), (starts, high)]
    return np.stack([np.column_stack(corner) for corner in corners], axis=1)


def _shades(axes: Any, boxes: list[np.ndarray], numbers: list[np.ndarray], theme: Theme) -> PolyCollection:
    # A window may have none of the keys that are shown.
    corners = np.concatenate([np.empty((0, 4, 2)), *boxes])
    values = np.concatenate([np.empty(0), *numbers])
    seen = np.isfinite(values)
    known = values[seen] if seen.any() else np.zeros(1)
    shades = PolyCollection(
        corners[seen],
        array=values[seen],
        cmap=ListedColormap(colormaps["viridis"](np.linspace(*theme.shades, 256))),
        norm=Normalize(known.min(), known.max()),
        linewidths=0,
    )
    axes.add_collection(shades)
    axes.autoscale_view()
    return shades


def _scale(figure: Figure, axes: Any, shades: PolyCollection, aggregate: str, theme: Theme) -> None:
    bar = figure.colorbar(shades, ax=axes, pad=0.01, fraction=0.03, aspect=25)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, colors=theme.faint, labelsize=9)
    bar.ax.yaxis.set_major_formatter(FuncFormatter(_number))
    bar.set_label(aggregate, color=theme.ink, size=10)


def _keys(axes: Any, series: Series, shown: list[int], theme: Theme) -> None:
    """Names of keys beside their rows, the first one on top."""
    axes.set_yticks(range(len(shown)), [_short(series.labels[k]) for k in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    if series.keys:
        axes.set_ylabel(" · ".join(series.keys), color=theme.ink, size=10)


def _legend(figure: Figure, series: Series, colors: dict[str, str], theme: Theme) -> None:
    """Keys in their colours, in one row above all panels."""
    if not series.keys:
        return
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=color, linewidth=3) for color in colors.values()]
    legend = figure.legend(
        handles,
        [_short(key) for key in colors],
        loc="outside upper left",
        ncols=len(colors),
        frameon=False,
        fontsize=10,
        handlelength=1,
        columnspacing=1.4,
        title=" · ".join(series.keys) + _left_out(series, len(colors)),
        alignment="left",
    )
    legend.get_title().set(color=theme.faint, size=9)
    for text in legend.get_texts():
        text.set_color(theme.ink)


def _more(figure: Figure, series: Series, shown: list[int], theme: Theme) -> None:
    text = _left_out(series, len(shown))
    if text:
        figure.supxlabel(text.strip(), size=9, color=theme.faint)


def _left_out(series: Series, shown: int) -> str:
    more = len(series.labels) - shown
    return f"  (those with the most windows; {more:,} more are not shown)" if more > 0 else ""


def _short(label: str) -> str:
    return label if len(label) <= 22 else label[:21] + "…"


def _number(value: float, _: Any = None) -> str:
    """A number on an axis: thousands apart, millions as M."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(value) >= size:
            return f"{value / size:,.4g} {unit}"
    return f"{value:,.0f}" if value == round(value) else f"{value:,.4g}"

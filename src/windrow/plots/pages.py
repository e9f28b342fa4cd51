"""Windows as an HTML page that can be zoomed and read without a network; with Bokeh."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.embed import file_html
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, HoverTool, NumeralTickFormatter
from bokeh.palettes import Viridis256
from bokeh.plotting import figure
from bokeh.resources import INLINE
from bokeh.transform import linear_cmap

from windrow.plots.series import DAY, PALETTE, Series

FAINT, GRID = "#7b858f", "#80808033"
# The page has the colours of its reader, and the charts no background of their own.
TEMPLATE = """\
{% block postamble %}
<style>:root{color-scheme:light dark}body{margin:16px;background:Canvas;color:CanvasText;font-family:system-ui,sans-serif}
@media(prefers-color-scheme:dark){body{background:#16191d}}</style>{% endblock %}"""


def page_of(series: Series, *, kind: str, title: str) -> str:
    """All of it as one HTML file; lines, or boxes from start to end where these are asked for."""
    shared: dict[str, Any] = {}
    charts = []
    for window in series.windows:
        for aggregate in series.aggregates if kind == "lines" else series.aggregates[:1]:
            chart = chart_of(f"{window}: {aggregate}", is_time=series.is_time, **shared)
            shared = {"x_range": chart.x_range}
            if kind == "lines":
                _add_lines(chart, series, aggregate, window)
            else:
                _add_boxes(chart, series, aggregate, window)
            charts.append(chart)
    return str(file_html(column(*charts, sizing_mode="stretch_width"), INLINE, title, template=TEMPLATE))


def chart_of(title: str, *, is_time: bool, height: int = 240, **options: Any) -> Any:
    """An empty chart that can be read on light and on dark."""
    chart = figure(
        title=title,
        height=height,
        sizing_mode="stretch_width",
        x_axis_type="datetime" if is_time else "linear",
        tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
        active_scroll="xwheel_zoom",
        active_drag="xpan",
        toolbar_location="right",
        background_fill_alpha=0,
        border_fill_alpha=0,
        outline_line_color=None,
        **options,
    )
    chart.toolbar.logo = None
    chart.toolbar.autohide = True
    chart.title.text_color = FAINT
    for axis in chart.axis:
        axis.axis_line_color = axis.major_tick_line_color = axis.minor_tick_line_color = None
        axis.major_label_text_color = axis.axis_label_text_color = FAINT
    chart.yaxis.formatter = NumeralTickFormatter(format="0,0.[00]a")
    chart.xgrid.grid_line_color, chart.ygrid.grid_line_color = None, GRID
    return chart


def colour(number: int) -> str:
    """The colour of a key."""
    return PALETTE[number % len(PALETTE)]


def _add_lines(chart: Any, series: Series, aggregate: str, window: str) -> None:
    scale = DAY if series.is_time else 1.0
    for line in series.lines(aggregate, window):
        x, y = line.broken() if line.overlapping else line.stairs()
        source = ColumnDataSource({"x": x * scale, "y": y, "key": np.full(len(x), line.key)})
        label = {"legend_label": line.key} if series.keys else {}
        chart.line(
            "x", "y", source=source, color=colour(series.labels.index(line.key)), line_width=1.6, **label
        )
    when = "@x{%F %T}" if series.is_time else "@x"
    tips = [
        (" · ".join(series.keys) or "window", "@key" if series.keys else window),
        (aggregate, "@y{0,0.[000]}"),
        ("at", when),
    ]
    chart.add_tools(HoverTool(tooltips=tips, formatters={"@x": "datetime"} if series.is_time else {}))
    if series.keys:
        chart.legend.update(
            background_fill_alpha=0,
            border_line_alpha=0,
            label_text_color=FAINT,
            click_policy="hide",
            orientation="horizontal",
        )
        chart.legend.update(padding=0, margin=0, location="top_left")
        chart.add_layout(chart.legend[0], "above")


def _add_boxes(chart: Any, series: Series, aggregate: str, window: str) -> None:
    scale = DAY if series.is_time else 1.0
    lines = list(series.lines(aggregate, window))
    values = np.concatenate([line.values for line in lines])
    known = values[np.isfinite(values)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    source = ColumnDataSource(
        {
            "left": np.concatenate([line.cells()[0] for line in lines]) * scale,
            "right": np.concatenate([line.ends for line in lines]) * scale,
            "row": np.concatenate(
                [np.full(len(line.starts), series.labels.index(line.key)) for line in lines]
            ),
            "key": np.concatenate([np.full(len(line.starts), line.key) for line in lines]),
            "value": values,
        }
    )
    chart.hbar(
        "row", height=0.8, left="left", right="right", source=source, line_color=None,
        fill_color=linear_cmap("value", Viridis256, low, high),
    )  # fmt: skip
    chart.y_range.flipped = True
    chart.yaxis.ticker = list(range(len(series.labels)))
    chart.yaxis.major_label_overrides = dict(enumerate(series.labels))
    chart.height = max(200, 60 + 20 * min(len(series.labels), 40))
    when = {"@left": "datetime", "@right": "datetime"} if series.is_time else {}
    edge = "{%F %T}" if series.is_time else ""
    tips = [
        ("key", "@key"),
        (aggregate, "@value{0,0.[000]}"),
        ("from", f"@left{edge}"),
        ("to", f"@right{edge}"),
    ]
    chart.add_tools(HoverTool(tooltips=tips, formatters=when))

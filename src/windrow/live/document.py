"""What a reader sees: charts of the windows that fit the zoom, charts of the query's own windows, tables, counters, and the plan.

Ten times a second each document looks whether there is something new for what it shows. Nothing is sent to a browser that has not yet
taken what was sent before, so that one that is slow, or asleep, holds neither the stream nor other readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from html import escape
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from bokeh.core.property.descriptors import UnsetValueError
from bokeh.document import Document
from bokeh.layouts import column, row
from bokeh.models import ColumnDataSource, Div, HoverTool, Range1d, Toggle

from windrow.aggregates.m4 import M4
from windrow.live.board import ZOOM, Dashboard, State, zoom
from windrow.plots.pages import TEMPLATE, chart_of, colour
from windrow.wording import number_text

# In milliseconds: how often charts and texts are brought up to date.
CHARTS, TEXTS = 100, 500
# Windows over the width of a chart, where it is not of m4, which has one for each column of pixels.
WINDOWS = 200
MOST_CHARTS, MOST_KEYS, ROWS = 50, 8, 8
STYLE = """
:host{font-family:system-ui,sans-serif;font-size:14px}
.tiles{display:flex;flex-wrap:wrap;gap:10px 28px}.tiles b{display:block;font-size:20px;font-weight:600}.tiles span{color:#7b858f;font-size:12px}
.bad b{color:#d1495b}h1{font-size:18px;margin:0 0 10px}h2{font-size:15px;margin:14px 0 2px}p{margin:0;color:#7b858f}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}th{text-align:left;color:#7b858f;font-weight:500;font-size:12px}
td,th{padding:2px 18px 2px 0;white-space:nowrap}td.n,th.n{text-align:right}
i.key{display:inline-block;width:9px;height:9px;border-radius:2px;margin-right:6px}
"""

BUTTON = """
.bk-btn{background:transparent!important;color:inherit!important;border:1px solid #7b858f80!important;box-shadow:none!important}
.bk-btn.bk-active{background:#7b858f40!important}
"""


@dataclass
class Chart:
    """One chart, its source, and what it shows."""

    figure: Any
    source: ColumnDataSource
    aggregate: str
    window: str | None  # None is the window that fits the zoom
    per_pixel: bool
    shown: tuple[Any, ...] = ()


def fill(document: Document, board: Dashboard) -> None:
    """Make the page of one reader."""
    page = _Page(document, board)
    document.title = board.title
    document.template = TEMPLATE
    document.add_root(page.layout())
    document.add_periodic_callback(page.draw, CHARTS)
    document.add_periodic_callback(page.write, TEXTS)
    document.on_session_destroyed(lambda _: board.leave(page))
    page.write()


class _Page:
    def __init__(self, document: Document, board: Dashboard) -> None:
        self.document, self.board = document, board
        query = board.state.query
        self.is_time: bool | None = None
        self.range = Range1d(0, 1, name="range")
        self.following, self.moving = True, False
        self.range.on_change("start", self._moved)
        self.range.on_change("end", self._moved)
        self.follow = Toggle(
            label="follow", active=True, button_type="default", width=80, stylesheets=[BUTTON], name="follow"
        )
        self.follow.on_change("active", self._followed)
        self.head, self.note, self.tables, self.plan, self.keys = (
            Div(text="", stylesheets=[STYLE], sizing_mode="stretch_width", name=name)
            for name in ("head", "note", "tables", "plan", "keys")
        )
        self.charts = list(islice(self._charts(query), MOST_CHARTS))
        self.picture = ""

    def _charts(self, query: Any) -> Iterator[Chart]:
        names = [name for name in query.windows if name not in self.board.state.zooms]
        for aggregate, spec in query.aggregates.items():
            yield self._chart(aggregate, None, isinstance(spec, M4))
        for window in names:
            for aggregate, spec in query.aggregates.items():
                if not isinstance(spec, M4):  # which is for windows as wide as pixels
                    yield self._chart(aggregate, window, False)

    def _chart(self, aggregate: str, window: str | None, per_pixel: bool) -> Chart:
        title = aggregate if window is None else f"{window}: {aggregate}"
        chart = chart_of(title, is_time=self._time(), height=200, x_range=self.range)
        chart.name = title
        chart.min_border_left = 60
        source = ColumnDataSource({"xs": [], "ys": [], "color": [], "key": []}, name=f"{title} source")
        chart.multi_line("xs", "ys", color="color", source=source, line_width=1.5)
        tips = [(" · ".join(self.board.state.query.key) or "window", "@key"), (aggregate, "$y{0,0.[000]}")]
        chart.add_tools(HoverTool(tooltips=tips, line_policy="nearest"))
        return Chart(chart, source, aggregate, window, per_pixel)

    def _time(self) -> bool:
        """Whether the measure is time, as far as is known when the page is made."""
        measure = getattr(self.board.operator, "measure", None) if self.board.operator.engines else None
        return measure is None or measure.tick_nanoseconds is not None

    def layout(self) -> Any:
        zoomed = [chart.figure for chart in self.charts if chart.window is None]
        own = [chart.figure for chart in self.charts if chart.window is not None]
        parts = [
            self.head,
            row(self.follow, self.note, sizing_mode="stretch_width"),
            self.keys,
            _grid(zoomed),
        ]
        if own:
            parts += [Div(text="<h2>the query's windows</h2>", stylesheets=[STYLE]), _grid(own)]
        return column(*parts, self.tables, self.plan, sizing_mode="stretch_width")

    # -- zoom ----------------------------------------------------------------------------------------

    def _moved(self, attr: str, old: Any, new: Any) -> None:
        """The reader has zoomed or moved; what the page does itself is not that."""
        if not self.moving:
            self.following = False
            self.follow.active = False

    def _followed(self, attr: str, old: bool, new: bool) -> None:
        self.following = new

    def _ranged(self) -> tuple[float, float]:
        store = self.board.store
        if self.following and store.low < store.high:
            self.moving = True
            try:
                if (self.range.start, self.range.end) != (store.low, store.high):
                    self.range.update(start=store.low, end=store.high)
            finally:
                self.moving = False
        return _number(self.range.start), _number(self.range.end)

    def _windows(self, low: float, high: float) -> dict[bool, str]:
        """What fits the zoom: for charts that have a window for each column of pixels, and for others. The stream is told."""
        is_time, least = self._time(), self.board.least
        counts = {
            chart.per_pixel: self._columns() if chart.per_pixel else WINDOWS
            for chart in self.charts
            if chart.window is None
        }
        found = {
            kind: zoom(max((high - low) / count, least), is_time=is_time) for kind, count in counts.items()
        }
        self.board.want(self, dict(found.values()))
        return {kind: name for kind, (name, _) in found.items()}

    def _columns(self) -> int:
        """Columns of pixels of a chart."""
        try:
            return max(100, int(self.charts[0].figure.inner_width))
        except UnsetValueError:  # the browser has not said it yet
            return 600

    # -- what is sent ----------------------------------------------------------------------------------

    def draw(self) -> None:
        """Send lines that have changed, to a browser that has taken those before."""
        store = self.board.store
        if not store.low < store.high or self._is_busy():
            return
        low, high = self._ranged()
        if not low < high:
            return
        fitting, columns = self._windows(low, high), self._columns()
        for chart in self.charts:
            name = chart.window if chart.window is not None else fitting[chart.per_pixel]
            if chart.window is None and store.version(name) == 0 and chart.shown:
                continue  # until the stream has answered, what is there stays
            shown = (name, store.version(name), low, high, columns)
            if shown == chart.shown:
                continue
            chart.shown = shown
            lines = store.lines(name, chart.aggregate, low, high, columns, most=MOST_KEYS)
            if chart.window is None:
                chart.figure.title.text = f"{chart.aggregate}, by {name.removeprefix(ZOOM)}"
            chart.source.data = {
                "xs": [x for x, _ in lines.values()],
                "ys": [y for _, y in lines.values()],
                "color": [colour(store.labels.index(key)) for key in lines],
                "key": list(lines),
            }

    def _is_busy(self) -> bool:
        """Whether something that was sent is still on its way."""
        context = self.document.session_context
        session = getattr(context, "session", None)
        for connection in getattr(session, "_subscribed_connections", ()):
            socket = connection._socket.ws_connection
            if socket is not None and socket.stream.writing():
                return True
        return False

    def write(self) -> None:
        """Send texts that have changed."""
        if self._is_busy():
            return
        state, store = self.board.state, self.board.store
        _say(self.head, self._head(state))
        _say(self.note, self._note(state))
        keys = "".join(
            f'<i class="key" style="background:{colour(i)}"></i>{escape(label)} &nbsp; '
            for i, label in enumerate(store.labels[:MOST_KEYS])
        )
        more = f"and {len(store.labels) - MOST_KEYS:,} more keys" if len(store.labels) > MOST_KEYS else ""
        _say(self.keys, f"<p>{keys}{more}</p>" if state.query.key else "")
        names = [name for name in state.query.windows if name not in state.zooms]
        _say(self.tables, "".join(self._table(name, state) for name in names))
        if self.picture != state.picture:
            self.picture = state.picture
            self.plan.text = f"<h2>the plan</h2>{state.picture}"

    def _head(self, state: State) -> str:
        tiles = [
            ("events", f"{state.events:,}", ""),
            ("events per second", f"{state.rate:,.0f}", ""),
            ("watermark", _shown(state.watermark), ""),
            ("behind the newest event", _lag(state.watermark, state.newest), ""),
            ("late", f"{state.late:,}", "bad" if state.late else ""),
            ("bad", f"{state.bad:,}", "bad" if state.bad else ""),
            ("keys", f"{state.keys:,}", ""),
            ("slices", f"{state.slices:,}", ""),
            ("state", f"{state.bytes / 1e6:,.1f} MB", ""),
        ]
        shown = "".join(
            f'<div class="{kind}"><b>{escape(value)}</b><span>{name}</span></div>'
            for name, value, kind in tiles
        )
        return f'<h1>{escape(self.board.title)}</h1><div class="tiles">{shown}</div>'

    def _note(self, state: State) -> str:
        added = [name.removeprefix(ZOOM) for name in state.query.windows if name in state.zooms]
        if not added:
            return "<p>drag to move, wheel to zoom: the query gets the windows that fit</p>"
        text = f"the query has windows of {', '.join(added)} for the charts that are open"
        since = [
            f"{name.removeprefix(ZOOM)} from {_shown(start)} on"
            for name, start in state.complete_from
            if _number(start) > self.board.store.low
        ]
        return f"<p>{escape(text)}{escape('; complete: ' + ', '.join(since)) if since else ''}</p>"

    def _table(self, name: str, state: State) -> str:
        rows = self.board.store.latest(name, ROWS)
        if not rows:
            return ""
        fields = list(rows[0][3])
        heads = [*([" · ".join(state.query.key)] if state.query.key else []), "start", "end"]
        cells = "".join(f"<th>{escape(h)}</th>" for h in heads) + "".join(
            f'<th class="n">{escape(f)}</th>' for f in fields
        )
        place = _moment if self._time() else str
        body = "".join(
            "<tr>"
            + (f"<td>{escape(key)}</td>" if state.query.key else "")
            + f"<td>{place(start)}</td><td>{place(end)}</td>"
            + "".join(
                f'<td class="n">{number_text(v) if np.isfinite(v) else "-"}</td>' for v in values.values()
            )
            + "</tr>"
            for key, start, end, values in rows
        )
        return f"<h2>{escape(name)}: the latest windows</h2><table><tr>{cells}</tr>{body}</table>"


def _grid(figures: list[Any]) -> Any:
    """Charts, two in a row."""
    pairs = [figures[i : i + 2] for i in range(0, len(figures), 2)]
    return column(*(row(*pair, sizing_mode="stretch_width") for pair in pairs), sizing_mode="stretch_width")


def _say(div: Div, text: str) -> None:
    if div.text != text:
        div.text = text


def _number(place: Any) -> float:
    """A place on the axis: browsers say moments as numbers, Python may as dates and datetimes."""
    if isinstance(place, pa.Scalar):
        place = place.as_py()
    if isinstance(place, date) and not isinstance(place, datetime):
        place = datetime(place.year, place.month, place.day, tzinfo=UTC)
    if isinstance(place, datetime):
        return place.replace(tzinfo=UTC).timestamp() * 1000
    return float(place)


def _moment(milliseconds: float) -> str:
    return str(np.datetime64(int(milliseconds), "ms").astype("datetime64[s]")).replace("T", " ")


def _shown(instant: Any) -> str:
    if isinstance(instant, pa.Scalar):
        instant = instant.as_py()
    if instant is None:
        return "-"
    return str(instant.replace(tzinfo=None, microsecond=0)) if isinstance(instant, datetime) else str(instant)


def _lag(watermark: Any, newest: Any) -> str:
    if watermark is None or newest is None:
        return "-"
    try:
        behind = newest - watermark
    except TypeError:
        return "-"
    zero: Callable[[], Any] = type(behind)
    return str(behind) if behind > zero() else "0"

"""The plan of a query as a picture: windows, the slices that they cut, and which slices each window is made of.

    12 hours   |---------------|---------------|
    a day      |-------------------------------|
                   |-------------------------------|
    slices     |#1#|#2#|#2#|#2#|#2#|#2#|#2#|#2#|           a number: of how many windows the slice is a part

Scotty's Figure 1, drawn for any query. It is SVG without anything around it, and its colours follow those of the reader: it can stand in
a notebook, on a page and in a file. Windows of time are where their edges are; sessions and windows that depend on the order
of events are drawn over made-up events.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from itertools import pairwise

import numpy as np

from windrow.measure import Measure, Tick
from windrow.planner.plan import Part, Plan, placed
from windrow.planner.window_set import WindowSet
from windrow.windows.base import Window

WIDTH, LEFT, RIGHT = 880, 210, 850
BAR, GAP, LANES = 16, 6, 6
# At most so many slices are drawn, and so many characters of a name.
SLICES, LETTERS = 28, 24
COLORS = ("#3d85b0", "#d1495b", "#b07d18", "#3c8d5a", "#8b62b5", "#b0613d", "#4a8f8f", "#7a7f35")
STYLE = """
.windrow-plan{font-family:ui-sans-serif,system-ui,'Segoe UI',sans-serif;--ink:#22262b;--faint:#68717b;--line:#c6ccd3;--slice:#2f3a46;--on:#fff}
@media(prefers-color-scheme:dark){.windrow-plan{--ink:#e8ebee;--faint:#9aa4ae;--line:#4a535d;--slice:#c9d1d9;--on:#16191d}}
.windrow-plan text{fill:var(--ink);font-size:12px}.windrow-plan .faint{fill:var(--faint);font-size:11px}
.windrow-plan .head{font-size:13px;font-weight:600}.windrow-plan .edge{stroke:var(--line);stroke-dasharray:2 3}
.windrow-plan .slice{fill:var(--slice)}.windrow-plan .on{fill:var(--on);font-size:10px;text-anchor:middle}
.windrow-plan .end{text-anchor:end}.windrow-plan .tick{fill:var(--faint);font-size:10px;text-anchor:middle}
.windrow-plan .dot{fill:var(--ink)}
"""


def picture(plan: Plan) -> str:
    """A plan as SVG.

    >>> import windrow as wr
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
    >>> svg = q.explain().picture
    >>> svg.startswith("<svg"), svg.count('class="slice"')
    (True, 2)
    """
    canvas = _Canvas()
    query = plan.query
    keys = f", per {', '.join(query.key)}" if query.key else ""
    canvas.text(
        10,
        f"{_count(query.windows, 'window')}, {_count(query.aggregates, 'aggregate')}, one pass{keys}",
        "head",
    )
    canvas.y += 24
    colors = dict(
        zip(query.windows, (COLORS[i % len(COLORS)] for i in range(len(query.windows))), strict=True)
    )
    for number, part in enumerate(plan.parts, 1):
        if len(plan.parts) > 1:
            canvas.text(10, f"set {number} of {len(plan.parts)}: these windows share slices", "faint")
            canvas.y += 20
        if part.kind == "aligned":
            _aligned(canvas, part, colors)
        elif part.kind == "sessions":
            _sessions(canvas, part, colors)
        else:
            _ordered(canvas, part, colors)
    _kept(canvas, plan.parts[0])
    return canvas.svg()


class _Canvas:
    """Shapes one below the other; `y` is where the next one goes."""

    def __init__(self) -> None:
        self.shapes: list[str] = []
        self.y = 20.0

    def text(self, x: float, text: str, kind: str = "", dy: float = 0) -> None:
        self.shapes.append(f'<text x="{x:g}" y="{self.y + dy:g}" class="{kind}">{escape(text)}</text>')

    def name(self, name: str, color: str, note: str) -> None:
        """What stands left of a lane."""
        short = name if len(name) <= LETTERS else name[: LETTERS - 1] + "…"
        shape = f'<text x="{LEFT - 14}" y="{self.y + 12:g}" class="end" style="fill:{color};font-weight:600">'
        self.shapes.append(f"{shape}{escape(short)}<title>{escape(name)}</title></text>")
        short = note if len(note) <= LETTERS + 6 else note[: LETTERS + 5] + "…"
        self.shapes.append(
            f'<text x="{LEFT - 14}" y="{self.y + 26:g}" class="faint end">{escape(short)}<title>{escape(note)}</title></text>'
        )

    def bar(self, start: float, end: float, color: str, title: str) -> None:
        """A window; what begins or ends out of the picture has no edge there."""
        low, high = max(start, LEFT - 5), min(end, RIGHT + 5)
        self.shapes.append(
            f'<rect x="{low + 1:.1f}" y="{self.y:g}" width="{max(1.0, high - low - 2):.1f}" height="{BAR}" rx="3" fill="{color}" '
            f'fill-opacity="0.25" stroke="{color}"><title>{escape(title)}</title></rect>'
        )

    def slice(self, start: float, end: float, text: str, title: str) -> None:
        self.shapes.append(
            f'<rect x="{start + 0.75:.1f}" y="{self.y:g}" width="{max(1.0, end - start - 1.5):.1f}" height="{BAR + 2}" rx="2" '
            f'class="slice"><title>{escape(title)}</title></rect>'
        )
        if end - start > 8 + 6 * len(text):
            self.text((start + end) / 2, text, "on", dy=13)

    def svg(self) -> str:
        height = math.ceil(self.y) + 6
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'class="windrow-plan" role="img" style="max-width:100%;height:auto"><style>{STYLE}</style>{"".join(self.shapes)}</svg>'
        )


def _count(things: object, noun: str) -> str:
    number = len(things)  # type: ignore[arg-type]
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _aligned(canvas: _Canvas, part: Part, colors: dict[str, str]) -> None:
    """Windows of time where their edges are, and the slices between any two of these."""
    windows = placed(part.query, part.schema)
    if windows is None or not (len(windows.periods) or windows.irregular):
        for name, window in part.query.windows.items():
            canvas.name(name, colors[name], str(window))
            canvas.y += 34
        return
    edges = _edges(windows)
    low, high = edges[0], edges[-1]
    scale = (RIGHT - LEFT) / (high - low)

    def at(tick: float) -> float:
        return LEFT + (tick - low) * scale

    begin, mark = canvas.y, len(canvas.shapes)
    for position, (name, window) in enumerate(part.query.windows.items()):
        canvas.name(name, colors[name], str(window))
        top = canvas.y
        lanes = _lanes(_windows(windows, position, low, high), low)
        for lane in lanes:
            for start, end in lane:
                title = f"{name}: {_length(end - start, windows.measure)} long"
                canvas.bar(at(start), at(end), colors[name], title)
            canvas.y += BAR + GAP
        more = _covering(windows, position, *edges[-2:]) - len(lanes)
        if more > 0:
            canvas.text(LEFT, f"and {more:,} more that overlap", "faint", dy=8)
            canvas.y += 14
        canvas.y = max(canvas.y, top + 32) + 8
    canvas.name("slices", "var(--ink)", "of how many windows")
    for start, end in pairwise(edges):
        parts = sum(_covering(windows, position, start, end) for position in range(len(windows.names)))
        note = f"{_length(end - start, windows.measure)} long, a part of {parts:,} windows"
        canvas.slice(at(start), at(end), f"{parts:,}", note)
    canvas.y += BAR + 6
    lines = (
        f'<line x1="{at(edge):.1f}" x2="{at(edge):.1f}" y1="{begin - 4:g}" y2="{canvas.y:g}" class="edge"/>'
        for edge in edges
    )
    canvas.shapes.insert(mark, "".join(lines))
    last = -math.inf
    for edge in edges:
        if at(edge) - last >= 62:
            canvas.text(at(edge), _length(edge - low, windows.measure), "tick", dy=10)
            last = at(edge)
    canvas.y += 30
    most = f"{windows.windows_per_event:,.0f}"
    canvas.text(LEFT, f"an event is folded once, into one slice, and counts in up to {most} windows", "faint")
    canvas.y += 20


def _edges(windows: WindowSet) -> list[float]:
    """Edges of windows in a stretch that has not too many: two of the longest windows, or less."""
    rate = float((1 / windows.periods.astype(float)).sum())
    rate += sum(2 / float(p.length) for p in windows.uneven)
    length = min(2 * float(windows.longest), (SLICES - 2) / rate)
    length = max(length, 2 * float(min([*windows.periods, *(p.length for p in windows.uneven)])))
    base = float(windows.phases[int(np.argmax(windows.periods))]) if len(windows.periods) else 0.0
    found = {base} if len(windows.periods) else set()
    for period, phase, rest in zip(windows.periods, windows.phases, windows.rests, strict=True):
        every, offset = float(period), float(phase) + float(rest)
        first, last = math.ceil((base - offset) / every), math.floor((base + length - offset) / every)
        found |= {offset + k * every for k in range(first, last + 1)}
    for placement in windows.uneven:
        for ends in placement.windows(_tick(windows, base), _tick(windows, base + length)):
            found |= {float(edge) for edge in ends if base <= edge <= base + length}
    return sorted(found) if len(found) > 1 else [base, base + length]


def _tick(windows: WindowSet, place: float) -> Tick:
    return place if windows.measure.floating else round(place)


def _windows(windows: WindowSet, position: int, low: float, high: float) -> list[tuple[float, float]]:
    """The windows of one spec that overlap a stretch; of very many, those that begin in it and the last ones before."""
    found: list[tuple[float, float]] = []
    for i in np.flatnonzero(windows.owner == position):
        every, offset, length = _periodic(windows, int(i))
        first, last = _numbers(every, offset, length, low, high)
        first = max(first, last - 4 * SLICES)
        found += [(offset + k * every, offset + k * every + length) for k in range(first, last + 1)]
    for owner, placement in windows.irregular:
        if owner == position:
            starts, ends = placement.windows(_tick(windows, low), _tick(windows, high))
            found += zip(map(float, starts), map(float, ends), strict=True)
    return sorted(span for span in found if span[1] > low and span[0] < high)


def _periodic(windows: WindowSet, i: int) -> tuple[float, float, float]:
    every, offset = float(windows.every[i]), float(windows.offset[i])
    return every, offset, float(windows.whole[i]) * every + float(windows.rest[i])


def _numbers(every: float, offset: float, length: float, low: float, high: float) -> tuple[int, int]:
    """The first and the last of periodic windows that have something of (low, high) in them."""
    return math.floor((low - length - offset) / every) + 1, math.ceil((high - offset) / every) - 1


def _covering(windows: WindowSet, position: int, start: float, end: float) -> int:
    """How many windows of one spec a slice is a part of."""
    count = 0
    for i in np.flatnonzero(windows.owner == position):
        first, last = _numbers(*_periodic(windows, int(i)), start, end)
        count += last - first + 1
    return count + sum(
        1
        for owner, placement in windows.irregular
        if owner == position
        for a, b in zip(*placement.windows(_tick(windows, start), _tick(windows, start)), strict=True)
        if a <= start and end <= b
    )


def _lanes(spans: list[tuple[float, float]], low: float) -> list[list[tuple[float, float]]]:
    """Windows in rows in which none overlaps another; of too many rows, some, and those first that begin in the picture."""
    lanes: list[list[tuple[float, float]]] = []
    for span in spans:
        lane = next((lane for lane in lanes if lane[-1][1] <= span[0]), None)
        if lane is None:
            lanes.append(lane := [])
        lane.append(span)
    if len(lanes) <= LANES:
        return lanes
    begun = [lane for lane in lanes if lane[0][0] >= low]
    if len(begun) < LANES:
        begun = lanes[-LANES:]
    return [begun[i] for i in np.unique(np.linspace(0, len(begun) - 1, LANES).astype(int))]


def _length(ticks: float, measure: Measure) -> str:
    """How far something is from the left edge, in the largest unit that fits."""
    if measure.tick_nanoseconds is None:
        return f"{ticks:g}"
    nanoseconds = ticks * measure.tick_nanoseconds
    for unit, size in (("d", 86_400e9), ("h", 3_600e9), ("min", 60e9), ("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size or (unit == "µs" and nanoseconds):
            return f"{nanoseconds / size:.4g} {unit}"
    return "0"


# Made-up events: two bursts and what lies between, in places of the picture.
_EVENTS = [20, 52, 80, 118, 150, 290, 312, 350, 470, 502, 525, 560]


def _dots(canvas: _Canvas) -> None:
    canvas.name("events", "var(--ink)", "made up")
    for x in _EVENTS:
        canvas.shapes.append(f'<circle cx="{LEFT + x}" cy="{canvas.y + 8:g}" r="4" class="dot"/>')
    canvas.y += 38


def _sessions(canvas: _Canvas, part: Part, colors: dict[str, str]) -> None:
    """Sessions from the smallest gap to the largest: each of a larger gap is made of smaller ones."""
    _dots(canvas)
    for rank, (name, window) in enumerate(_by_gap(part)):
        canvas.name(name, colors[name], str(window))
        for first, last in _runs(60 + 70 * rank):
            canvas.bar(LEFT + first, LEFT + last + 30 + 20 * rank, colors[name], f"{name}: {window}")
        canvas.y += 34
    note = "each session is a slice, put together as events come"
    if part.passes_up:
        note += "; sessions of a larger gap are made of those of the next smaller one"
    canvas.text(LEFT, note, "faint", dy=6)
    canvas.y += 26


def _by_gap(part: Part) -> Iterator[tuple[str, Window]]:
    def gap(item: tuple[str, Window]) -> float:
        magnitude = getattr(item[1].gap, "magnitude", None)
        return float(magnitude) if isinstance(magnitude, (int, float)) else math.inf

    yield from sorted(part.query.windows.items(), key=gap)


def _runs(gap: float) -> Iterator[tuple[float, float]]:
    first = last = _EVENTS[0]
    for x in _EVENTS[1:]:
        if x - last > gap:
            yield first, last
            first = x
        last = x
    yield first, last


def _ordered(canvas: _Canvas, part: Part, colors: dict[str, str]) -> None:
    """Windows that depend on the order of events: what they cut on, and that they share its slices."""
    _dots(canvas)
    for name, window in part.query.windows.items():
        canvas.name(name, colors[name], str(window))
        for first in range(0, len(_EVENTS), 4):
            canvas.bar(
                LEFT + _EVENTS[first] - 8, LEFT + _EVENTS[first + 3] + 8, colors[name], f"{name}: {window}"
            )
        canvas.y += 34
    canvas.text(
        LEFT,
        "windows begin and end with events, in the order of their times; here, each after four",
        "faint",
        dy=6,
    )
    canvas.y += 26


def _kept(canvas: _Canvas, part: Part) -> None:
    """Which aggregates read the same partial."""
    shared: dict[str, list[str]] = {}
    for name, aggregate, bound in part.bounds():
        what = str(aggregate) if bound is None else bound.partial.name
        if aggregate.columns and bound is not None:
            what = f"{what} of {', '.join(aggregate.columns)}"
        shared.setdefault(what, []).append(f"{name} = {aggregate}")
    canvas.text(10, "kept per slice and key", "faint")
    for what, names in shared.items():
        canvas.text(LEFT, f"{what}   for {', '.join(names)}", "faint")
        canvas.y += 16
    canvas.y += 14

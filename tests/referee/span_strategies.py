"""Hypothesis strategies for events that last: short, long, nested, equal, one tick, across many windows.

    since until key0 x        who
    3     4     a    7        -       one tick
    1     90    a    -        -       across many windows
    2     5     b    1        -       inside the one above
    4     -     a    2        1       opening, and
    -     9     a    -        1       closing

Tables come with the columns `since` and `until`, the keys and values of `strategies.streams`, and, where
events may come in two rows, `who`. Rows come in any order; those of `two_row_streams` about when they would.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import windrow as wr
from tests.referee.columns import Way, among, between, drawn
from tests.referee.events import arrow_array
from tests.referee.strategies import (
    aggregates,
    in_ticks,
    kinds_of_windows,
    length,
    streams,
    value_type,
    windows,
)
from windrow.aggregates.base import Aggregate
from windrow.measure import Measure
from windrow.query import Query
from windrow.span import Span
from windrow.testing.compare import plain_values, rows_of
from windrow.windows import Window

# Types of time that spans are drawn on; a float measure knows no sessions of them, and no open ones.
TICKS: tuple[pa.DataType, ...] = (pa.int64(), pa.timestamp("us", "UTC"), pa.date32())
TIMES: tuple[pa.DataType, ...] = (*TICKS, pa.float64())
ENDS = ("since", "until")
# Kinds of windows for moments of events: those without functions of the user's own, which have nothing to do with it.
OF_MOMENTS = ("session", "rows", "advancing", "delta", "landmark", "snapshot", "slide by rows", "latest")


def lengths(type_: pa.DataType, *, days: bool = False) -> Sequence[Way]:
    """How long an event lasts, in ticks; with `days`, from an hour to months."""
    measure = Measure("since", type_)
    plain = (among(1), between(1, 12), among(1, 2, 5, 10, 40, 90))
    if measure.floating:
        return [_quarter(way) for way in plain]
    if days and measure.tick_nanoseconds is not None:
        hour = 3_600_000_000_000
        hours = [1, 5, 24, 25, 24 * 7, 24 * 40]
        return [among(*(max(1, n * hour // measure.tick_nanoseconds) for n in hours))]
    return plain


def _quarter(way: Way) -> Way:
    return lambda bits: way(bits) / 4


@st.composite
def lifespans(draw: Any, starts: Sequence[Any], length: Sequence[Way], most: int) -> list[tuple[Any, Any]]:
    """A lifespan for each of at most `most` starts: its own, that of an event before, or one inside of that."""
    kinds = drawn(draw, [among("own", "own", "own", "same", "inside")], len(starts), most=most)
    earlier = drawn(draw, [lambda bits: bits], len(starts), most=most)
    found = drawn(draw, length, len(starts), most=most)
    spans: list[tuple[Any, Any]] = []
    for start, kind, other, lasting in zip(starts, kinds, earlier, found, strict=True):
        if kind == "own" or not spans:
            spans.append((start, start + lasting))
            continue
        since, until = spans[other % len(spans)]
        spans.append((since, until) if kind == "same" else (until - min(lasting, until - since), until))
    return spans


@st.composite
def span_streams(
    draw: Any,
    *,
    time: pa.DataType,
    key: Sequence[str] = ("int",),
    columns: Mapping[str, str] | None = None,
    max_size: int = 20,
    min_size: int = 0,
    days: bool = False,
    spread: int | None = None,
) -> pa.Table:
    """A table of complete events that last.

    >>> import pyarrow as pa
    >>> from hypothesis import find
    >>> find(span_streams(time=pa.int64(), columns={"x": "int"}), lambda t: True).column_names
    ['since', 'until', 'key0', 'x']
    """
    options: dict[str, Any] = {"days": days, "spread": spread, "max_size": max_size, "min_size": min_size}
    table = draw(streams(time=time, key=key, columns=columns, **options))
    pairs = draw(lifespans(plain_values(table["time"]), lengths(time, days=days), max_size))
    since = arrow_array([start for start, _ in pairs], time)
    until = arrow_array([end for _, end in pairs], time)
    return pa.table({"since": since, "until": until, **_columns(table.drop_columns(["time"]))})


def _columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return {name: table[name] for name in table.column_names}


@st.composite
def two_row_streams(
    draw: Any,
    *,
    time: pa.DataType,
    key: Sequence[str] = ("bool",),
    columns: Mapping[str, str] | None = None,
    max_size: int = 12,
    spread: int | None = 12,
) -> pa.Table:
    """Events that may come in two rows, with few ids, so that some close nothing or are open twice.

    An opening row comes about when its event starts, or much later; all others about when theirs ends. Some events are
    never closed.
    """
    whole = draw(span_streams(time=time, key=key, columns=columns, max_size=max_size, spread=spread))
    ways = {
        "who": among(0, 1, 2, 3, 4, 5, 6, None),
        "about": between(-3, 6),
        "shape": among("complete", "both", "both", "both", "opening", "closing"),
        "late": among(0, 0, 0, 15, 40),
    }
    choices = [drawn(draw, [way], whole.num_rows, most=max_size) for way in ways.values()]
    arriving: list[tuple[Any, dict[str, Any]]] = []
    for row, who, about, shape, late in zip(rows_of(whole), *choices, strict=True):
        row["who"] = who
        if shape == "complete":
            arriving.append((row["until"] + about, row))
        if shape in ("both", "opening"):
            arriving.append((row["since"] + about + late, {**row, "until": None}))
        if shape in ("both", "closing"):
            nothing = {name: None for name in row if name in (columns or {"x": "float"})}
            closed = max(row["until"], row["since"] + late) + abs(about)
            arriving.append((closed, {**row, **nothing, "since": None}))
    rows = [row for _, row in sorted(arriving, key=lambda pair: pair[0])]
    names = {**{field.name: field.type for field in whole.schema}, "who": pa.int64()}
    return pa.table({n: arrow_array([row[n] for row in rows], type_) for n, type_ in names.items()})


@st.composite
def with_bad_rows(draw: Any, table: pa.Table) -> pa.Table:
    """The same rows, some of them without a start or an end, or with an end at or before the start."""
    since, until = (plain_values(table[name]) for name in ENDS)
    damage = among(*[None] * 6, "no start", "no end", "no length", "backwards")
    kinds = drawn(draw, [damage], table.num_rows, most=table.num_rows)
    for row, kind in enumerate(kinds):
        if kind == "no start":
            since[row] = None
        elif kind == "no end":
            until[row] = None
        elif kind == "no length":
            until[row] = since[row]
        elif kind == "backwards":
            since[row], until[row] = until[row], since[row]
    type_ = table.schema.field("since").type
    ends = {"since": arrow_array(since, type_), "until": arrow_array(until, type_)}
    return pa.table({**_columns(table), **ends})


def span_windows(time: pa.DataType, span: Span, *, days: bool = False) -> SearchStrategy[Window]:
    """Windows that events of a span belong to; moments of them have any, over the columns of `SIGNALS`."""
    placed = windows(time, days=days)
    if days:
        return placed
    # A band in the middle of the stream: it is soon over, and an event may reach across it.
    scale = 0.25 if Measure("since", time).floating else 1
    bands = st.builds(
        lambda start, n: wr.band(start * scale, length=n * scale), st.integers(0, 40), st.integers(1, 9)
    )
    placed = placed | bands.map(lambda window: in_ticks(window, time))
    if span.is_point:
        return placed | st.one_of([kinds_of_windows(time)[kind] for kind in OF_MOMENTS])
    if span.id is None and span.contributes == "whole" and not Measure("since", time).floating:
        # As often as all others together, so that there are several in a query.
        sessions = st.builds(wr.session, st.sampled_from([length(gap, time) for gap in (1, 2, 3, 5, 9)]))
        return st.booleans().flatmap(lambda often: sessions if often else placed)
    return placed


def releases(*, floating: bool = False) -> SearchStrategy[Any]:
    """Release delays: none, fixed and learned ones."""
    fixed = [0, 0, 0.75, 2.5] if floating else [0, 0, 3, 10]
    return st.sampled_from([*fixed, wr.learned(0.5), wr.learned(1.0)])


def shares(columns: Mapping[str, str]) -> SearchStrategy[Aggregate]:
    """Aggregates that a share of an event counts in."""
    numbers = [name for name, kind in columns.items() if value_type(kind) not in (pa.string(), pa.bool_())]
    choices: list[Aggregate] = [wr.count()]
    for name in numbers:
        choices += [wr.sum(name), wr.mean(name)]
    return st.sampled_from(choices)


@st.composite
def span_queries(
    draw: Any,
    *,
    time: pa.DataType,
    span: Span,
    key: Sequence[str] = ("int",),
    columns: Mapping[str, str] | None = None,
    days: bool = False,
) -> Query:
    """A query of up to three windows and three aggregates over a table that `span_streams` draws."""
    fields = dict(columns or {"x": "float"})
    placed = draw(st.lists(span_windows(time, span, days=days), min_size=1, max_size=3))
    computed = draw(st.lists(_aggregates(span, fields), min_size=1, max_size=3))
    return wr.query(
        time=span,
        key=[f"key{i}" for i in range(len(key))],
        windows={f"w{i}": window for i, window in enumerate(placed)},
        aggregates={f"a{i}": aggregate for i, aggregate in enumerate(computed)},
    )


def _aggregates(span: Span, columns: Mapping[str, str]) -> SearchStrategy[Aggregate]:
    return shares(columns) if span.contributes == "prorated" else aggregates(columns)


@st.composite
def with_changes(
    draw: Any,
    steps: Sequence[tuple[str, Any]],
    query: Query,
    *,
    time: pa.DataType,
    columns: Mapping[str, str],
) -> list[tuple[str, Any]]:
    """The same steps, and before some advances windows and aggregates that come and go, and restarts.

    A session of events that last cannot be added; windows of time can.
    """
    assert isinstance(query.time, Span)
    kinds = {"window": windows(time), "aggregate": _aggregates(query.time, columns)}
    known = {"window": list(query.windows), "aggregate": list(query.aggregates)}
    changed: list[tuple[str, Any]] = []
    for number, (step, argument) in enumerate(steps):
        what = draw(st.sampled_from(["window", "aggregate"]))
        change = draw(st.sampled_from(["none", "none", "add", "remove", "restart"]))
        if not changed or step != "advance" or change == "none":
            pass
        elif change == "restart":
            changed.append(("restart", None))
        elif change == "add":
            name = f"{what} {number}"
            known[what].append(name)
            changed.append((f"add_{what}", (name, draw(kinds[what]))))
        elif len(known[what]) > 1:
            name = known[what].pop(draw(st.integers(0, len(known[what]) - 1)))
            changed.append((f"remove_{what}", name))
        changed.append((step, argument))
    return changed

"""Hypothesis strategies for event streams, windows, aggregates and queries.

Streams are drawn to hurt: ties, disorder, nulls, NaN, infinities, -0.0, mixed magnitudes, times
before 1970 and at both ends of int64, few and many keys of every type. Times lie close together in
ticks, and windows are a few ticks long, so that windows hold several events; for calendar windows
times are spread over weeks. Windows that depend on the events read the columns of `SIGNALS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import date
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import windrow as wr
from tests.referee.columns import KINDS, Way, among, between, drawn
from tests.referee.events import arrow_array
from windrow.aggregates.base import Aggregate
from windrow.durations import Duration
from windrow.measure import Measure, Point, parse_point
from windrow.query import Query
from windrow.span import Span
from windrow.testing.compare import plain_values
from windrow.windows import Window
from windrow.windows.band import Band
from windrow.windows.calendar import Calendar

INT64 = 2**63
# Times stay this far from the ends of their type: the edges of their windows must be expressible.
ROOM = 1_000
TIMES: tuple[pa.DataType, ...] = (
    pa.timestamp("us"),
    pa.timestamp("ns"),
    pa.timestamp("ms", "Europe/Berlin"),
    pa.timestamp("s", "America/New_York"),
    pa.timestamp("us", "UTC"),
    pa.date32(),
    pa.int64(),
    pa.int32(),
    pa.float64(),
)
VALUES: dict[str, pa.DataType] = {
    "int": pa.int64(),
    "small": pa.int16(),
    "float": pa.float64(),
    "single": pa.float32(),
    "decimal": pa.decimal128(12, 2),
    "string": pa.string(),
    "bool": pa.bool_(),
    "time": pa.timestamp("ns"),
    "date": pa.date32(),
    "gap": pa.int64(),
    "odometer": pa.int64(),
    "count": pa.int64(),
    "level": pa.float64(),
}
# Columns that windows read: marks, gaps of sessions, readings that advance, values that move, and
# small numbers for functions of the user's own. Name: kind.
SIGNALS: dict[str, str] = {"mark": "bool", "gap": "gap", "km": "odometer", "level": "level", "v": "count"}
# Kinds of values that are never null: a null would make a bad row.
NEVER_NULL = ("gap", "odometer", "count")
KEYS: tuple[tuple[str, ...], ...] = (
    (),
    ("int",),
    ("string",),
    ("float",),
    ("bool",),
    ("decimal",),
    ("int", "string"),
    ("string", "float", "bool"),
)


def times(type_: pa.DataType, *, days: bool = False) -> SearchStrategy[Any]:
    """One base instant somewhere, then ticks close to it (or, with `days`, weeks around it)."""
    measure = Measure("time", type_)
    if measure.floating:
        bases = st.sampled_from([0.0, -7.3, 1000.0, 1e6])
        steps = st.integers(0, 80) | st.integers(0, 8)
        return bases.flatmap(lambda base: steps.map(lambda i: base + i / 4)).map(float)
    if days and measure.tick_nanoseconds is not None:
        day = 86_400_000_000_000
        hour = min(day, max(3_600_000_000_000, measure.tick_nanoseconds))
        middles = st.sampled_from([0, 19_813, 20_022, -9_000])
        hours = st.integers(0, 60 * day // hour)
        ticks = st.tuples(middles, hours)
        return ticks.map(lambda pair: (pair[0] * day + pair[1] * hour) // (measure.tick_nanoseconds or 1))
    low, high = int(measure.lowest), int(measure.highest)
    return st.sampled_from([0, 1_000, -50, -100_000, low + ROOM, high - ROOM - 60]).flatmap(
        lambda base: st.integers(0, 60).map(lambda i: base + i)
    )


def _ticks(
    draw: Any, type_: pa.DataType, size: int, most: int, *, days: bool, spread: int | None
) -> list[Any]:
    """Ticks around one base: a stream lives in one place, not in all of them."""
    anchor = draw(times(type_, days=days))
    if isinstance(anchor, float):
        width = 40 if spread is None else spread
        return [anchor + i / 4 for i in drawn(draw, [between(-width, width)], size, most=most)]
    measure = Measure("time", type_)
    low, high = int(measure.lowest) + ROOM, int(measure.highest) - ROOM

    def within(reach: int) -> Way:
        return between(max(low, anchor - reach), min(high, anchor + reach))

    if spread is not None:
        return drawn(draw, [within(spread)], size, most=most)
    reach = 60
    if days and measure.tick_nanoseconds is not None:
        reach = 40 * 86_400_000_000_000 // measure.tick_nanoseconds
    return drawn(draw, [within(reach), *([within(reach // 40)] if days else [])], size, most=most)


def value_type(kind: str) -> pa.DataType:
    """The Arrow type of a kind of values."""
    return VALUES.get(kind, pa.float64())


@st.composite
def streams(
    draw: Any,
    *,
    time: pa.DataType | None = None,
    key: Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    max_size: int = 30,
    min_size: int = 0,
    nulls: bool = True,
    days: bool = False,
    ordered: bool = False,
    spread: int | None = None,
) -> pa.Table:
    """A table of events: column `time`, key columns `key0`, `key1`, ..., and `columns` (name: kind).

    Leave `time` or `key` out to have them drawn from all types. `spread` keeps times within so many
    ticks of one another, so that many are equal.

    >>> import pyarrow as pa
    >>> from hypothesis import find
    >>> find(streams(time=pa.int64(), columns={"x": "int"}, key=["int"]), lambda t: True).column_names
    ['time', 'key0', 'x']
    """
    type_ = draw(st.sampled_from(TIMES)) if time is None else time
    kinds = draw(st.sampled_from(KEYS)) if key is None else key
    size = draw(st.integers(min_size, max_size))
    ticks = _ticks(draw, type_, size, max_size, days=days, spread=spread)
    ticks = sorted(ticks) if ordered else ticks
    table = {"time": arrow_array(ticks, type_)}
    named = {f"key{i}": kind for i, kind in enumerate(kinds)} | dict(columns or {"x": "float"})
    for name, kind in named.items():
        ways = KINDS[kind]
        if name not in (columns or {"x": "float"}):
            ways = (among(*drawn(draw, ways, draw(st.integers(1, 5)), most=5)),)
        if nulls and kind not in NEVER_NULL:
            ways = (among(None), *ways)
        column = drawn(draw, ways, size, most=max_size)
        if kind == "odometer":
            column = [int(tick - min(ticks)) // 3 + noise for tick, noise in zip(ticks, column, strict=True)]
        table[name] = arrow_array(column, value_type(kind))
    return pa.table(table)


def windows(type_: pa.DataType, *, days: bool = False, signals: bool = False) -> SearchStrategy[Window]:
    """Windows that fit a time column of this type; with `days`, calendar windows.

    With `signals`, also windows that depend on the events, over the columns of `SIGNALS`.
    """
    if signals:
        return st.one_of([windows(type_, days=days), *kinds_of_windows(type_).values()])
    measure = Measure("time", type_)
    if days and measure.tick_nanoseconds is not None:
        zones = ["Europe/Berlin", "America/Sao_Paulo", "UTC", None]
        units = ["day", "week", "month", "quarter", "year"]
        dated = pa.types.is_date(type_)
        zone = st.none() if dated else st.sampled_from(zones)
        usual = st.builds(Calendar, st.sampled_from(units), st.integers(1, 3), zone)
        whole = st.sampled_from([0, 86_400, -86_400])
        shifts = whole if dated else whole | st.sampled_from([-3_600, 6 * 3_600, 9_000])
        weeks = st.builds(Calendar, st.just("week"), st.integers(1, 2), zone, st.integers(0, 6), shifts)
        years = st.builds(
            Calendar,
            st.sampled_from(["quarter", "year"]),
            st.integers(1, 2),
            zone,
            st.integers(0, 11),
            shifts,
        )
        off = st.sampled_from(
            [(), (date(2024, 4, 1), date(2024, 10, 28)), (date(1970, 1, 1), date(1969, 12, 31))]
        )
        working = st.builds(
            Calendar, st.just("business day"), st.integers(1, 3), zone, st.just(0), st.just(0), off
        )
        if dated:
            return st.one_of(usual, weeks, years, working)
        moves = st.sampled_from([0, 0, 600, -1_800])
        hours = st.builds(Calendar, st.just("hour"), st.sampled_from([1, 2, 6]), zone, st.just(0), moves)
        minutes = st.builds(
            Calendar, st.just("minute"), st.sampled_from([15, 30]), zone, st.just(0), st.just(0)
        )
        return st.one_of(usual, weeks, years, working, hours, minutes)
    scale = 0.25 if measure.floating else 1
    sizes = st.integers(1, 20).map(lambda i: i * scale)
    offsets = st.integers(-7, 7).map(lambda i: i * scale)
    plain: list[SearchStrategy[Any]] = [
        st.builds(lambda n, o: wr.tumbling(n, offset=o), sizes, offsets),
        st.builds(lambda n, e, o: wr.sliding(n, every=e, offset=o), sizes, sizes, offsets),
        st.builds(
            lambda step, i, o: wr.cumulate(step * i, step=step, offset=o), sizes, st.integers(1, 4), offsets
        ),
        st.builds(lambda start, n: wr.band(start, length=n), offsets, sizes),
    ]
    return st.one_of(plain).map(lambda window: in_ticks(window, type_))


def in_ticks(spec: Any, type_: pa.DataType) -> Any:
    """A query, a window or a span whose plain numbers are ticks of a time column of this type.

    >>> str(in_ticks(wr.tumbling(5), pa.timestamp("s"))), str(in_ticks(wr.tumbling(5), pa.int64()))
    ('tumbling 5000000000 nanoseconds', 'tumbling 5')
    """
    measure = Measure("time", type_)
    if isinstance(spec, Duration):
        return spec if spec.number is None else measure.duration(spec.number)
    if isinstance(spec, Point):
        return spec if spec.number is None else parse_point(moment(spec.number, type_), what="a point")
    if isinstance(spec, Query):
        windows = {name: in_ticks(window, type_) for name, window in spec.windows.items()}
        return replace(spec, time=in_ticks(spec.time, type_), windows=MappingProxyType(windows))
    if not isinstance(spec, (Window, Span)):
        return spec
    parts = {field.name: in_ticks(getattr(spec, field.name), type_) for field in fields(spec)}  # type: ignore[arg-type]
    if isinstance(spec, Band) and isinstance(spec.start, (int, float)):
        parts["start"] = moment(spec.start, type_)
    return replace(spec, **parts)


def moment(tick: Any, type_: pa.DataType) -> Any:
    """A tick of a time column of this type as a point: a number where it is no time."""
    unit = Measure("time", type_).tick_nanoseconds
    return tick if unit is None else Point(nanoseconds=int(tick) * unit)


def length(ticks: Any, type_: pa.DataType) -> Any:
    """So many ticks of a time column of this type as a duration."""
    return Measure("time", type_).duration(ticks)


def is_positive(v):  # type: ignore[no-untyped-def]
    """A predicate of the user's own."""
    return v > 0


def is_negative(v):  # type: ignore[no-untyped-def]
    """Another one."""
    return v < 0


def waves(begun, v):  # type: ignore[no-untyped-def]
    """Begin at a positive number, up to three at once; end the oldest at a negative one."""
    ends = 1 if v < 0 and begun > 0 else 0
    begins = 1 if v > 0 and begun - ends < 3 else 0
    return begun + begins - ends, begins, ends


def strides(state, time, v):  # type: ignore[no-untyped-def]
    """Every second event begins as many windows as its number says; at every third all of them end."""
    seen, begun = state
    ends = begun if seen % 3 == 2 else 0
    begins = abs(v) if seen % 2 == 0 else 0
    return (seen + 1, begun - ends + begins), begins, ends


def more_than_three(rows):  # type: ignore[no-untyped-def]
    """Evict all but the last three events."""
    return rows - 3 if rows > 3 else 0


def older_than_six(oldest, time):  # type: ignore[no-untyped-def]
    """Evict one by one what is six ticks old."""
    return 1 if oldest <= time - 6 else 0


def every_second_time(state, v):  # type: ignore[no-untyped-def]
    """Trigger by a state of its own, and by the event."""
    return state % 2 == 1 or v > 1


def one_more(state):  # type: ignore[no-untyped-def]
    """Count events."""
    return state + 1


PREDICATES: tuple[Any, ...] = ("mark", pc.field("level") > 0, is_positive, pc.field("v") == 1)


def kinds_of_windows(type_: pa.DataType) -> dict[str, SearchStrategy[Window]]:
    """For each kind of window that depends on the events a strategy, over the columns of `SIGNALS`."""
    measure = Measure("time", type_)
    scale = 0.25 if measure.floating else 1
    sizes = st.integers(1, 12).map(lambda i: i * scale)
    offsets = st.integers(-7, 7).map(lambda i: i * scale)
    few = st.integers(1, 4)
    predicates = st.sampled_from(PREDICATES)
    lengths = st.sampled_from([1, 2, 3, 5])
    low = 0.0 if measure.floating else 0
    found: dict[str, SearchStrategy[Window]] = {
        "session": st.builds(wr.session, st.sampled_from([1, 2, 3, 5, "gap"])),
        "rows": st.builds(lambda n, every: wr.sliding(rows=n, every_rows=every), few, few),
        "advancing": st.builds(
            lambda n, every, offset: wr.sliding(n, every=every, on="km", offset=offset),
            lengths,
            lengths,
            st.sampled_from([0, 1, -2]),
        ),
        "marks": st.builds(wr.punctuated, predicates),
        "marks at both ends": st.builds(
            lambda start, end: wr.punctuated(start=start, end=end),
            predicates,
            st.sampled_from([is_negative, "mark", pc.field("level") < 0]),
        ),
        "delta": st.builds(
            lambda by, moves: wr.delta("level", by=by, moves=moves),
            st.sampled_from([0, 1, 2.5]),
            st.integers(1, 3),
        ),
        "threshold": st.builds(
            lambda where, length, rows: wr.threshold(where, at_least=length, at_least_rows=rows),
            predicates,
            st.none() | sizes,
            st.none() | few,
        ),
        "landmark": st.builds(lambda since, every: wr.landmark(since=since, every=every), offsets, sizes),
        "snapshot": st.just(wr.snapshot()),
        "slide by rows": st.builds(lambda n, rows: wr.slide_by_rows(n, every_rows=rows), sizes, few),
        "latest": st.builds(
            lambda rows, every, offset: wr.latest(rows=rows, every=every, offset=offset),
            few,
            sizes,
            st.just(low) | offsets,
        ),
        "deterministic": st.sampled_from(
            [wr.deterministic(waves, state=0), wr.deterministic(strides, state=(0, 0))]
        ),
        "nondeterministic": st.sampled_from(
            [
                wr.nondeterministic(evict=more_than_three, trigger=is_positive),
                wr.nondeterministic(evict=older_than_six, trigger=every_second_time, update=one_more),
            ]
        ),
    }
    return {name: kind.map(lambda window: in_ticks(window, type_)) for name, kind in found.items()}


def aggregates(columns: Mapping[str, str]) -> SearchStrategy[Aggregate]:
    """Exact aggregates that fit one of the columns (name: kind)."""
    choices: list[Aggregate] = [wr.count()]
    for name, kind in columns.items():
        choices += [wr.count(name), wr.min(name), wr.max(name), wr.first(name), wr.last(name)]
        choices += [wr.min_count(name), wr.max_count(name), wr.m4(name), wr.argmin(name, by=name)]
        choices += [wr.argmax(name, by=name), wr.collect(name), wr.ith_youngest(name, 2), wr.distinct(name)]
        choices += [
            wr.top_k(name, 2),
            wr.ith_smallest(name, 2),
            wr.quantile(name, 0.3, interpolation="lower"),
        ]
        if kind not in ("string", "bool", "time", "date"):
            choices += [
                wr.sum(name),
                wr.mean(name),
                wr.variance(name),
                wr.median(name),
                wr.stddev(name, ddof=0),
            ]
        if kind == "string":
            choices.append(wr.concat(name, separator=","))
    return st.sampled_from(choices)


@st.composite
def queries(
    draw: Any,
    *,
    time: pa.DataType,
    key: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    days: bool = False,
) -> Query:
    """A query of up to three windows and three aggregates over a table that `streams` draws."""
    known = dict(columns or {"x": "float"})
    placed = draw(st.lists(windows(time, days=days), min_size=1, max_size=3))
    computed = draw(st.lists(aggregates(known), min_size=1, max_size=3))
    return wr.query(
        time="time",
        key=[f"key{i}" for i in range(len(key))],
        windows={f"w{i}": window for i, window in enumerate(placed)},
        aggregates={f"a{i}": aggregate for i, aggregate in enumerate(computed)},
    )


@st.composite
def mixed_queries(
    draw: Any,
    *,
    time: pa.DataType,
    key: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    most: int = 5,
) -> Query:
    """A query of up to five kinds of windows at once, on three measures: time, rows and a column.

    For a table that `streams` draws with `columns=SIGNALS | columns`.
    """
    kinds = {"time": windows(time), **kinds_of_windows(time)}
    chosen = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=most, unique=True))
    computed = draw(st.lists(aggregates(dict(columns or {"x": "int"})), min_size=1, max_size=3))
    return wr.query(
        time="time",
        key=[f"key{i}" for i in range(len(key))],
        windows={kind: draw(kinds[kind]) for kind in chosen},
        aggregates={f"a{i}": aggregate for i, aggregate in enumerate(computed)},
    )


@st.composite
def batchings(draw: Any, table: pa.Table) -> list[pa.Table]:
    """The table cut into consecutive batches, some of them empty."""
    cuts = sorted(draw(st.lists(st.integers(0, table.num_rows), max_size=5)))
    edges = [0, *cuts, table.num_rows]
    return [table.slice(a, b - a) for a, b in pairwise(edges)]


@st.composite
def schedules(
    draw: Any,
    table: pa.Table,
    *,
    behind: int = 20,
    eager: bool = False,
    times: Sequence[str] = ("time",),
) -> list[tuple[str, Any]]:
    """Steps for an operator: `("process", batch)` and `("advance", point)`.

    Watermarks never go back; they lie up to `behind` ticks behind the latest of the `times` so far. An `eager`
    schedule has batches of a few events and an advance after each.
    """
    steps: list[tuple[str, Any]] = []
    type_ = table.schema.field(times[0]).type
    latest: Any = None
    watermark: Any = None
    for batch in _small_batches(draw, table) if eager else draw(batchings(table)):
        steps.append(("process", batch))
        ticks = [t for name in times for t in plain_values(batch[name]) if t is not None]
        if ticks:
            latest = max(ticks) if latest is None else max(latest, *ticks)
        if latest is not None and (eager or draw(st.booleans())):
            tick = latest - draw(st.integers(0, behind))
            watermark = tick if watermark is None else max(watermark, tick)
            steps.append(("advance", moment(watermark, type_)))
    return steps


def _small_batches(draw: Any, table: pa.Table) -> list[pa.Table]:
    batches: list[pa.Table] = []
    done = 0
    while done < table.num_rows:
        size = draw(st.integers(1, 4))
        batches.append(table.slice(done, size))
        done += size
    return batches or [table]


def punctual(steps: list[tuple[str, Any]], lateness: Any) -> list[tuple[str, Any]]:
    """The steps without events that come before the horizon (the watermark less the lateness, in ticks)."""
    kept: list[tuple[str, Any]] = []
    horizon: Any = None
    measure = Measure("time", steps[0][1].schema.field("time").type)
    for step, argument in steps:
        if step == "advance":
            horizon = measure.point(argument, what="watermark") - lateness
        elif horizon is not None:
            ticks = plain_values(argument["time"])
            argument = argument.filter(pa.array([tick >= horizon for tick in ticks], pa.bool_()))
        kept.append((step, argument))
    return kept

"""Hypothesis strategies for event streams, windows, aggregates and queries.

Streams are drawn to hurt: ties, disorder, nulls, NaN, infinities, -0.0, mixed magnitudes, times
before 1970 and at both ends of int64, few and many keys of every type. Times lie close together in
ticks, and windows are a few ticks long, so that windows hold several events; for calendar windows
times are spread over weeks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import windrow as wr
from windrow.aggregates.base import Aggregate
from windrow.measure import Measure
from windrow.query import Query
from windrow.testing.events import arrow_array, plain_values
from windrow.windows import Calendar, Window

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
}
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


def _ticks(draw: Any, type_: pa.DataType, size: int, days: bool) -> list[Any]:
    """Ticks around one base: a stream lives in one place, not in all of them."""
    anchor = draw(times(type_, days=days))
    if isinstance(anchor, float):
        near = st.integers(-40, 40).map(lambda i: anchor + i / 4)
        return draw(st.lists(near, min_size=size, max_size=size))
    measure = Measure("time", type_)
    reach = 60
    if days and measure.tick_nanoseconds is not None:
        reach = 40 * 86_400_000_000_000 // measure.tick_nanoseconds
    low, high = int(measure.lowest) + ROOM, int(measure.highest) - ROOM
    near = st.integers(max(low, anchor - reach), min(high, anchor + reach))
    if days:
        near = near | st.integers(max(low, anchor - reach // 40), min(high, anchor + reach // 40))
    return draw(st.lists(near, min_size=size, max_size=size))


def values(kind: str) -> SearchStrategy[Any]:
    """Plain values of a kind of `VALUES` (temporal ones as ticks), without nulls."""
    awkward = [0.0, -0.0, 1.0, 0.1, -2.5, 1e300, -1e300, 1e-300, 1e16, 3.0]
    odd = [float("nan"), float("inf"), float("-inf")]
    cents = st.integers(-(10**6), 10**6).map(lambda i: Decimal(i).scaleb(-2))
    by_kind: dict[str, SearchStrategy[Any]] = {
        "int": st.integers(-5, 5) | st.integers(-(2**40), 2**40),
        "small": st.integers(-(2**15), 2**15 - 1),
        "float": st.sampled_from(awkward + odd) | st.floats(-1e9, 1e9) | st.integers(-4, 4).map(float),
        "single": st.sampled_from(awkward[:5] + odd) | st.floats(-1e9, 1e9, width=32),
        "finite": st.sampled_from(awkward) | st.floats(-1e9, 1e9) | st.integers(-4, 4).map(float),
        "mild": st.floats(-1e6, 1e6) | st.integers(-4, 4).map(float),
        "decimal": cents | st.integers(-3, 3).map(Decimal),
        "string": st.sampled_from(["", "a", "b", "ab", "ä", "z", "日本", "B"]),
        "bool": st.booleans(),
        "time": st.integers(-(2**40), 2**40) | st.integers(-3, 3),
        "date": st.integers(-20_000, 20_000) | st.integers(-3, 3),
    }
    return by_kind[kind]


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
    nulls: bool = True,
    days: bool = False,
    ordered: bool = False,
) -> pa.Table:
    """A table of events: column `time`, key columns `key0`, `key1`, ..., and `columns` (name: kind).

    Leave `time` or `key` out to have them drawn from all types.

    >>> import pyarrow as pa
    >>> from hypothesis import find
    >>> find(streams(time=pa.int64(), columns={"x": "int"}, key=["int"]), lambda t: True).column_names
    ['time', 'key0', 'x']
    """
    type_ = draw(st.sampled_from(TIMES)) if time is None else time
    kinds = draw(st.sampled_from(KEYS)) if key is None else key
    size = draw(st.integers(0, max_size))
    ticks = _ticks(draw, type_, size, days)
    table = {"time": arrow_array(sorted(ticks) if ordered else ticks, type_)}
    named = {f"key{i}": kind for i, kind in enumerate(kinds)} | dict(columns or {"x": "float"})
    for name, kind in named.items():
        one = values(kind)
        if name not in (columns or {"x": "float"}):
            one = st.sampled_from(draw(st.lists(one, min_size=1, max_size=5)))
        column = draw(st.lists(st.none() | one if nulls else one, min_size=size, max_size=size))
        table[name] = arrow_array(column, value_type(kind))
    return pa.table(table)


def windows(type_: pa.DataType, *, days: bool = False) -> SearchStrategy[Window]:
    """Windows that fit a time column of this type; with `days`, calendar windows."""
    measure = Measure("time", type_)
    if days and measure.tick_nanoseconds is not None:
        zones = ["Europe/Berlin", "America/Sao_Paulo", "UTC", None]
        units = ["day", "week", "month", "quarter", "year"]
        dated = pa.types.is_date(type_)
        return st.builds(
            Calendar,
            st.sampled_from(units),
            st.integers(1, 3),
            st.none() if dated else st.sampled_from(zones),
        )
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
    return st.one_of(plain)


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
    fields = dict(columns or {"x": "float"})
    placed = draw(st.lists(windows(time, days=days), min_size=1, max_size=3))
    computed = draw(st.lists(aggregates(fields), min_size=1, max_size=3))
    return wr.query(
        time="time",
        key=[f"key{i}" for i in range(len(key))],
        windows={f"w{i}": window for i, window in enumerate(placed)},
        aggregates={f"a{i}": aggregate for i, aggregate in enumerate(computed)},
    )


@st.composite
def batchings(draw: Any, table: pa.Table) -> list[pa.Table]:
    """The table cut into consecutive batches, some of them empty."""
    cuts = sorted(draw(st.lists(st.integers(0, table.num_rows), max_size=5)))
    edges = [0, *cuts, table.num_rows]
    return [table.slice(a, b - a) for a, b in pairwise(edges)]


@st.composite
def schedules(draw: Any, table: pa.Table, *, behind: int = 20) -> list[tuple[str, Any]]:
    """Steps for an operator: `("process", batch)` and `("advance", tick)`.

    Watermarks never go back; they lie up to `behind` ticks behind the latest event so far.
    """
    steps: list[tuple[str, Any]] = []
    latest: Any = None
    watermark: Any = None
    for batch in draw(batchings(table)):
        steps.append(("process", batch))
        ticks = [t for t in plain_values(batch["time"]) if t is not None]
        if ticks:
            latest = max(ticks) if latest is None else max(latest, *ticks)
        if latest is not None and draw(st.booleans()):
            tick = latest - draw(st.integers(0, behind))
            watermark = tick if watermark is None else max(watermark, tick)
            steps.append(("advance", watermark))
    return steps

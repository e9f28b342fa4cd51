"""A row for each empty window between the first and the last one of a key.

    windows of a key     |--2--|     |     |--1--|          rows that are there: 2
    fill=0               |--2--|--0--|--0--|--1--|          rows that are made: 2
    fill="previous"      |--2--|--2--|--2--|--1--|

Windows of a fixed slide are numbered, those of a calendar looked up, and each row goes to the place of its number: O(rows out).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import LimitError, QueryError
from windrow.measure import Measure
from windrow.outputs.rows import key_codes, measure_of, ticks, window_codes, window_column
from windrow.spec import QuerySpec
from windrow.windows.base import Periodic, Placement, Window, placements

# More rows than this are a mistake, and not an answer.
MOST = 1 << 29


def require_fillable(query: QuerySpec) -> None:
    """An error if some window of a query has no next one by itself."""
    for name, window in query.windows.items():
        if window.layout != "aligned" or window.since is not None:
            raise _not_fillable(name, window)


def _not_fillable(name: str, window: Window) -> QueryError:
    return QueryError(
        f"window {name!r} ({window}) has no empty windows between others that could be filled: "
        "fill is for tumbling, sliding and calendar windows"
    )


def filled(query: QuerySpec, table: pa.Table, value: Any) -> pa.Table:
    """The rows and those of empty windows, by window, key and start; `value` is None, 0 or "previous"."""
    measure = measure_of(query, table)
    keys, count = key_codes(table, query.key)
    windows = window_codes(table, list(query.windows))
    parts = []
    for number, (name, window) in enumerate(query.windows.items()):
        placed = placements(window, measure)
        # Only where windows follow one another without end, each by one start, is it clear which are missing.
        if len(placed) > 1 or not (isinstance(placed[0], Periodic) or placed[0].gapless):
            raise _not_fillable(name, window)
        rows = np.flatnonzero(windows == number)
        if len(rows):
            part = table if len(rows) == len(table) else table.take(pa.array(rows))
            parts.append(_filled(query, part, keys[rows], count, number, placed[0], measure, value))
    return pa.concat_tables(parts) if parts else table


def _filled(
    query: QuerySpec,
    table: pa.Table,
    keys: np.ndarray,
    count: int,
    number: int,
    placed: Placement,
    measure: Measure,
    value: Any,
) -> pa.Table:
    """The rows of one window and those between them."""
    places, starts, ends = numbered(placed, ticks(table, "start", measure))
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    np.minimum.at(low, keys, places)
    np.maximum.at(high, keys, places)
    live = np.flatnonzero(high >= 0)
    sizes = high[live] - low[live] + 1
    total = int(sizes.sum())
    if total > MOST:
        name = list(query.windows)[number]
        raise LimitError(f"to fill the empty windows of {name!r} would make {total:,} rows")
    # Where the windows of a key begin in the result, less the number of its first window.
    shift = np.zeros(count, np.int64)
    shift[live] = np.cumsum(sizes) - sizes - low[live]
    source = np.full(total, -1)
    source[shift[keys] + places] = np.arange(len(table))
    made = source < 0
    one = np.empty(count, np.int64)
    one[keys] = np.arange(len(table))
    group = np.repeat(live, sizes)
    place = np.arange(total) - shift[group]
    carried = pa.array(source, mask=made)
    if value == "previous":
        carried = pa.array(source[np.maximum.accumulate(np.where(made, 0, np.arange(total)))])
    columns: dict[str, pa.Array] = {name: table[name].take(pa.array(one[group])) for name in query.key}
    columns["window"] = window_column(np.full(total, number), list(query.windows))
    columns["start"], columns["end"] = measure.array(starts(place)), measure.array(ends(place))
    for name in (*query.aggregates, *query.select):
        column = table[name].take(carried)
        if value == 0 and _is_number(column.type):
            column = pc.if_else(pa.array(made), pa.scalar(0, column.type), column)
        columns[name] = column
    return pa.table(columns, schema=table.schema)


def numbered(placed: Placement, times: np.ndarray) -> tuple[np.ndarray, Any, Any]:
    """The numbers, from 0 on and ascending in time, of the last windows that begin at or before these times; and functions that give the starts and ends
    of windows with such numbers."""
    if isinstance(placed, Periodic):
        every, offset = placed.every, placed.offset
        numbers = ((times - offset) // every).astype(np.int64)
        if times.dtype.kind == "f":  # a quotient may be off by one in the last bit
            numbers += times >= offset + (numbers + 1) * every
            numbers -= times < offset + numbers * every
        first = numbers.min()
        return (
            numbers - first,
            lambda place: offset + (place + first) * every,
            lambda place: offset + (place + first + placed.whole) * every + placed.rest,
        )
    begins, ends = placed.windows(times.min(), times.max())
    return np.searchsorted(begins, times, side="right") - 1, begins.__getitem__, ends.__getitem__


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))

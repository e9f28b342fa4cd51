"""The windows of each event, aligned with the rows of a table.

Windows of a fixed slide of which an event has one are computed from its time. For all others the query is asked which rows each window holds,
so that a label says what `run` counts.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.sequences import collect
from windrow.engine import bounded
from windrow.engine.intake.columns import ticks_of, whole
from windrow.engine.operator import Operator
from windrow.errors import QueryError
from windrow.expressions.building import is_computed
from windrow.measure import Measure
from windrow.options import OperatorOptions
from windrow.outputs.fill import numbered
from windrow.outputs.rows import in_order, key_codes
from windrow.spec import NOTHING, QuerySpec
from windrow.windows.base import Periodic, Placement, Window, placements


def label(query: QuerySpec, table: pa.Table) -> pa.Table:
    """As `Query.label`, for a table of events."""
    query = replace(query, select=NOTHING)
    if any(map(is_computed, query.time_columns)):
        raise QueryError(
            "the time is an expression: events are labelled by a column of time, so compute it into one before"
        )
    columns: dict[str, Any] = {}
    for name, window in query.windows.items():
        found = _labels(replace(query, windows=MappingProxyType({name: window})), window, table)
        columns |= {
            f"{name}_{part}": column for part, column in zip(("id", "start", "end"), found, strict=True)
        }
    return pa.table(columns)


def _labels(query: QuerySpec, window: Window, table: pa.Table) -> list[Any]:
    """Number, start and end of the window of each event; lists of these where an event may have several."""
    time = query.time_columns[0]
    measure = Measure(time, table.schema.field(time).type)
    is_plain = isinstance(query.time, str) and query.where is None and not query.key_expressions
    if is_plain and window.layout == "aligned" and window.since is None:
        placed = placements(window, measure)
        if len(placed) == 1 and _is_side_by_side(placed[0]):
            return _computed(query, table, measure, placed[0])
    return _asked(query, window, table, measure)


def _is_side_by_side(placed: Placement) -> bool:
    """Whether each instant lies in one window."""
    return (placed.whole, placed.rest) == (1, 0) if isinstance(placed, Periodic) else placed.gapless


def _computed(query: QuerySpec, table: pa.Table, measure: Measure, placed: Placement) -> list[Any]:
    """Of windows side by side, from times and keys."""
    Operator(query, OperatorOptions()).sift(whole(table))  # a bad row is an error
    times, _ = ticks_of(whole(table).column(measure.column), measure)
    if not len(times):
        return [pa.array([], pa.int64()), measure.array(times), measure.array(times)]
    places, starts, ends = numbered(placed, times)
    keys, _ = key_codes(table, query.key)
    # Windows at both ends of int64 are farther apart than it can say, and not than 64 bits can.
    ids = ranks(places.view(np.uint64))
    return [
        pa.array(ranks(keys * (int(ids.max()) + 1) + ids) if query.key else ids),
        measure.array(starts(places)),
        measure.array(ends(places)),
    ]


def ranks(numbers: np.ndarray) -> np.ndarray:
    """Of each number how many different smaller ones there are."""
    most = int(numbers.max()) + 1
    if most > 8 * len(numbers):
        return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    seen = np.zeros(most, np.int64)
    seen[numbers] = 1
    return (np.cumsum(seen) - 1)[numbers]


def _asked(query: QuerySpec, window: Window, table: pa.Table, measure: Measure) -> list[Any]:
    """Of any windows: which rows the query collects in each."""
    number = "row"
    while number in table.column_names:
        number += "_"
    query = replace(query, aggregates=MappingProxyType({"rows": collect(number)}))
    numbered_table = table.append_column(number, pa.array(np.arange(len(table))))
    result = in_order(query, bounded.run(query, numbered_table, on_bad="raise"))
    held = pc.fill_null(result["rows"].combine_chunks(), [])
    of_row = held.flatten().to_numpy(zero_copy_only=False)
    of_window = np.repeat(np.arange(len(result)), np.diff(held.offsets.to_numpy()))
    parts = [pa.array(np.arange(len(result))), *(result[name].combine_chunks() for name in ("start", "end"))]
    if isinstance(query.time, str) and (window.gap is not None or window.gap_column or window.repeats_after):
        source = np.full(len(table), -1)
        source[of_row] = of_window
        return [part.take(pa.array(source, mask=source < 0)) for part in parts]
    order = pa.array(of_window[np.argsort(of_row, kind="stable")])
    counts = np.bincount(of_row, minlength=len(table))
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    return [pa.ListArray.from_arrays(offsets, part.take(order)) for part in parts]

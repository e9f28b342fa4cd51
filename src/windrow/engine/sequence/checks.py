"""What a window asks of its columns: types when a query meets a table, values row by row.

    session("timeout")     timeout    30   null    0    -5    45
                           bad              x      x     x

`check_types` refuses a table; `bad_rows` gives the rows of a batch that a window cannot take, which
are errors or are diverted as the caller wishes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.intake.columns import ticks_of
from windrow.engine.intake.numbers import kind_of, numbers, oversized
from windrow.engine.intake.predicates import Condition
from windrow.engine.sequence.gaps import TOO_LARGE, BadRows, bad_gaps
from windrow.errors import QueryError
from windrow.measure import INT64_MAX, INT64_MIN, Measure
from windrow.schema import require_columns
from windrow.windows.advancing import Advancing
from windrow.windows.base import NOT_PLACED, Window
from windrow.windows.latest import Latest
from windrow.windows.session import Session

# Beyond this many windows from zero, floats no longer tell one window from the next.
FARTHEST = 2.0**52


def check_types(name: str | None, window: Window, schema: pa.Schema, measure: Measure) -> None:
    """A QueryError that names window and column, if the window cannot be computed on such a table."""
    try:
        placed = window.gap or window.gap_column or window.since or window.pointwise
        if window.layout == "sessions" and not placed:
            raise QueryError(f"{type(window).__name__} {NOT_PLACED}")
        require_columns(schema, window.columns)
        for what, size in window.sizes.items():
            if abs(measure.ticks(size, what=what)) > measure.highest:
                raise QueryError(f"{what} {str(size)!r} is longer than {measure.describe()} can express")
        if window.since is not None:
            since = measure.point(window.since, what="since")
            if not measure.lowest <= since <= measure.highest:
                raise QueryError(f"since {since} is beyond what {measure.describe()} can express")
        for column in window.columns:
            if column != measure.column:
                _check_column(window, column, schema.field(column).type, measure)
        for role, predicate in window.predicates.items():
            Condition(predicate, schema, what=role)
    except QueryError as problem:
        shown = f"the window {window}" if name is None else f"window {name!r}"
        raise QueryError(f"{shown}: {problem}") from None


def _check_column(window: Window, column: str, type_: pa.DataType, measure: Measure) -> None:
    problem = window.column_problem(column, type_, measure)
    if problem is None and window.calls_functions and kind_of(type_) is None:
        problem = "; its function can read numbers, times and booleans"
    if problem is not None:
        raise QueryError(f"column {column!r} is of type {type_}{problem}")


def bad_rows(window: Window, batch: pa.RecordBatch, measure: Measure) -> BadRows:
    """Rows that the window cannot take: column, mask and reason of each kind found."""
    if type(window) in ROW_CHECKS:
        return _found(ROW_CHECKS[type(window)](window, batch, measure))
    found: BadRows = []
    for column in window.columns:
        if column != measure.column and _is_number_for(window, column):
            found += _unreadable(column, batch, null=window.calls_functions)
    return _found(found)


def bad_inputs(window: Window, inputs: list[np.ndarray], times: np.ndarray, measure: Measure) -> BadRows:
    """As `bad_rows`, of what the window has read of rows already."""
    if type(window) not in ROW_CHECKS:
        return []
    columns = {measure.column: times} | dict(zip(window.columns, inputs, strict=True))
    return _found(ROW_CHECKS[type(window)](window, pa.record_batch(columns), measure))


def _is_number_for(window: Window, column: str) -> bool:
    """Whether the window reads the column as a 64-bit number, and not through Arrow."""
    predicates = window.predicates.values()
    return not predicates or any(p.function is not None and column in p.columns for p in predicates)


def _found(candidates: BadRows) -> BadRows:
    return [entry for entry in candidates if entry[1].any()]


def _unreadable(column: str, batch: pa.RecordBatch, *, null: bool) -> BadRows:
    """Nulls, if they count as bad, and integers beyond 64 bits with a sign."""
    array = batch.column(column)
    found: BadRows = []
    if null and array.null_count:
        missing = array.is_null().to_numpy(zero_copy_only=False)
        found.append((column, missing, "is null, and a window reads it"))
    large = oversized(array)
    return found if large is None else [*found, (column, large, TOO_LARGE)]


def _bad_looks(window: Latest, batch: pa.RecordBatch, measure: Measure) -> BadRows:
    if not measure.floating:
        return []
    every = float(measure.ticks(window.every, what="every"))
    times, _ = ticks_of(batch.column(measure.column), measure)
    far = np.abs(times) / every > FARTHEST
    return [(measure.column, far, "lies too far from zero for looks so close together")]


def _bad_readings(window: Advancing, batch: pa.RecordBatch, measure: Measure) -> BadRows:
    column = window.column
    array = batch.column(column)
    values, present = numbers(array)
    there = np.ones(len(array), np.bool_) if present is None else present
    found: BadRows = [(column, ~there, "is null, and a window advances with it")]
    if values.dtype.kind == "f":
        found.append((column, there & ~np.isfinite(values), "is not a finite number"))
        there = there & np.isfinite(values)
    large = oversized(array)
    if large is not None:
        return [*found, (column, large, TOO_LARGE)]
    if window.is_whole(array.type):
        # Numbers of windows must fit in 64 bits, with some to spare: only those of length 1 may not.
        far = (values > INT64_MAX // 2) | (values < INT64_MIN // 2)
        if window.every == 1:
            found.append((column, there & far, f"is too large for windows every {window.every}"))
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            far = np.abs(values / window.every) > FARTHEST
        found.append((column, there & far, f"is too large for windows every {window.every}"))
    return found


# Windows that cannot take some numbers of their columns.
ROW_CHECKS: dict[type[Window], Callable[[Any, pa.RecordBatch, Measure], BadRows]] = {
    Session: bad_gaps,
    Advancing: _bad_readings,
    Latest: _bad_looks,
}

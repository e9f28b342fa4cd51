"""What a window asks of its columns: types when a query meets a table, values row by row.

    session("timeout")     timeout    30   null    0    -5    45
                           bad              x      x     x

`check_types` refuses a table; `bad_rows` gives the rows of a batch that a window cannot take, which
are errors or are diverted as the caller wishes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.durations import Duration
from windrow.engine.columns import ticks_of
from windrow.engine.numbers import kind_of, numbers, oversized
from windrow.engine.predicates import Condition
from windrow.engine.sequence.gaps import TOO_LARGE, BadRows, bad_gaps
from windrow.errors import QueryError
from windrow.measure import INT64_MAX, INT64_MIN, Measure
from windrow.schema import require_columns
from windrow.windows.advancing import Advancing
from windrow.windows.base import Window
from windrow.windows.delta import Delta
from windrow.windows.deterministic import Deterministic
from windrow.windows.landmark import Landmark
from windrow.windows.latest import Latest
from windrow.windows.nondeterministic import Nondeterministic
from windrow.windows.punctuated import Punctuated
from windrow.windows.session import Session
from windrow.windows.slide_by_rows import SlideByRows
from windrow.windows.threshold import Threshold

# Beyond this many windows from zero, floats no longer tell one window from the next.
FARTHEST = 2.0**52


def check_types(name: str | None, window: Window, schema: pa.Schema, measure: Measure) -> None:
    """A QueryError that names window and column, if the window cannot be computed on such a table."""
    try:
        require_columns(schema, window.columns)
        _check_sizes(window, measure)
        for column in window.columns:
            if column != measure.column:
                _check_column(window, column, schema.field(column).type, measure)
        _check_predicates(window, schema)
    except QueryError as problem:
        shown = f"the window {window}" if name is None else f"window {name!r}"
        raise QueryError(f"{shown}: {problem}") from None


def _check_sizes(window: Window, measure: Measure) -> None:
    """Durations must be whole ticks of the measure, and no more than there are."""
    sizes: dict[str, Duration | None] = {}
    if isinstance(window, Session):
        sizes = {"gap": window.gap}
    elif isinstance(window, SlideByRows):
        sizes = {"length": window.length}
    elif isinstance(window, Latest):
        sizes = {"every": window.every, "offset": window.offset}
    elif isinstance(window, Landmark):
        sizes = {"every": window.every}
        measure.point(window.since, what="since")
    elif isinstance(window, Threshold):
        sizes = {"at_least": window.at_least}
    for what, size in sizes.items():
        if size is not None and abs(measure.ticks(size, what=what)) > measure.highest:
            raise QueryError(f"{what} {str(size)!r} is longer than {measure.describe()} can express")


def _check_column(window: Window, column: str, type_: pa.DataType, measure: Measure) -> None:
    found = f"column {column!r} is of type {type_}"
    plain = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    if isinstance(window, (Advancing, Delta)) and not plain:
        raise QueryError(f"{found}; an integer or floating-point column is needed")
    if isinstance(window, Delta) and pa.types.is_integer(type_) and window.by >= 2**63:
        raise QueryError(f"{found}, in which nothing can move by more than {window.by}")
    if isinstance(window, (Deterministic, Nondeterministic)) and kind_of(type_) is None:
        raise QueryError(f"{found}; its function can read numbers, times and booleans")
    if not isinstance(window, Session):
        return
    if pa.types.is_duration(type_):
        if measure.tick_nanoseconds is None:
            raise QueryError(f"{found}, but {measure.describe()} is not a time: give gaps as plain numbers")
    elif pa.types.is_floating(type_):
        if not measure.floating:
            raise QueryError(f"{found}; gaps on {measure.describe()} are integers (ticks) or durations")
    elif not pa.types.is_integer(type_):
        raise QueryError(f"{found}; gaps are integers (ticks), durations, or floats where the time is one")


def _check_predicates(window: Window, schema: pa.Schema) -> None:
    if isinstance(window, Threshold):
        Condition(window.where, schema, what="where")
    elif isinstance(window, Punctuated):
        for role in ("where", "start", "end"):
            predicate = getattr(window, role)
            if predicate is not None:
                Condition(predicate, schema, what=role)


def bad_rows(window: Window, batch: pa.RecordBatch, measure: Measure) -> BadRows:
    """Rows that the window cannot take: column, mask and reason of each kind found."""
    if isinstance(window, Session):
        return [] if window.column is None else _found(bad_gaps(window, batch, measure))
    if isinstance(window, Advancing):
        return _found(_bad_readings(window, batch))
    if isinstance(window, Latest) and measure.floating:
        every = float(measure.ticks(window.every, what="every"))
        times, _ = ticks_of(batch.column(measure.column), measure)
        far = np.abs(times) / every > FARTHEST
        return _found([(measure.column, far, "lies too far from zero for looks so close together")])
    found: BadRows = []
    for column in window.columns:
        if column != measure.column and _is_number_for(window, column):
            found += _unreadable(column, batch, null=isinstance(window, (Deterministic, Nondeterministic)))
    return _found(found)


def _is_number_for(window: Window, column: str) -> bool:
    """Whether the window reads the column as a 64-bit number, and not through Arrow."""
    if isinstance(window, Punctuated):
        predicates = window.predicates
    elif isinstance(window, Threshold):
        predicates = (window.where,)
    else:
        return True
    return any(p.function is not None and column in p.columns for p in predicates)


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


def _bad_readings(window: Advancing, batch: pa.RecordBatch) -> BadRows:
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
    sizes = (window.length, window.every, window.offset)
    if values.dtype.kind == "i" and all(isinstance(size, int) for size in sizes):
        # Numbers of windows must fit in 64 bits, with some to spare: only those of length 1 may not.
        far = (values > INT64_MAX // 2) | (values < INT64_MIN // 2)
        if window.every == 1:
            found.append((column, there & far, f"is too large for windows every {window.every}"))
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            far = np.abs(values / window.every) > FARTHEST
        found.append((column, there & far, f"is too large for windows every {window.every}"))
    return found

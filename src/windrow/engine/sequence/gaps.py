"""The gaps of sessions, row by row: how long after an event its session stays open.

    column type                     one of it is
    integer                         a tick of the time column
    duration                        as many ticks as it lasts; a fraction of a tick is refused
    floating point                  a unit of the time column, which must be floating point too

A gap that is null, not finite or not greater than zero makes its row a bad one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.engine.intake.columns import ticks_of
from windrow.engine.intake.numbers import numbers, oversized
from windrow.measure import INT64_MAX, Measure
from windrow.windows.base import Window

BadRows = list[tuple[str, np.ndarray, str]]

TOO_LARGE = "is too large for a 64-bit integer with a sign"
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def gaps_of(session: Window, batch: pa.RecordBatch, measure: Measure) -> np.ndarray:
    """The gap of each row, in ticks; where `bad_gaps` finds fault with a row, any number."""
    if session.gap is not None:
        return np.full(len(batch), measure.ticks(session.gap, what="gap"), measure.dtype)
    array = batch.column(session.gap_column)
    values, _ = numbers(array)
    if not pa.types.is_duration(array.type):
        return values.astype(measure.dtype, copy=False)
    up, down = _scale(array.type, measure)
    return values // down if down > 1 else values * up


def _scale(type_: pa.DataType, measure: Measure) -> tuple[int, int]:
    """By how much durations are multiplied and divided to become ticks; one of them is 1."""
    unit, tick = _NANOSECONDS[type_.unit], measure.tick_nanoseconds
    assert tick is not None
    return (unit // tick, 1) if unit >= tick else (1, tick // unit)


def bad_gaps(session: Window, batch: pa.RecordBatch, measure: Measure) -> BadRows:
    """The rows whose gap is none: column, mask and reason of each kind; masks may be empty of rows."""
    column = session.gap_column
    if column is None:
        return []
    array = batch.column(column)
    values, present = numbers(array)
    fine = np.ones(len(array), np.bool_) if present is None else present
    found: BadRows = [(column, ~fine, "is null, and a session needs its gap")]

    def refuse(wrong: np.ndarray, reason: str) -> None:
        nonlocal fine
        found.append((column, fine & wrong, reason))
        fine = fine & ~wrong

    if values.dtype.kind == "f":
        refuse(~np.isfinite(values), "is not a finite gap")
    large = oversized(array)
    if large is not None:
        refuse(large, TOO_LARGE)
    refuse(values <= 0, "is not a gap: it must be longer than zero")
    beyond = "ends the session beyond what the time column can express"
    if pa.types.is_duration(array.type):
        up, down = _scale(array.type, measure)
        refuse(values % down != 0, f"is finer than the ticks of {measure.describe()}")
        refuse(values > INT64_MAX // up, beyond)
    gaps = gaps_of(session, batch, measure)
    times, _ = ticks_of(batch.column(measure.column), measure)
    if measure.floating:
        refuse(times + gaps >= measure.highest, beyond)
    else:
        # As unsigned numbers, which the distance from the lowest to the highest tick fits into.
        room = np.uint64(measure.highest) - times.view(np.uint64)
        refuse(gaps.view(np.uint64) >= room, beyond)
    return found

"""Checks of the arguments of windows, and their errors."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from windrow.errors import QueryError
from windrow.measure import INT64_MAX, INT64_MIN

MOST_WINDOWS_PER_EVENT = 10_000_000
MOST_ROWS = 2**53


def require_positive(size: object, *, what: str) -> None:
    magnitude = getattr(size, "magnitude", size)
    if not magnitude > 0:  # type: ignore[operator]
        raise QueryError(f"{what} must be longer than zero, not {str(size)!r}")


def require_count(value: object, *, what: str) -> int:
    """A whole number of events, at least one."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise QueryError(f"{what} must be a whole number, not {value!r}")
    if not 1 <= value <= MOST_ROWS:
        raise QueryError(f"{what} must be between 1 and {MOST_ROWS:,}, not {value}")
    return int(value)


def require_number(value: object, *, what: str) -> int | float:
    """A plain, finite number in a column's own unit."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise QueryError(f"{what} must be a plain number in the column's own unit, not {value!r}")
    if isinstance(value, (int, np.integer)):
        if not INT64_MIN <= value <= INT64_MAX:
            raise QueryError(f"{what} {value} is beyond 64-bit integers")
        return int(value)
    if not math.isfinite(value):
        raise QueryError(f"{what} must be finite, not {float(value)!r}")
    return float(value)


def require_column(name: object, *, what: str) -> str:
    """The name of a column."""
    if not isinstance(name, str) or not name:
        raise QueryError(f"{what} is given by the name of a column, not by {name!r}")
    return name


def number_problem(type_: pa.DataType) -> str | None:
    """Why a column of this type holds no plain numbers, as the rest of a sentence; None if it does."""
    plain = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    return None if plain else "; an integer or floating-point column is needed"


def refuse_too_many(windows_per_event: float, *, what: str) -> None:
    """Refuse a window that would hold each event more than ten million times."""
    if windows_per_event > MOST_WINDOWS_PER_EVENT:
        raise QueryError(
            f"{what} puts each event into {int(windows_per_event):,} windows "
            f"(at most {MOST_WINDOWS_PER_EVENT:,} are allowed): slide by more, or take a shorter window"
        )

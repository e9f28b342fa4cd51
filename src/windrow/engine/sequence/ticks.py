"""Arithmetic on ticks that stops at the ends of their range instead of wrapping around.

    after(t)      the next tick: t + 1 on an integer measure, the next float64 on a float measure

Scalar forms are plain functions that are compiled into kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.measure import INT64_MAX, INT64_MIN, Tick


def after_integer(tick):  # type: ignore[no-untyped-def]
    """The next integer tick; the last one has none and stands for itself."""
    return tick + 1 if tick < INT64_MAX else tick


def after_float(tick):  # type: ignore[no-untyped-def]
    """The next float64."""
    return np.nextafter(tick, np.inf)


def after_function(dtype: np.dtype[Any]) -> Any:
    """The scalar `after` for ticks of this dtype."""
    return after_float if dtype.kind == "f" else after_integer


def after(ticks: np.ndarray) -> np.ndarray:
    """The next tick of each."""
    if ticks.dtype.kind == "f":
        return np.nextafter(ticks, np.inf)
    return ticks + (ticks < INT64_MAX)


def last_tick(dtype: np.dtype[Any]) -> Any:
    """The tick that no time is beyond."""
    return dtype.type(np.inf if dtype.kind == "f" else INT64_MAX)


def back(ticks: np.ndarray, length: Tick) -> np.ndarray:
    """`ticks - length` for a positive length, and the lowest tick where that lies below all ticks.

    A float that is too large to be lessened by `length` goes back to the float before it.
    """
    if ticks.dtype.kind == "f":
        return np.minimum(ticks - length, np.nextafter(ticks, -np.inf))
    low = min(INT64_MIN + int(length), INT64_MAX)
    return np.where(ticks < low, INT64_MIN, ticks - np.int64(min(int(length), INT64_MAX)))


def clipped(tick: Tick, dtype: np.dtype[Any]) -> Tick:
    """A tick, perhaps beyond 64 bits, as the nearest one of this dtype."""
    if dtype.kind == "f":
        return float(tick)
    return INT64_MAX if tick >= INT64_MAX else INT64_MIN if tick <= INT64_MIN else int(tick)


def apart(later: np.ndarray, earlier: np.ndarray) -> np.ndarray:
    """`later - earlier`, never negative: as uint64 on an integer measure, so that it cannot overflow."""
    if later.dtype.kind == "f":
        return later - earlier
    return later.view(np.uint64) - earlier.view(np.uint64)

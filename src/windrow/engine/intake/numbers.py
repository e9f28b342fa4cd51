"""Columns as the numbers that window kernels work with.

    bool                                       bool
    integers, timestamps, dates, durations     int64 (ticks of the column's own unit)
    floating point                             float64

Kernels get read-only views throughout: whether a buffer may be written to is part of a type for
Numba, and two kinds of it would be compiled twice.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa

from windrow.engine.intake.columns import raw

Kind = Literal["b", "i", "f"]


def kind_of(type_: pa.DataType) -> Kind | None:
    """How a column of this type is handed to a function; None if it is not."""
    if pa.types.is_boolean(type_):
        return "b"
    if pa.types.is_floating(type_):
        return "f"
    if pa.types.is_integer(type_) or (pa.types.is_temporal(type_) and not pa.types.is_interval(type_)):
        return "i"
    return None


def numbers(array: pa.Array) -> tuple[np.ndarray, np.ndarray | None]:
    """The values, and a mask of those that are there (None if all are); nulls come as zeros."""
    present = None
    if array.null_count:
        present = array.is_valid().to_numpy(zero_copy_only=False)
    return frozen(_values(array)), present


def _values(array: pa.Array) -> np.ndarray:
    kind = array.type
    if pa.types.is_boolean(kind):
        return array.fill_null(False).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(kind):
        if array.null_count:
            array = array.fill_null(pa.scalar(0.0).cast(kind))
        return array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    if kind.bit_width == 64:
        # What a buffer holds where the array is null is anything, but it is a number.
        return raw(array, np.int64)
    if pa.types.is_temporal(kind):
        array = array.view(pa.int32())
    return array.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False)


def frozen(array: np.ndarray) -> np.ndarray:
    """A contiguous, read-only view."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def oversized(array: pa.Array) -> np.ndarray | None:
    """A mask of unsigned integers that do not fit in 64 bits with a sign, or None."""
    if not pa.types.is_uint64(array.type) or not len(array):
        return None
    wrong = raw(array, np.int64) < 0
    if array.null_count:
        wrong &= array.is_valid().to_numpy(zero_copy_only=False)
    return wrong if wrong.any() else None

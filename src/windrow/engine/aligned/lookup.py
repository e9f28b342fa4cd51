"""Finding a place in sorted numbers without a search: a table over equal steps of their range.

The table says, for each step, the last number at or before its beginning (or the first number at
all). From there the right place is usually zero or one comparison away. A table of about as many
steps as numbers (more, where it fits in the first-level cache) costs one pass to build and makes
slicing of disordered events a matter of two loads.

The step of a point is `int((point - base) * scale) >> shift`: for integers scale is 1 and steps are
powers of two, so there is no rounding at all; for floats shift is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.compiling.tiers import jit


@jit
def fill_lookup(values, base, scale, shift, table):  # type: ignore[no-untyped-def]
    """table[b] is the last position whose value lies in a step before b, at least 0."""
    b = 0
    for j in range(1, values.shape[0]):
        step = min(np.int64((values[j] - base) * scale) >> shift, np.int64(table.shape[0] - 1))
        while b <= step:
            table[b] = j - 1
            b += 1
    while b < table.shape[0]:
        table[b] = values.shape[0] - 1
        b += 1


def lookup(values: np.ndarray, low: Any, high: Any) -> tuple[Any, Any, Any, np.ndarray]:
    """(base, scale, shift, table) for `values`, of which most lie between low and high.

    low and high are of the dtype of `values`.
    """
    size = max(len(values), min(16 * len(values), 16384))
    if values.dtype.kind == "f":
        span = high - low
        scale = size / span if span > 0 else values.dtype.type(1.0)
        shift = np.int64(0)
        size += 1
    else:
        span = int(high) - int(low)
        scale = np.int64(1)
        shift = np.int64(max(0, (span // size).bit_length()))
        size = (span >> int(shift)) + 1
    table = np.empty(size, np.int32)
    fill_lookup(values, low, scale, shift, table)
    return low, scale, shift, table


def unguided(values: np.ndarray) -> tuple[Any, Any, Any, np.ndarray]:
    """As `lookup`, of very few values: a table of one step, from which all of them are looked at."""
    one = np.zeros(1, np.int32)
    if values.dtype.kind == "f":
        return values[0], values.dtype.type(0.0), np.int64(0), one
    return values[0], np.int64(1), np.int64(63), one


@jit
def first_not_before(values, point, base, scale, shift, table):  # type: ignore[no-untyped-def]
    """The first position whose value is at or after `point` (the number of values, if none is)."""
    count = values.shape[0]
    step = np.int64((point - base) * scale) >> shift
    j = np.int64(table[min(max(step, 0), table.shape[0] - 1)])
    while j > 0 and values[j - 1] >= point:
        j -= 1
    while j < count and values[j] < point:
        j += 1
    return j

"""Finding a place in sorted numbers without a search: a table over equal steps of their range.

The table says, for each step, the last number at or before it (or the first number at all). From
there the right place is usually zero or one comparison away. A table of twice as many steps as
numbers costs one pass to build and makes slicing of disordered events a matter of two loads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def fill_lookup(values, base, scale, table):  # type: ignore[no-untyped-def]
    """table[b] is the last position whose value is at or before `base + b*scale`, at least 0."""
    j = 0
    last = values.shape[0] - 1
    for b in range(table.shape[0]):
        low = b * scale
        while j < last and values[j + 1] - base <= low:
            j += 1
        table[b] = j


def lookup(values: np.ndarray, low: Any, high: Any) -> tuple[Any, float, np.ndarray]:
    """(base, inverse, table) for points between low and high: begin at `table[(point-base)*inverse]`.

    low and high are of the dtype of `values`, so that differences of large integers stay exact.
    """
    table = np.empty(max(2 * len(values), min(16 * len(values), 16384)) + 1, np.int32)
    span = float(high) - float(low)
    scale = span / len(table) if span > 0 else 1.0
    fill_lookup(values, low, scale, table)
    return low, 1.0 / scale, table


@njit(cache=True, nogil=True)
def first_not_before(values, point, base, inverse, table):  # type: ignore[no-untyped-def]
    """The first position whose value is at or after `point` (the number of values, if none is)."""
    count = values.shape[0]
    j = np.int64(table[np.int64(min(max((point - base) * inverse, 0.0), table.shape[0] - 1.0))])
    while j > 0 and values[j - 1] >= point:
        j -= 1
    while j < count and values[j] < point:
        j += 1
    return j

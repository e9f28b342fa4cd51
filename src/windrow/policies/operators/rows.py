"""Rows of a window, for operators: those of its log in any order, and what all of its subwindows hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.arrays import ranges
from windrow.policies.layout import of

# Numbering the distinct rows takes as long as copying this many times as many.
SPARSE = 16


def taken(log: Any, rows: np.ndarray) -> pa.Table:
    """These rows of a log, which may be in any order and repeat."""
    if len(rows) < 2 or np.all(rows[1:] > rows[:-1]):
        return log.take(rows)
    first, last = int(rows.min()), int(rows.max())
    if last - first < SPARSE * len(rows):
        # A stretch of the log is a slice, and costs next to nothing.
        return log.take(np.arange(first, last + 1)).combine_chunks().take(pa.array(rows - first))
    different, places = np.unique(rows, return_inverse=True)
    return log.take(different).take(pa.array(places))


def contents(window: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The partitions that have a subwindow, in order of creation, and their ranges of the window's `order`."""
    numbers = window.subwindows.live()
    table = window.subwindows.table
    return numbers, table[numbers, of.HEAD], table[numbers, of.TAIL]


def held(window: Any) -> np.ndarray:
    """The rows of the log that the window holds, in the order in which they came."""
    _, low, high = contents(window)
    return np.sort(window.order[ranges(low, high)])

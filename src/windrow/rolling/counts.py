"""How many values the last rows have, where some are null: running counts, kept in a ring.

present     1 1 0 1 0 1
running     1 2 2 3 3 4        the last 4 rows have 4 - 2 = 2 values
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from windrow.compiling.tiers import jit
from windrow.rolling.rings import parts, saved
from windrow.stores.base import power_of_two


@jit
def count(present, seen, size, every, running, out):  # type: ignore[no-untyped-def]
    """Go on from row `seen`; into `out` the values of each window of `size` rows that ends, every `every` rows."""
    mask = running.shape[0] - 1
    made = 0
    for i in range(present.shape[0]):
        row = seen + i + 1
        running[row & mask] = running[(row - 1) & mask] + present[i]
        if row >= size and (row - size) % every == 0:
            out[made] = running[row & mask] - running[(row - size) & mask]
            made += 1


def running_counts(size: int, seen: int) -> np.ndarray:
    """A ring for windows of `size` rows, after `seen` rows without a null."""
    running = np.empty(power_of_two(size + 1), np.int64)
    rows = np.arange(max(0, seen - size), seen + 1)
    running[rows & (len(running) - 1)] = rows
    return running


class Counts:
    """How many values each window of `size` rows has, every `every` rows; counted from the first null on."""

    def __init__(self, size: int, every: int = 1) -> None:
        self._size = size
        self._every = every
        self._running: np.ndarray | None = None

    @property
    def are_known(self) -> bool:
        """Whether no row was null so far, so that each window has as many values as rows."""
        return self._running is None

    @contextmanager
    def counted(self, present: np.ndarray | None, rows: int, seen: int, windows: int) -> Iterator[np.ndarray]:
        """The counts of the windows that end with these rows; rows are taken in if all goes well until the end."""
        before = self._running
        if present is None and before is None:
            yield np.full(windows, self._size)
            return
        running = running_counts(self._size, seen) if before is None else before
        put_back = saved([running], parts(len(running), [(seen + 1, seen + rows + 1)]))
        n = np.empty(windows, np.int64)
        try:
            count(
                np.ones(rows, bool) if present is None else present, seen, self._size, self._every, running, n
            )
            self._running = running
            yield n
        except BaseException:
            put_back()
            self._running = before
            raise

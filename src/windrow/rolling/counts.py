"""How many values the last rows have, where some are null: running counts, kept in a ring.

present     1 1 0 1 0 1
running     1 2 2 3 3 4        the last 4 rows have 4 - 2 = 2 values
"""

from __future__ import annotations

import numpy as np

from windrow.engine.cache import jit
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

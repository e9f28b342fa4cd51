"""Small things that NumPy does not have, or does slowly."""

from __future__ import annotations

import numpy as np


def ranges(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """low[0] .. high[0]-1, low[1] .. high[1]-1, and so on."""
    size = high - low
    ends = np.cumsum(size)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(low - ends + size, size)


def different(numbers: np.ndarray, limit: int) -> np.ndarray:
    """The different ones of numbers in 0 .. limit-1, ascending: by a table if they are many."""
    if 16 * len(numbers) > limit:
        flags = np.zeros(limit, bool)
        flags[numbers] = True
        return np.flatnonzero(flags)
    numbers = np.sort(numbers)
    new = np.ones(len(numbers), bool)
    new[1:] = numbers[1:] != numbers[:-1]
    return numbers[new]

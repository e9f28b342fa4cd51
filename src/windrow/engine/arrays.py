"""Small things that NumPy does not have, or does slowly."""

from __future__ import annotations

import numpy as np

from windrow.compiling.tiers import jit


def ranges(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """low[0] .. high[0]-1, low[1] .. high[1]-1, and so on."""
    size = high - low
    ends = np.cumsum(size)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(low - ends + size, size)


def distances(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """How far it is from starts to ends, as floats; without a sign on the way, because it need not be an int64."""
    if starts.dtype.kind != "f":
        starts, ends = starts.astype(np.uint64), ends.astype(np.uint64)
    return (ends - starts).astype(np.float64)


def different(numbers: np.ndarray, limit: int) -> np.ndarray:
    """The different ones of numbers in 0 .. limit-1, ascending: by a table if they are many."""
    if 16 * len(numbers) > limit:
        flags = np.zeros(limit, bool)
        flags[numbers] = True
        return np.flatnonzero(flags)
    return ascending(numbers)


def ascending(*parts: np.ndarray) -> np.ndarray:
    """The different ones of all numbers, ascending: O(numbers) if each part is so already, which np.unique is not."""
    numbers = np.sort(np.concatenate(parts), kind="stable")
    new = np.ones(len(numbers), bool)
    new[1:] = numbers[1:] != numbers[:-1]
    return numbers[new]


@jit
def follow_one_another(numbers):  # type: ignore[no-untyped-def]
    """Whether each number is one more than the number before."""
    so_far = True
    for i in range(1, numbers.shape[0]):
        so_far &= numbers[i] == numbers[i - 1] + 1
    return so_far


@jit
def fill_rows(matrix, rows, value):  # type: ignore[no-untyped-def]
    """Write a value to whole rows of a matrix."""
    for i in range(rows.shape[0]):
        for j in range(matrix.shape[1]):
            matrix[rows[i], j] = value


def as_run(numbers: np.ndarray) -> np.ndarray | slice:
    """The same places as a slice, if they follow one another: much faster to read and to write.

    >>> as_run(np.array([4, 5, 6])), as_run(np.array([4, 6]))
    (slice(4, 7, None), array([4, 6]))
    """
    if not len(numbers) or numbers[-1] - numbers[0] != len(numbers) - 1 or not follow_one_another(numbers):
        return numbers
    return slice(int(numbers[0]), int(numbers[-1]) + 1)


def cells_of(rows: np.ndarray, width: int) -> np.ndarray | slice:
    """The places of whole rows in a matrix of this width that lies flat."""
    run = as_run(rows)
    if isinstance(run, slice):
        return slice(run.start * width, run.stop * width)
    return (rows[:, None] * width + np.arange(width)).ravel()

"""KLL: quantiles of any number of values from a few hundred of them, with a bounded error in rank.

A stack of levels; an item of level `h` stands for `2**h` values. When the sketch is full, the lowest
full level is sorted and every other item of it moves one level up, the rest is dropped:

    level 2 (weight 4)    . . . . . . . .        capacity k
    level 1 (weight 2)    . . . . .              2/3 of it
    level 0 (weight 1)    . . .   <- values      2/3 of that, and at least 8

Karnin, Lang, Liberty: Optimal Quantile Approximation in Streams (FOCS 2016). The paper tosses a coin
for odd or even; here each level takes turns, as the second of each pair of tosses does in Ivkin,
Liberty, Lang, Karnin, Braverman: Streaming Quantiles Algorithms with Small Space and Update Time
(2019), and the turn is kept in the sketch: the same values in the same order always give the same
answer. Another order, or another way of merging, gives another answer within the error.

With coins the error in rank at `k=200` is below 1.65 % of the values in 99 of 100 sketches (Apache
DataSketches). With turns nothing is left to chance and nothing is proven: the tests hold it to the
same figure on sorted, random, heavy-tailed and repeated data, one sketch or thousands merged.

Until the sketch has been full once nothing is dropped and answers are exact; the smallest and the
largest value always are. NaN is the greatest value, infinities are ordinary ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import (
    Aggregate,
    Algebra,
    Bound,
    Field,
    Sketch,
    columns_read,
    numeric_kind,
    unscaled,
    whole_number,
)
from windrow.aggregates.numerics import greater
from windrow.aggregates.quantile import checked_q
from windrow.expressions import ColumnLike

# With 48 levels even the smallest sketch has room for 8 * 2**47 values, years of the fastest stream.
LEVELS = 48
SMALLEST_LEVEL = 8
SHRINK = 2.0 / 3.0

# Places in the `state` of a sketch. Turns are one bit per level: whether odd items move up next.
USED, HEIGHT, LIMIT, TURNS = 0, 1, 2, 3


def size_of_items(k: int) -> int:
    """Room for the capacities of all levels: a geometric series, and 8 for each rounding or minimum."""
    return 3 * k + SMALLEST_LEVEL * LEVELS


def k_of(items):  # type: ignore[no-untyped-def]
    """The parameter of a sketch, from the size of its array."""
    return (len(items) - SMALLEST_LEVEL * LEVELS) // 3


def capacity(k, height, level):  # type: ignore[no-untyped-def]
    """How many items a level may hold in a sketch of `height` levels."""
    return max(SMALLEST_LEVEL, np.int64(math.ceil(k * SHRINK ** (height - 1 - level))))


def set_height(state, k, height):  # type: ignore[no-untyped-def]
    """Note the number of levels, and how many items they may hold together."""
    limit = 0
    for level in range(height):
        limit += capacity(k, height, level)
    state[HEIGHT] = height
    state[LIMIT] = limit


def compact(items, sizes, state, k):  # type: ignore[no-untyped-def]
    """Halve the lowest full level of a sketch that holds at least `LIMIT` items.

    The levels lie in `items` one after the other, the highest first, so that values are appended to
    level 0 and a new level on top moves nothing. An odd item out stays in its level.
    """
    height = state[HEIGHT]
    level = 0
    begin = state[USED] - sizes[0]
    while sizes[level] < capacity(k, height, level):
        level += 1
        begin -= sizes[level]
    if level == height - 1:
        set_height(state, k, height + 1)
    size = sizes[level]
    segment = items[begin : begin + size]
    segment.sort()
    turn = (state[TURNS] >> level) & 1
    state[TURNS] ^= np.int64(1) << level
    pairs = size // 2
    for i in range(pairs):
        segment[i] = segment[2 * i + turn]
    if size > 2 * pairs:
        segment[pairs] = segment[size - 1]
    for i in range(begin + size, state[USED]):
        items[i - pairs] = items[i]
    sizes[level] = size - 2 * pairs
    sizes[level + 1] += pairs
    state[USED] -= pairs


def append(items, sizes, state, value):  # type: ignore[no-untyped-def]
    """Add a value of weight 1."""
    k = k_of(items)
    if state[HEIGHT] == 0:
        set_height(state, k, 1)
    if state[USED] >= state[LIMIT]:
        compact(items, sizes, state, k)
    items[state[USED]] = value
    sizes[0] += 1
    state[USED] += 1


def insert(items, sizes, state, least, greatest, x):  # type: ignore[no-untyped-def]
    value = float(x) + 0.0
    if greater(least[0], value):
        least[0] = value
    if greater(value, greatest[0]):
        greatest[0] = value
    append(items, sizes, state, value)


def absorb(  # type: ignore[no-untyped-def]
    items,
    sizes,
    state,
    least,
    greatest,
    other_items,
    other_sizes,
    other_state,
    other_least,
    other_greatest,
):
    """Level by level; a sketch of one level is a list of values and is inserted as such."""
    if greater(least[0], other_least[0]):
        least[0] = other_least[0]
    if greater(other_greatest[0], greatest[0]):
        greatest[0] = other_greatest[0]
    if other_state[HEIGHT] <= 1:
        for i in range(other_state[USED]):
            append(items, sizes, state, other_items[i])
        return
    used = state[USED] + other_state[USED]
    height = max(state[HEIGHT], other_state[HEIGHT])
    both = np.empty(used)
    place = 0
    i = 0
    j = 0
    for level in range(height - 1, -1, -1):
        for _ in range(sizes[level]):
            both[place] = items[i]
            place += 1
            i += 1
        for _ in range(other_sizes[level]):
            both[place] = other_items[j]
            place += 1
            j += 1
        sizes[level] += other_sizes[level]
    k = k_of(items)
    set_height(state, k, height)
    state[USED] = used
    state[TURNS] ^= other_state[TURNS]
    while state[USED] >= state[LIMIT]:
        compact(both, sizes, state, k)
    for i in range(state[USED]):
        items[i] = both[i]


def select(items, sizes, state, least, greatest, n, q):  # type: ignore[no-untyped-def]
    """The item whose weight covers rank `q * (n - 1)`, counted from 0; the sketch stays as it is."""
    if q <= 0.0:
        return least[0]
    if q >= 1.0:
        return greatest[0]
    used = state[USED]
    weights = np.empty(used, np.int64)
    place = 0
    for level in range(state[HEIGHT] - 1, -1, -1):
        for _ in range(sizes[level]):
            weights[place] = np.int64(1) << level
            place += 1
    order = np.argsort(items[:used])
    position = q * (n - 1)
    covered = 0
    for i in range(used):
        covered += weights[order[i]]
        if covered > position:
            return items[order[i]]
    return greatest[0]


def sound(
    items: np.ndarray, sizes: np.ndarray, state: np.ndarray, least: np.ndarray, greatest: np.ndarray
) -> np.ndarray:
    """Whether the levels of each sketch lie within its items, and its limit is that of its height."""
    used, height, limit = state[:, USED], state[:, HEIGHT], state[:, LIMIT]
    fine = (sizes >= 0).all(axis=1) & (sizes.sum(axis=1) == used) & (used <= items.shape[1])
    fine &= (height >= 0) & (height < LEVELS)
    fine &= ~((sizes > 0) & (np.arange(LEVELS) >= height[:, None])).any(axis=1)
    k = k_of(items[0]) if len(items) else 0
    limits = [sum(int(capacity(k, h, level)) for level in range(h)) for h in range(LEVELS)]
    return fine & (limit == np.array(limits)[np.clip(height, 0, LEVELS - 1)])


@cache
def partial(k: int) -> Sketch:
    """One sketch per `k`. NaN is neutral in a minimum, because it is the greatest."""
    return Sketch(
        f"KLL k={k}",
        (
            Field("items", "f", 0.0, width=size_of_items(k)),
            Field("sizes", "i", 0, width=LEVELS),
            Field("state", "i", 0, width=4),
            Field("least", "f", float("nan"), width=1),
            Field("greatest", "f", float("-inf"), width=1),
        ),
        insert,
        absorb,
        sound,
    )


@cache
def lower_at(q: float) -> Callable[..., Any]:
    """The function that selects the q-quantile."""

    def lower(items, sizes, state, least, greatest, n):  # type: ignore[no-untyped-def]
        if n == 0:
            return 0.0, False
        return select(items, sizes, state, least, greatest, n, q), True

    return lower


@dataclass(frozen=True)
class KllQuantile(Aggregate):
    """About the q-quantile, by a KLL sketch."""

    columns: tuple[str, ...]
    q: float
    k: int
    algebra = Algebra("algebraic")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = numeric_kind(types[0], what=str(self))
        return Bound(partial(self.k), (kind,), pa.float64(), lower_at(self.q), ("f",), unscaled(types[0]))

    def __str__(self) -> str:
        return f"kll_quantile({self.columns[0]}, {self.q!r}, k={self.k})"


def kll_quantile(
    column: ColumnLike, q: float, *, k: int = 200, where: ColumnLike | None = None
) -> KllQuantile:
    """A value whose rank is near `q * (n - 1)`, by a KLL sketch.

    All quantiles of a column with the same `k` share one sketch. `quantile` is exact, and `tdigest_quantile`
    is closest near 0 and 1.

    Parameters
    ----------
    column
        A numeric column.
    q
        Which quantile, from 0 to 1.
    k
        From 8 to 65535, 200 by default. The error in rank stays below about 1.65 % at 200 and shrinks almost
        as `1 / k`.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    KllQuantile
        An aggregate of type float64: null where the window holds no value.

    Raises
    ------
    QueryError
        If `q` is no number from 0 to 1, or `k` no whole number from 8 to 65535.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.kll_quantile("delay", 0.9))
    'kll_quantile(delay, 0.9, k=200)'
    """
    k = whole_number(k, what="k", least=SMALLEST_LEVEL, most=65535)
    return KllQuantile(columns_read(column, where=where), checked_q(q), k)

"""The t-digest: quantiles from weighted means that are finest at both ends of the distribution.

Sorted values are gathered into centroids (mean, weight). How much one may hold depends on where it
lies: a scale function allows many values in the middle and few at the ends, so the 99.9th percentile
is known far better, in rank, than the median:

    weight      1  2  5  12  25  40  48  40  25  12  5  2  1
    quantile    0 ----------------- 0.5 ------------------ 1

Dunning, Ertl: Computing Extremely Accurate Quantiles Using t-Digests (2019); this is its merging
digest with the scale function k1. New values wait in a buffer that is sorted and merged when it is
full; until then answers equal those of `quantile`. Afterwards they are interpolated between the
centres of two centroids, so they need not be values of the column, and on data of few different
values may lie between two of them. There is no proven bound on the error.

Infinities and NaN are counted apart from the centroids, so they spoil no mean: -inf comes before all
other values, then the finite ones, inf, and NaN as the greatest. Another order of the values, or of
merging, gives slightly another answer.
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
from windrow.aggregates.quantile import checked_q
from windrow.expressions import ColumnLike

# Of two neighbours the scale function lets at most one be small, so compression + 1 centroids suffice.
SPARE = 8

# Places in the `state` of a digest.
CENTROIDS, BUFFERED, LOWEST, HIGHEST, NANS = 0, 1, 2, 3, 4


def blend(a, b, share):  # type: ignore[no-untyped-def]
    """The number that lies `share` of the way from `a` to `b`, both finite; never outside of them."""
    distance = b - a
    if distance - distance != 0.0:
        return a * (1.0 - share) + b * share
    value = a + distance * share
    return min(max(value, min(a, b)), max(a, b))


def next_limit(share, compression):  # type: ignore[no-untyped-def]
    """How far a centroid that begins at quantile `share` may reach: one unit further in k1."""
    angle = math.asin(2.0 * share - 1.0) + 2.0 * math.pi / compression
    if angle >= 0.5 * math.pi:
        return 1.0
    return 0.5 * (math.sin(angle) + 1.0)


def merge_sorted(  # type: ignore[no-untyped-def]
    means, weights, state, other_means, other_weights, other_count
):
    """Merge sorted centroids with those of the digest, and gather them anew in one pass."""
    count = state[CENTROIDS]
    many = count + other_count
    if many == 0:
        return
    all_means = np.empty(many)
    all_weights = np.empty(many)
    total = 0.0
    i = 0
    j = 0
    for place in range(many):
        if j == other_count or (i < count and means[i] <= other_means[j]):
            all_means[place] = means[i]
            all_weights[place] = weights[i]
            i += 1
        else:
            all_means[place] = other_means[j]
            all_weights[place] = other_weights[j]
            j += 1
        total += all_weights[place]
    compression = len(means) - SPARE
    current = 0
    means[0] = all_means[0]
    weights[0] = all_weights[0]
    before = 0.0
    limit = total * next_limit(0.0, compression)
    for place in range(1, many):
        weight = weights[current] + all_weights[place]
        if before + weight <= limit or current == len(means) - 1:
            means[current] = blend(means[current], all_means[place], all_weights[place] / weight)
            weights[current] = weight
        else:
            before += weights[current]
            limit = total * next_limit(min(before / total, 1.0), compression)
            current += 1
            means[current] = all_means[place]
            weights[current] = all_weights[place]
    state[CENTROIDS] = current + 1


def flush(means, weights, buffer, state):  # type: ignore[no-untyped-def]
    """Merge the buffer into the centroids."""
    buffered = state[BUFFERED]
    waiting = buffer[:buffered]
    waiting.sort()
    merge_sorted(means, weights, state, waiting, np.ones(buffered), buffered)
    state[BUFFERED] = 0


def insert(means, weights, buffer, state, least, greatest, x):  # type: ignore[no-untyped-def]
    value = float(x) + 0.0
    if value != value:
        state[NANS] += 1
    elif value == np.inf:
        state[HIGHEST] += 1
    elif value == -np.inf:
        state[LOWEST] += 1
    else:
        least[0] = min(least[0], value)
        greatest[0] = max(greatest[0], value)
        if state[BUFFERED] == len(buffer):
            flush(means, weights, buffer, state)
        buffer[state[BUFFERED]] = value
        state[BUFFERED] += 1


def absorb(  # type: ignore[no-untyped-def]
    means,
    weights,
    buffer,
    state,
    least,
    greatest,
    other_means,
    other_weights,
    other_buffer,
    other_state,
    other_least,
    other_greatest,
):
    """First the other's centroids, then the values that wait in its buffer."""
    least[0] = min(least[0], other_least[0])
    greatest[0] = max(greatest[0], other_greatest[0])
    for place in (LOWEST, HIGHEST, NANS):
        state[place] += other_state[place]
    if state[CENTROIDS] == 0:
        for i in range(other_state[CENTROIDS]):
            means[i] = other_means[i]
            weights[i] = other_weights[i]
        state[CENTROIDS] = other_state[CENTROIDS]
    elif other_state[CENTROIDS] > 0:
        merge_sorted(means, weights, state, other_means, other_weights, other_state[CENTROIDS])
    for i in range(other_state[BUFFERED]):
        if state[BUFFERED] == len(buffer):
            flush(means, weights, buffer, state)
        buffer[state[BUFFERED]] = other_buffer[i]
        state[BUFFERED] += 1


def interpolate(means, weights, count, least, greatest, position):  # type: ignore[no-untyped-def]
    """The value at a rank (from 0, not necessarily whole): centroids stand for the middle of theirs."""
    before = 0.0
    last_centre = 0.0
    last_mean = least
    for i in range(count):
        centre = before + 0.5 * (weights[i] - 1.0)
        if position <= centre:
            if centre == last_centre:
                return means[i]
            return blend(last_mean, means[i], (position - last_centre) / (centre - last_centre))
        before += weights[i]
        last_centre = centre
        last_mean = means[i]
    end = before - 1.0
    if position >= end or last_centre >= end:
        return greatest
    return blend(last_mean, greatest, (position - last_centre) / (end - last_centre))


def select(means, weights, buffer, state, least, greatest, n, q):  # type: ignore[no-untyped-def]
    """The q-quantile at rank `q * (n - 1)`; the digest stays as it is."""
    position = q * (n - 1)
    if position < state[LOWEST]:
        return -np.inf
    finite = n - state[LOWEST] - state[HIGHEST] - state[NANS]
    position -= state[LOWEST]
    if position > finite - 1:
        return np.inf if math.ceil(position) < finite + state[HIGHEST] else np.nan
    if state[CENTROIDS] == 0:
        values = np.sort(buffer[: state[BUFFERED]])
        return interpolate(values, np.ones(len(values)), len(values), least[0], greatest[0], position)
    means, weights, buffer, state = means.copy(), weights.copy(), buffer.copy(), state.copy()
    flush(means, weights, buffer, state)
    return interpolate(means, weights, state[CENTROIDS], least[0], greatest[0], position)


def sound(
    means: np.ndarray, weights: np.ndarray, buffer: np.ndarray, state: np.ndarray, *ends: Any
) -> np.ndarray:
    """Whether the numbers of centroids and of buffered values of each digest lie within its arrays."""
    fine = (state >= 0).all(axis=1)
    return fine & (state[:, CENTROIDS] <= means.shape[1]) & (state[:, BUFFERED] <= buffer.shape[1])


@cache
def partial(compression: int) -> Sketch:
    """One sketch per compression."""
    return Sketch(
        f"t-digest compression={compression}",
        (
            Field("means", "f", 0.0, width=compression + SPARE),
            Field("weights", "f", 0.0, width=compression + SPARE),
            Field("buffer", "f", 0.0, width=2 * compression),
            Field("state", "i", 0, width=5),
            Field("least", "f", float("inf"), width=1),
            Field("greatest", "f", float("-inf"), width=1),
        ),
        insert,
        absorb,
        sound,
    )


@cache
def lower_at(q: float) -> Callable[..., Any]:
    """The function that selects the q-quantile."""

    def lower(means, weights, buffer, state, least, greatest, n):  # type: ignore[no-untyped-def]
        if n == 0:
            return 0.0, False
        return select(means, weights, buffer, state, least, greatest, n, q), True

    return lower


@dataclass(frozen=True)
class TDigestQuantile(Aggregate):
    """About the q-quantile, by a t-digest."""

    columns: tuple[str, ...]
    q: float
    compression: int
    algebra = Algebra("algebraic")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = numeric_kind(types[0], what=str(self))
        return Bound(
            partial(self.compression),
            (kind,),
            pa.float64(),
            lower_at(self.q),
            ("f",),
            unscaled(types[0]),
        )

    def __str__(self) -> str:
        return f"tdigest_quantile({self.columns[0]}, {self.q!r}, compression={self.compression})"


def tdigest_quantile(
    column: ColumnLike, q: float, *, compression: int = 100, where: ColumnLike | None = None
) -> TDigestQuantile:
    """About the q-quantile, by a t-digest, which is closest near 0 and 1.

    All quantiles of a column with the same `compression` share one digest. `quantile` is exact.

    Parameters
    ----------
    column
        A numeric column.
    q
        Which quantile, from 0 to 1.
    compression
        About how many centroids are kept, from 20 to 10000; 100 by default. More are closer.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    TDigestQuantile
        An aggregate of type float64: null where the window holds no value.

    Raises
    ------
    QueryError
        If `q` is no number from 0 to 1, or `compression` no whole number from 20 to 10000.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.tdigest_quantile("delay", 0.99))
    'tdigest_quantile(delay, 0.99, compression=100)'
    """
    compression = whole_number(compression, what="compression", least=20, most=10000)
    return TDigestQuantile(columns_read(column, where=where), checked_q(q), compression)

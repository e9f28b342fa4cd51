"""The moments sketch: count, extremes and power sums, from which a distribution can be rebuilt.

A handful of numbers per slice, merged by addition, tell mean, variance, skewness and kurtosis, and
let a solver of maximum entropy estimate any quantile: Gan, Ding, Tai, Sharan, Bailis: Moment-Based
Quantile Sketches for Efficient High Cardinality Aggregation Queries (VLDB 2018). windrow keeps and
returns the sketch; solving is left to its reader.

    result    [ count, min, max, sum x, sum x**2, ..., sum x**k ]

Each power sum is carried with what its roundings lost (Neumaier). At most 16 powers: beyond that
float64 holds no more information on the shape (section 4.3.2 of the paper). The sums follow IEEE
arithmetic, so an infinity or a NaN shows in the sums of the windows that hold it, and in no other;
in `min` and `max` NaN is the greatest number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Algebra, Bound, Field, Sketch, numeric_kind, scale_of
from windrow.aggregates.numerics import greater, two_sum
from windrow.errors import QueryError


def insert(least, greatest, powers, lost, x):  # type: ignore[no-untyped-def]
    value = float(x) + 0.0
    if greater(least[0], value):
        least[0] = value
    if greater(value, greatest[0]):
        greatest[0] = value
    power = 1.0
    for i in range(len(powers)):
        power *= value
        powers[i], error = two_sum(powers[i], power)
        lost[i] += error


def absorb(  # type: ignore[no-untyped-def]
    least, greatest, powers, lost, other_least, other_greatest, other_powers, other_lost
):
    if greater(least[0], other_least[0]):
        least[0] = other_least[0]
    if greater(other_greatest[0], greatest[0]):
        greatest[0] = other_greatest[0]
    for i in range(len(powers)):
        powers[i], error = two_sum(powers[i], other_powers[i])
        lost[i] += other_lost[i] + error


@cache
def partial(k: int) -> Sketch:
    """One sketch per number of powers. NaN is neutral in a minimum, because it is the greatest."""
    return Sketch(
        f"moments k={k}",
        (
            Field("least", "f", float("nan"), width=1),
            Field("greatest", "f", float("-inf"), width=1),
            Field("powers", "f", 0.0, width=k),
            Field("lost", "f", 0.0, width=k),
        ),
        insert,
        absorb,
    )


@dataclass(frozen=True)
class Moments(Aggregate):
    """See `moments`."""

    columns: tuple[str, ...]
    k: int
    algebra = Algebra("algebraic")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = numeric_kind(types[0], what=str(self))
        scale = scale_of(types[0])

        def build(fields: list[np.ndarray], n: np.ndarray, decoders: Any) -> pa.Array:
            defined = n > 0
            least, greatest, powers, lost = (field[defined] for field in fields)
            with np.errstate(invalid="ignore", over="ignore"):
                sums = np.where(np.isfinite(powers), powers + lost, powers)
            scales = scale ** np.arange(1.0, self.k + 1.0)
            count = n[defined].astype(np.float64)[:, None]
            rows = np.hstack([count, least / scale, greatest / scale, sums / scales])
            offsets = np.concatenate([[0], np.cumsum(defined) * (self.k + 3)])
            mask = None if defined.all() else pa.array(~defined)
            return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(rows.ravel()), mask=mask)

        return Bound(partial(self.k), (kind,), pa.list_(pa.float64()), build=build)

    def __str__(self) -> str:
        return f"moments({self.columns[0]}, k={self.k})"


def moments(column: str, *, k: int = 10) -> Moments:
    """A list of `k + 3` numbers: count, min, max, and the sums of `x`, `x**2`, ..., `x**k`.

    >>> import windrow as wr
    >>> str(wr.moments("delay", k=4))
    'moments(delay, k=4)'
    """
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= 16:
        raise QueryError(f"k must be a whole number from 1 to 16, not {k!r}")
    return Moments((column,), k)

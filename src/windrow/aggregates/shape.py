"""Skewness and kurtosis: the third and the fourth moment about the mean.

One partial for both: count, mean, and the sums of the second to the fourth power of deviations, which are merged without the values (Pébay,
*Formulas for Robust, One-Pass Parallel Computation of Covariances and Arbitrary-Order Statistical Moments*, 2008).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import (
    Aggregate,
    Algebra,
    Bound,
    Field,
    Scalars,
    columns_read,
    numeric_kind,
    plain,
)
from windrow.expressions import ColumnLike


def lift(x):  # type: ignore[no-untyped-def]
    return 1.0, float(x), 0.0, 0.0, 0.0


def combine(a, b):  # type: ignore[no-untyped-def]
    if a[0] == 0.0:
        return b
    if b[0] == 0.0:
        return a
    na, nb = a[0], b[0]
    n = na + nb
    d = b[1] - a[1]
    e = d / n
    second = a[2] + b[2] + d * e * na * nb
    third = a[3] + b[3] + d * e * e * na * nb * (na - nb) + 3.0 * e * (na * b[2] - nb * a[2])
    fourth = a[4] + b[4] + d * e * e * e * na * nb * (na * na - na * nb + nb * nb)
    fourth += 6.0 * e * e * (na * na * b[2] + nb * nb * a[2]) + 4.0 * e * (na * b[3] - nb * a[3])
    return n, a[1] + e * nb, second, third, fourth


def lower_skewness(a, n):  # type: ignore[no-untyped-def]
    if n < 1 or a[2] == 0.0:
        return 0.0, False
    if a[1] - a[1] != 0.0:
        return np.nan, True
    return math.sqrt(a[0]) * a[3] / (a[2] * math.sqrt(a[2])), True


def lower_kurtosis(a, n):  # type: ignore[no-untyped-def]
    if n < 1 or a[2] == 0.0:
        return 0.0, False
    if a[1] - a[1] != 0.0:
        return np.nan, True
    return a[0] * a[4] / (a[2] * a[2]) - 3.0, True


MOMENTS = Scalars(
    "four moments",
    tuple(Field(name, "f", 0.0) for name in ("count", "mean", "second", "third", "fourth")),
    lift,
    combine,
)


@dataclass(frozen=True)
class Shape(Aggregate):
    """How values are spread: `name` is "skewness" or "kurtosis"."""

    name: str
    columns: tuple[str, ...]
    algebra = Algebra("algebraic")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        # Neither depends on the unit, so decimals need no scale.
        kind = numeric_kind(types[0], what=str(self))
        lower = lower_skewness if self.name == "skewness" else lower_kurtosis
        return Bound(MOMENTS, (kind,), pa.float64(), lower, ("f",), plain(pa.float64()))


def skewness(column: ColumnLike, *, where: ColumnLike | None = None) -> Shape:
    """The skewness of a population: negative where the left tail is longer, 0 where both are alike.

    It takes the third power of deviations, which floats hold for deviations between 1e-95 and 1e95: what is beyond is imprecise, or NaN.

    Parameters
    ----------
    column
        A numeric column.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Shape
        An aggregate of type float64: null where the values do not vary, NaN where one is not finite.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.skewness("delay"))
    'skewness(delay)'
    """
    return Shape("skewness", columns_read(column, where=where))


def kurtosis(column: ColumnLike, *, where: ColumnLike | None = None) -> Shape:
    """The excess kurtosis of a population: how heavy its tails are, 0 for those of a normal distribution.

    It takes the fourth power of deviations, which floats hold for deviations between 1e-70 and 1e70: what is beyond is imprecise, or NaN.

    Parameters
    ----------
    column
        A numeric column.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Shape
        An aggregate of type float64: null where the values do not vary, NaN where one is not finite.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.kurtosis("delay"))
    'kurtosis(delay)'
    """
    return Shape("kurtosis", columns_read(column, where=where))

"""Variance and standard deviation from (count, mean, squared deviations).

Partials are merged by Chan's formula, never subtracted, so a window's variance does not depend
on what came before it; it is never negative, and exactly 0 where all values are equal.
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
    unscaled,
)
from windrow.aggregates.numerics import merge_moments, moments
from windrow.errors import QueryError
from windrow.expressions import ColumnLike


def lift(x):  # type: ignore[no-untyped-def]
    return 1.0, float(x), 0.0


def spread(a, divisor):  # type: ignore[no-untyped-def]
    """Squared deviations per degree of freedom; there are none from a mean that is not finite."""
    return a[2] / divisor if a[1] - a[1] == 0.0 else np.nan


def lower_sample(a, n):  # type: ignore[no-untyped-def]
    if n < 2:
        return 0.0, False
    return spread(a, a[0] - 1.0), True


def lower_population(a, n):  # type: ignore[no-untyped-def]
    if n < 1:
        return 0.0, False
    return spread(a, a[0]), True


def lower_sample_deviation(a, n):  # type: ignore[no-untyped-def]
    value, defined = lower_sample(a, n)
    return math.sqrt(value), defined


def lower_population_deviation(a, n):  # type: ignore[no-untyped-def]
    value, defined = lower_population(a, n)
    return math.sqrt(value), defined


MOMENTS = Scalars(
    "count, mean, squared deviations",
    (Field("count", "f", 0.0), Field("mean", "f", 0.0), Field("deviations", "f", 0.0)),
    lift,
    merge_moments,
    fold=moments,
)


@dataclass(frozen=True)
class Variance(Aggregate):
    """The variance, or with `root` the standard deviation."""

    columns: tuple[str, ...]
    ddof: int
    root: bool
    algebra = Algebra("algebraic")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = numeric_kind(types[0], what=str(self))
        lowers = (lower_population, lower_sample)
        if self.root:
            lowers = (lower_population_deviation, lower_sample_deviation)
        build = unscaled(types[0], 1 if self.root else 2)
        return Bound(MOMENTS, (kind,), pa.float64(), lowers[self.ddof], ("f",), build)

    def __str__(self) -> str:
        name = "stddev" if self.root else "variance"
        return f"{name}({self.columns[0]}{', ddof=0' if self.ddof == 0 else ''})"


def _spread(columns: tuple[str, ...], ddof: int, root: bool) -> Variance:
    if ddof not in (0, 1):
        raise QueryError(f"ddof must be 0 (population) or 1 (sample), not {ddof!r}")
    return Variance(columns, ddof, root)


def variance(column: ColumnLike, *, ddof: int = 1, where: ColumnLike | None = None) -> Variance:
    """The variance of a column: never negative, and exactly 0 where all values are equal.

    Parameters
    ----------
    column
        A numeric column.
    ddof
        1 (default) for a sample, 0 for a population.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Variance
        An aggregate of type float64: null below `ddof + 1` values.

    Raises
    ------
    QueryError
        If `ddof` is neither 0 nor 1.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.variance("delay"))
    'variance(delay)'
    """
    return _spread(columns_read(column, where=where), ddof, root=False)


def stddev(column: ColumnLike, *, ddof: int = 1, where: ColumnLike | None = None) -> Variance:
    """The standard deviation of a column: the square root of `variance`.

    Parameters
    ----------
    column
        A numeric column.
    ddof
        1 (default) for a sample, 0 for a population.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Variance
        An aggregate of type float64: null below `ddof + 1` values.

    Raises
    ------
    QueryError
        If `ddof` is neither 0 nor 1.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.stddev("delay", ddof=0))
    'stddev(delay, ddof=0)'
    """
    return _spread(columns_read(column, where=where), ddof, root=True)

"""How two columns move together: covariance, correlation and the slope of a regression line.

All three share one partial: count, two means, and the three sums of products of deviations.
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
    scale_of,
    scaled,
)
from windrow.errors import QueryError
from windrow.expressions import ColumnLike


def lift(x, y):  # type: ignore[no-untyped-def]
    return 1.0, float(x), float(y), 0.0, 0.0, 0.0


def combine(a, b):  # type: ignore[no-untyped-def]
    if a[0] == 0.0:
        return b
    if b[0] == 0.0:
        return a
    n = a[0] + b[0]
    dx = b[1] - a[1]
    dy = b[2] - a[2]
    share = a[0] * b[0] / n
    return (
        n,
        a[1] + dx * (b[0] / n),
        a[2] + dy * (b[0] / n),
        a[3] + b[3] + dx * dx * share,
        a[4] + b[4] + dx * dy * share,
        a[5] + b[5] + dy * dy * share,
    )


def finite(a):  # type: ignore[no-untyped-def]
    """Whether there are deviations at all: none from a mean that is not finite."""
    return a[1] - a[1] == 0.0 and a[2] - a[2] == 0.0


def lower_sample(a, n):  # type: ignore[no-untyped-def]
    if n < 2:
        return 0.0, False
    return (a[4] / (a[0] - 1.0) if finite(a) else np.nan), True


def lower_population(a, n):  # type: ignore[no-untyped-def]
    if n < 1:
        return 0.0, False
    return (a[4] / a[0] if finite(a) else np.nan), True


def lower_correlation(a, n):  # type: ignore[no-untyped-def]
    if n < 2 or a[3] == 0.0 or a[5] == 0.0:
        return 0.0, False
    if not finite(a):
        return np.nan, True
    value = a[4] / (math.sqrt(a[3]) * math.sqrt(a[5]))
    if value > 1.0:
        return 1.0, True
    if value < -1.0:
        return -1.0, True
    return value, True


def lower_slope(a, n):  # type: ignore[no-untyped-def]
    if n < 2 or a[5] == 0.0:
        return 0.0, False
    if not finite(a):
        return np.nan, True
    return a[4] / a[5], True


COMOMENTS = Scalars(
    "co-moments",
    tuple(Field(name, "f", 0.0) for name in ("count", "mean x", "mean y", "xx", "xy", "yy")),
    lift,
    combine,
)


@dataclass(frozen=True)
class Pair(Aggregate):
    """How two columns move together: `name` is "covariance", "correlation" or "slope"."""

    name: str
    columns: tuple[str, ...]
    ddof: int = 1
    algebra = Algebra("algebraic")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kinds = tuple(numeric_kind(t, what=str(self)) for t in types)
        x, y = (scale_of(t) for t in types)
        lower, scale = {
            "covariance": (lower_sample if self.ddof else lower_population, x * y),
            "correlation": (lower_correlation, 1.0),
            "slope": (lower_slope, x / y),
        }[self.name]
        return Bound(COMOMENTS, kinds, pa.float64(), lower, ("f",), scaled(scale))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.columns)}{', ddof=0' if self.ddof == 0 else ''})"


def covariance(x: ColumnLike, y: ColumnLike, *, ddof: int = 1, where: ColumnLike | None = None) -> Pair:
    """The covariance of two columns.

    Parameters
    ----------
    x, y
        Numeric columns; events with a null in either are skipped.
    ddof
        1 (default) for a sample, 0 for a population.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Pair
        An aggregate of type float64: null below `ddof + 1` events.

    Raises
    ------
    QueryError
        If `ddof` is neither 0 nor 1.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.covariance("load", "latency"))
    'covariance(load, latency)'
    """
    if ddof not in (0, 1):
        raise QueryError(f"ddof must be 0 (population) or 1 (sample), not {ddof!r}")
    return Pair("covariance", columns_read(x, y, where=where), ddof)


def correlation(x: ColumnLike, y: ColumnLike, *, where: ColumnLike | None = None) -> Pair:
    """Pearson's correlation of two columns, in [-1, 1].

    Parameters
    ----------
    x, y
        Numeric columns; events with a null in either are skipped.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Pair
        An aggregate of type float64: null below two events, and where one of the columns does not vary.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.correlation("load", "latency"))
    'correlation(load, latency)'
    """
    return Pair("correlation", columns_read(x, y, where=where))


def slope(y: ColumnLike, x: ColumnLike, *, where: ColumnLike | None = None) -> Pair:
    """The slope of the least-squares line of `y` over `x`.

    Parameters
    ----------
    y, x
        Numeric columns; events with a null in either are skipped.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Pair
        An aggregate of type float64: null below two events, and where `x` does not vary.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.slope("latency", "load"))
    'slope(latency, load)'
    """
    return Pair("slope", columns_read(y, x, where=where))

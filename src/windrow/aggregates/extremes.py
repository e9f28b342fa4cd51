"""The smallest and the largest value, and how often it occurs.

NaN is the greatest number, as in Spark SQL: `max` is NaN if one value is, `min` only if all are.
Strings compare by their bytes. -0.0 counts as 0.0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import (
    INT64_MAX,
    Aggregate,
    Algebra,
    Bound,
    Field,
    Scalars,
    columns_read,
    decoded,
    kind_of,
    plain,
    text_type,
)
from windrow.aggregates.numerics import greater
from windrow.expressions import ColumnLike


def lift(x):  # type: ignore[no-untyped-def]
    return (abs(x),) if x == 0 else (x,)


# Both comparisons are made, so that there is no branch; of two NaNs either will do.
def smaller_of(a, b):  # type: ignore[no-untyped-def]
    return (b[0],) if (a[0] > b[0]) | (a[0] != a[0]) else (a[0],)


def larger_of(a, b):  # type: ignore[no-untyped-def]
    return (b[0],) if (b[0] > a[0]) | (b[0] != b[0]) else (a[0],)


def smallest_integer(x, low, high):  # type: ignore[no-untyped-def]
    part = x[low:high]
    best = part[0]
    for i in range(part.shape[0]):
        best = min(best, part[i])
    return (best,)


def largest_integer(x, low, high):  # type: ignore[no-untyped-def]
    part = x[low:high]
    best = part[0]
    for i in range(part.shape[0]):
        best = max(best, part[i])
    return (best,)


def smallest_float(x, low, high):  # type: ignore[no-untyped-def]
    """Four chains; a comparison with NaN is false, so NaN stays only where nothing else came."""
    fours = low + (high - low) // 4 * 4
    m0 = m1 = m2 = m3 = np.inf
    real = False
    for i in range(low, fours, 4):
        a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
        m0 = a if a < m0 else m0
        m1 = b if b < m1 else m1
        m2 = c if c < m2 else m2
        m3 = d if d < m3 else m3
        real |= (a == a) | (b == b) | (c == c) | (d == d)
    for i in range(fours, high):
        a = x[i]
        m0 = a if a < m0 else m0
        real |= a == a
    return (min(min(m0, m1), min(m2, m3)) + 0.0,) if real else (np.nan,)


def largest_float(x, low, high):  # type: ignore[no-untyped-def]
    fours = low + (high - low) // 4 * 4
    m0 = m1 = m2 = m3 = -np.inf
    nan = False
    for i in range(low, fours, 4):
        a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
        m0 = a if a > m0 else m0
        m1 = b if b > m1 else m1
        m2 = c if c > m2 else m2
        m3 = d if d > m3 else m3
        nan |= (a != a) | (b != b) | (c != c) | (d != d)
    for i in range(fours, high):
        a = x[i]
        m0 = a if a > m0 else m0
        nan |= a != a
    return (np.nan,) if nan else (max(max(m0, m1), max(m2, m3)) + 0.0,)


def lift_counted(x):  # type: ignore[no-untyped-def]
    return lift(x)[0], 1


def smaller_counted(a, b):  # type: ignore[no-untyped-def]
    if greater(a[0], b[0]):
        return b
    if greater(b[0], a[0]):
        return a
    return a[0], a[1] + b[1]


def larger_counted(a, b):  # type: ignore[no-untyped-def]
    if greater(b[0], a[0]):
        return b
    if greater(a[0], b[0]):
        return a
    return a[0], a[1] + b[1]


def lower(a, n):  # type: ignore[no-untyped-def]
    return a[0], n > 0


def lower_count(a, n):  # type: ignore[no-untyped-def]
    return a[1], n > 0


# The neutral element of min is the greatest value there is, and of max the least.
NEUTRAL = {("min", "i"): INT64_MAX, ("min", "f"): float("nan")}
NEUTRAL |= {("max", "i"): -INT64_MAX - 1, ("max", "f"): float("-inf")}
FOLDS = {("min", "i"): smallest_integer, ("min", "f"): smallest_float}
FOLDS |= {("max", "i"): largest_integer, ("max", "f"): largest_float}
PLAIN = {
    (which, kind): Scalars(
        which,
        (Field(which, kind, NEUTRAL[which, kind], code=0),),  # type: ignore[arg-type]
        lift,
        smaller_of if which == "min" else larger_of,
        fold=FOLDS[which, kind],
        selects=True,
    )
    for which, kind in NEUTRAL
}
COUNTED = {
    (which, kind): Scalars(
        f"{which} and how often",
        (Field(which, kind, NEUTRAL[which, kind], code=0), Field("times", "i", 0)),  # type: ignore[arg-type]
        lift_counted,
        smaller_counted if which == "min" else larger_counted,
    )
    for which, kind in NEUTRAL
}


@dataclass(frozen=True)
class Extreme(Aggregate):
    """The smallest or the largest value: `which` is "min" or "max"."""

    which: str
    columns: tuple[str, ...]
    algebra = Algebra("distributive", idempotent=True, selective=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = kind_of(types[0], what=str(self))
        return Bound(PLAIN[self.which, kind], (kind,), text_type(types[0]), lower, (kind,), decoded())

    def __str__(self) -> str:
        return f"{self.which}({self.columns[0]})"


@dataclass(frozen=True)
class ExtremeCount(Aggregate):
    """How many events have the extreme value: `which` is "min" or "max"."""

    which: str
    columns: tuple[str, ...]
    algebra = Algebra("algebraic", selective=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = kind_of(types[0], what=str(self))
        return Bound(COUNTED[self.which, kind], (kind,), pa.int64(), lower_count, ("i",), plain(pa.int64()))

    def __str__(self) -> str:
        return f"{self.which}_count({self.columns[0]})"


def min_(column: ColumnLike, *, where: ColumnLike | None = None) -> Extreme:
    """The smallest value.

    Parameters
    ----------
    column
        A column of any type that can be sorted. NaN is the greatest number, -0.0 is 0.0, and strings compare
        by bytes.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Extreme
        An aggregate of the column's type: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.min("price"))
    'min(price)'
    """
    return Extreme("min", columns_read(column, where=where))


def max_(column: ColumnLike, *, where: ColumnLike | None = None) -> Extreme:
    """The largest value.

    Parameters
    ----------
    column
        A column of any type that can be sorted. NaN is the greatest number, -0.0 is 0.0, and strings compare
        by bytes.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Extreme
        An aggregate of the column's type: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.max("price"))
    'max(price)'
    """
    return Extreme("max", columns_read(column, where=where))


def min_count(column: ColumnLike, *, where: ColumnLike | None = None) -> ExtremeCount:
    """How many events have the smallest value.

    Parameters
    ----------
    column
        A column of any type that can be sorted.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    ExtremeCount
        An aggregate of type int64: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.min_count("price"))
    'min_count(price)'
    """
    return ExtremeCount("min", columns_read(column, where=where))


def max_count(column: ColumnLike, *, where: ColumnLike | None = None) -> ExtremeCount:
    """How many events have the largest value.

    Parameters
    ----------
    column
        A column of any type that can be sorted.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    ExtremeCount
        An aggregate of type int64: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.max_count("price"))
    'max_count(price)'
    """
    return ExtremeCount("max", columns_read(column, where=where))

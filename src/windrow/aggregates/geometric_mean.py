"""The geometric mean: `exp` of the mean logarithm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates.base import Aggregate, Algebra, Bound, Scalars, columns_read, numeric_kind, unscaled
from windrow.aggregates.numerics import add_float, lift_log, lower_float
from windrow.aggregates.sum import FLOAT_SUM
from windrow.expressions import ColumnLike


def lower(a, n):  # type: ignore[no-untyped-def]
    if n == 0:
        return 0.0, False
    return math.exp(lower_float(a) / n), True


LOG_SUM = Scalars("sum of logarithms", FLOAT_SUM.fields, lift_log, add_float)


@dataclass(frozen=True)
class GeometricMean(Aggregate):
    """The n-th root of the product of n values."""

    columns: tuple[str, ...]
    name = "geometric_mean"
    algebra = Algebra("algebraic")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = numeric_kind(types[0], what=str(self))
        return Bound(LOG_SUM, (kind,), pa.float64(), lower, ("f",), unscaled(types[0]))


def geometric_mean(column: ColumnLike, *, where: ColumnLike | None = None) -> GeometricMean:
    """The n-th root of the product of n values.

    Parameters
    ----------
    column
        A numeric column.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    GeometricMean
        An aggregate of type float64: 0 if a value is 0, NaN if one is negative, null where the window holds
        no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.geometric_mean("growth"))
    'geometric_mean(growth)'
    """
    return GeometricMean(columns_read(column, where=where))

"""The weighted mean; with prices and volumes, the volume-weighted average price (VWAP)."""

from __future__ import annotations

from dataclasses import dataclass

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
from windrow.aggregates.numerics import add_float, lift_float, lower_float
from windrow.expressions import ColumnLike


def lift(x, w):  # type: ignore[no-untyped-def]
    weight = float(w)
    return lift_float(float(x) * weight) + lift_float(weight)


def combine(a, b):  # type: ignore[no-untyped-def]
    top = add_float((a[0], a[1], a[2], a[3]), (b[0], b[1], b[2], b[3]))
    bottom = add_float((a[4], a[5], a[6], a[7]), (b[4], b[5], b[6], b[7]))
    return top + bottom


def lower(a, n):  # type: ignore[no-untyped-def]
    weight = lower_float((a[4], a[5], a[6], a[7]))
    if n == 0 or weight == 0.0:
        return 0.0, False
    return lower_float((a[0], a[1], a[2], a[3])) / weight, True


WEIGHTED = Scalars(
    "weighted sum and weights",
    tuple(Field(f"{part}{i}", "f", 0.0) for part in ("product", "weight") for i in range(4)),
    lift,
    combine,
)


@dataclass(frozen=True)
class WeightedMean(Aggregate):
    """The mean of one column, weighted by another."""

    columns: tuple[str, ...]
    algebra = Algebra("algebraic")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kinds = tuple(numeric_kind(t, what=str(self)) for t in types)
        return Bound(WEIGHTED, kinds, pa.float64(), lower, ("f",), unscaled(types[0]))

    def __str__(self) -> str:
        return f"weighted_mean({self.columns[0]}, weight={self.columns[1]})"


def weighted_mean(column: ColumnLike, *, weight: ColumnLike, where: ColumnLike | None = None) -> WeightedMean:
    """`sum(column * weight) / sum(weight)`; of prices and volumes, the volume-weighted average price.

    Parameters
    ----------
    column
        A numeric column.
    weight
        The numeric column of weights; events with a null in either are skipped.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    WeightedMean
        An aggregate of type float64: null where the weights add up to 0.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.weighted_mean("price", weight="volume"))
    'weighted_mean(price, weight=volume)'
    """
    return WeightedMean(columns_read(column, weight, where=where))

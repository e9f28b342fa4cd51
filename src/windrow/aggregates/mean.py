"""The arithmetic mean, from the same partial as the sum."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates.base import Aggregate, Algebra, Bound, columns_read, summable_kind, unscaled
from windrow.aggregates.numerics import lower_float, wide_to_float
from windrow.aggregates.sum import sum_partial
from windrow.expressions import ColumnLike


def lower_integers(a, n):  # type: ignore[no-untyped-def]
    if n == 0:
        return 0.0, False
    return wide_to_float(a[0], a[1]) / n, True


def lower_floats(a, n):  # type: ignore[no-untyped-def]
    if n == 0:
        return 0.0, False
    return lower_float(a) / n, True


@dataclass(frozen=True)
class Mean(Aggregate):
    """The arithmetic mean."""

    columns: tuple[str, ...]
    name = "mean"
    algebra = Algebra("algebraic", invertible=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = summable_kind(types[0], what=str(self))
        lower = lower_integers if kind == "i" else lower_floats
        return Bound(sum_partial(kind), (kind,), pa.float64(), lower, ("f",), unscaled(types[0]))


def mean(column: ColumnLike, *, where: ColumnLike | None = None) -> Mean:
    """The arithmetic mean; it shares a partial with `sum`.

    Parameters
    ----------
    column
        A column of numbers, or of booleans: the mean is then the share of those that are true.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Mean
        An aggregate of type float64: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.mean("amount"))
    'mean(amount)'
    """
    return Mean(columns_read(column, where=where))

"""The least-squares line of one column over another: slope, intercept, and how well it fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Algebra, Bound, columns_read, numeric_kind, scale_of
from windrow.aggregates.pairs import COMOMENTS, finite
from windrow.expressions import ColumnLike

LINE = pa.struct([("slope", pa.float64()), ("intercept", pa.float64()), ("r2", pa.float64())])


def lower(a, n):  # type: ignore[no-untyped-def]
    if n < 2 or a[5] == 0.0:
        return 0.0, 0.0, 0.0, False
    if not finite(a):
        return np.nan, np.nan, np.nan, True
    slope = a[4] / a[5]
    fit = 1.0 if a[3] == 0.0 else min(1.0, slope * a[4] / a[3])
    return slope, a[1] - slope * a[2], fit, True


@dataclass(frozen=True)
class Regression(Aggregate):
    """The least-squares line of the first column over the second."""

    columns: tuple[str, ...]
    algebra = Algebra("algebraic")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kinds = tuple(numeric_kind(t, what=str(self)) for t in types)
        y, x = (scale_of(t) for t in types)

        def build(values, defined, decoders):  # type: ignore[no-untyped-def]
            parts = [values[0] * (x / y), values[1] / y, values[2]]
            mask = None if defined.all() else pa.array(~defined)
            return pa.StructArray.from_arrays(
                [pa.array(part) for part in parts], fields=list(LINE), mask=mask
            )

        return Bound(COMOMENTS, kinds, LINE, lower, ("f", "f", "f"), build)

    def __str__(self) -> str:
        return f"regression({self.columns[0]}, {self.columns[1]})"


def regression(y: ColumnLike, x: ColumnLike, *, where: ColumnLike | None = None) -> Regression:
    """The least-squares line of `y` over `x`.

    Parameters
    ----------
    y, x
        Numeric columns; events with a null in either are skipped.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Regression
        An aggregate of type struct with `slope`, `intercept` and `r2`, the share of the variance of `y` that the line explains (1 where `y` does not
        vary): null below two events, and where `x` does not vary.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.regression("latency", "load"))
    'regression(latency, load)'
    """
    return Regression(columns_read(y, x, where=where))

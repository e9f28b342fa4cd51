"""How many events a window holds: `count()`, or how many non-null values of a column."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates.base import Aggregate, Algebra, Bound, Scalars, columns_read, plain
from windrow.expressions import ColumnLike


def combine(a, b):  # type: ignore[no-untyped-def]
    return ()


def lower(a, n):  # type: ignore[no-untyped-def]
    return n, True


COUNT = Scalars("count", fields=(), lift=None, combine=combine, invert=combine)


@dataclass(frozen=True)
class Count(Aggregate):
    """The number of events, or of non-null values of a column."""

    columns: tuple[str, ...]
    name = "count"
    algebra = Algebra("distributive", invertible=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        return Bound(COUNT, (), pa.int64(), lower, ("i",), plain(pa.int64()))


def count(column: ColumnLike | None = None, *, where: ColumnLike | None = None) -> Count:
    """The number of events, or of non-null values of a column.

    Parameters
    ----------
    column
        The column whose values are counted, of any type; None (default) counts events.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Count
        An aggregate of type int64: 0 where there is nothing to count, and never null.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.count("amount"))
    'count(amount)'
    """
    return Count(columns_read(column, where=where))

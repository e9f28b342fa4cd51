"""The exact number of distinct values, from the sorted slices that quantiles use."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates.base import Aggregate, Algebra, Bound, Multiset, columns_read, kind_of, plain
from windrow.expressions import ColumnLike


@dataclass(frozen=True)
class CountDistinct:
    """What the engine is to make of sorted values: the number of distinct ones."""


@dataclass(frozen=True)
class Distinct(Aggregate):
    """The exact number of distinct values."""

    columns: tuple[str, ...]
    name = "distinct"
    algebra = Algebra("holistic", idempotent=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = kind_of(types[0], what=str(self))
        return Bound(Multiset(), (kind,), pa.int64(), build=plain(pa.int64()), finish=CountDistinct())


def distinct(column: ColumnLike, *, where: ColumnLike | None = None) -> Distinct:
    """The exact number of distinct non-null values; `approx_distinct` needs less memory.

    Parameters
    ----------
    column
        A column of any type that can be sorted.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Distinct
        An aggregate of type int64: 0 where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.distinct("user"))
    'distinct(user)'
    """
    return Distinct(columns_read(column, where=where))

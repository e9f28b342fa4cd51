"""The exact number of distinct values, from the sorted slices that quantiles use."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates.base import Aggregate, Algebra, Bound, Multiset, kind_of, plain


@dataclass(frozen=True)
class CountDistinct:
    """The engine's word for: count the different values of a window."""


@dataclass(frozen=True)
class Distinct(Aggregate):
    """See `distinct`."""

    columns: tuple[str, ...]
    name = "distinct"
    algebra = Algebra("holistic", idempotent=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = kind_of(types[0], what=str(self))
        return Bound(Multiset(), (kind,), pa.int64(), build=plain(pa.int64()), finish=CountDistinct())


def distinct(column: str) -> Distinct:
    """How many different non-null values a window holds; exact. See also `approx_distinct`.

    >>> import windrow as wr
    >>> str(wr.distinct("user"))
    'distinct(user)'
    """
    return Distinct((column,))

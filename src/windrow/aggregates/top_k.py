"""The k most frequent values, exact, from the sorted slices that quantiles use."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates.base import (
    Aggregate,
    Algebra,
    Bound,
    Multiset,
    columns_read,
    kind_of,
    text_type,
    whole_number,
)
from windrow.expressions import ColumnLike


@dataclass(frozen=True)
class MostFrequent:
    """What the engine is to make of sorted values: the `k` most frequent ones, ties by the smaller value."""

    k: int


@dataclass(frozen=True)
class TopK(Aggregate):
    """The k most frequent values."""

    columns: tuple[str, ...]
    k: int
    algebra = Algebra("holistic")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = kind_of(types[0], what=str(self))
        item = pa.struct([("value", text_type(types[0])), ("count", pa.int64())])

        def build(offsets, values, counts, defined, decoders):  # type: ignore[no-untyped-def]
            pairs = pa.StructArray.from_arrays([values, pa.array(counts)], ["value", "count"])
            mask = None if defined.all() else pa.array(~defined)
            return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pairs, mask=mask)

        return Bound(Multiset(), (kind,), pa.list_(item), build=build, finish=MostFrequent(self.k))

    def __str__(self) -> str:
        return f"top_k({self.columns[0]}, {self.k})"


def top_k(column: ColumnLike, k: int, *, where: ColumnLike | None = None) -> TopK:
    """The k most frequent values, exact.

    Parameters
    ----------
    column
        A column of any type that can be sorted.
    k
        How many.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    TopK
        An aggregate of type list, of structs with `value` and `count`, the most frequent first, and among
        equals the smaller value: null where the window holds no value.

    Raises
    ------
    QueryError
        If `k` is no whole number from 1 on.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.top_k("page", 3))
    'top_k(page, 3)'
    """
    return TopK(columns_read(column, where=where), whole_number(k, what="k"))

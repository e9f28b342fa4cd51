"""The k most frequent values, exact, from the sorted slices that quantiles use."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates.base import Aggregate, Algebra, Bound, Multiset, kind_of, text_type
from windrow.errors import QueryError


@dataclass(frozen=True)
class MostFrequent:
    """The engine's word for: the `k` most frequent values, ties by the smaller value."""

    k: int


@dataclass(frozen=True)
class TopK(Aggregate):
    """See `top_k`."""

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


def top_k(column: str, k: int) -> TopK:
    """A list of `{value, count}`, most frequent first; among equals the smaller value first.

    >>> import windrow as wr
    >>> str(wr.top_k("page", 3))
    'top_k(page, 3)'
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise QueryError(f"k must be at least 1, not {k!r}")
    return TopK((column,), k)

"""The most frequent value, exact, from the sorted slices that quantiles use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Algebra, Bound, Multiset, columns_read, kind_of, text_type
from windrow.aggregates.top_k import MostFrequent
from windrow.expressions import ColumnLike


def build(offsets, values, counts, defined, decoders):  # type: ignore[no-untyped-def]
    return values.take(pa.array(np.cumsum(defined) - 1, mask=~defined))


@dataclass(frozen=True)
class Mode(Aggregate):
    """The most frequent value."""

    columns: tuple[str, ...]
    name = "mode"
    algebra = Algebra("holistic")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = kind_of(types[0], what=str(self))
        return Bound(Multiset(), (kind,), text_type(types[0]), build=build, finish=MostFrequent(1))


def mode(column: ColumnLike, *, where: ColumnLike | None = None) -> Mode:
    """The most frequent non-null value, exact; of several, the smallest one.

    Parameters
    ----------
    column
        A column of any type that can be sorted. All NaN are one value, the greatest.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Mode
        An aggregate of the column's type: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.mode("carrier"))
    'mode(carrier)'
    """
    return Mode(columns_read(column, where=where))

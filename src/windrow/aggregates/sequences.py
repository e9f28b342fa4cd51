"""Aggregates over the events themselves, in event-time order: collect, concat, i-th youngest.

Order matters to them, so the slices of a disordered stream keep their events (Scotty, Figure 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.base import (
    Aggregate,
    Algebra,
    Bound,
    Sequence,
    columns_read,
    is_text,
    kind_of,
    text_type,
    whole_number,
)
from windrow.errors import QueryError
from windrow.expressions import ColumnLike

# Events low[i] .. high[i]-1 of a sorted log make window i; `decode(positions)` gives their values.
Decode = Callable[[np.ndarray], pa.Array]


def lists(low: np.ndarray, high: np.ndarray, decode: Decode) -> pa.Array:
    """One list per window; null where the window holds no value."""
    sizes = high - low
    offsets = np.zeros(len(low) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    positions = np.arange(offsets[-1]) + np.repeat(low - offsets[:-1], sizes)
    empty = sizes == 0
    mask = pa.array(empty) if empty.any() else None
    if offsets[-1] > 2**31 - 1:
        raise QueryError(f"collected lists of one output hold {offsets[-1]:,} values; advance more often")
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), decode(positions), mask=mask)


@dataclass(frozen=True)
class Collect(Aggregate):
    """All values in order."""

    columns: tuple[str, ...]
    name = "collect"
    algebra = Algebra("holistic", commutative=False)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = kind_of(types[0], what=str(self))
        return Bound(Sequence(), (kind,), pa.list_(text_type(types[0])), finish=lists)


@dataclass(frozen=True)
class Concat(Aggregate):
    """All strings in order, joined."""

    columns: tuple[str, ...]
    name = "concat"
    separator: str
    algebra = Algebra("holistic", commutative=False)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        if not is_text(types[0]) or pa.types.is_binary(text_type(types[0])):
            raise QueryError(f"{self} needs a string column, not {types[0]}")
        kind = kind_of(types[0], what=str(self))

        def finish(low: np.ndarray, high: np.ndarray, decode: Decode) -> pa.Array:
            return pc.binary_join(lists(low, high, decode).cast(pa.list_(pa.string())), self.separator)

        return Bound(Sequence(), (kind,), pa.string(), finish=finish)

    def __str__(self) -> str:
        how = f", separator={self.separator!r}" if self.separator else ""
        return f"concat({self.columns[0]}{how})"


@dataclass(frozen=True)
class IthYoungest(Aggregate):
    """The i-th latest value."""

    columns: tuple[str, ...]
    i: int
    algebra = Algebra("holistic", commutative=False, selective=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = kind_of(types[0], what=str(self))

        def finish(low: np.ndarray, high: np.ndarray, decode: Decode) -> pa.Array:
            enough = high - low >= self.i
            values = decode((high - self.i)[enough])
            positions = np.cumsum(enough) - 1
            return values.take(pa.array(positions, mask=~enough))

        return Bound(Sequence(), (kind,), text_type(types[0]), finish=finish)

    def __str__(self) -> str:
        return f"ith_youngest({self.columns[0]}, {self.i})"


def collect(column: ColumnLike, *, where: ColumnLike | None = None) -> Collect:
    """All non-null values in event-time order, in order of arrival among equal times.

    Parameters
    ----------
    column
        A column of any type that can be sorted.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Collect
        An aggregate of type list: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.collect("page"))
    'collect(page)'
    """
    return Collect(columns_read(column, where=where))


def concat(column: ColumnLike, *, separator: str = "", where: ColumnLike | None = None) -> Concat:
    """All non-null strings, joined in event-time order.

    Parameters
    ----------
    column
        A column of strings.
    separator
        What stands between two of them; nothing by default.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Concat
        An aggregate of type string: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.concat("letter", separator="-"))
    "concat(letter, separator='-')"
    """
    return Concat(columns_read(column, where=where), separator)


def ith_youngest(column: ColumnLike, i: int, *, where: ColumnLike | None = None) -> IthYoungest:
    """The i-th latest non-null value.

    Parameters
    ----------
    column
        A column of any type that can be sorted.
    i
        Counted from 1, the latest.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    IthYoungest
        An aggregate of the column's type: null where the window holds fewer values.

    Raises
    ------
    QueryError
        If `i` is no whole number from 1 on.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.ith_youngest("price", 1))
    'ith_youngest(price, 1)'
    """
    return IthYoungest(columns_read(column, where=where), whole_number(i, what="i"))

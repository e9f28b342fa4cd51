"""Bitwise and, or and exclusive or of integers."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates.base import Aggregate, Algebra, Bound, Field, Scalars, columns_read, plain
from windrow.errors import QueryError
from windrow.expressions import ColumnLike


def lift(x):  # type: ignore[no-untyped-def]
    return (x,)


def both(a, b):  # type: ignore[no-untyped-def]
    return (a[0] & b[0],)


def either(a, b):  # type: ignore[no-untyped-def]
    return (a[0] | b[0],)


def one_of(a, b):  # type: ignore[no-untyped-def]
    return (a[0] ^ b[0],)


def lower(a, n):  # type: ignore[no-untyped-def]
    return a[0], n > 0


PARTIALS = {
    "bit_and": Scalars("bit and", (Field("bits", "i", -1),), lift, both),
    "bit_or": Scalars("bit or", (Field("bits", "i", 0),), lift, either),
    "bit_xor": Scalars("bit xor", (Field("bits", "i", 0),), lift, one_of, invert=one_of),
}


@dataclass(frozen=True)
class Bits(Aggregate):
    """`name` is "bit_and", "bit_or" or "bit_xor"."""

    name: str
    columns: tuple[str, ...]

    @property
    def algebra(self) -> Algebra:  # type: ignore[override]
        return Algebra("distributive", invertible=self.name == "bit_xor", idempotent=self.name != "bit_xor")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        if not pa.types.is_integer(types[0]):
            raise QueryError(f"{self} needs a column of integers, not {types[0]}")
        return Bound(PARTIALS[self.name], ("i",), types[0], lower, ("i",), plain(types[0]))


def bit_and(column: ColumnLike, *, where: ColumnLike | None = None) -> Bits:
    """The bits that all values have.

    Parameters
    ----------
    column
        A column of integers.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Bits
        An aggregate of the column's type: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.bit_and("flags"))
    'bit_and(flags)'
    """
    return Bits("bit_and", columns_read(column, where=where))


def bit_or(column: ColumnLike, *, where: ColumnLike | None = None) -> Bits:
    """The bits that any value has.

    Parameters
    ----------
    column
        A column of integers.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Bits
        An aggregate of the column's type: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.bit_or("flags"))
    'bit_or(flags)'
    """
    return Bits("bit_or", columns_read(column, where=where))


def bit_xor(column: ColumnLike, *, where: ColumnLike | None = None) -> Bits:
    """The bits that an odd number of values have.

    Parameters
    ----------
    column
        A column of integers.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Bits
        An aggregate of the column's type: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.bit_xor("flags"))
    'bit_xor(flags)'
    """
    return Bits("bit_xor", columns_read(column, where=where))

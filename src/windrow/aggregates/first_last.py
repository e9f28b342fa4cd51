"""The first and the last non-null value of a window, in event-time order.

The partial carries time and arrival number, so it is commutative: an event that arrives late
finds its place without the tuples being kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates.base import (
    INT64_MAX,
    Aggregate,
    Algebra,
    Bound,
    Field,
    Scalars,
    columns_read,
    decoded,
    kind_of,
    text_type,
)
from windrow.expressions import ColumnLike


def lift(x, t, s):  # type: ignore[no-untyped-def]
    return t, s, x


def earlier(a, b):  # type: ignore[no-untyped-def]
    return b if b[0] < a[0] or (b[0] == a[0] and b[1] < a[1]) else a


def later(a, b):  # type: ignore[no-untyped-def]
    return b if b[0] > a[0] or (b[0] == a[0] and b[1] > a[1]) else a


def lower(a, n):  # type: ignore[no-untyped-def]
    return a[2], n > 0


def partial(which: str, kind: str) -> Scalars:
    neutral = INT64_MAX if which == "first" else -INT64_MAX - 1
    fields = (
        Field("time", "t", neutral),
        Field("arrival", "i", neutral),
        Field("value", kind, 0, code=0),  # type: ignore[arg-type]
    )
    combine = earlier if which == "first" else later
    return Scalars(which, fields, lift, combine, timed=True, selects=True)


PARTIALS = {(w, k): partial(w, k) for w in ("first", "last") for k in "if"}


@dataclass(frozen=True)
class FirstLast(Aggregate):
    """The earliest or the latest value: `which` is "first" or "last"."""

    which: str
    columns: tuple[str, ...]
    algebra = Algebra("distributive", idempotent=True, selective=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = kind_of(types[0], what=str(self))
        return Bound(PARTIALS[self.which, kind], (kind,), text_type(types[0]), lower, (kind,), decoded())

    def __str__(self) -> str:
        return f"{self.which}({self.columns[0]})"


def first(column: ColumnLike, *, where: ColumnLike | None = None) -> FirstLast:
    """The earliest non-null value; among equal times, the one that arrived first.

    Parameters
    ----------
    column
        A column of any type that can be sorted.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    FirstLast
        An aggregate of the column's type: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.first("price"))
    'first(price)'
    """
    return FirstLast("first", columns_read(column, where=where))


def last(column: ColumnLike, *, where: ColumnLike | None = None) -> FirstLast:
    """The latest non-null value; among equal times, the one that arrived last.

    Parameters
    ----------
    column
        A column of any type that can be sorted.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    FirstLast
        An aggregate of the column's type: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.last("price"))
    'last(price)'
    """
    return FirstLast("last", columns_read(column, where=where))

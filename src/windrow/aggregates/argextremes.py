"""The value of one column at the event where another is smallest or largest.

Among equals the earliest event counts (by time, then by arrival).
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
from windrow.aggregates.extremes import NEUTRAL
from windrow.aggregates.numerics import greater
from windrow.expressions import ColumnLike


def lift(x, by, t, s):  # type: ignore[no-untyped-def]
    return by, t, s, x


def earlier(a, b):  # type: ignore[no-untyped-def]
    """Whether event `a` = (.., time, arrival, ..) comes before `b`."""
    return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2])


def smaller(a, b):  # type: ignore[no-untyped-def]
    if greater(b[0], a[0]):
        return a
    if greater(a[0], b[0]):
        return b
    return a if earlier(a, b) else b


def larger(a, b):  # type: ignore[no-untyped-def]
    if greater(a[0], b[0]):
        return a
    if greater(b[0], a[0]):
        return b
    return a if earlier(a, b) else b


def lower(a, n):  # type: ignore[no-untyped-def]
    return a[3], n > 0


def partial(which: str, kind: str, by: str) -> Scalars:
    fields = (
        Field("by", by, NEUTRAL[which, by], code=1),  # type: ignore[arg-type]
        Field("time", "t", INT64_MAX),
        Field("arrival", "i", INT64_MAX),
        Field("value", kind, 0, code=0),  # type: ignore[arg-type]
    )
    combine = smaller if which == "min" else larger
    return Scalars(f"arg{which}", fields, lift, combine, timed=True, selects=True)


PARTIALS = {(w, x, y): partial(w, x, y) for w in ("min", "max") for x in "if" for y in "if"}


@dataclass(frozen=True)
class ArgExtreme(Aggregate):
    """The value of the first column where the second one is extreme: `which` is "min" or "max"."""

    which: str
    columns: tuple[str, ...]
    algebra = Algebra("algebraic", idempotent=True, selective=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind, by = (kind_of(t, what=str(self)) for t in types)
        return Bound(
            PARTIALS[self.which, kind, by], (kind, by), text_type(types[0]), lower, (kind,), decoded()
        )

    def __str__(self) -> str:
        return f"arg{self.which}({self.columns[0]}, by={self.columns[1]})"


def argmin(column: ColumnLike, *, by: ColumnLike, where: ColumnLike | None = None) -> ArgExtreme:
    """The value of `column` at the event with the smallest `by`.

    Among equals the earliest event counts (by time, then by arrival).

    Parameters
    ----------
    column
        The column whose value is returned, of any type that can be sorted.
    by
        The column that is compared. NaN is the greatest number.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    ArgExtreme
        An aggregate of the type of `column`: null where no event has values in both columns.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.argmin("sensor", by="temperature"))
    'argmin(sensor, by=temperature)'
    """
    return ArgExtreme("min", columns_read(column, by, where=where))


def argmax(column: ColumnLike, *, by: ColumnLike, where: ColumnLike | None = None) -> ArgExtreme:
    """The value of `column` at the event with the largest `by`.

    Among equals the earliest event counts (by time, then by arrival).

    Parameters
    ----------
    column
        The column whose value is returned, of any type that can be sorted.
    by
        The column that is compared. NaN is the greatest number.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    ArgExtreme
        An aggregate of the type of `column`: null where no event has values in both columns.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.argmax("sensor", by="temperature"))
    'argmax(sensor, by=temperature)'
    """
    return ArgExtreme("max", columns_read(column, by, where=where))

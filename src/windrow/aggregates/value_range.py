"""The distance from the smallest to the largest value."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates.base import (
    Aggregate,
    Algebra,
    Bound,
    Field,
    Scalars,
    columns_read,
    numeric_kind,
    plain,
)
from windrow.aggregates.extremes import NEUTRAL, larger_of, smaller_of
from windrow.aggregates.numerics import subtract_wide
from windrow.aggregates.sum import build_decimal, find_overflow, fits_integer
from windrow.expressions import ColumnLike


def lift(x):  # type: ignore[no-untyped-def]
    return x, x


def combine(a, b):  # type: ignore[no-untyped-def]
    return smaller_of((a[0],), (b[0],))[0], larger_of((a[1],), (b[1],))[0]


def lower_integer(a, n):  # type: ignore[no-untyped-def]
    low, high = subtract_wide(a[1], a[1] >> 63, a[0], a[0] >> 63)
    return low, high, n > 0


def lower_float(a, n):  # type: ignore[no-untyped-def]
    return a[1] - a[0], n > 0


PARTIALS = {
    kind: Scalars(
        "extremes",
        (Field("low", kind, NEUTRAL["min", kind]), Field("high", kind, NEUTRAL["max", kind])),  # type: ignore[arg-type]
        lift,
        combine,
    )
    for kind in "if"
}


@dataclass(frozen=True)
class Range(Aggregate):
    """The largest value less the smallest one."""

    columns: tuple[str, ...]
    name = "range"
    algebra = Algebra("algebraic", idempotent=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = numeric_kind(types[0], what=str(self))
        if kind == "f":
            return Bound(PARTIALS["f"], ("f",), pa.float64(), lower_float, ("f",), plain(pa.float64()))
        if pa.types.is_decimal(types[0]):
            scale = types[0].scale
            type_, build = pa.decimal128(38, scale), build_decimal(scale)
            return Bound(PARTIALS["i"], ("i",), type_, lower_integer, ("i", "i"), build)
        return Bound(
            PARTIALS["i"],
            ("i",),
            pa.int64(),
            lower_integer,
            ("i", "i"),
            plain(pa.int64()),
            check=find_overflow,
            fits=fits_integer,
        )


def range_(column: ColumnLike, *, where: ColumnLike | None = None) -> Range:
    """The largest value less the smallest one.

    NaN is the greatest number, and so is the answer where a value is NaN. One that int64 cannot hold is an error when the window is
    emitted.

    Parameters
    ----------
    column
        A numeric column.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Range
        An aggregate of type int64 for integers, decimal(38, s) for decimals, else float64: null where the
        window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.range("price"))
    'range(price)'
    """
    return Range(columns_read(column, where=where))

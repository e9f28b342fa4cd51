"""Exact sums. Integers and decimals in 128 bits, floats with compensation.

A sum that does not fit its result type is an error when the window is emitted; what happens in
between cannot overflow, so the error depends on the window's content alone, not on its order.
Float sums stay within 2 ulp of `math.fsum` as long as the absolute values together stay below
1.8e308 and cancel by less than 2**100.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import (
    Aggregate,
    Algebra,
    Bound,
    Field,
    Scalars,
    columns_read,
    plain,
    summable_kind,
)
from windrow.aggregates.numerics import (
    add_float,
    add_wide,
    lift_float,
    lower_float,
    subtract_wide,
    sum_floats,
    sum_integers,
)
from windrow.expressions import ColumnLike


def lift_integer(x):  # type: ignore[no-untyped-def]
    return x, x >> 63


def combine_integers(a, b):  # type: ignore[no-untyped-def]
    return add_wide(a[0], a[1], b[0], b[1])


def invert_integers(a, b):  # type: ignore[no-untyped-def]
    return subtract_wide(a[0], a[1], b[0], b[1])


def lower_integer(a, n):  # type: ignore[no-untyped-def]
    return a[0], a[1], n > 0


def lower_sum(a, n):  # type: ignore[no-untyped-def]
    return lower_float(a), n > 0


INTEGER_SUM = Scalars(
    "exact sum",
    (Field("low", "i", 0), Field("high", "i", 0)),
    lift_integer,
    combine_integers,
    invert=invert_integers,
    fold=sum_integers,
)
FLOAT_SUM = Scalars(
    "compensated sum",
    (Field("sum", "f", 0.0), Field("lost", "f", 0.0), Field("rest", "f", 0.0), Field("odd", "f", 0.0)),
    lift_float,
    add_float,
    fold=sum_floats,
)


def sum_partial(kind: str) -> Scalars:
    """The partial that sum and mean share."""
    return INTEGER_SUM if kind == "i" else FLOAT_SUM


def find_overflow(values: list[np.ndarray], defined: np.ndarray) -> tuple[int, int] | None:
    """The first row whose 128-bit sum is no int64, and that sum."""
    wrong = values[0] >> 63 != values[1]
    if not np.count_nonzero(wrong) or not (wrong & defined).any():
        return None
    row = int((wrong & defined).argmax())
    return row, (int(values[1][row]) << 64) + (int(values[0][row]) & (2**64 - 1))


def fits_integer(answer):  # type: ignore[no-untyped-def]
    return answer[0] >> 63 == answer[1]


def build_decimal(scale: int) -> Any:
    type_ = pa.decimal128(38, scale)

    def build(values: list[np.ndarray], defined: np.ndarray, decoders: Any) -> pa.Array:
        halves = np.column_stack(values).astype(np.int64)
        data = pa.py_buffer(np.ascontiguousarray(halves))
        valid = None if defined.all() else pa.array(defined).buffers()[1]
        return pa.Array.from_buffers(type_, len(defined), [valid, data])

    return build


@dataclass(frozen=True)
class Sum(Aggregate):
    """The sum of a column."""

    columns: tuple[str, ...]
    name = "sum"
    algebra = Algebra("distributive", invertible=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = summable_kind(types[0], what=str(self))
        if kind == "f":
            return Bound(FLOAT_SUM, ("f",), pa.float64(), lower_sum, ("f",), plain(pa.float64()))
        if pa.types.is_decimal(types[0]):
            scale = types[0].scale
            build = build_decimal(scale)
            return Bound(INTEGER_SUM, ("i",), pa.decimal128(38, scale), lower_integer, ("i", "i"), build)
        build, check, fits = plain(pa.int64()), find_overflow, fits_integer
        outputs = ("i", "i")
        return Bound(INTEGER_SUM, ("i",), pa.int64(), lower_integer, outputs, build, check=check, fits=fits)


def sum(column: ColumnLike, *, where: ColumnLike | None = None) -> Sum:
    """The sum of a column.

    Integers and decimals are added exactly, floats with compensation. A sum that its type cannot hold is an
    error when the window is emitted.

    Parameters
    ----------
    column
        A column of numbers, or of booleans: the sum is then how many are true.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Sum
        An aggregate of type int64 for integers and booleans, decimal(38, s) for decimals, else float64: null where the
        window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.sum("amount"))
    'sum(amount)'
    """
    return Sum(columns_read(column, where=where))

"""M4: smallest, largest, first and last value, what a line chart of a window needs (Jugel et al.)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import (
    INT64_MAX,
    Aggregate,
    Algebra,
    Bound,
    Field,
    Scalars,
    columns_read,
    kind_of,
    text_type,
)
from windrow.aggregates.extremes import (
    NEUTRAL,
    largest_float,
    largest_integer,
    smallest_float,
    smallest_integer,
)
from windrow.aggregates.numerics import greater
from windrow.expressions import ColumnLike


def lift(x, t, s):  # type: ignore[no-untyped-def]
    value = abs(x) if x == 0 else x
    return value, value, t, s, x, t, s, x


def combine(a, b):  # type: ignore[no-untyped-def]
    low = b[0] if greater(a[0], b[0]) else a[0]
    high = b[1] if greater(b[1], a[1]) else a[1]
    t0, s0, x0 = a[2], a[3], a[4]
    if b[2] < t0 or (b[2] == t0 and b[3] < s0):
        t0, s0, x0 = b[2], b[3], b[4]
    t1, s1, x1 = a[5], a[6], a[7]
    if b[5] > t1 or (b[5] == t1 and b[6] > s1):
        t1, s1, x1 = b[5], b[6], b[7]
    return low, high, t0, s0, x0, t1, s1, x1


def ends(x, t, s, low, high):  # type: ignore[no-untyped-def]
    last = high - 1
    return t[low], s[low], x[low], t[last], s[last], x[last]


def fold_integers(x, t, s, low, high):  # type: ignore[no-untyped-def]
    extremes = smallest_integer(x, low, high)[0], largest_integer(x, low, high)[0]
    return extremes + ends(x, t, s, low, high)


def fold_floats(x, t, s, low, high):  # type: ignore[no-untyped-def]
    extremes = smallest_float(x, low, high)[0], largest_float(x, low, high)[0]
    return extremes + ends(x, t, s, low, high)


def lower(a, n):  # type: ignore[no-untyped-def]
    return a[0], a[1], a[4], a[7], n > 0


def partial(kind: str) -> Scalars:
    fields = (
        Field("min", kind, NEUTRAL["min", kind], code=0),  # type: ignore[arg-type]
        Field("max", kind, NEUTRAL["max", kind], code=0),  # type: ignore[arg-type]
        Field("first time", "t", INT64_MAX),
        Field("first arrival", "i", INT64_MAX),
        Field("first", kind, 0, code=0),  # type: ignore[arg-type]
        Field("last time", "t", -INT64_MAX - 1),
        Field("last arrival", "i", -INT64_MAX - 1),
        Field("last", kind, 0, code=0),  # type: ignore[arg-type]
    )
    return Scalars(
        "m4", fields, lift, combine, fold=fold_integers if kind == "i" else fold_floats, timed=True
    )


PARTIALS = {kind: partial(kind) for kind in "if"}
PARTS = ("min", "max", "first", "last")


def build(values, defined: np.ndarray, decoders) -> pa.Array:  # type: ignore[no-untyped-def]
    columns = [decoders[0](part, defined) for part in values]
    return pa.StructArray.from_arrays(columns, PARTS, mask=pa.array(~defined))


@dataclass(frozen=True)
class M4(Aggregate):
    """Smallest, largest, first and last value."""

    columns: tuple[str, ...]
    name = "m4"
    algebra = Algebra("algebraic", idempotent=True, selective=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = kind_of(types[0], what=str(self))
        type_ = pa.struct([(part, text_type(types[0])) for part in PARTS])
        return Bound(PARTIALS[kind], (kind,), type_, lower, (kind,) * 4, build)


def m4(column: ColumnLike, *, where: ColumnLike | None = None) -> M4:
    """Smallest, largest, first and last value, from which a line chart is drawn without visible error.

    Parameters
    ----------
    column
        A column of any type that can be sorted.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    M4
        An aggregate of type struct, with the fields `min`, `max`, `first` and `last` of the column's type:
        null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.m4("price"))
    'm4(price)'
    """
    return M4(columns_read(column, where=where))

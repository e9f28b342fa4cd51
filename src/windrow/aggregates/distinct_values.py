"""The distinct values of a window, as a list or added up, from the sorted slices that quantiles use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import (
    Aggregate,
    Algebra,
    Bound,
    Multiset,
    columns_read,
    kind_of,
    numeric_kind,
    plain,
    text_type,
)
from windrow.aggregates.sum import build_decimal, find_overflow
from windrow.errors import DataError
from windrow.expressions import ColumnLike

LOW_HALF = (1 << 32) - 1


@dataclass(frozen=True)
class DistinctValues:
    """What the engine is to make of sorted values: `build(offsets, codes, decoders)` gets each distinct one, ascending; those of window i are
    `codes[offsets[i]:offsets[i + 1]]`."""


@dataclass(frozen=True)
class CollectDistinct(Aggregate):
    """The distinct values, ascending."""

    columns: tuple[str, ...]
    name = "collect_distinct"
    algebra = Algebra("holistic", idempotent=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = kind_of(types[0], what=str(self))

        def build(offsets: np.ndarray, codes: np.ndarray, decoders: Any) -> pa.Array:
            empty = np.diff(offsets) == 0
            mask = pa.array(empty) if empty.any() else None
            return pa.ListArray.from_arrays(
                pa.array(offsets, pa.int32()), decoders[0](codes, None), mask=mask
            )

        return Bound(Multiset(), (kind,), pa.list_(text_type(types[0])), build=build, finish=DistinctValues())


@dataclass(frozen=True)
class SumDistinct(Aggregate):
    """The sum of the distinct values."""

    columns: tuple[str, ...]
    name = "sum_distinct"
    algebra = Algebra("holistic", idempotent=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = numeric_kind(types[0], what=str(self))
        if kind == "f":
            return Bound(Multiset(), ("f",), pa.float64(), build=add_floats, finish=DistinctValues())
        is_decimal = pa.types.is_decimal(types[0])
        type_ = pa.decimal128(38, types[0].scale) if is_decimal else pa.int64()

        def build(offsets: np.ndarray, codes: np.ndarray, decoders: Any) -> pa.Array:
            words, defined = add_integers(offsets, codes)
            if is_decimal:
                return build_decimal(types[0].scale)(words, defined, decoders)
            overflow = find_overflow(words, defined)
            if overflow is not None:
                raise DataError(self.columns[0], None, overflow[1], f"{self} does not fit in 64 bits")
            return plain(pa.int64())(words[:1], defined, decoders)

        return Bound(Multiset(), ("i",), type_, build=build, finish=DistinctValues())


def add_floats(offsets: np.ndarray, codes: np.ndarray, decoders: Any) -> pa.Array:
    defined = np.diff(offsets) > 0
    total = np.zeros(len(defined))
    with np.errstate(invalid="ignore", over="ignore"):
        total[defined] = np.add.reduceat(codes, offsets[:-1][defined]) if len(codes) else 0.0
    return plain(pa.float64())([total], defined, decoders)


def add_integers(offsets: np.ndarray, codes: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Sums in 128 bits, as low and high words, and which windows have one: halves of 32 bits cannot overflow on the way."""
    defined = np.diff(offsets) > 0
    halves = np.zeros((2, len(defined)), np.int64)
    if len(codes):
        for half, part in zip(halves, (codes & LOW_HALF, codes >> 32), strict=True):
            half[defined] = np.add.reduceat(part, offsets[:-1][defined])
    top = halves[1] + (halves[0] >> 32)
    return [(top << 32) | (halves[0] & LOW_HALF), top >> 32], defined


def collect_distinct(column: ColumnLike, *, where: ColumnLike | None = None) -> CollectDistinct:
    """The distinct non-null values, ascending.

    Parameters
    ----------
    column
        A column of any type that can be sorted. All NaN are one value, the greatest.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    CollectDistinct
        An aggregate of type list: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.collect_distinct("page"))
    'collect_distinct(page)'
    """
    return CollectDistinct(columns_read(column, where=where))


def sum_distinct(column: ColumnLike, *, where: ColumnLike | None = None) -> SumDistinct:
    """The sum of the distinct values.

    Integers and decimals are added exactly; a sum that its type cannot hold is an error when the window is emitted.

    Parameters
    ----------
    column
        A numeric column.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    SumDistinct
        An aggregate of type int64 for integers, decimal(38, s) for decimals, else float64: null where the
        window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.sum_distinct("amount"))
    'sum_distinct(amount)'
    """
    return SumDistinct(columns_read(column, where=where))

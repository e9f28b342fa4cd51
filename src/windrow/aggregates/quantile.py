"""Exact quantiles, the median and the i-th smallest value.

Each slice keeps its values sorted and run-length encoded; a window selects from the sorted runs of
its slices without merging them (Scotty, section 5.4.1). All order statistics of one column share
those runs. NaN is the greatest value.
"""

from __future__ import annotations

from collections.abc import Callable
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
    decoded,
    kind_of,
    numeric_kind,
    plain,
    scale_of,
    text_type,
    whole_number,
)
from windrow.errors import QueryError
from windrow.expressions import ColumnLike

INTERPOLATIONS = ("linear", "lower", "higher", "nearest", "midpoint")


@dataclass(frozen=True)
class Ranks:
    """Selection by rank: `ranks(n)` gives two 0-based ranks, `join(low, high, n)` one value."""

    ranks: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    join: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    least: int = 1


@dataclass(frozen=True)
class Quantile(Aggregate):
    """The exact q-quantile."""

    columns: tuple[str, ...]
    q: float
    interpolation: str
    algebra = Algebra("holistic", selective=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        if self.interpolation not in ("linear", "midpoint"):
            kind = kind_of(types[0], what=str(self))
            finish = Ranks(self._exact_ranks, lambda low, high, n: low)
            return Bound(Multiset(), (kind,), text_type(types[0]), build=decoded(), finish=finish)
        kind = numeric_kind(types[0], what=str(self))
        scale = scale_of(types[0])

        def join(low: np.ndarray, high: np.ndarray, n: np.ndarray) -> np.ndarray:
            """Spark's `percentile`: the two neighbours, weighted by their distance."""
            position = self.q * (n - 1)
            below, above = np.floor(position), np.ceil(position)
            if self.interpolation == "midpoint":
                position = (below + above) / 2
            low, high = low.astype(np.float64), high.astype(np.float64)
            with np.errstate(invalid="ignore"):
                between = (above - position) * low + (position - below) * high
            return np.where((below == above) | (low == high), low, between) / scale

        finish = Ranks(self._neighbours, join)
        return Bound(Multiset(), (kind,), pa.float64(), build=plain(pa.float64()), finish=finish)

    def _neighbours(self, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        position = self.q * (n - 1)
        return np.floor(position).astype(np.int64), np.ceil(position).astype(np.int64)

    def _exact_ranks(self, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        position = self.q * (n - 1)
        rounding = {"lower": np.floor, "higher": np.ceil, "nearest": np.rint}[self.interpolation]
        rank = rounding(position).astype(np.int64)
        return rank, rank

    def __str__(self) -> str:
        how = "" if self.interpolation == "linear" else f", {self.interpolation}"
        return f"quantile({self.columns[0]}, {self.q!r}{how})"


@dataclass(frozen=True)
class IthSmallest(Aggregate):
    """The i-th smallest value."""

    columns: tuple[str, ...]
    i: int
    algebra = Algebra("holistic", selective=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = kind_of(types[0], what=str(self))

        def ranks(n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            rank = np.full(len(n), self.i - 1, np.int64)
            return rank, rank

        finish = Ranks(ranks, lambda low, high, n: low, least=self.i)
        return Bound(Multiset(), (kind,), text_type(types[0]), build=decoded(), finish=finish)

    def __str__(self) -> str:
        return f"ith_smallest({self.columns[0]}, {self.i})"


def checked_q(q: Any) -> float:
    """Where a quantile lies, as a float; a QueryError if it is no number from 0 to 1."""
    if isinstance(q, bool) or not isinstance(q, (int, float, np.number)) or not 0 <= q <= 1:
        raise QueryError(f"a quantile lies between 0 and 1, not at {q!r}")
    return float(q)


def quantile(
    column: ColumnLike, q: float, *, interpolation: str = "linear", where: ColumnLike | None = None
) -> Quantile:
    """The exact q-quantile, at position `q * (n - 1)` of the sorted values.

    All quantiles of a column share its sorted values, with `distinct` and `top_k`. `tdigest_quantile` and
    `kll_quantile` need less memory.

    Parameters
    ----------
    column
        A numeric column; for all but "linear" any that can be sorted. NaN is the greatest number.
    q
        Which quantile, from 0 to 1.
    interpolation
        What lies between two neighbours: "linear" (default, as Spark's `percentile`), or one of the two by
        "lower", "higher" or "nearest".
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Quantile
        An aggregate of type float64 for "linear", else of the column's type: null where the window holds no
        value.

    Raises
    ------
    QueryError
        If `q` is no number from 0 to 1, or `interpolation` none of these.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.quantile("delay", 0.9))
    'quantile(delay, 0.9)'
    """
    if interpolation not in INTERPOLATIONS:
        raise QueryError(f"interpolation must be one of {', '.join(INTERPOLATIONS)}, not {interpolation!r}")
    return Quantile(columns_read(column, where=where), checked_q(q), interpolation)


def median(column: ColumnLike, *, where: ColumnLike | None = None) -> Quantile:
    """The exact median: `quantile(column, 0.5)`.

    Parameters
    ----------
    column
        A numeric column.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Quantile
        An aggregate of type float64: null where the window holds no value.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.median("delay"))
    'quantile(delay, 0.5)'
    """
    return quantile(column, 0.5, where=where)


def ith_smallest(column: ColumnLike, i: int, *, where: ColumnLike | None = None) -> IthSmallest:
    """The i-th smallest value, repeats included.

    Parameters
    ----------
    column
        A column of any type that can be sorted.
    i
        Counted from 1, the smallest.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    IthSmallest
        An aggregate of the column's type: null where the window holds fewer values.

    Raises
    ------
    QueryError
        If `i` is no whole number from 1 on.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.ith_smallest("price", 2))
    'ith_smallest(price, 2)'
    """
    return IthSmallest(columns_read(column, where=where), whole_number(i, what="i"))

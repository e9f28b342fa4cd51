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
    decoded,
    kind_of,
    numeric_kind,
    plain,
    scale_of,
    text_type,
)
from windrow.errors import QueryError

INTERPOLATIONS = ("linear", "lower", "higher", "nearest")


@dataclass(frozen=True)
class Ranks:
    """Selection by rank: `ranks(n)` gives two 0-based ranks, `join(low, high, n)` one value."""

    ranks: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    join: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    least: int = 1


@dataclass(frozen=True)
class Quantile(Aggregate):
    """See `quantile` and `median`."""

    columns: tuple[str, ...]
    q: float
    interpolation: str
    algebra = Algebra("holistic", selective=True)

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        if self.interpolation != "linear":
            kind = kind_of(types[0], what=str(self))
            finish = Ranks(self._exact_ranks, lambda low, high, n: low)
            return Bound(Multiset(), (kind,), text_type(types[0]), build=decoded(), finish=finish)
        kind = numeric_kind(types[0], what=str(self))
        scale = scale_of(types[0])

        def join(low: np.ndarray, high: np.ndarray, n: np.ndarray) -> np.ndarray:
            """Spark's `percentile`: the two neighbours, weighted by their distance."""
            position = self.q * (n - 1)
            below, above = np.floor(position), np.ceil(position)
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
        return f"quantile({self.columns[0]}, {self.q:g}{how})"


@dataclass(frozen=True)
class IthSmallest(Aggregate):
    """See `ith_smallest`."""

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


def quantile(column: str, q: float, *, interpolation: str = "linear") -> Quantile:
    """The exact q-quantile, at position `q * (n - 1)` of the sorted values.

    `interpolation` between the two neighbours is "linear" (float64, as Spark's `percentile`), or
    "lower", "higher" or "nearest", which return a value of the column, of the column's type.

    >>> import windrow as wr
    >>> str(wr.quantile("delay", 0.9))
    'quantile(delay, 0.9)'
    """
    if interpolation not in INTERPOLATIONS:
        raise QueryError(f"interpolation must be one of {', '.join(INTERPOLATIONS)}, not {interpolation!r}")
    return Quantile((column,), checked_q(q), interpolation)


def median(column: str) -> Quantile:
    """The exact median: `quantile(column, 0.5)`.

    >>> import windrow as wr
    >>> str(wr.median("delay"))
    'quantile(delay, 0.5)'
    """
    return quantile(column, 0.5)


def ith_smallest(column: str, i: int) -> IthSmallest:
    """The i-th smallest value, counted from 1, repeats included; null where there are fewer.

    >>> import windrow as wr
    >>> str(wr.ith_smallest("price", 2))
    'ith_smallest(price, 2)'
    """
    if isinstance(i, bool) or not isinstance(i, int) or i < 1:
        raise QueryError(f"i counts from 1, not from {i!r}")
    return IthSmallest((column,), i)

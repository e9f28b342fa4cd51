"""A histogram of equal-width bins: how many values fall into each.

    counts    |  0  |  1  |  2  | ... | bins | bins + 1 |
    values     < low, then half-open bins      >= high, NaN

Bin `i` (from 1) holds `edge(i - 1) <= x < edge(i)` with `edge(i) = low + (high - low) * (i / bins)`:
a value on an edge is always in the bin that begins there, whatever the rounding of a division says.
The counts always add up to the number of values, and merge by addition. Histograms are the plainest
of the summaries in Cormode, Garofalakis, Haas, Jermaine: Synopses for Massive Data (2012, chapter 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import (
    Aggregate,
    Algebra,
    Bound,
    Field,
    Sketch,
    columns_read,
    lists_of,
    numeric_kind,
    scale_of,
    whole_number,
)
from windrow.aggregates.twins import in_numpy, into
from windrow.errors import QueryError
from windrow.expressions import ColumnLike


def edge(low, high, bins, i):  # type: ignore[no-untyped-def]
    """Where bin `i` ends; the last ends exactly at `high`."""
    if i == bins:
        return high
    return low + (high - low) * (i / bins)


def place_of(value, low, high, bins):  # type: ignore[no-untyped-def]
    """The place of a value in the counts, 0 to `bins + 1`."""
    if value < low:
        return 0
    if not value < high:
        return bins + 1
    place = min(np.int64((value - low) / (high - low) * bins), bins - 1)
    while value < edge(low, high, bins, place):
        place -= 1
    while value >= edge(low, high, bins, place + 1):
        place += 1
    return place + 1


@in_numpy(into(np.add))
def absorb(counts, other):  # type: ignore[no-untyped-def]
    for i in range(len(counts)):
        counts[i] += other[i]


@cache
def partial(low: float, high: float, bins: int, scale: float) -> Sketch:
    """One sketch per set of bins and scale of a decimal column."""

    def insert(counts, x):  # type: ignore[no-untyped-def]
        counts[place_of(x / scale, low, high, bins)] += 1

    return Sketch(
        f"histogram low={low!r}, high={high!r}, bins={bins}, scale={scale:g}",
        (Field("counts", "i", 0, width=bins + 2),),
        insert,
        absorb,
    )


def build(fields: list[np.ndarray], n: np.ndarray, decoders: Any) -> pa.Array:
    return lists_of(fields[0][n > 0], n > 0)


@dataclass(frozen=True)
class Histogram(Aggregate):
    """How many values fall into each of `bins` equally wide bins of `[low, high)`, and outside."""

    columns: tuple[str, ...]
    low: float
    high: float
    bins: int
    algebra = Algebra("distributive")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kind = numeric_kind(types[0], what=str(self))
        sketch = partial(self.low, self.high, self.bins, scale_of(types[0]))
        return Bound(sketch, (kind,), pa.list_(pa.int64()), build=build)

    def __str__(self) -> str:
        return f"histogram({self.columns[0]}, low={self.low:g}, high={self.high:g}, bins={self.bins})"


def histogram(
    column: ColumnLike, *, low: float, high: float, bins: int, where: ColumnLike | None = None
) -> Histogram:
    """How many values fall into each of some equally wide bins.

    Parameters
    ----------
    column
        A numeric column.
    low, high
        Where the first bin begins and the last one ends; both finite.
    bins
        The number of bins. They are half-open: a value on an edge is in the bin that begins there.
    where
        A condition, such as "status = 'failed'": only events for which it holds count. None (default) counts all.

    Returns
    -------
    Histogram
        An aggregate of `bins + 2` counts as a list of int64: below `low`, each bin, and `high` and above,
        where NaN is, too. Null where the window holds no value.

    Raises
    ------
    QueryError
        If `bins` is no whole number from 1 on, `low` is not below `high`, or floats are too coarse for the
        bins.

    Examples
    --------
    >>> import windrow as wr
    >>> str(wr.histogram("delay", low=0, high=60, bins=6))
    'histogram(delay, low=0, high=60, bins=6)'
    """
    bins = whole_number(bins, what="bins")
    if not (low < high and math.isfinite(high - low)):
        raise QueryError(f"low must be below high and both finite, not {low!r} and {high!r}")
    low, high = float(low), float(high)
    if not low + (high - low) / bins > low or not high - (high - low) / bins < high:
        raise QueryError(f"floats between {low!r} and {high!r} are too few for {bins} bins")
    return Histogram(columns_read(column, where=where), low, high, bins)

"""Aggregates of shares of events: what each piece of an event gives, by the share of its duration that it has.

A share is a float, and so are counts and sums of shares.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.aggregates.base import (
    Aggregate,
    Algebra,
    Bound,
    Kind,
    Scalars,
    kind_of,
    numeric_kind,
    plain,
    unscaled,
)
from windrow.aggregates.count import Count
from windrow.aggregates.mean import Mean
from windrow.aggregates.numerics import add_float, lift_float, lower_float
from windrow.aggregates.sum import FLOAT_SUM, Sum, lower_sum
from windrow.aggregates.weighted_mean import WeightedMean
from windrow.errors import QueryError

# The column of shares, beside those of the events.
SHARE = "#share"


def lift_value(x, share):  # type: ignore[no-untyped-def]
    return lift_float(float(x) * share)


def lift_share(x, share):  # type: ignore[no-untyped-def]
    return lift_float(share)


def lower_count(a, n):  # type: ignore[no-untyped-def]
    return lower_float(a), True


VALUES = Scalars("sum of parts", FLOAT_SUM.fields, lift_value, add_float)
SHARES = Scalars("sum of shares", FLOAT_SUM.fields, lift_share, add_float)


@dataclass(frozen=True)
class Shares(Aggregate):
    """How many events lie inside, each by its share."""

    columns: tuple[str, ...]
    algebra = Algebra("distributive")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        if len(types) == 1:
            return Bound(FLOAT_SUM, ("f",), pa.float64(), lower_count, ("f",), plain(pa.float64()))
        kinds: tuple[Kind, ...] = (kind_of(types[0], what="a count of values"), "f")
        return Bound(SHARES, kinds, pa.float64(), lower_count, ("f",), plain(pa.float64()))


@dataclass(frozen=True)
class Parts(Aggregate):
    """The sum of a column, of each event by its share."""

    columns: tuple[str, ...]
    algebra = Algebra("distributive")

    def bind(self, types: tuple[pa.DataType, ...]) -> Bound:
        kinds: tuple[Kind, ...] = (numeric_kind(types[0], what=f"sum({self.columns[0]})"), "f")
        return Bound(VALUES, kinds, pa.float64(), lower_sum, ("f",), unscaled(types[0]))


def of_pieces(name: str, aggregate: Aggregate) -> Aggregate:
    """The same aggregate of pieces; an error if it has no parts."""
    columns = (*aggregate.columns, SHARE)
    if isinstance(aggregate, Count):
        return Shares(columns)
    if isinstance(aggregate, Sum):
        return Parts(columns)
    if isinstance(aggregate, Mean):
        return WeightedMean(columns)
    raise QueryError(
        f"aggregate {name!r} ({aggregate}) has no parts that a share of an event could give: "
        "only count, sum and mean can be prorated"
    )

"""Events that give each window the share of their duration that lies inside it.

    slices     |  0  |  1  |  2  |
    event         |--------|              half of it in slice 0, a quarter in 1 ... by the lengths of its pieces

An event is cut into one piece per slice. Pieces lie in one slice each, so that a window is what its slices hold,
and nothing goes on. A share is a float, and so are counts and sums of shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
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
    scale_of,
)
from windrow.aggregates.count import Count
from windrow.aggregates.mean import Mean
from windrow.aggregates.numerics import add_float, lift_float, lower_float
from windrow.aggregates.sum import FLOAT_SUM, Sum
from windrow.aggregates.weighted_mean import WeightedMean
from windrow.engine.binding import Answer, Binding
from windrow.engine.columns import takeable
from windrow.engine.cutting import Cells
from windrow.engine.engine import Merged
from windrow.engine.loads import Events
from windrow.engine.partials import Numbers, Store
from windrow.engine.spanning.engine import Spanning
from windrow.engine.spanning.placing import Grid, Placed
from windrow.engine.windows import Due
from windrow.errors import QueryError
from windrow.query import Query

SHARE = "#share"
# So many pieces are made at once.
PIECES = 1 << 20


def lift_value(x, share):  # type: ignore[no-untyped-def]
    return lift_float(float(x) * share)


def lift_share(x, share):  # type: ignore[no-untyped-def]
    return lift_float(share)


def lower_value(a, n):  # type: ignore[no-untyped-def]
    return lower_float(a), n > 0


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
        scale = scale_of(types[0])

        def build(values, defined, decoders):  # type: ignore[no-untyped-def]
            return plain(pa.float64())([values[0] / scale], defined, decoders)

        return Bound(VALUES, kinds, pa.float64(), lower_value, ("f",), build)


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


def pieces(
    events: Events, columns: tuple[str, ...], grid: Grid
) -> Iterator[tuple[pa.RecordBatch, np.ndarray, np.ndarray]]:
    """Events in pieces, some events at a time: rows with their shares, the event and the slice of each."""
    assert events.lasts is not None
    table = takeable(events.batch, [c for c in columns if c != SHARE])
    count = grid.last - grid.first + 1
    total = np.cumsum(count)
    ends = np.nextafter(events.lasts, np.inf) if grid.edges.dtype.kind == "f" else events.lasts + 1
    begin = 0
    while begin < len(count):
        done = total[begin - 1] if begin else 0
        stop = max(begin + 1, int(np.searchsorted(total, done + PIECES, side="right")))
        here = count[begin:stop]
        event = np.repeat(np.arange(begin, stop), here)
        piece = np.arange(len(event)) - np.repeat(np.cumsum(here) - here, here) + grid.first[event]
        start, end = events.times[event], ends[event]
        inner = _length(np.maximum(grid.edges[piece], start), np.minimum(grid.edges[piece + 1], end))
        shares = pa.array(inner / _length(start, end))
        yield table.take(pa.array(event)).append_column(SHARE, shares), event, piece
        begin = stop


def _length(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """How far it is from starts to ends, as floats; without a sign on the way, because it need not be an int64."""
    if starts.dtype.kind != "f":
        starts, ends = starts.astype(np.uint64), ends.astype(np.uint64)
    return (ends - starts).astype(np.float64)


class Prorated(Spanning):
    """The engine for events that contribute by shares; see the module."""

    def bound(self, query: Query, schema: pa.Schema) -> Binding:
        parts = {name: of_pieces(name, aggregate) for name, aggregate in query.aggregates.items()}
        computed = replace(query, aggregates=MappingProxyType(parts))
        return Binding(computed, schema, self.settings.store, (pa.field(SHARE, pa.float64()),))

    def computed(self, name: str, aggregate: Aggregate) -> Aggregate:
        return of_pieces(name, aggregate)

    def _accompany(self, answer: Answer) -> None:
        """Pieces do not go on."""

    def targets(self, store: Store, segments: Any) -> list[tuple[Any, Any]]:
        return [(store, segments)] if self._across(store) is None else super().targets(store, segments)

    def _fold(self, events: Events, numbers: np.ndarray | None, placed: Placed, grid: Grid) -> None:
        for rows, event, piece in pieces(events, self.binding.value_columns, grid):
            base = grid.base[piece]
            cells = base if numbers is None else np.where(base < 0, -1, base + numbers[event])
            self.fold(self.encode(rows), event, event, None, Cells(cells))

    def merged(self, store: Numbers, due: Due, slots: np.ndarray, keys: int) -> Merged:
        if self._across(store) is None:
            return store.merge(due, slots, keys)
        return super().merged(store, due, slots, keys)

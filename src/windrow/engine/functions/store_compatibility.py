"""Which store goes with which aggregate, and what is said where it does not.

Most stores take anything that can be combined. Two kinds need more: those that take a partial out of a total need
an inverse that is exact, and those that keep only what can still be an answer need a combine that selects.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import pyarrow as pa

from windrow.aggregates.base import Aggregate, Bound, Scalars, Sketch, guessed
from windrow.aggregates.count import Count
from windrow.engine.functions.user_functions import bind, settled
from windrow.errors import QueryError
from windrow.planner.merging import width_of
from windrow.planner.rolling import estimates
from windrow.schema import require_columns
from windrow.stores import STORES, store_named
from windrow.stores.base import Store


def chosen(name: str, aggregate: Aggregate, schema: pa.Schema, *, slices: int, row_by_row: bool) -> Store:
    """The store of this name; with "auto", the one that costs least for rolling windows of so many slices."""
    if name != "auto":
        return store_named(name)
    require_columns(schema, aggregate.columns)
    bound = bind(aggregate, [schema.field(c).type for c in aggregate.columns])
    exact = has_exact_inverse(bound)
    # Values in order, or sorted, are a range of a log: its begin and its end.
    width = width_of(bound.partial) if isinstance(bound.partial, (Scalars, Sketch)) else 2
    processors = os.cpu_count() or 1
    ranked = estimates(slices, exact=exact, row_by_row=row_by_row, processors=processors, width=width)
    return STORES[ranked[0].store]


def require_pairing(store: Store, aggregate: Aggregate, bound: Bound | None = None) -> None:
    """A QueryError if the store cannot work with the aggregate, as far as is known without `bound`."""
    if store.needs == "inverse":
        _require_inverse(store, aggregate, bound)
    elif store.needs == "selection":
        _require_selection(store, aggregate)


def require_pairings(name: str, aggregates: Iterable[Aggregate]) -> None:
    """A QueryError if the store of this name, which may be "auto", cannot merge the slices of all aggregates.

    Counts go with any store, because none is needed for them.
    """
    if name == "auto":
        return
    for aggregate in aggregates:
        if not isinstance(aggregate, Count):
            require_pairing(store_named(name), aggregate)


def _require_inverse(store: Store, aggregate: Aggregate, bound: Bound | None) -> None:
    if not aggregate.algebra.invertible:
        other = "slick_deque or two_stacks_lite" if _selects(aggregate) else "two_stacks_lite or daba_lite"
        raise QueryError(
            f"{store.name} takes a partial back out of a total, and {aggregate} has no inverse: use {other}"
        )
    if bound is not None and not has_exact_inverse(bound):
        raise QueryError(
            f"{store.name} takes a partial back out of a total, and a float taken out leaves rounding errors "
            f"behind in {aggregate}: use two_stacks_lite or daba_lite, or a column of integers or decimals"
        )


def has_exact_inverse(bound: Bound) -> bool:
    """Whether partials can be taken out again without a trace: never where a float would be subtracted."""
    partial = settled(bound).partial
    if not isinstance(partial, Scalars) or partial.invert is None:
        return False
    return all(field.dtype != "f" for field in partial.fields)


def _selects(aggregate: Aggregate) -> bool:
    """Whether combine gives back one of its two partials; one that selects a value need not do so."""
    bound = guessed(aggregate)
    return bound is not None and isinstance(bound.partial, Scalars) and bound.partial.selects


def _require_selection(store: Store, aggregate: Aggregate) -> None:
    if not _selects(aggregate):
        other = "subtract_on_evict or " if aggregate.algebra.invertible else ""
        raise QueryError(
            f"{store.name} keeps only partials that can still be an answer, so combine must give back one of its two "
            f"partials, and that of {aggregate} makes new ones: use {other}two_stacks_lite or daba_lite"
        )

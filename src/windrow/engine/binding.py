"""A query bound to the types of a table: which columns are read, which partials are kept.

Aggregates with equal partials on equal columns share one store; `stores` holds each once. Columns that an engine
makes itself, of those of the table, are `derived`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Bound, Scalars
from windrow.aggregates.count import COUNT
from windrow.engine.functions.store_compatibility import require_pairing
from windrow.engine.functions.user_functions import bind
from windrow.engine.intake.columns import Coder
from windrow.engine.partials import Log, Multisets, Numbers, Store, store_for
from windrow.engine.partials.scalars import lowering_of
from windrow.errors import QueryError
from windrow.measure import Measure
from windrow.planner.plan import Part
from windrow.schema import require_columns
from windrow.spec import QuerySpec
from windrow.stores import store_named

StoreKey = tuple[Any, tuple[str, ...]]

# How many events each cell holds: always kept, because it tells which windows exist.
PRESENCE: StoreKey = (COUNT, ())


@dataclass
class Answer:
    """One aggregate of the query: its bound form and the store that it reads."""

    bound: Bound
    columns: tuple[str, ...]
    key: StoreKey
    store: Store
    decoders: list[Any]

    @cached_property
    def lowering(self) -> Any:
        """The loop that makes results of partials of numbers."""
        return lowering_of(self.bound)


def is_own(partial: Any) -> bool:
    """Whether a partial is made by functions of the user's."""
    return isinstance(partial, Scalars) and partial.own


class Binding:
    """The part of a plan that an engine runs, fitted to the types of a table."""

    def __init__(self, part: Part) -> None:
        query, schema = part.query, part.schema
        assert schema is not None
        self._merged_by = part.options.store
        self._has_carry_over = part.has_carry_over
        self.derived = {field.name for field in part.derived}
        self.types = pa.schema([*schema, *part.derived])
        self.read_windows(query)
        require_columns(self.types, (*query.time_columns, *query.key, *self.window_columns))
        self.time_columns = query.time_columns
        self.schema = schema
        self.measure = Measure(query.time_columns[0], schema.field(query.time_columns[0]).type)
        self.key_schema = pa.schema([schema.field(name) for name in query.key])
        self.coders: dict[str, Coder] = {}
        self.presence = Numbers(COUNT, 0, self.measure.dtype)
        self.stores: dict[StoreKey, Store] = {PRESENCE: self.presence}
        self.answers: dict[str, Answer] = {}
        self.own: list[tuple[tuple[str, ...], Numbers]] = []
        self.others: list[tuple[tuple[str, ...], Store]] = []
        self.logs: list[tuple[tuple[str, ...], Log]] = []
        self.needs_arrival = self.has_own = False
        self.uncoded: set[str] = set()
        self.in_order: list[Store] = [self.presence]
        for name, aggregate in query.aggregates.items():
            self.add(name, part.computed(name, aggregate))

    def read_windows(self, query: QuerySpec) -> None:
        """Know the columns that windows read."""
        self.window_columns = tuple(c for window in query.windows.values() for c in window.columns)

    def add(self, name: str, aggregate: Aggregate) -> bool:
        """Bind one more aggregate; whether it needs a store that was not there."""
        require_columns(self.types, aggregate.columns)
        types = tuple(self.types.field(c).type for c in aggregate.columns)
        try:
            bound = bind(aggregate, types)
        except QueryError as problem:
            raise QueryError(f"aggregate {name!r}: {problem}") from None
        key = (bound.partial, aggregate.columns)
        fresh = key not in self.stores
        if fresh:
            store = store_for(bound, self.measure.dtype, carried_over=self._has_carry_over)
            if isinstance(store, Numbers) and store.fields and self._merged_by != "auto":
                require_pairing(store_named(self._merged_by), aggregate, bound)
                store.merging.store = self._merged_by
            self.stores[key] = store
        read = zip(aggregate.columns, types, strict=True) if bound.kinds else ()
        decoders = [self.coders.setdefault(column, Coder(column, type_)).decode for column, type_ in read]
        self.answers[name] = Answer(bound, aggregate.columns, key, self.stores[key], decoders)
        self._arrange()
        return fresh

    def merge_by(self, store: str, aggregates: Mapping[str, Aggregate]) -> None:
        """Merge slices by the store of this name, or "auto"."""
        if store == self._merged_by:
            return
        answers = [(name, answer) for name, answer in self.answers.items() if answer.key != PRESENCE]
        for name, answer in answers if store != "auto" else ():
            require_pairing(store_named(store), aggregates[name], answer.bound)
        self._merged_by = store
        for _, answer in answers:
            if isinstance(answer.store, Numbers) and answer.store.fields:
                answer.store.merging.store = store

    def learn(self, schema: pa.Schema) -> None:
        """Know the columns of a table that has more of them, or others beside those that are read."""
        self.require_same(schema)
        self.schema = schema
        self.types = pa.schema([*schema, *(self.types.field(name) for name in self.derived)])

    def arrange(self, names: Sequence[str]) -> None:
        """Answer the aggregates in this order."""
        self.answers = {name: self.answers[name] for name in names}
        self._arrange()

    def remove(self, name: str) -> None:
        """Drop an aggregate, and its store if no other aggregate reads it."""
        key = self.answers.pop(name).key
        if key != PRESENCE and all(answer.key != key for answer in self.answers.values()):
            del self.stores[key]
        used = {c for answer in self.answers.values() if answer.bound.kinds for c in answer.columns}
        self.coders = {c: coder for c, coder in self.coders.items() if c in used}
        self._arrange()

    def _arrange(self) -> None:
        """What each batch needs to know: the columns and the store of partials that are the user's own, which may
        fail, of all others, and of the logs among these."""
        self.own, self.others, self.logs = [], [], []
        for (partial, columns), store in self.stores.items():
            if isinstance(store, Numbers) and is_own(partial):
                self.own.append((columns, store))
            elif store is not self.presence:
                self.others.append((columns, store))
            if isinstance(store, Log):
                self.logs.append((columns, store))
        self.numbers = [store for store in self.stores.values() if isinstance(store, Numbers)]
        self.has_multisets = any(isinstance(store, Multisets) for store in self.stores.values())
        self.needs_arrival = bool(self.logs) or any(store.timed for store in self.numbers)
        self.has_own = any(is_own(partial) for partial, _ in self.stores)
        # Presence, then each store once, in the order of the aggregates: the same for equal queries, whatever was
        # added and removed on the way.
        found: dict[int, Store] = {id(self.presence): self.presence}
        for answer in self.answers.values():
            found.setdefault(id(answer.store), answer.store)
        self.in_order = list(found.values())
        self.largest_cell = max(store.cell_bytes for store in self.in_order)
        bounded = (item for item in self.coders.items() if item[1].may_be_oversized)
        self.may_be_oversized = [(name, coder) for name, coder in bounded if name not in self.derived]
        coded = set(self.coders)
        self.uncoded = {c for a in self.answers.values() for c in a.columns if c not in coded}

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        read = dict.fromkeys([*self.value_columns, *self.key_schema.names])
        return tuple(name for name in read if name not in self.derived)

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The columns that windows and aggregates read, and the time."""
        read = [*self.time_columns, *self.window_columns]
        read += [c for answer in self.answers.values() for c in answer.columns]
        return tuple(dict.fromkeys(read))

    def bad_values(self, batch: pa.RecordBatch) -> list[tuple[str, np.ndarray, str]]:
        """Rows whose values do not fit in a code: the column, a mask, the reason."""
        found = []
        for name, coder in self.may_be_oversized:
            wrong = coder.oversized(batch.column(name))
            if wrong is not None:
                found.append((name, wrong, "does not fit in 64 bits"))
        return found

    def require_same(self, schema: pa.Schema) -> None:
        """An error if a later batch has other types in the columns that are read."""
        if schema is self.schema or schema.equals(self.schema):
            return
        require_columns(schema, self.columns)
        for name in self.columns:
            old, new = self.schema.field(name).type, schema.field(name).type
            if old != new:
                raise QueryError(f"column {name!r} was {old} in the first batch and is {new} in this one")

"""The referee's answers: rows that remember the events they were made of.

An `Answer` is one output row in plain Python. It keeps the inputs of each aggregate, so that a
comparison can say how much rounding these very values excuse (see `tolerance`). `Answers.table()`
is the Arrow table that an engine would return.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.referee.events import Event, Key, arrow_array
from tests.referee.prorated import is_prorated, prorated_reference, share
from tests.referee.reference import Reference, Rows, user_type
from tests.referee.registry import reference_of
from windrow.aggregates.base import Aggregate, text_type
from windrow.aggregates.user import UserAggregate
from windrow.errors import DataError
from windrow.measure import Measure, Tick
from windrow.spec import QuerySpec

WINDOW_TYPE = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True)
class Answer:
    """One output row; `op` and `revision` are None in append mode."""

    key: Key
    window: str
    start: Tick
    end: Tick
    values: Mapping[str, Any]
    inputs: Mapping[str, Rows]
    op: str | None = None
    revision: int | None = None

    @property
    def identity(self) -> tuple[Any, ...]:
        """What tells this row from every other row of the same output."""
        change = () if self.op is None else (self.op, self.revision)
        return (*self.key, self.window, self.start, self.end, *change)


def compute(
    query: QuerySpec, events: Iterable[Event], start: Tick, end: Tick
) -> tuple[dict[str, Any], dict[str, Rows]]:
    """All aggregates over the events of a window, from scratch: their values and what they were made of."""
    ordered = sorted(events, key=lambda event: (event.tick, event.arrival))
    values, inputs = {}, {}
    for name, aggregate in query.aggregates.items():
        rows = [tuple(event.values[column] for column in aggregate.columns) for event in ordered]
        if is_prorated(query):
            rows = [(*row, share(event, start, end)) for row, event in zip(rows, ordered, strict=True)]
        rows = [row for row in rows if None not in row]
        inputs[name] = rows
        values[name] = reference_in(query, aggregate).value(aggregate, rows)
    return values, inputs


def reference_in(query: QuerySpec, aggregate: Aggregate) -> Reference:
    """The formula that judges an aggregate in this query."""
    return prorated_reference(aggregate) if is_prorated(query) else reference_of(aggregate)


@dataclass(frozen=True)
class Answers:
    """Output rows, and what is needed to make a table of them."""

    query: QuerySpec
    measure: Measure
    schema: pa.Schema
    rows: Sequence[Answer]
    update: bool = False

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.rows)

    def result_type(self, name: str) -> pa.DataType:
        """The Arrow type of an aggregate's column; shares of events are no whole numbers."""
        if is_prorated(self.query):
            return pa.float64()
        aggregate = self.query.aggregates[name]
        types = tuple(self.schema.field(c).type for c in aggregate.columns)
        if isinstance(aggregate, UserAggregate):
            return user_type(aggregate, types, [row.values.get(name) for row in self.rows])
        return aggregate.bind(types).type

    def table(self) -> pa.Table:
        """The rows as Arrow: keys, window, start, end, aggregates, and op, revision in update mode."""
        columns: dict[str, pa.Array] = {}
        for position, name in enumerate(self.query.key):
            type_ = text_type(self.schema.field(name).type)
            columns[name] = arrow_array([row.key[position] for row in self.rows], type_)
        columns["window"] = pa.array([row.window for row in self.rows], pa.string()).cast(WINDOW_TYPE)
        columns["start"] = arrow_array([row.start for row in self.rows], self.measure.type)
        columns["end"] = arrow_array([row.end for row in self.rows], self.measure.type)
        for name in self.query.aggregates:
            columns[name] = self._column(name)
        if self.update:
            columns["op"] = pa.array([row.op for row in self.rows], pa.string())
            columns["revision"] = pa.array([row.revision for row in self.rows], pa.int64())
        return pa.table(columns)

    def _column(self, name: str) -> pa.Array:
        type_ = self.result_type(name)
        values = [row.values[name] for row in self.rows]
        if pa.types.is_int64(type_):
            for position, value in enumerate(values):
                if value is not None and not -(2**63) <= value < 2**63:
                    raise DataError(name, position, value, "the result does not fit in 64 bits")
        return arrow_array(values, type_)

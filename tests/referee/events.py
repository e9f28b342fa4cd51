"""Tables as plain Python values and back: what the referee works with instead of arrays.

Temporal columns are read as whole ticks, so that nothing is lost to `datetime` (which has no
nanoseconds and no years beyond 9999). Everything else is what `to_pylist` gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from windrow.errors import DataError, QueryError
from windrow.measure import Measure, Tick
from windrow.schema import no_such_column
from windrow.spec import QuerySpec
from windrow.testing.compare import canonical, plain_values
from windrow.windows.predicate import Predicate

Key = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Source:
    """The table that an event came from; it answers what holds for which row."""

    table: pa.Table
    answers: dict[Predicate, list[bool]] = field(default_factory=dict)

    def holds(self, predicate: Predicate, row: int) -> bool:
        """Whether a predicate holds for a row; where a column or the result is null, it does not."""
        if predicate not in self.answers:
            self.answers[predicate] = _truth(predicate, self.table)
        return self.answers[predicate][row]


@dataclass(frozen=True)
class Event:
    """One row: its tick, its arrival number, its key, its values by column, its row number.

    An event that lasts has an `end`, which is infinite while the event goes on; `tick` is then its start. `horizon` is the watermark less the lateness at the time it came: what had ended by then is final.
    """

    tick: Tick
    arrival: int
    key: Key
    values: dict[str, Any]
    row: int
    source: Source = field(repr=False, compare=False)
    horizon: Tick = -math.inf
    end: Tick | None = None

    def holds(self, predicate: Predicate) -> bool:
        """Whether a predicate holds for this event."""
        return self.source.holds(predicate, self.row)


def _truth(predicate: Predicate, table: pa.Table) -> list[bool]:
    """What a predicate says of each row of a table."""
    if predicate.function is not None:
        columns = [plain_values(table[name]) for name in predicate.columns]
        rows = zip(*columns, strict=True)
        answers = [None if None in row else predicate.function(*row) for row in rows]
        for answer in answers:
            if not isinstance(answer, (bool, type(None))):
                raise QueryError(f"{predicate} gives {answer!r}, which is not true or false")
        return [answer is True for answer in answers]
    if predicate.column is not None:
        column = table[predicate.column]
    else:
        column = ds.dataset(table).to_table(columns={"answer": predicate.expression})["answer"]
    if not pa.types.is_boolean(column.type):
        raise QueryError(f"{predicate} is {column.type}, not boolean")
    return [answer is True for answer in column.to_pylist()]


def arrow_array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """The inverse of `windrow.testing.compare.plain_values`, also inside lists and structs.

    >>> import pyarrow as pa
    >>> arrow_array([[1], None], pa.list_(pa.date32())).to_pylist()
    [[datetime.date(1970, 1, 2)], None]
    """
    if pa.types.is_date32(type_):
        return pa.array(values, pa.int32()).cast(type_)
    if pa.types.is_temporal(type_):
        return pa.array(values, pa.int64()).cast(type_)
    mask = pa.array([v is None for v in values], pa.bool_())
    if pa.types.is_list(type_):
        offsets: list[int] = [0]
        items: list[Any] = []
        for value in values:
            items += value or []
            offsets.append(len(items))
        flat = arrow_array(items, type_.value_type)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat, type=type_, mask=mask)
    if pa.types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        parts = [arrow_array([None if v is None else v[f.name] for v in values], f.type) for f in fields]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=mask)
    return pa.array(values, type_)


def bad_reason(tick: Tick | None) -> str | None:
    """Why this tick cannot be a time, or None."""
    if tick is None:
        return "time is null"
    if not math.isfinite(tick):
        return "time is not a finite number"
    return None


def require_columns(query: QuerySpec, schema: pa.Schema) -> None:
    """An error if the table lacks a column that the query names."""
    needed = [*query.time_columns, *query.key]
    for aggregate in query.aggregates.values():
        needed += aggregate.columns
    for window in query.windows.values():
        needed += window.columns
    for name in needed:
        if name not in schema.names:
            raise QueryError(no_such_column(name, schema.names))


def read_events(
    query: QuerySpec, table: pa.Table, *, first_arrival: int = 0, horizon: Tick = -math.inf
) -> tuple[Measure, list[Event]]:
    """All rows as events at an instant, in arrival order; a bad time raises `DataError`."""
    require_columns(query, table.schema)
    assert isinstance(query.time, str), "events that last are read by `spans`"
    measure = Measure(query.time, table.schema.field(query.time).type)
    columns = {name: plain_values(table[name]) for name in table.column_names}
    times = [None if t is None else float(t) if measure.floating else t for t in columns[query.time]]
    keys = [[canonical(v) for v in columns[name]] for name in query.key]
    source = Source(table)
    events = []
    for row, tick in enumerate(times):
        reason = bad_reason(tick)
        if tick is None or reason is not None:
            raise DataError(query.time, row, tick, reason or "")
        key = tuple(column[row] for column in keys)
        values = {name: column[row] for name, column in columns.items()}
        events.append(Event(tick, first_arrival + row, key, values, row, source, horizon))
    return measure, events

"""Slices that travel, as rows of a record batch.

A *slice batch* is an Arrow record batch that stands for many events, with one row per slice and key:

    key columns          as the engine keeps them: no dictionaries, no views
    "#first", "#last"    the times of the first and the last event of the slice, in ticks
    "#n"                 how many events it holds
    "#<i>.n"             how many values are in store i; stores are counted from 1, in the order of the
    "#<i>.f<j>"          aggregates, and field j of the partial that they are folded into

Where events last, "#role" follows the key columns: such a row stands for events that begin in the slice and go on, that end in it,
or that do both (see `spanning.partial_batches`).

Several rows may be for the same slice of the same key. Where its slice begins and ends does not travel:
the receiver finds it from "#first", because both have the same windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windrow.engine.intake.batches import PartialBatch
from windrow.engine.intake.columns import raw
from windrow.engine.partials import Numbers
from windrow.errors import QueryError
from windrow.schema import require_columns
from windrow.span import Span

if TYPE_CHECKING:
    from windrow.engine.engine import Engine

FIRST, LAST, SIZE, ROLE = "#first", "#last", "#n", "#role"


def read_slices(batch: pa.RecordBatch, engine: Engine) -> PartialBatch:
    """An error if the batch is not what `packed` gives for the same query."""
    schema = slice_schema(engine)
    require_columns(batch.schema, tuple(schema.names))
    for known in schema:
        found = batch.schema.field(known.name).type
        if found != known.type:
            raise QueryError(f"column {known.name!r} of a slice batch is {known.type} here, not {found}")
    columns = {f.name: _numbers(batch, f) for f in schema if f.name not in engine.keys.schema.names}
    partials = [
        (columns[f"#{i}.n"], [columns[f"#{i}.f{j}"] for j in range(len(store.fields))])
        for i, store in _stores(engine)
    ]
    return PartialBatch(batch, columns[FIRST], columns[LAST], columns[SIZE], partials, columns.get(ROLE))


def slice_schema(engine: Engine) -> pa.Schema:
    """The schema of the slice batches of an engine, whose partials are all of a few numbers."""
    tick, whole = pa.from_numpy_dtype(engine.measure.dtype), pa.int64()
    fields = [pa.field(f.name, f.type) for f in engine.keys.schema]
    if isinstance(engine.query.time, Span):
        fields.append(pa.field(ROLE, whole))
    fields += [pa.field(FIRST, tick), pa.field(LAST, tick), pa.field(SIZE, whole)]
    for i, store in _stores(engine):
        fields.append(pa.field(f"#{i}.n", whole))
        for j, dtype in enumerate(store.dtypes):
            fields.append(pa.field(f"#{i}.f{j}", pa.from_numpy_dtype(dtype)))
    return pa.schema(fields)


def packed(
    engine: Engine, key: np.ndarray, first: np.ndarray, last: np.ndarray, cells: np.ndarray
) -> pa.RecordBatch:
    """A slice batch of the partials in these cells; `key` is the key number of each."""
    columns = engine.keys.taken(key)
    numbers = [first, last, engine.presence.n[cells]]
    for _, store in _stores(engine):
        numbers += [store.n[cells], *(field[cells] for field in store.fields)]
    return pa.RecordBatch.from_arrays([*columns, *map(pa.array, numbers)], schema=slice_schema(engine))


def _stores(engine: Engine) -> list[tuple[int, Numbers]]:
    """The stores whose partials travel, with their numbers."""
    return [(i, s) for i, s in enumerate(engine.binding.in_order) if i and isinstance(s, Numbers)]


def _numbers(batch: pa.RecordBatch, field: pa.Field) -> np.ndarray:
    array = batch.column(field.name)
    if array.null_count:
        raise QueryError(
            f"column {field.name!r} of a slice batch has {array.null_count} nulls, and no need of any"
        )
    return raw(array, np.float64 if pa.types.is_floating(field.type) else np.int64)

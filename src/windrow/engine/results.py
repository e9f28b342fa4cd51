"""The schema of results: keys, `window`, `start`, `end`, aggregates, and in update mode `op` and `revision`."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from windrow.engine.binding import Binding
from windrow.errors import DataError
from windrow.expressions.formula import evaluate
from windrow.spec import QuerySpec

WINDOW_TYPE = pa.dictionary(pa.int32(), pa.string())
CHANGES = [pa.field("op", pa.string()), pa.field("revision", pa.int64())]


def result_schema(binding: Binding, keys: pa.Schema, mode: str) -> pa.Schema:
    """The schema of the results of a bound query, which changes only with its aggregates."""
    fields = [*keys, pa.field("window", WINDOW_TYPE)]
    fields += [pa.field(name, binding.measure.type) for name in ("start", "end")]
    fields += [pa.field(name, answer.bound.type) for name, answer in binding.answers.items()]
    return pa.schema(fields + CHANGES if mode == "update" else fields)


def empty_result(query: QuerySpec, mode: str) -> pa.Table:
    """A result without rows, before any batch has told the types."""
    names = [*query.key, "window", "start", "end", *query.aggregates]
    fields = [pa.field(name, WINDOW_TYPE if name == "window" else pa.null()) for name in names]
    return pa.schema(fields + CHANGES if mode == "update" else fields).empty_table()


def with_selected(select: Mapping[str, str], rows: pa.Table) -> pa.Table:
    """Results with more columns, of expressions over those that are there; a DataError names the window of the first that fails."""
    if not select:
        return rows
    try:
        columns = evaluate(list(select.values()), rows)
    except DataError as error:
        assert error.row is not None
        window, start = rows["window"][error.row], rows["start"][error.row]
        where = f"{error.problem} (in window {window}, from {start} on)"
        raise DataError(error.column, error.row, error.value, where) from None
    for name, column in zip(select, columns, strict=True):
        rows = rows.append_column(name, column)
    return rows

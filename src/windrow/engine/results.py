"""The schema of results: keys, `window`, `start`, `end`, aggregates; in update mode `op` and `revision`, and `final` with early rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from windrow.engine.binding import Binding
from windrow.errors import DataError
from windrow.expressions.formula import evaluate
from windrow.options import OperatorOptions
from windrow.spec import FINALITY, QuerySpec

WINDOW_TYPE = pa.dictionary(pa.int32(), pa.string())
CHANGES = [pa.field("op", pa.string()), pa.field("revision", pa.int64())]
FINAL = pa.field(FINALITY, pa.bool_())


def changes_of(options: OperatorOptions) -> list[pa.Field]:
    """The columns that say what a row does to those before it, and with early rows, whether it can still change."""
    if options.mode == "append":
        return []
    return [*CHANGES, FINAL] if options.is_early else CHANGES


def result_schema(binding: Binding, keys: pa.Schema, options: OperatorOptions) -> pa.Schema:
    """The schema of the results of a bound query, which changes only with its aggregates."""
    fields = [*keys, pa.field("window", WINDOW_TYPE)]
    fields += [pa.field(name, binding.measure.type) for name in ("start", "end")]
    fields += [pa.field(name, answer.bound.type) for name, answer in binding.answers.items()]
    return pa.schema(fields + changes_of(options))


def empty_result(query: QuerySpec, options: OperatorOptions) -> pa.Table:
    """A result without rows, before any batch has told the types."""
    names = [*query.key, "window", "start", "end", *query.aggregates]
    fields = [pa.field(name, WINDOW_TYPE if name == "window" else pa.null()) for name in names]
    return pa.schema(fields + changes_of(options)).empty_table()


def joined(
    results: Sequence[pa.Table] | Sequence[pa.RecordBatch], schema: pa.Schema | None = None
) -> pa.Table:
    """Results of several calls, or the batches of several engines, as one table, whose names of windows have one dictionary."""
    if isinstance(results[0], pa.Table):
        return results[0] if len(results) == 1 else pa.concat_tables(results).unify_dictionaries()
    table = pa.Table.from_batches(results, schema)
    return table if len(results) == 1 else table.unify_dictionaries()


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

"""What is computed of events before an engine sees them: a filter, columns of expressions, and keys.

    batch        ts  price  quantity  status
                   | where                           rows for which it does not hold are gone
                   | keys, expressions
    engine's     ts  price  quantity  status  day  "= price * quantity"

A column of an expression is called by its text (`windrow.expressions.building`), so that equal ones are computed once, and engines,
snapshots and threads have columns as any other. A batch that has such columns already is left as it is: Spark computes them itself.
Late and bad rows go back without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow.errors import DataError, QueryError, UserFunctionError
from windrow.expressions.arrow import PROBLEMS, Evaluation
from windrow.expressions.building import is_computed, shown
from windrow.expressions.formula import Formula
from windrow.spec import NOTHING, QuerySpec

# Spark's word on a row that is bad, where bad rows are diverted: a column of reasons, null for good rows.
REASON = "= bad"


@dataclass(frozen=True)
class Projected:
    """A batch with all columns; `rows` says which rows of the batch before these are, None that they are all; `bad` has the others."""

    batch: pa.RecordBatch
    rows: np.ndarray | None
    bad: pa.Table | None


class Projection:
    """The filter, the keys and the expressions of a query."""

    def __init__(self, query: QuerySpec) -> None:
        self._where = query.where
        self._keys = query.key_expressions
        self._names = tuple(dict.fromkeys(name for name in query.columns if is_computed(name)))
        self._fitted: tuple[pa.Schema, Formula | None, dict[str, Formula]] | None = None

    @property
    def added(self) -> frozenset[str]:
        """The names of columns that events do not have by themselves."""
        return frozenset([*self._names, *self._keys, REASON])

    def _fit(self, schema: pa.Schema) -> tuple[Formula | None, dict[str, Formula]]:
        """The filter, and the columns that are missing."""
        if self._fitted is not None and (self._fitted[0] is schema or self._fitted[0].equals(schema)):
            return self._fitted[1:]
        where = None
        if self._where is not None:
            where = Formula(self._where, schema)
            where.require_boolean("where of the query")
        known = set(schema.names)
        asked = {**self._keys, **{name: name for name in self._names}}
        made = {name: Formula(source, schema) for name, source in asked.items() if name not in known}
        self._fitted = schema, where, made
        return where, made

    def is_done(self, schema: pa.Schema) -> bool:
        """Whether a table of this schema needs nothing more."""
        names = set(schema.names)
        return (
            self._where is None and not self._keys and names.issuperset(self._names) and REASON not in names
        )

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of events and those that are computed of them."""
        _, made = self._fit(schema)
        return pa.schema([*schema, *(pa.field(name, formula.type) for name, formula in made.items())])

    def require_new_names(self, schema: pa.Schema) -> None:
        """A QueryError if events have a column that is called like a key of an expression."""
        for name, source in self._keys.items():
            if name in schema.names:
                raise QueryError(
                    f"the key {name!r} is {shown(source)}, and events have a column of that name: give it another one"
                )

    def __call__(self, batch: pa.RecordBatch, *, on_bad: str) -> Projected:
        """A batch of which everything is computed; a DataError names the first row of which something cannot be."""
        where, made = self._fit(batch.schema)
        rows: np.ndarray | None = None
        bad_rows: list[pa.RecordBatch] = []
        reasons: list[str] = []
        if REASON in batch.schema.names:
            batch, rows = _sifted(batch, bad_rows, reasons)
        if where is not None:
            with rows_of(rows):
                batch, kept = self._kept(batch, where, on_bad, bad_rows, reasons)
            rows = kept if rows is None or kept is None else rows[kept]
        evaluation, columns = Evaluation(batch), []
        refused = np.zeros(batch.num_rows, bool)
        for formula in made.values():
            values, bad = formula.values(evaluation, batch)
            if bad is not None and bad.any():
                if on_bad == "raise":
                    with rows_of(rows):
                        raise formula.error(batch, bad)
                first = np.flatnonzero((bad > 0) & ~refused)
                bad_rows.append(batch.take(pa.array(first)))
                reasons += [_reason(formula, number) for number in bad[first].tolist()]
                refused |= bad > 0
            columns.append(values)
        if columns:
            fields = [pa.field(name, formula.type) for name, formula in made.items()]
            schema = pa.schema([*batch.schema, *fields])
            batch = pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=schema)
        if refused.any():
            good = np.flatnonzero(~refused)
            batch, rows = batch.take(pa.array(good)), good if rows is None else rows[good]
        return Projected(batch, rows, _refused(bad_rows, reasons, batch.schema))

    def _kept(
        self,
        batch: pa.RecordBatch,
        where: Formula,
        on_bad: str,
        bad_rows: list[pa.RecordBatch],
        reasons: list[str],
    ) -> tuple[pa.RecordBatch, np.ndarray | None]:
        holds, bad = where.values(Evaluation(batch), batch)
        if bad is not None and bad.any():
            if on_bad == "raise":
                raise where.error(batch, bad)
            first = np.flatnonzero(bad > 0)
            bad_rows.append(batch.take(pa.array(first)))
            reasons += [_reason(where, number) for number in bad[first].tolist()]
        if not holds.null_count and holds.true_count == len(holds):
            return batch, None
        rows = np.flatnonzero(holds.fill_null(False).to_numpy(zero_copy_only=False))
        return batch.filter(holds), rows

    def without(self, table: pa.Table) -> pa.Table:
        """Late or bad rows as they came."""
        return table.select([name for name in table.column_names if name not in self.added])


def _reason(formula: Formula, number: int) -> str:
    return f"column {shown(formula.name)!r}: {PROBLEMS[number]}"


def _sifted(
    batch: pa.RecordBatch, bad_rows: list[pa.RecordBatch], reasons: list[str]
) -> tuple[pa.RecordBatch, np.ndarray | None]:
    """The rows of which Spark could compute everything."""
    why = batch.column(REASON)
    batch = batch.drop_columns([REASON])
    if why.null_count == len(why):
        return batch, None
    bad_rows.append(batch.filter(why.is_valid()))
    reasons += why.drop_null().to_pylist()
    return batch.filter(why.is_null()), np.flatnonzero(why.is_null().to_numpy(zero_copy_only=False))


def _refused(rows: list[pa.RecordBatch], reasons: list[str], schema: pa.Schema) -> pa.Table | None:
    """Bad rows and why; what was not computed of them is null."""
    if not rows:
        return None
    table = pa.concat_tables(
        [schema.empty_table(), *(pa.Table.from_batches([each]) for each in rows)], promote_options="default"
    )
    return table.append_column("bad_reason", pa.array(reasons, pa.string()))


def projection_of(query: QuerySpec) -> Projection | None:
    """What is computed of events for a query; None if nothing is."""
    asked = query.where is not None or query.key_expressions or any(map(is_computed, query.columns))
    return Projection(query) if asked else None


def projected(query: QuerySpec) -> QuerySpec:
    """The same query over events that were filtered, and have their keys; nothing is left to be done to its result."""
    return replace(query, where=None, key_expressions=NOTHING, select=NOTHING)


def row_of(row: int | None, rows: Sequence[int] | np.ndarray | None) -> int | None:
    """The row of a batch that has become this one."""
    return row if row is None or rows is None else int(rows[row])


@contextmanager
def rows_of(rows: Sequence[int] | np.ndarray | None) -> Iterator[None]:
    """Errors within name rows as they are counted before: row i is `rows[i]` there."""
    try:
        yield
    except DataError as error:
        raise DataError(error.column, row_of(error.row, rows), error.value, error.problem) from None
    except UserFunctionError as error:
        raise UserFunctionError(error.what, row_of(error.row, rows), error.why) from error.__cause__

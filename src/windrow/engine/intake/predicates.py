"""Predicates over batches: which events are marks, or lie above a threshold.

    where = pc.field("speed") > 80        speed    70    85   null   90
                                          holds     .     x     .     x

A `Condition` is a predicate bound to the types of a table. A boolean column is read, an expression
is run by Arrow, a function is compiled and called row by row, or interpreted where Numba cannot
compile it. A row with a null in a column that the function reads is false without a call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.user import as_function
from windrow.compiling.compiler import kernel, warn_interpreted
from windrow.compiling.integers import interpreted
from windrow.engine.intake.numbers import kind_of, numbers
from windrow.errors import QueryError, UserFunctionError
from windrow.schema import require_columns
from windrow.windows.functions import label
from windrow.windows.predicate import Predicate


@cache
def _source(columns: int) -> str:
    inputs = "".join(f"x{i}, " for i in range(columns))
    values = ", ".join(f"x{i}[i]" for i in range(columns))
    return f"""
def hold({inputs}out):
    for i in range(out.shape[0]):
        out[i] = function({values})
"""


class Condition:
    """A predicate bound to a schema; `what` names it in errors ("where of window 'w'")."""

    def __init__(self, predicate: Predicate, schema: pa.Schema, *, what: str) -> None:
        self.predicate = predicate
        self.what = what
        require_columns(schema, predicate.columns)
        if predicate.column is not None:
            found = schema.field(predicate.column).type
            if not pa.types.is_boolean(found):
                raise QueryError(
                    f"{what}: column {predicate.column!r} is of type {found}; a boolean column is needed"
                )
        elif predicate.expression is not None:
            self._check_expression(schema)
        else:
            self._bind_function(schema)

    def __call__(self, batch: pa.RecordBatch, moment: Callable[[int], str] | None = None) -> np.ndarray:
        """Where the predicate holds, as booleans, one per row.

        `moment` says of a row when it happened; an error then names that, and not the row.
        """
        if self.predicate.column is not None:
            return numbers(batch.column(self.predicate.column))[0]
        if self.predicate.expression is not None:
            return self._evaluate(batch)
        return self._call(batch, moment)

    def _check_expression(self, schema: pa.Schema) -> None:
        empty = pa.RecordBatch.from_pylist([], schema=schema)
        try:
            found = self._project(empty).type
        except (pa.ArrowException, KeyError) as problem:
            raise QueryError(f"{self.what}: {self.predicate}: {problem}") from None
        if not pa.types.is_boolean(found):
            raise QueryError(
                f"{self.what}: the expression {self.predicate} gives {found}; a boolean is needed"
            )

    def _evaluate(self, batch: pa.RecordBatch) -> np.ndarray:
        try:
            return numbers(self._project(batch))[0]
        except pa.ArrowException as problem:
            name = type(problem).__name__
            raise UserFunctionError(
                f"{self.what}: {self.predicate} raised {name}", None, f": {problem}"
            ) from None

    def _project(self, batch: pa.RecordBatch) -> pa.Array:
        """The expression over all rows, in their order: Acero keeps it on one thread."""
        from pyarrow import acero  # it imports pandas, if there is one

        table = pa.Table.from_batches([batch.select(list(self.predicate.columns))])
        plan = acero.Declaration.from_sequence(
            [
                acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
                acero.Declaration(
                    "project", acero.ProjectNodeOptions([self.predicate.expression], ["holds"])
                ),
            ]
        )
        answer = plan.to_table(use_threads=False).column(0)
        return answer.chunk(0) if answer.num_chunks == 1 else answer.combine_chunks()

    def _bind_function(self, schema: pa.Schema) -> None:
        from windrow.compiling.native import NOT_COMPILED, TYPES, returned

        given, columns = self.predicate.function, self.predicate.columns
        assert given is not None
        self._name = label(given)
        kinds = []
        for column in columns:
            kind = kind_of(schema.field(column).type)
            if kind is None:
                raise QueryError(
                    f"{self.what}: the function {self._name!r} reads column {column!r} of type "
                    f"{schema.field(column).type}; numbers, times and booleans can be read"
                )
            kinds.append(TYPES[kind])
        self._function = as_function(given, len(columns))
        self._kernel: Any = None
        try:
            found = returned(self._function, kinds)
        except NOT_COMPILED as problem:
            warn_interpreted({"where": self._function}, problem)
            return
        if found != TYPES["b"]:
            raise self._not_boolean(found)
        self._kernel = kernel(_source(len(columns)), "hold", {"function": self._function}, user=True)

    def _not_boolean(self, found: Any) -> QueryError:
        return QueryError(f"{self.what}: the function {self._name!r} returns {found}; a boolean is needed")

    def _call(self, batch: pa.RecordBatch, moment: Callable[[int], str] | None) -> np.ndarray:
        inputs, present = [], None
        for column in self.predicate.columns:
            values, there = numbers(batch.column(column))
            inputs.append(values)
            if there is not None:
                present = there if present is None else present & there
        holds = np.zeros(len(batch), np.bool_)
        rows = None
        if present is not None:
            rows = np.flatnonzero(present)
            inputs = [values[rows] for values in inputs]
        called = np.empty(len(inputs[0]), np.bool_)
        if self._kernel is None:
            self._interpret(inputs, called, rows, moment)
        else:
            try:
                self._kernel(*inputs, called)
            except Exception as problem:  # the user's function may raise anything
                self._interpret(inputs, called, rows, moment)
                raise self._failed(problem, "") from problem
        if rows is None:
            return called
        holds[rows] = called
        return holds

    def _interpret(
        self,
        inputs: list[np.ndarray],
        called: np.ndarray,
        rows: np.ndarray | None,
        moment: Callable[[int], str] | None,
    ) -> None:
        """Call the function row by row as plain Python; an error names the row and its values."""
        function = interpreted(self._function)
        for i, values in enumerate(zip(*(x.tolist() for x in inputs), strict=True)):
            try:
                answer = function(*values)
            except Exception as problem:  # the user's function may raise anything
                row = i if rows is None else int(rows[i])
                pairs = zip(self.predicate.columns, values, strict=True)
                where = f" ({', '.join(f'{c}={v!r}' for c, v in pairs)})"
                if moment is not None:
                    raise self._failed(problem, f" at {moment(row)}{where}") from problem
                raise self._failed(problem, where, row) from problem
            if not isinstance(answer, (bool, np.bool_)):
                raise self._not_boolean("int" if isinstance(answer, int) else type(answer).__name__)
            called[i] = answer

    def _failed(self, problem: Exception, where: str, row: int | None = None) -> UserFunctionError:
        what = f"{self.what}: the function {self._name!r} raised {type(problem).__name__}"
        return UserFunctionError(what, row, f"{where}: {problem}")

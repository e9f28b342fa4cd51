"""An expression at work on batches of one schema: its type, its values, and what is wrong with a bad row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.errors import DataError, QueryError
from windrow.expressions.arrow import PROBLEMS, Bad, Evaluation, only
from windrow.expressions.building import node_of, shown
from windrow.expressions.tree import Node, columns_of
from windrow.expressions.typing import Typed, bind, is_passed, type_name


class Formula:
    """The expression of a name such as "= a + b", fitted to a schema."""

    def __init__(self, name: str, schema: pa.Schema) -> None:
        self.name = name
        node = node_of(name)
        self.columns = columns_of(node)
        try:
            self._typed = bind(node, schema)
        except QueryError as problem:
            raise QueryError(f"expression {shown(name)!r}: {problem}") from None
        self._passed, self._condition = _passed(node, self._typed)
        self.type = self._typed.type if self._passed is None else schema.field(self._passed).type

    @property
    def typed(self) -> Typed:
        """The tree with its types."""
        return self._typed

    def values(self, evaluation: Evaluation, batch: pa.RecordBatch) -> tuple[pa.Array, Bad]:
        """The values over all rows of a batch, and which rows are bad."""
        if self._passed is None:
            return evaluation.column(self._typed)
        assert self._condition is not None
        condition, bad = evaluation.column(self._condition)
        return only(batch.column(self._passed), condition), bad

    def require_boolean(self, what: str) -> None:
        """A QueryError unless the expression is a condition."""
        if not pa.types.is_boolean(self.type):
            raise QueryError(
                f"{what}: {shown(self.name)!r} gives {type_name(self.type)}, and a condition is needed"
            )

    def inputs(self, batch: pa.RecordBatch, row: int) -> dict[str, Any]:
        """What the expression reads in a row."""
        return {name: batch.column(name)[row].as_py() for name in self.columns}

    def error(self, batch: pa.RecordBatch, bad: np.ndarray) -> DataError:
        """The error of the first bad row."""
        row = int((bad > 0).argmax())
        return DataError(shown(self.name), row, self.inputs(batch, row), PROBLEMS[int(bad[row])])


def _passed(node: Node, typed: Typed) -> tuple[str | None, Typed | None]:
    """The column that is passed on where a condition holds, and the condition."""
    column = is_passed(node)
    if column is None or typed.op != "case":
        return None, None
    return columns_of(column)[0], typed.arguments[0]


def evaluate(names: Sequence[str], table: pa.Table) -> list[pa.Array]:
    """The values of expressions over a table; a DataError names the first bad row.

    >>> evaluate(["= a / b"], pa.table({"a": [6], "b": [4]}))[0].to_pylist()
    [1.5]
    """
    (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    evaluation, found = Evaluation(batch), []
    for name in names:
        formula = Formula(name, table.schema)
        values, bad = formula.values(evaluation, batch)
        if bad is not None and bad.any():
            raise formula.error(batch, bad)
        found.append(values)
    return found

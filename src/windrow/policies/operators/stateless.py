"""Filter and Project: rows chosen, and columns computed; no window, no state, punctuations preserved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from windrow.errors import QueryError
from windrow.policies.operators.base import Operator
from windrow.policies.ports import PRESERVING, Input, Model, Output, Punctuated


class _Stateless(Operator):
    model = Model((Input("in"),), (Output("out", PRESERVING, of=0),))
    _internals: ClassVar[tuple[str, ...]] = ("_where", "_columns", "_keep")


def _computed(table: pa.Table, columns: dict[str, pc.Expression]) -> pa.Table:
    try:
        return ds.dataset(table).to_table(columns=columns)
    except pa.ArrowException as problem:
        shown = ", ".join(map(str, columns.values()))
        raise QueryError(
            f"{shown} cannot be computed of {', '.join(table.column_names)}: {problem}"
        ) from None


class Filter(_Stateless):
    """The rows for which an Arrow expression holds.

    Parameters
    ----------
    where
        A boolean expression; a row for which it is null is left out.

    Raises
    ------
    QueryError
        If `where` is no expression.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> from windrow import policies as wp
    >>> small = wp.Filter(pc.field("x") < 3)
    >>> out = small.process(wp.Punctuated.of(pa.table({"x": [1, 5, 2, 9]}), [2, 4]))[0]
    >>> out.table["x"].to_pylist(), out.marks.tolist()
    ([1, 2], [1, 2])
    """

    def __init__(self, where: pc.Expression) -> None:
        super().__init__()
        if not isinstance(where, pc.Expression):
            raise QueryError(f"a filter is an expression, as in pc.field('x') < 3; not {where!r}")
        self._where = where

    def process(self, rows: Any, port: int = 0) -> list[Punctuated]:
        stretch = Punctuated.of(rows)
        mask = _computed(stretch.table, {"holds": self._where})["holds"]
        if not pa.types.is_boolean(mask.type):
            raise QueryError(f"{self._where} is {mask.type}, and a filter must be true or false")
        kept = mask.fill_null(False).to_numpy()
        before = np.concatenate([[0], np.cumsum(kept)])
        return [Punctuated(stretch.table.filter(mask), before[stretch.marks])]


class Project(_Stateless):
    """Columns that are computed from each row.

    Parameters
    ----------
    columns
        Arrow expressions by the names of their columns.
    keep
        Whether the columns of the input stay, too; False by default.

    Raises
    ------
    QueryError
        If one of `columns` is no expression.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.compute as pc
    >>> from windrow import policies as wp
    >>> wp.Project({"y": pc.field("x") * 2}, keep=True).process(pa.table({"x": [1, 5]}))[0].table.to_pylist()
    [{'x': 1, 'y': 2}, {'x': 5, 'y': 10}]
    """

    def __init__(self, columns: Mapping[str, pc.Expression], *, keep: bool = False) -> None:
        super().__init__()
        wrong = [c for c in columns.values() if not isinstance(c, pc.Expression)]
        if wrong:
            raise QueryError(f"a column is an expression, as in pc.field('x') * 2; not {wrong[0]!r}")
        self._columns, self._keep = dict(columns), keep

    def process(self, rows: Any, port: int = 0) -> list[Punctuated]:
        stretch = Punctuated.of(rows)
        kept = {name: pc.field(name) for name in stretch.table.column_names} if self._keep else {}
        table = _computed(stretch.table, kept | self._columns)
        return [Punctuated(table, stretch.marks)]

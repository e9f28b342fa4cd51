"""Statements to queries, one for all that can share slices, and their results to what each has selected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.base import Aggregate
from windrow.errors import QueryError
from windrow.expressions.building import MARK, Expr
from windrow.expressions.formula import evaluate
from windrow.expressions.tree import Column, Node
from windrow.inputs.run import as_table
from windrow.query import Query, query
from windrow.schema import no_such_column
from windrow.statements.reading import Statement
from windrow.wording import choices


def answers(statements: Sequence[Statement], tables: Mapping[str, Any]) -> list[Any]:
    """What each statement selects, in their order."""
    groups: dict[Any, list[int]] = {}
    for i, each in enumerate(statements):
        _require_table(each, tables)
        groups.setdefault((each.table, each.time, each.where, each.keys), []).append(i)
    found: list[Any] = [None] * len(statements)
    # What can be read only once is read once, for all queries over it.
    named = [key[0] for key in groups]
    shared = {name for name in named if named.count(name) > 1 and isinstance(tables[name], Iterator)}
    tables = {name: as_table(table) if name in shared else table for name, table in tables.items()}
    for places in groups.values():
        together = [statements[i] for i in places]
        one, names = _query_of(together)
        table = tables[together[0].table]
        is_spark = hasattr(table, "sparkSession")
        result = one.on_spark(table) if is_spark else one.run(table)
        for i, name in zip(places, names, strict=True):
            select = _select_on_spark if is_spark else _select
            found[i] = select(statements[i], name, result)
    return found


def _require_table(statement: Statement, tables: Mapping[str, Any]) -> None:
    if statement.table not in tables:
        known = (
            choices(statement.table, tables) if tables else ": give it as a keyword, sql(text, name=table)"
        )
        raise QueryError(f"there is no table {statement.table!r}{known}")
    table = tables[statement.table]
    names = getattr(table, "column_names", None) or getattr(table, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return
    for column, place in statement.read:
        if column not in names:
            raise QueryError(f"{place}: {no_such_column(column, list(names))}")


def _query_of(statements: Sequence[Statement]) -> tuple[Query, list[str]]:
    """The query of statements that share slices, and what it calls the window of each."""
    windows: dict[Any, str] = {}
    aggregates: dict[str, Aggregate] = {}
    for each in statements:
        windows.setdefault(each.window, f"w{len(windows)}")
        aggregates |= dict(each.aggregates)
    first = statements[0]
    keys = {name: name if column == name else _expr(column) for name, column in first.keys}
    one = query(
        time=first.time if not first.time.startswith(MARK) else _expr(first.time),
        key=keys,
        where=None if first.where is None else _expr(first.where),
        windows={name: window for window, name in windows.items()},
        aggregates=aggregates,
    )
    return one, [windows[each.window] for each in statements]


def _expr(name: str) -> Expr:
    from windrow.expressions.building import is_computed, node_of

    return Expr(node_of(name) if is_computed(name) else Column(name))


def _named(node: Node) -> str:
    return MARK + str(Expr(node))


def _select(statement: Statement, window: str, result: pa.Table) -> pa.Table:
    rows = result.filter(pc.equal(result["window"].cast(pa.string()), window))
    if statement.having is not None:
        (holds,) = evaluate([_named(statement.having)], rows)
        if not pa.types.is_boolean(holds.type):
            raise QueryError(f"HAVING takes a condition, and this is {holds.type}")
        rows = rows.filter(holds)
    trees = dict(statement.items)
    made = [name for name, tree in trees.items() if not (isinstance(tree, Column) and not tree.path)]
    values = (
        dict(zip(made, evaluate([_named(trees[name]) for name in made], rows), strict=True)) if made else {}
    )
    columns = [values[n] if n in values else rows[_column(tree)] for n, tree in trees.items()]
    return pa.table(columns, names=list(trees))


def _column(tree: Node) -> str:
    assert isinstance(tree, Column)
    return tree.name


def _select_on_spark(statement: Statement, window: str, result: Any) -> Any:
    from windrow.spark.expressions import over_result

    rows = result.where(result["window"] == window)
    if statement.having is not None:
        rows = rows.where(over_result(_named(statement.having), result))
    return rows.select(*(over_result(_named(tree), result).alias(name) for name, tree in statement.items))

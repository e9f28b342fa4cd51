"""Expressions over columns: what can be said of an event, and means the same embedded and on Spark.

    tree.py        frozen nodes
    text.py        trees of text, and text of trees, by sqlglot
    building.py    what users write in Python, and the names of columns that are computed
    functions.py   which functions there are
    typing.py      trees fitted to the types of columns
    arrow.py       their values over Arrow columns; formula.py: an expression at work

On Spark the same trees become Spark's own columns, see `windrow.spark.expressions`.
"""

from windrow.expressions.building import ColumnLike, Expr, col, expr, lit

__all__ = ["ColumnLike", "Expr", "col", "expr", "lit"]

"""Expressions as users write them in Python: `wr.col("price") * wr.col("quantity")`, `wr.expr("price * quantity")`.

An `Expr` holds a tree of nodes (see `tree`), and its operators make larger trees. Specs, which must be comparable, hold a
`Computed` instead: the name of the column that an expression computes. It is the text of the expression after an equals sign, as in a
spreadsheet, so that equal expressions have equal names, and are computed once.

    wr.sum(wr.expr("price*quantity"))      columns=("= price * quantity",)
"""

from __future__ import annotations

from typing import Any, TypeAlias

from windrow.errors import QueryError
from windrow.expressions.tree import NULL, TRUE, Call, Cast, Column, Node, columns_of, literal

MARK = "= "


class Computed(str):
    """The name of a column that is computed by an expression; it is shown without the equals sign."""

    __slots__ = ()

    @property
    def node(self) -> Node:
        """The tree of the expression."""
        return node_of(self)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the expression reads."""
        return columns_of(self.node)

    def __str__(self) -> str:
        return shown(self)

    def __format__(self, spec: str) -> str:
        return format(shown(self), spec)


def is_computed(name: str) -> bool:
    """Whether a name is that of a column that is computed.

    >>> is_computed(Computed("= a + b")), is_computed("a")
    (True, False)
    """
    return name.startswith(MARK)


def node_of(name: str) -> Node:
    """The tree behind the name of a computed column."""
    from windrow.expressions.text import parse

    return parse(name.removeprefix(MARK))


def sources_of(name: str) -> tuple[str, ...]:
    """The columns of events behind a name: itself, or those that its expression reads.

    >>> sources_of("a"), sources_of("= a + b")
    (('a',), ('a', 'b'))
    """
    return columns_of(node_of(name)) if is_computed(name) else (name,)


def shown(name: str) -> str:
    """The expression behind a name, as a person would write it.

    >>> shown(filtered("x", "y > 3"))
    'x where y > 3'
    """
    text = name.removeprefix(MARK)
    if is_computed(name) and text.startswith("CASE WHEN "):
        node = node_of(name)
        if (
            isinstance(node, Call)
            and node.name == "case"
            and len(node.arguments) == 3
            and node.arguments[2] == NULL
        ):
            from windrow.expressions.text import written

            condition, value = (written(each) for each in node.arguments[:2])
            return f"where {condition}" if node.arguments[1] == TRUE else f"{value} where {condition}"
    return text


class Expr:
    """An expression over the columns of events. Made by `col`, `lit` and `expr`, and of others by operators.

    `==` and the other comparisons make expressions, too: `equals` tells whether two are the same.
    """

    __slots__ = ("node",)
    node: Node

    def __init__(self, node: Node) -> None:
        object.__setattr__(self, "node", node)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("an expression is a value, and does not change")

    def __reduce__(self) -> tuple[Any, ...]:
        return Expr, (self.node,)

    def __hash__(self) -> int:
        return hash(self.node)

    def __str__(self) -> str:
        from windrow.expressions.text import written

        return written(self.node)

    def __repr__(self) -> str:
        return f"expr({str(self)!r})"

    def __bool__(self) -> bool:
        raise QueryError(
            "an expression is true or false for an event, and not by itself: write & for and, | for or, ~ for not"
        )

    def equals(self, other: Expr) -> bool:
        """Whether both are the same tree."""
        return isinstance(other, Expr) and self.node == other.node

    def field(self, name: str) -> Expr:
        """A field of a struct."""
        if not isinstance(self.node, Column):
            raise QueryError("only a column has fields")
        return Expr(Column(self.node.name, (*self.node.path, name)))

    def is_null(self) -> Expr:
        """Whether the value is null."""
        return Expr(Call("is null", (self.node,)))

    def is_not_null(self) -> Expr:
        """Whether the value is not null."""
        return ~self.is_null()

    def isin(self, values: Any) -> Expr:
        """Whether the value is one of these constants."""
        return Expr(Call("in", (self.node, *(literal(value) for value in values))))

    def between(self, low: Any, high: Any) -> Expr:
        """Whether the value lies between two others, or is one of them."""
        return (self >= low) & (self <= high)

    def like(self, pattern: str) -> Expr:
        """Whether a text looks like a pattern: % is any text, _ any letter."""
        return Expr(Call("like", (self.node, literal(pattern))))

    def cast(self, type_: str) -> Expr:
        """The value as another type, which is named as in Spark SQL: "bigint", "decimal(10, 2)"."""
        from windrow.expressions.typing import named_type, type_name

        return Expr(Cast(self.node, type_name(named_type(type_))))

    def _call(self, name: str, *others: Any) -> Expr:
        return Expr(Call(name, (self.node, *map(as_node, others))))

    def _called(self, name: str, other: Any) -> Expr:
        return Expr(Call(name, (as_node(other), self.node)))

    def __add__(self, other: Any) -> Expr:
        return self._call("+", other)

    def __radd__(self, other: Any) -> Expr:
        return self._called("+", other)

    def __sub__(self, other: Any) -> Expr:
        return self._call("-", other)

    def __rsub__(self, other: Any) -> Expr:
        return self._called("-", other)

    def __mul__(self, other: Any) -> Expr:
        return self._call("*", other)

    def __rmul__(self, other: Any) -> Expr:
        return self._called("*", other)

    def __truediv__(self, other: Any) -> Expr:
        return self._call("/", other)

    def __rtruediv__(self, other: Any) -> Expr:
        return self._called("/", other)

    def __mod__(self, other: Any) -> Expr:
        return self._call("%", other)

    def __rmod__(self, other: Any) -> Expr:
        return self._called("%", other)

    def __neg__(self) -> Expr:
        return self._call("negative")

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return self._call("=", other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return self._call("!=", other)

    def __lt__(self, other: Any) -> Expr:
        return self._call("<", other)

    def __le__(self, other: Any) -> Expr:
        return self._call("<=", other)

    def __gt__(self, other: Any) -> Expr:
        return self._call(">", other)

    def __ge__(self, other: Any) -> Expr:
        return self._call(">=", other)

    def __and__(self, other: Any) -> Expr:
        return self._call("and", other)

    def __rand__(self, other: Any) -> Expr:
        return self._called("and", other)

    def __or__(self, other: Any) -> Expr:
        return self._call("or", other)

    def __ror__(self, other: Any) -> Expr:
        return self._called("or", other)

    def __invert__(self) -> Expr:
        return self._call("not")


# A column of events: its name, or an expression. As a condition, a text that is no plain name is an expression.
ColumnLike: TypeAlias = "str | Expr"


def as_node(value: Any) -> Node:
    """The tree of an expression, or of a constant."""
    return value.node if isinstance(value, Expr) else literal(value)


def col(name: str) -> Expr:
    """A column of events, for expressions.

    Parameters
    ----------
    name
        The name of the column, whatever is in it.

    Returns
    -------
    Expr
        Together with others and constants, by operators, it makes expressions.

    Raises
    ------
    QueryError
        If `name` is no name.

    Examples
    --------
    >>> import windrow as wr
    >>> wr.col("price") * wr.col("quantity")
    expr('price * quantity')
    """
    if not isinstance(name, str) or not name:
        raise QueryError(f'a column is called by its name, such as "price", not {name!r}')
    return Expr(Column(name))


def lit(value: Any) -> Expr:
    """A constant, for expressions. Beside a column it need not be marked as one: `wr.col("price") * 2`.

    Parameters
    ----------
    value
        A number, a text, a boolean, a date, a datetime, a Decimal, or None. Floats are doubles.

    Returns
    -------
    Expr
        The constant.

    Raises
    ------
    QueryError
        If it is of another type.

    Examples
    --------
    >>> import windrow as wr
    >>> wr.lit(1) - wr.col("discount")
    expr('1 - discount')
    """
    return Expr(literal(value))


def expr(text: str) -> Expr:
    """An expression as text, as Spark SQL has it.

    Parameters
    ----------
    text
        Columns, constants, operators, `case`, `cast` and functions; docs/expressions.md has all of them.

    Returns
    -------
    Expr
        The same as if it were made of `col`, `lit` and operators.

    Raises
    ------
    QueryError
        If the text is no expression, or calls what is not there, with the place and what was probably meant.

    Examples
    --------
    >>> import windrow as wr
    >>> wr.expr("price*quantity").equals(wr.col("price") * wr.col("quantity"))
    True
    """
    from windrow.expressions.text import parse

    return Expr(parse(text))


def column_name(value: ColumnLike) -> str:
    """What a column is called where specs name columns: a text as it is, an expression by its text.

    >>> column_name("a b"), column_name(col("a b")), column_name(col("a") + 1)
    ('a b', 'a b', '= a + 1')
    """
    if not isinstance(value, Expr):
        return value
    if isinstance(value.node, Column) and not value.node.path:
        return value.node.name
    return Computed(MARK + str(value))


def condition_name(value: ColumnLike, *, what: str) -> str:
    """The same for a condition, where a text that is no plain name is an expression.

    >>> condition_name("speed > 80", what="where"), condition_name("parked", what="where")
    ('= speed > 80', 'parked')
    """
    if isinstance(value, Expr):
        return column_name(value)
    if not isinstance(value, str) or not value.strip():
        raise QueryError(f"{what} is a condition such as \"status = 'failed'\", not {value!r}")
    return value if is_computed(value) or value.isidentifier() else column_name(expr(value))


def filtered(column: ColumnLike | None, where: ColumnLike) -> str:
    """The name of a column that is null where a condition does not hold; None is a column that is true.

    >>> filtered("x", "y > 3")
    '= CASE WHEN y > 3 THEN x END'
    """
    condition = _node(condition_name(where, what="where"))
    value = TRUE if column is None else _node(column_name(column))
    return Computed(MARK + str(Expr(Call("case", (condition, value, NULL)))))


def _node(name: str) -> Node:
    return node_of(name) if is_computed(name) else Column(name)

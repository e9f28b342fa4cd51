"""Expressions as a tree of frozen nodes: what text and Python both become, and what every engine is given.

    price * quantity        Call("*", (Column("price"), Column("quantity")))
    order.total > 10        Call(">", (Column("order", ("total",)), Literal("int", "10")))

A node says what was written and knows no types: `typing.bind` fits it to the columns of a table.
Operators are calls, too, by their signs; `case` has conditions and values in turn, and the value of all others last.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

from windrow.errors import QueryError


@dataclass(frozen=True)
class Column:
    """A column, or a field inside it if there is a path."""

    name: str
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Literal:
    """A constant: the name of its type, and its text. Texts differ where values do, as those of 0.0 and -0.0."""

    type: str
    text: str

    @property
    def value(self) -> Any:
        """The constant as an object of Python."""
        return _READERS[self.type](self.text)


@dataclass(frozen=True)
class Call:
    """A function or an operator, and what it is called with."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Cast:
    """A value as another type, which is named as Spark SQL does."""

    value: Node
    type: str


Node: TypeAlias = "Column | Literal | Call | Cast"

NULL = Literal("null", "")
TRUE = Literal("boolean", "true")
_READERS: dict[str, Any] = {
    "null": lambda text: None,
    "boolean": lambda text: text == "true",
    "int": int,
    "bigint": int,
    "double": float,
    "decimal": Decimal,
    "string": str,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
}


def literal(value: Any) -> Literal:
    """The node of a constant; integers have the smaller type of `int` and `bigint` that holds them, as in Spark.

    >>> literal(3), literal(1.5), literal(None)
    (Literal(type='int', text='3'), Literal(type='double', text='1.5'), Literal(type='null', text=''))
    """
    if hasattr(value, "item"):  # NumPy's
        value = value.item()
    match value:
        case None:
            return NULL
        case bool():
            return Literal("boolean", str(value).lower())
        case int():
            if -(2**31) <= value < 2**31:
                return Literal("int", str(value))
            if -(2**63) <= value < 2**63:
                return Literal("bigint", str(value))
            raise QueryError(f"the number {value} does not fit in 64 bits")
        case float():
            return Literal("double", "nan" if math.isnan(value) else repr(value))
        case Decimal():
            return _decimal(value)
        case str():
            return Literal("string", value)
        case datetime():
            return Literal("timestamp", value.isoformat(sep=" "))
        case date():
            return Literal("date", value.isoformat())
    raise QueryError(
        f"a constant is a number, a text, a boolean, a date, a datetime, a Decimal or None, not {value!r}"
    )


def _decimal(value: Decimal) -> Literal:
    text = f"{value:f}" if value.is_finite() else ""
    if not text or len(text.strip("-").replace(".", "").lstrip("0")) > 38:
        raise QueryError(f"the decimal {value} has more than 38 digits")
    return Literal("decimal", text)


def nodes(node: Node) -> Iterator[Node]:
    """A node and all within it, from left to right."""
    yield node
    within = node.arguments if isinstance(node, Call) else (node.value,) if isinstance(node, Cast) else ()
    for each in within:
        yield from nodes(each)


def columns_of(node: Node) -> tuple[str, ...]:
    """The columns that an expression reads, each once.

    >>> columns_of(Call("+", (Column("a"), Column("b", ("c",)))))
    ('a', 'b')
    """
    return tuple(dict.fromkeys(each.name for each in nodes(node) if isinstance(each, Column)))

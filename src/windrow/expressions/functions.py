"""The functions of expressions: their names, as Spark SQL has them, and how many values each takes.

What one of these means is said in three places: its types in `typing`, its values in `arrow`, its column in `windrow.spark.expressions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windrow.errors import QueryError
from windrow.expressions.tree import NULL, Call, Cast, Node


@dataclass(frozen=True)
class Function:
    """A function of `least` to `most` values (None for any number); `becomes` makes the tree of a call in other words."""

    least: int
    most: int | None
    becomes: Callable[..., Node] | None = None

    def call(self, name: str, arguments: tuple[Node, ...]) -> Node:
        """The tree of a call by this name."""
        if len(arguments) < self.least or (self.most is not None and len(arguments) > self.most):
            wanted = str(self.least)
            if self.most != self.least:
                wanted += " or more" if self.most is None else f" to {self.most}"
            raise QueryError(f"{name} takes {wanted} value(s), not {len(arguments)}")
        return Call(name, arguments) if self.becomes is None else self.becomes(*arguments)


def _as(name: str) -> Callable[..., Node]:
    return lambda *arguments: Call(name, arguments)


def _nullif(value: Node, other: Node) -> Node:
    return Call("case", (Call("=", (value, other)), NULL, value))


def _if(condition: Node, value: Node, otherwise: Node) -> Node:
    return Call("case", (condition, value, otherwise))


def _is_not_null(value: Node) -> Node:
    return Call("not", (Call("is null", (value,)),))


PARTS = ("year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear")
CLOCK = ("hour", "minute", "second")
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
SINCE_EPOCH = {"unix_seconds": 1, "unix_millis": 1_000, "unix_micros": 1_000_000}
FROM_EPOCH = {"timestamp_seconds": 1, "timestamp_millis": 1_000, "timestamp_micros": 1_000_000}

_ONE = Function(1, 1)
_TWO = Function(2, 2)
FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(("abs", "ceil", "floor", "sqrt", "exp", "ln", "log10", "log2", "sign", "negative"), _ONE),
    **dict.fromkeys(("isnan", "upper", "lower", "length", "trim", "ltrim", "rtrim", "reverse"), _ONE),
    **dict.fromkeys((*PARTS, *CLOCK, *SINCE_EPOCH, *FROM_EPOCH), _ONE),
    **dict.fromkeys(("power", "startswith", "endswith", "contains", "left", "right"), _TWO),
    **dict.fromkeys(("date_trunc", "date_add", "date_sub", "datediff"), _TWO),
    **dict.fromkeys(("greatest", "least"), Function(2, None)),
    **dict.fromkeys(("coalesce", "concat"), Function(1, None)),
    "round": Function(1, 2),
    "substring": Function(2, 3),
    "replace": Function(3, 3),
    # The same by other names, or in other words.
    "ceiling": Function(1, 1, _as("ceil")),
    "char_length": Function(1, 1, _as("length")),
    "character_length": Function(1, 1, _as("length")),
    "dayofmonth": Function(1, 1, _as("day")),
    "if": Function(3, 3, _if),
    "ifnull": Function(2, 2, _as("coalesce")),
    "isnotnull": Function(1, 1, _is_not_null),
    "isnull": Function(1, 1, _as("is null")),
    "lcase": Function(1, 1, _as("lower")),
    "mod": Function(2, 2, _as("%")),
    "nullif": Function(2, 2, _nullif),
    "nvl": Function(2, 2, _as("coalesce")),
    "pow": Function(2, 2, _as("power")),
    "signum": Function(1, 1, _as("sign")),
    "substr": Function(2, 3, _as("substring")),
    "to_date": Function(1, 1, lambda value: Cast(value, "date")),
    "ucase": Function(1, 1, _as("upper")),
}

"""A condition on events, for punctuated and threshold windows.

    "is_stop"                    a boolean column
    "speed > 80"                 an expression, as text or made of wr.col
    pc.field("speed") > 80       an expression of pyarrow.compute
    lambda speed: speed > 80     a function whose parameters are columns

Where a column that is read is null, the condition does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import QueryError
from windrow.expressions.building import Expr, condition_name
from windrow.windows.arguments import require_column
from windrow.windows.functions import label, parameters_of

PredicateLike: TypeAlias = "str | Expr | pc.Expression | Callable[..., Any]"

_ENTRY = re.compile(r"^(\w+): '(.*?)'$(?=\n\w+: '|\s*\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, eq=False)
class Predicate:
    """One of `column`, `expression` and `function` is set; `columns` are the columns it reads.

    Expressions are compared by their text, functions by identity.
    """

    column: str | None
    expression: pc.Expression | None
    function: Callable[..., Any] | None
    columns: tuple[str, ...]

    @property
    def _identity(self) -> tuple[Any, ...]:
        text = None if self.expression is None else str(self.expression)
        return self.column, text, self.function, self.columns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Predicate) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __str__(self) -> str:
        if self.column is not None:
            return str(self.column)
        if self.expression is not None:
            return " ".join(str(self.expression).split())
        assert self.function is not None
        name = label(self.function)
        return f"{'function' if name == '<lambda>' else name}({', '.join(self.columns)})"


def parse_predicate(value: PredicateLike | Predicate, *, what: str) -> Predicate:
    """Read a predicate; `what` names the parameter in the error.

    >>> import pyarrow.compute as pc
    >>> parse_predicate((pc.field("a") > 3) & pc.field("b"), what="where").columns
    ('a', 'b')
    >>> str(parse_predicate(lambda speed: speed > 80, what="where"))
    'function(speed)'
    """
    if isinstance(value, Predicate):
        return value
    if isinstance(value, (str, Expr)):
        column = condition_name(
            value if isinstance(value, Expr) else require_column(value, what=what), what=what
        )
        return Predicate(column, None, None, (column,))
    if isinstance(value, pc.Expression):
        return Predicate(None, value, None, _fields(value, what))
    if not callable(value):
        raise QueryError(
            f"{what} must be the name of a boolean column, a condition as text, an expression or "
            f"a function of columns, not {type(value).__name__}"
        )
    columns = parameters_of(value, what=what)
    if not columns:
        raise QueryError(f"{what}: the function {label(value)!r} has no parameters, so it reads no column")
    return Predicate(None, None, value, columns)


def _fields(expression: pc.Expression, what: str) -> tuple[str, ...]:
    """The columns that an expression reads.

    Arrow has no call for this. In its serialized form they are entries of the schema's metadata:
    `field_ref: 'x'`, and for a field of a struct `nested_field_ref: '2'` before the path's parts.
    """
    try:
        _, (buffer,) = expression.__reduce__()
        schema = pa.ipc.open_file(buffer).schema
    except (pa.ArrowException, NotImplementedError) as problem:
        raise QueryError(f"{what}: the columns of {expression} cannot be found: {problem}") from None
    text = schema.to_string(truncate_metadata=False, show_field_metadata=False)
    _, _, metadata = text.partition("-- schema metadata --\n")
    found: list[str] = []
    entries = iter(_ENTRY.findall(metadata))
    for kind, value in entries:
        if kind == "field_ref":
            found.append(value)
        elif kind == "nested_field_ref":
            (_, column), *_ = islice(entries, int(value))
            found.append(column)
    if not found:
        raise QueryError(f"{what}: the expression {expression} reads no column")
    return tuple(dict.fromkeys(found))

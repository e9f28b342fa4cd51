"""A function call as a file says it. What is possible follows from the function's signature, and from nothing else.

    n: count                                  count()
    total: {sum: amount}                      sum("amount")
    1h: {sliding: 1 hour, every: 1 second}    sliding("1 hour", every="1 second")
    p90: {quantile: [amount, 0.9]}            quantile("amount", 0.9)
    100: {tumbling: {rows: 100}}              tumbling(rows=100)

The first field names the function, and its value is what goes first; the other fields are its parameters by name.
Windows, aggregates, sources and sinks are all read in this way. A function that wants functions of Python cannot be
called from a file.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from typing import Any

from windrow import aggregates, windows
from windrow.errors import QueryError
from windrow.expressions import Expr, expr
from windrow.pipelines.document import SpecError, Value, together
from windrow.span import learned
from windrow.wording import choices, with_article

_PLAIN: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "str": ("a text", lambda value: isinstance(value, str)),
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "int": ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "float": ("a number", lambda value: isinstance(value, (int, float)) and not isinstance(value, bool)),
    "DurationLike": (
        'a duration such as "10 seconds"',
        lambda value: isinstance(value, (str, int, float)) and not isinstance(value, bool),
    ),
    "Length": ('a length of time such as "10 seconds"', lambda value: isinstance(value, str)),
    "Columns": (
        'a list of columns and their types, such as "ts timestamp, user string"',
        lambda value: isinstance(value, str),
    ),
    "PointLike": (
        "a date, a date with a time, or a number",
        lambda value: isinstance(value, (date, int, float)) and not isinstance(value, bool),
    ),
    "PredicateLike": ('a condition such as "speed > 80"', lambda value: isinstance(value, str)),
    "ColumnLike": (
        'a column, or an expression such as "price * quantity"',
        lambda value: isinstance(value, str),
    ),
}


@dataclass(frozen=True)
class Form:
    """A function as it can be called from a file."""

    name: str
    function: Callable[..., Any]

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(self.function).parameters)

    @property
    def in_order(self) -> list[str]:
        """The parameters that need no name."""
        named = inspect.Parameter.KEYWORD_ONLY
        return [name for name, parameter in self.parameters.items() if parameter.kind != named]

    @property
    def is_for_files(self) -> bool:
        """Whether none of what it needs is a function of Python."""
        needed = [p for p in self.parameters.values() if p.default is inspect.Parameter.empty]
        return not any("Callable" in str(parameter.annotation) for parameter in needed)

    @property
    def shown(self) -> str:
        """All parameters, those that may be left out in brackets."""
        empty = inspect.Parameter.empty
        parts = [name if p.default is empty else f"[{name}]" for name, p in self.parameters.items()]
        return f"{self.name} takes {', '.join(parts)}" if parts else f"{self.name} takes nothing"

    def call(self, value: Value, given: Mapping[str, Value]) -> Any:
        """The function's result; an error of its own gets the place of the call."""
        arguments = together({name: partial(self.argument, name, v) for name, v in given.items()})
        empty = inspect.Parameter.empty
        missing = [n for n, p in self.parameters.items() if p.default is empty and n not in arguments]
        if missing:
            raise value.problem(f"{' and '.join(missing)} must be given: {self.shown}")
        try:
            first = [arguments.pop(name) for name in self.in_order if name in arguments]
            return self.function(*first, **arguments)
        except SpecError:
            raise
        except QueryError as problem:
            raise value.problem(str(problem)) from None

    def argument(self, name: str, value: Value) -> Any:
        """The value of a parameter, which must be of its type."""
        annotation = str(self.parameters[name].annotation)
        if annotation.startswith("Literal["):
            return _choice(name, value, ast.literal_eval(annotation.removeprefix("Literal").strip()))
        if annotation.startswith("Mapping["):
            return {key: _text_of(item) for key, item in value.fields().items()}
        if annotation.startswith("Iterable[") and value.is_list:
            return [item.scalar() for item in value.items()]
        if annotation.startswith("Columns") and value.is_mapping:
            return ", ".join(f"`{name}` {item.text('a type')}" for name, item in value.fields().items())
        if "Learned" in annotation and value.is_mapping:
            return call(value, {"learned": learned}, what="release delay")
        atoms = annotation.split(" | ")
        found = value.scalar()
        if found is None and "None" in atoms:
            return None
        known = [_PLAIN[atom] for atom in atoms if atom in _PLAIN]
        if known and not any(fits(found) for _, fits in known):
            raise value.problem(f"{name} is {' or '.join(said for said, _ in known)}, not {found!r}")
        if "PredicateLike" in atoms or "ColumnLike" in atoms:
            return column_like(value, found)
        return found


def call(value: Value, functions: Mapping[str, Callable[..., Any]], *, what: str) -> Any:
    """What the value says, made by one of these functions."""
    fields = value.fields() if value.is_mapping else {}
    if value.is_list or (value.is_mapping and not fields):
        names = ", ".join(_for_files(functions))
        raise value.problem(f"{with_article(what)} is needed here; choose from {names}")
    if not fields:
        return _form(value, value.text(with_article(what)), functions, what=what).call(value, {})
    first = next((name for name in fields if name in functions), next(iter(fields)))
    form = _form(value, first, functions, what=what)
    rest = value.fields([first, *form.parameters], what=form.name)
    leading = _leading(form, rest.pop(first))
    for name in leading:
        if name in rest:
            raise rest[name].problem(f"{name} is given twice: it is also what follows {first!r}")
    return form.call(value, leading | rest)


def _form(value: Value, name: str, functions: Mapping[str, Callable[..., Any]], *, what: str) -> Form:
    if name not in functions:
        raise value.problem(f"{name!r} is not {with_article(what)}{choices(name, _for_files(functions))}")
    form = Form(name, functions[name])
    if not form.is_for_files:
        raise value.problem(
            f"{name} is made of functions, which a file cannot hold: build the query in Python"
        )
    return form


def _for_files(functions: Mapping[str, Callable[..., Any]]) -> list[str]:
    return [name for name, function in functions.items() if Form(name, function).is_for_files]


def _leading(form: Form, head: Value) -> dict[str, Value]:
    """The parameters that stand behind the function's own name."""
    if head.is_mapping:
        return head.fields(form.parameters, what=form.name)
    if not head.is_list and head.scalar() is None:
        return {}
    values = head.items() if head.is_list else [head]
    if len(values) > len(form.in_order):
        most = len(form.in_order)
        raise head.problem(f"{len(values)} values are too many before the named ones ({most}): {form.shown}")
    return dict(zip(form.in_order, values, strict=False))


def _choice(name: str, value: Value, options: list[str]) -> str:
    found = value.scalar()
    if found not in options:
        raise value.problem(f"{name} cannot be {found!r}{choices(found, options)}")
    return str(found)


def _text_of(value: Value) -> str:
    """A setting as Spark and Kafka want it: a text, whatever it looks like."""
    found = value.scalar()
    return str(found).lower() if isinstance(found, bool) else str(found)


def column_like(value: Value, text: str) -> str | Expr:
    """The column of that name, or the expression if the text is no plain name."""
    try:
        return text if text.isidentifier() else expr(text)
    except QueryError as problem:
        raise value.problem(str(problem)) from None


def _functions(module: Any) -> dict[str, Callable[..., Any]]:
    """The functions that a package offers; `max_` is written `max`."""
    names = [name for name in module.__all__ if name.islower()]
    return {name.rstrip("_"): getattr(module, name) for name in names}


# A file says what is run; windows without ends of their own are asked at points, in Python.
WINDOWS = {name: make for name, make in _functions(windows).items() if name not in ("around", "trailing")}
AGGREGATES = _functions(aggregates)

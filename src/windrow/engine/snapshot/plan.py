"""The fingerprint of a query: the same for queries that compute the same."""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Callable
from typing import Any

from windrow.query import Query
from windrow.windows.predicate import Predicate


def plan_hash(query: Query) -> bytes:
    """The same for queries that compute the same; functions count by their code."""
    parts = [query.time, repr(query.key), repr(query.ordered)]
    parts += [f"{name}={_identity(window)}" for name, window in query.windows.items()]
    parts += [f"{name}={_identity(aggregate)}" for name, aggregate in query.aggregates.items()]
    return hashlib.sha256("\n".join(parts).encode()).digest()


def _identity(spec: Any) -> str:
    fields = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
    shown = {k: _shown(v) for k, v in fields.items()}
    return f"{type(spec).__qualname__}({shown})"


def _shown(value: Any) -> str:
    if isinstance(value, Predicate):
        return _identity(value)
    return _code(value) if callable(value) else repr(value)


def _code(function: Callable[..., Any]) -> str:
    function = getattr(function, "py_func", function)
    if isinstance(function, functools.partial):
        return repr((_code(function.func), [_value(a) for a in function.args], _values(function.keywords)))
    if not isinstance(function, types.FunctionType):
        return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function))}"
    cells = [_value(c.cell_contents) for c in function.__closure__ or ()]
    read = {n: v for n, v in function.__globals__.items() if n in function.__code__.co_names}
    numbers = {n: v for n, v in read.items() if isinstance(v, (bool, int, float, str, bytes, tuple))}
    defaults = function.__defaults__, function.__kwdefaults__
    return repr((_code_object(function.__code__), cells, defaults, _values(numbers)))


def _values(named: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, _value(value)) for name, value in sorted(named.items())]


def _value(value: Any) -> str:
    """What a function is closed over: the same text in every process, without addresses."""
    if callable(value):
        return _code(value)
    shown: Any = type(value).__repr__
    if shown is object.__repr__:
        return f"{type(value).__qualname__}({_values(getattr(value, '__dict__', {}))})"
    return repr(value)


def _code_object(code: types.CodeType) -> tuple[Any, ...]:
    constants = [_constant(c) for c in code.co_consts]
    return code.co_code.hex(), constants, code.co_names, code.co_varnames


def _constant(value: Any) -> Any:
    if isinstance(value, types.CodeType):
        return _code_object(value)
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value

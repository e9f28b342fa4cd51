"""The fingerprint of a query: the same for queries that compute the same."""

from __future__ import annotations

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
    if not isinstance(function, types.FunctionType):
        return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function))}"
    cells = [c.cell_contents for c in function.__closure__ or ()]
    shown = [_code(c) if callable(c) else repr(c) for c in cells]
    return repr((_code_object(function.__code__), shown, function.__defaults__))


def _code_object(code: types.CodeType) -> tuple[Any, ...]:
    constants = [_constant(c) for c in code.co_consts]
    return code.co_code.hex(), constants, code.co_names, code.co_varnames


def _constant(value: Any) -> Any:
    if isinstance(value, types.CodeType):
        return _code_object(value)
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value

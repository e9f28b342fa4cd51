"""The fingerprint of a query: the same for queries that compute the same."""

from __future__ import annotations

import hashlib
from typing import Any

from windrow.compiling.fingerprint import code_of
from windrow.spec import QuerySpec
from windrow.windows.predicate import Predicate


def plan_hash(query: QuerySpec) -> bytes:
    """The same for queries that compute the same; functions count by their code."""
    time = query.time if isinstance(query.time, str) else repr(query.time)
    parts = [time, repr(query.key), repr(query.ordered)]
    parts += [f"{name}={identity(window)}" for name, window in query.windows.items()]
    parts += [f"{name}={identity(aggregate)}" for name, aggregate in query.aggregates.items()]
    parts += [f"{name} is {source}" for name, source in query.key_expressions.items()]
    parts += [] if query.where is None else [f"where {str.__str__(query.where)}"]
    return hashlib.sha256("\n".join(parts).encode()).digest()


def identity(spec: Any) -> str:
    """A window or an aggregate as text: the same for those that compute the same."""
    known = spec.__dataclass_fields__.values()
    fields = {field.name: getattr(spec, field.name) for field in known}
    # What was not there in earlier versions is told where it is set.
    fields = {f.name: fields[f.name] for f in known if not f.metadata or fields[f.name] is not None}
    shown = {k: _shown(v) for k, v in fields.items()}
    return f"{type(spec).__qualname__}({shown})"


def _shown(value: Any) -> str:
    if isinstance(value, Predicate):
        return identity(value)
    return code_of(value) if callable(value) else repr(value)

"""The query as a value: what to compute, and nothing about who computes it.

    events (time, key, columns)  x  windows  x  aggregates

Everything that plans or runs a query takes a `QuerySpec`; `windrow.query` puts the methods on it that users
call. What can be wrong without seeing data is refused by the functions below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Self

from windrow.aggregates.base import Aggregate
from windrow.errors import QueryError
from windrow.schema import named_pairs
from windrow.span import Span
from windrow.windows.base import Window
from windrow.wording import with_article

RESERVED = ("window", "start", "end", "op", "revision")


@dataclass(frozen=True, eq=False)
class QuerySpec:
    """What a query computes. Equal specs compare equal; `windows` and `aggregates` are read-only mappings."""

    time: str | Span
    key: tuple[str, ...]
    windows: Mapping[str, Window]
    aggregates: Mapping[str, Aggregate]
    ordered: bool = False

    @property
    def time_columns(self) -> tuple[str, ...]:
        """The columns of the time of an event; the first one is the measure that windows are cut on."""
        return (self.time,) if isinstance(self.time, str) else self.time.columns

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of events that are read, each once."""
        read = [*self.time_columns, *self.key]
        read += [column for window in self.windows.values() for column in window.columns]
        read += [column for aggregate in self.aggregates.values() for column in aggregate.columns]
        return tuple(dict.fromkeys(read))

    def __eq__(self, other: object) -> bool:
        """Whether both compute the same; their methods do not matter."""
        if not isinstance(other, QuerySpec):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in fields(QuerySpec))

    def __hash__(self) -> int:
        parts = (frozenset(self.windows.items()), frozenset(self.aggregates.items()))
        return hash((self.time, self.key, self.ordered, parts))

    def __reduce__(self) -> tuple[Any, ...]:
        windows, aggregates = tuple(self.windows.items()), tuple(self.aggregates.items())
        return type(self).checked, (self.time, self.key, windows, aggregates, self.ordered)

    @classmethod
    def checked(cls, time: Any, key: Any, windows: Any, aggregates: Any, ordered: bool = False) -> Self:
        """A spec of these parts, as users give them; a QueryError says what cannot be meant."""
        if not isinstance(key, Iterable | None):
            raise QueryError(f"a key is a column, or a sequence of columns, not {key!r}")
        keys = (key,) if isinstance(key, str) else tuple(key or ())
        for column in (*((time,) if not isinstance(time, Span) else ()), *keys):
            if not isinstance(column, str):
                raise QueryError(f"a column is given by its name, not by {column!r}")
        placed = _named(windows, Window, what="window")
        computed = _named(aggregates, Aggregate, what="aggregate")
        if not placed:
            raise QueryError("a query needs at least one window")
        if not computed:
            raise QueryError("a query needs at least one aggregate")
        refuse_name_clashes(keys, computed)
        if isinstance(time, Span):
            if ordered:
                raise QueryError(
                    "span events end in another order than they begin: ordered=True is not for spans"
                )
            for name, window in placed.items():
                require_for_spans(time, name, window)
        return cls(time, keys, MappingProxyType(placed), MappingProxyType(computed), ordered)


def require_for_spans(time: Span, name: str, window: Window) -> None:
    """An error if the window cannot take span events: only windows of time and sessions take more than one instant."""
    if time.is_point or (window.layout == "aligned" and window.since is None):
        return
    if window.gap is not None and time.id is None and time.contributes == "whole":
        return
    raise QueryError(
        f"window {name!r} ({window}) cannot take events of {time} that contribute "
        f"{time.contributes!r}: use tumbling, sliding, cumulate, calendar or band windows, or sessions of whole events, or "
        'let events contribute at their "start" or "end"'
    )


def _named(specs: Any, kind: type, *, what: str) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, spec in named_pairs(specs, what=what):
        require_named(name, spec, kind, result, what=what)
        result[name] = spec
    return result


def require_named(name: Any, spec: Any, kind: type, taken: Mapping[str, Any], *, what: str) -> None:
    """A window or an aggregate has a name of its own, and is what it is called."""
    if not isinstance(name, str) or not name:
        raise QueryError(f"the name of {with_article(what)} is a string that is not empty, not {name!r}")
    if name in taken:
        raise QueryError(f"duplicate {what} name {name!r}")
    if not isinstance(spec, kind):
        shown = spec if isinstance(spec, (Window, Aggregate)) else repr(spec)
        raise QueryError(f"{what} {name!r} is not {with_article(what)}, but {shown}")


def refuse_name_clashes(key: tuple[str, ...], aggregates: Mapping[str, Aggregate]) -> None:
    """Each output column has one name: keys, window, start, end, aggregates, op, revision."""
    taken = set(RESERVED)
    for role, names in (("key column", key), ("aggregate", tuple(aggregates))):
        for name in names:
            if name in taken:
                raise QueryError(f"{role} {name!r} clashes with another output column of that name")
            taken.add(name)

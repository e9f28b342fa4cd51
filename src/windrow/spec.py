"""The query as a value: what to compute, and nothing about who computes it.

    events (time, key, columns) that pass a filter  x  windows  x  aggregates

Everything that plans or runs a query takes a `QuerySpec`; `windrow.query` puts the methods on it that users
call. What can be wrong without seeing data is refused by the functions below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Self

from windrow.aggregates.base import Aggregate
from windrow.errors import QueryError
from windrow.expressions.building import (
    MARK,
    Computed,
    Expr,
    col,
    column_name,
    condition_name,
    expr,
    is_computed,
    shown,
    sources_of,
)
from windrow.schema import named_pairs
from windrow.span import Span
from windrow.windows.base import Window
from windrow.wording import with_article

RESERVED = ("window", "start", "end", "op", "revision")
# In a changelog, with early rows: whether a row can still change.
FINALITY = "final"
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class QuerySpec:
    """What a query computes. Equal specs compare equal; the mappings are read-only.

    Expressions are held as the names of the columns that they compute (see `windrow.expressions.building`): of the filter `where`, of the
    keys that have one in `key_expressions`, and of the columns that `select` adds to the result.
    """

    time: str | Span
    key: tuple[str, ...]
    windows: Mapping[str, Window]
    aggregates: Mapping[str, Aggregate]
    ordered: bool = False
    where: str | None = None
    key_expressions: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    select: Mapping[str, str] = field(default_factory=lambda: NOTHING)

    @property
    def time_columns(self) -> tuple[str, ...]:
        """The columns of the time of an event; the first one is the measure that windows are cut on."""
        return (self.time,) if isinstance(self.time, str) else self.time.columns

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that engines read, each once; some may be computed, see `source_columns`."""
        read = [*self.time_columns, *self.key]
        read += [column for window in self.windows.values() for column in window.columns]
        read += [column for aggregate in self.aggregates.values() for column in aggregate.columns]
        return tuple(dict.fromkeys(read))

    @property
    def source_columns(self) -> tuple[str, ...]:
        """The columns of events behind these: those that are read as they are, and those that expressions read."""
        names = [self.key_expressions.get(name, name) for name in self.columns]
        names += [] if self.where is None else [self.where]
        return tuple(dict.fromkeys(column for name in names for column in sources_of(name)))

    def __eq__(self, other: object) -> bool:
        """Whether both compute the same; their methods do not matter."""
        if not isinstance(other, QuerySpec):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in fields(QuerySpec))

    def __hash__(self) -> int:
        parts = (frozenset(self.windows.items()), frozenset(self.aggregates.items()))
        said = frozenset(self.key_expressions.items()), frozenset(self.select.items())
        return hash((self.time, self.key, self.ordered, parts, self.where, said))

    def __reduce__(self) -> tuple[Any, ...]:
        windows, aggregates = tuple(self.windows.items()), tuple(self.aggregates.items())
        key: Any = {name: self.key_expressions.get(name, name) for name in self.key}
        key = key if self.key_expressions else self.key
        given = self.time, key, windows, aggregates, self.ordered, self.where, dict(self.select)
        return type(self).checked, given

    @classmethod
    def checked(
        cls,
        time: Any,
        key: Any,
        windows: Any,
        aggregates: Any,
        ordered: bool = False,
        where: Any = None,
        select: Any = None,
    ) -> Self:
        """A spec of these parts, as users give them; a QueryError says what cannot be meant."""
        keys, key_expressions = _keys(key)
        time = time if isinstance(time, Span) else column_name(time)
        if not isinstance(time, (str, Span)):
            raise QueryError(f"a column is given by its name, not by {time!r}")
        placed = _named(windows, Window, what="window")
        computed = _named(aggregates, Aggregate, what="aggregate")
        if not placed:
            raise QueryError("a query needs at least one window")
        if not computed:
            raise QueryError("a query needs at least one aggregate")
        refuse_name_clashes(keys, computed)
        condition = None if where is None else _computed(condition_name(where, what="where of the query"))
        selected = _selected(select, {*keys, *computed})
        if isinstance(time, Span):
            if ordered:
                raise QueryError(
                    "span events end in another order than they begin: ordered=True is not for spans"
                )
            for name, window in placed.items():
                require_for_spans(time, name, window)
        return cls(
            time,
            keys,
            MappingProxyType(placed),
            MappingProxyType(computed),
            ordered,
            condition,
            MappingProxyType(key_expressions),
            MappingProxyType(selected),
        )


def _keys(key: Any) -> tuple[tuple[str, ...], dict[str, str]]:
    """The names of the keys, and the expressions of those that have one."""
    if isinstance(key, Expr):
        key = [key]
    if not isinstance(key, Iterable | None):
        raise QueryError(f"a key is a column, or a sequence of columns, not {key!r}")
    if isinstance(key, Mapping):
        named = {name: column_name(value) for name, value in key.items()}
        for name, value in named.items():
            if not isinstance(name, str) or not name or not isinstance(value, str):
                raise QueryError(f"a key is a column or an expression with a name, not {name!r}: {value!r}")
        return tuple(named), {name: _computed(value) for name, value in named.items() if value != name}
    keys = (key,) if isinstance(key, str) else tuple(map(column_name, key or ()))
    for column in keys:
        if not isinstance(column, str):
            raise QueryError(f"a column is given by its name, not by {column!r}")
        if is_computed(column):
            raise QueryError(
                f'a key of an expression needs a name: key={{"name": wr.expr("{shown(column)}")}}'
            )
    return keys, {}


def _computed(name: str) -> str:
    """A column as an expression."""
    return name if is_computed(name) else Computed(MARK + str(col(name)))


def _selected(select: Any, taken: set[str]) -> dict[str, str]:
    """The columns that expressions over the result add to it."""
    found: dict[str, str] = {}
    for name, value in named_pairs(select or {}, what="selected column"):
        if not isinstance(name, str) or not name or name in taken or name in RESERVED or name in found:
            raise QueryError(f"the selected column {name!r} needs a name of its own")
        if not isinstance(value, (str, Expr)):
            raise QueryError(f'select takes expressions such as "failed / n", not {value!r}')
        if isinstance(value, str) and is_computed(value):
            found[name] = value
        else:
            found[name] = Computed(MARK + str(value if isinstance(value, Expr) else expr(value)))
    return found


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


def require_ends(windows: Mapping[str, Window]) -> None:
    """An error if a window has no end at which it could be emitted."""
    for name, window in windows.items():
        if window.layout == "points":
            raise QueryError(
                f"window {name!r} ({window}) has no end of its own at which it could be emitted: ask it at points with query.at, "
                "or use a sliding window"
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


def answers_of(names: Sequence[str], key: Sequence[str]) -> list[str]:
    """The columns of a result that are answers: aggregates, and what is computed of them."""
    changes = (FINALITY,) if "op" in names else ()
    return [name for name in names if name not in (*key, *RESERVED, *changes)]


def refuse_name_clashes(key: tuple[str, ...], aggregates: Mapping[str, Aggregate]) -> None:
    """Each output column has one name: keys, window, start, end, aggregates, op, revision."""
    taken = set(RESERVED)
    for role, names in (("key column", key), ("aggregate", tuple(aggregates))):
        for name in names:
            if name in taken:
                raise QueryError(f"{role} {name!r} clashes with another output column of that name")
            taken.add(name)

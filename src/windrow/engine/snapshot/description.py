"""What a query computes, as JSON in a snapshot: so that another query can go on from there.

    {"key": [..], "windows": {name: {"text", "hash", "is", "fields"}, ..}, "aggregates": {..}, ..}

A query is *rebuilt* from it as it was: what the new query still has is taken from there, as are its functions; what is built in comes
from its fields; and a function of the user's own that is gone is replaced by one of the same types that does nothing. What
such a window or aggregate has kept can then be read, and dropped.
"""

from __future__ import annotations

import hashlib
import pkgutil
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass, replace
from datetime import datetime
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import windrow.aggregates
import windrow.measure
import windrow.windows
from windrow.aggregates.base import Aggregate, Scalars
from windrow.aggregates.user import UserAggregate
from windrow.engine.ordered.engine import Ordered
from windrow.engine.sequence.evicting import Evicting
from windrow.engine.sequence.user_step import UserStepped
from windrow.engine.snapshot.parts import duration_of, point_of
from windrow.engine.snapshot.plan import identity
from windrow.errors import StateError
from windrow.expressions.building import shown
from windrow.measure import Point, parse_point
from windrow.spec import QuerySpec
from windrow.windows.base import Window
from windrow.windows.deterministic import Deterministic
from windrow.windows.nondeterministic import Nondeterministic
from windrow.windows.predicate import Predicate

if TYPE_CHECKING:
    from windrow.engine.operator_state import OperatorState

# The answer of a function that does nothing, by the kind of number that is expected.
NOTHING = {"b": "False", "i": "0", "f": "0.0"}
PYTHON: dict[str, Any] = {"b": bool, "i": int, "f": float}


# -- writing ---------------------------------------------------------------------------------------


def described(operator: OperatorState) -> dict[str, Any]:
    """The query of an operator; the types of users' partials and states as they turned out."""
    query = operator.query
    windows = {name: _settled_window(operator, name, window) for name, window in query.windows.items()}
    aggregates = {name: _settled_aggregate(operator, name, each) for name, each in query.aggregates.items()}
    return {
        "time": str(query.time),
        "time_hash": _hash(repr(query.time)),
        "key": list(query.key),
        "ordered": query.ordered,
        "where": query.where,
        "key_expressions": dict(query.key_expressions),
        "windows": {name: _entry(query.windows[name], fields) for name, fields in windows.items()},
        "aggregates": {name: _entry(query.aggregates[name], fields) for name, fields in aggregates.items()},
    }


def _entry(spec: Any, fields: dict[str, Any]) -> dict[str, Any]:
    return {"text": str(spec), "hash": _hash(identity(spec)), "is": type(spec).__name__, "fields": fields}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _settled_window(operator: OperatorState, name: str, window: Window) -> dict[str, Any]:
    fields = _fields_of(window)
    if kinds := _kinds_of_state(operator, name):
        state = vars(window)["state"]
        fields["state"] = [_encoded(kind(value)) for kind, value in zip(kinds, state, strict=True)]
    if vars(window).get("at_watermark") is not None:
        fields["timed"] = True
    return fields


def _kinds_of_state(operator: OperatorState, name: str) -> list[type]:
    """The types of the numbers that a window of the user's keeps, once an engine has found them out."""
    for engine in operator.engines:
        if isinstance(engine, Ordered) and name in engine.query.windows:
            place = engine.windows.names.index(name)
            found = next(d for specs, d in engine.settled.discretizers if place in specs)
            return (
                [PYTHON[kind] for kind in found.kinds] if isinstance(found, (UserStepped, Evicting)) else []
            )
    return []


def _settled_aggregate(operator: OperatorState, name: str, aggregate: Aggregate) -> dict[str, Any]:
    fields = _fields_of(aggregate)
    if isinstance(aggregate, UserAggregate) and operator.engines:
        bound = operator.engines[0].binding.answers[name].bound
        assert isinstance(bound.partial, Scalars)
        values = tuple(PYTHON[f.dtype](f.identity) for f in bound.partial.fields)
        fields["identity"] = _encoded(values)
        fields["lower"] = bound.outputs[0]
    return fields


def _fields_of(spec: Any) -> dict[str, Any]:
    found = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
    return {name: _encoded(value) for name, value in found.items() if not callable(value)}


def _encoded(value: Any) -> Any:
    """A field of a spec as JSON can hold it."""
    if isinstance(value, tuple):
        return [_encoded(each) for each in value]
    if isinstance(value, Predicate):
        return {"is": "Predicate", "column": value.column, "columns": list(value.columns)}
    if is_dataclass(value):
        return {"is": type(value).__name__, "fields": _fields_of(value)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}
    if hasattr(value, "item"):  # NumPy's
        return _encoded(value.item())
    return _encoded(parse_point(value, what="a point"))


# -- comparing -------------------------------------------------------------------------------------


def require_compatible(about: Mapping[str, Any], query: QuerySpec) -> None:
    """A StateError with every difference that a query cannot go on with."""
    found = list(_differences(about, query))
    if found:
        raise StateError(
            f"the state cannot go on with this query: {'; '.join(found)}. What is another one needs another name, "
            "and another key or time needs a new start"
        )


def _differences(about: Mapping[str, Any], query: QuerySpec) -> Iterator[str]:
    if about["key"] != list(query.key):
        yield f"the key was {_listed(about['key'])}, is {_listed(query.key)}"
    if about["time_hash"] != _hash(repr(query.time)):
        same = about["time"] == str(query.time)
        yield f"the time was {about['time']}, is {query.time}{' with other options' if same else ''}"
    if about["ordered"] != query.ordered:
        yield f"ordered was {about['ordered']}, is {query.ordered}"
    if about.get("where") != query.where:
        before, now = (name and shown(name) for name in (about.get("where"), query.where))
        yield f"the filter was {before or 'none'}, is {now or 'none'}"
    for name in query.key:
        if about.get("key_expressions", {}).get(name) != query.key_expressions.get(name):
            yield f"key {name!r} was computed otherwise"
    for what, specs in (("window", query.windows), ("aggregate", query.aggregates)):
        for name, spec in specs.items():
            old = about[what + "s"].get(name)
            if old is not None and old["hash"] != _hash(identity(spec)):
                other = "the same with other code" if old["text"] == str(spec) else str(spec)
                yield f"{what} {name!r} was {old['text']}, is {other}"


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "nothing"


# -- rebuilding ------------------------------------------------------------------------------------


def rebuilt(about: Mapping[str, Any], query: QuerySpec) -> QuerySpec:
    """The query that is described; what `query` has of the same names, which are `require_compatible`, is its own."""
    windows = {n: query.windows.get(n) or _spec(e, Window) for n, e in about["windows"].items()}
    aggregates = {n: query.aggregates.get(n) or _spec(e, Aggregate) for n, e in about["aggregates"].items()}
    return replace(query, windows=MappingProxyType(windows), aggregates=MappingProxyType(aggregates))


def _spec(entry: Mapping[str, Any], kind: type) -> Any:
    found = _classes(kind).get(entry["is"])
    if found is None:
        raise StateError(f"the snapshot speaks of {entry['text']}, which this windrow does not know")
    given = {name: _decoded(value) for name, value in entry["fields"].items()}
    hints = get_type_hints(found, localns=vars(windrow.measure))
    hints.pop("lower", None)  # of this function the answer is described
    if wrong := [name for name, value in given.items() if name in hints and not _fits(value, hints[name])]:
        raise StateError(f"the snapshot speaks of {entry['text']} with {wrong[0]} {given[wrong[0]]!r}")
    return IDLE.get(found, found)(**given)


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_decoded, value))
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float.fromhex(value["float"])
    if value["is"] == "Predicate":
        columns = tuple(value["columns"])
        if value["column"] is not None:
            return Predicate(value["column"], None, None, columns)
        return Predicate(None, None, _function(_names(columns), "False"), columns)
    kinds: dict[str, Callable[..., Any]] = {"Duration": duration_of, "Point": point_of}
    made = kinds.get(value["is"])
    if made is None:
        raise StateError(f"the snapshot speaks of {value['is']}, which this windrow does not know")
    return made(**{name: _decoded(each) for name, each in value["fields"].items()})


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of the type that a field is declared to have."""
    if isinstance(hint, types.UnionType) or get_origin(hint) is Union:
        return any(_fits(value, each) for each in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(each, get_args(hint)[0]) for each in value)
    if hint is float:
        return isinstance(value, (int, float))
    # A moment is written as a point.
    return type(value) is (Point if hint is datetime else hint)


@cache
def _classes(kind: type) -> dict[str, type]:
    """The classes of all windows, or of all aggregates, by name."""
    package = windrow.windows if kind is Window else windrow.aggregates
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        import_module(module.name)
    found, left = {}, [kind]
    while left:
        left += (here := left.pop()).__subclasses__()
        found[here.__name__] = here
    return found


def _names(columns: Any) -> list[str]:
    return [f"x{i}" for i in range(len(columns))]


def _function(parameters: Any, answer: str) -> Any:
    """A function of these parameters that always gives the same answer."""
    # As if it were the user's.
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(f"def removed({', '.join(parameters)}):\n    return {answer}\n", scope)
    return scope["removed"]


def _idle_step(**given: Any) -> Deterministic:
    step = _function(["state", *_names(given["columns"])], "state, 0, 0")
    if given.pop("timed", False):
        given["at_watermark"] = _function(["state"], str(1 << 62))
    return Deterministic(step=step, **given)


def _idle_eviction(**given: Any) -> Nondeterministic:
    names = _names(given["columns"])
    updates = "update" not in given  # a function has no field
    given.pop("update", None)
    return Nondeterministic(
        evict=_function(["rows", *names], "0"),
        trigger=_function(names or ["rows"], "False"),
        update=_function(["state", *names], "state") if updates else None,
        **given,
    )


def _idle_aggregate(**given: Any) -> UserAggregate:
    lower = given.pop("lower", "f")
    given.pop("invert", None)
    answers = [_literal(value) for value in given["identity"]]
    nothing = answers[0] if given["bare"] else f"({''.join(f'{each}, ' for each in answers)})"
    return UserAggregate(
        lift=_function(_names(given["columns"]), nothing),
        combine=_function(["a", "b"], "a"),
        lower=_function(["a"], NOTHING[lower]),
        invert=None,
        **given,
    )


def _literal(value: Any) -> str:
    kind = next(kind for kind, type_ in PYTHON.items() if type(value) is type_)
    return NOTHING[kind]


# What makes those that have functions of the user's.
IDLE: dict[type, Callable[..., Any]] = {
    Deterministic: _idle_step,
    Nondeterministic: _idle_eviction,
    UserAggregate: _idle_aggregate,
}

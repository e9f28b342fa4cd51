"""What the engine must know of a user's aggregate: the types of its numbers, and which row broke it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Bound, Scalars, plain
from windrow.engine.compiler import compiled, warn_interpreted
from windrow.engine.cutting import Cells, Runs
from windrow.engine.integers import Int64, Nonsense, interpreted, strict
from windrow.engine.numbers import NUMBA_TYPES
from windrow.errors import UserFunctionError

if TYPE_CHECKING:
    from windrow.engine.partials.scalars import Numbers

RESULTS = {"i": pa.int64(), "f": pa.float64(), "b": pa.bool_()}
# A number of one kind fits into those behind it.
JOINED = "bif"
PYTHON: dict[str, Any] = {"b": bool, "i": int, "f": float}
KINDS: dict[type, str] = {bool: "b", int: "i", Int64: "i"}
# Numba stumbles over some of its own types.
NOT_COMPILED = (numba.core.errors.NumbaError, TypeError)


def bind(aggregate: Aggregate, types: Sequence[pa.DataType]) -> Bound:
    """An aggregate bound to the types of its columns, and `settled`."""
    return settled(aggregate.bind(tuple(types)))


def settled(bound: Bound) -> Bound:
    """A user's aggregate with the types that its functions give; any other as it is.

    A field is a boolean or an integer where identity, lift and combine all say so, else a float; the result is what
    `lower` gives: integer, boolean or float. What Numba cannot compile is called with ones to find out.
    """
    if not isinstance(bound.partial, Scalars) or not bound.partial.own:
        return bound
    if any(hasattr(function, "is_interpreted") for function in (bound.partial.lift, bound.lower)):
        return bound  # it has been here
    assert bound.lower is not None
    partial = _partial(bound.partial, bound.kinds)
    lower, kind = _lower(bound.lower, partial, bound.kinds)
    type_ = RESULTS[kind]
    return replace(bound, partial=partial, lower=lower, type=type_, outputs=(kind,), build=plain(type_))


@cache
def _partial(spec: Scalars, kinds: tuple[str, ...]) -> Scalars:
    """The partial with the types of its fields; functions that cannot be compiled are replaced by strict ones."""
    # The identities 0 and 1 are booleans to functions that make nothing else.
    found: list[Any] = ["b" if f.dtype != "f" and f.identity in (0, 1) else f.dtype for f in spec.fields]
    try:
        found = _joined(found, _returned(spec.lift, [NUMBA_TYPES[k] for k in kinds]), spec)
        before: list[str] = []
        while before != found:
            before, partial = found, _packed(found, spec)
            found = _joined(found, _returned(spec.combine, [partial, partial]), spec)
        roles: dict[str, Any] = {}
    except NOT_COMPILED as problem:
        warn_interpreted({"lift": spec.lift, "combine": spec.combine}, problem)
        ones = _ones(spec, kinds) or [f.identity for f in spec.fields]
        found = [
            max(f, KINDS.get(type(one), "f"), key=JOINED.index) for f, one in zip(found, ones, strict=True)
        ]
        given = {role: getattr(spec, role) for role in ("lift", "combine", "invert")}
        try:  # `lift` alone may be to blame, and `combine` must not wrap around either
            _returned(spec.combine, [_packed(found, spec)] * 2)
        except NOT_COMPILED as other:
            warn_interpreted({"combine": spec.combine}, other)
        floats = not {*found, *kinds} - {"f"}
        roles = {
            role: strict(function, "".join(found), spec.bare, "partial", floats=floats)
            for role, function in given.items()
            if function is not None
        }
    fields = tuple(
        replace(f, dtype=kind, identity=PYTHON[kind](f.identity))
        for f, kind in zip(spec.fields, found, strict=True)
    )
    return replace(spec, fields=fields, **roles)


@cache
def _lower(
    lower: Callable[..., Any], spec: Scalars, kinds: tuple[str, ...]
) -> tuple[Callable[..., Any], str]:
    """The function that makes results, and their kind."""
    try:
        found = _returned(lower, [_packed([f.dtype for f in spec.fields], spec)])
        if isinstance(found, numba.types.Boolean) or _is_signed_or_float(found):
            return lower, _kind(found)
        problem: Exception = numba.core.errors.TypingError(f"lower returns {found}, which is not a number")
    except NOT_COMPILED as raised:
        problem = raised
    warn_interpreted({"lower": lower}, problem)
    ones = _ones(spec, kinds)
    one = None if ones is None else _tried(lower, ones[0] if spec.bare else tuple(ones))
    if one is None:  # it fails for ones: then integers are made of integers
        one = PYTHON[max((field.dtype for field in spec.fields), key=JOINED.index)](0)
    kind = KINDS.get(type(one), "f")
    floats = kind == "f" and all(field.dtype == "f" for field in spec.fields)
    return strict(lower, kind, True, "result", floats=floats), kind


def _is_signed_or_float(type_: Any) -> bool:
    return isinstance(type_, numba.types.Float) or (isinstance(type_, numba.types.Integer) and type_.signed)


def _ones(spec: Scalars, kinds: tuple[str, ...]) -> list[Any] | None:
    """The partial of two events whose numbers are all 1; None if that fails."""
    lifted = _tried(spec.lift, *(1 if kind == "i" else 1.0 for kind in kinds))
    found = None if lifted is None else _tried(spec.combine, lifted, lifted)
    if found is None:
        return None
    parts = (found,) if spec.bare else found
    return list(parts) if isinstance(parts, tuple) and len(parts) == len(spec.fields) else None


def _tried(function: Any, *arguments: Any) -> Any:
    try:
        return interpreted(function)(*arguments)
    except Exception:  # a user's function may raise anything, and will do so again where it matters
        return None


def _packed(kinds: Sequence[str], spec: Scalars) -> Any:
    types = [NUMBA_TYPES[kind] for kind in kinds]
    return types[0] if spec.bare else numba.types.Tuple(types)


def _returned(function: Any, arguments: list[Any]) -> Any:
    dispatcher = compiled(function, user=True)
    dispatcher.compile(tuple(arguments))
    return dispatcher.overloads[tuple(arguments)].signature.return_type


def _joined(kinds: list[str], returned: Any, spec: Scalars) -> list[Any]:
    """The kinds of fields that hold numbers of these kinds, and what a function returns."""
    parts = list(returned.types) if isinstance(returned, numba.types.BaseTuple) else [returned]
    if any(isinstance(part, numba.types.Integer) and not part.signed for part in parts):
        raise numba.core.errors.TypingError(f"it returns {returned}, and integers have a sign")
    if len(parts) != len(kinds):
        raise UserFunctionError(
            f"{spec.name!r}: identity has {len(kinds)} numbers, but lift or combine returns {len(parts)}"
        )
    return [max(kind, _kind(part), key=JOINED.index) for kind, part in zip(kinds, parts, strict=True)]


def _kind(type_: Any) -> str:
    if isinstance(type_, numba.types.Boolean):
        return "b"
    return "i" if isinstance(type_, numba.types.Integer) else "f"


def blame(
    store: Numbers,
    segments: Any,
    inputs: list[np.ndarray],
    rows: np.ndarray | None,
    problem: Exception,
    *,
    done: int | None = None,
) -> UserFunctionError:
    """Go on from where a loop has stopped, event by event, to name the one whose functions raised.

    `rows` are the rows of the events in the batch; None if they are no longer known. The store is as the loop left
    it, which had `done` so many values: all that the store holds, if nobody says.
    """
    spec = store.spec
    assert isinstance(spec, Scalars)
    if not isinstance(segments, (Runs, Cells)):  # an event lies in many cells
        return lift_failed(spec, inputs, rows) or named(spec, "combine", problem)
    assert spec.lift is not None
    lift, combine = interpreted(spec.lift), interpreted(spec.combine)
    partials: dict[int, Any] = {}
    first = int(store.n.sum()) if done is None else done
    places, cells = (part[first:] for part in segments.located())
    for place, cell, *values in zip(places, cells, *(x[places].tolist() for x in inputs), strict=True):
        role = "lift"
        try:
            lifted = lift(*values)
            role = "combine"
            held = tuple(field[cell] for field in store.fields)
            partials[cell] = combine(partials.get(cell, held[0] if spec.bare else held), lifted)
        except Exception as found:  # a user's function may raise anything
            return named(spec, role, found, None if rows is None else int(rows[place]), _shown(values))
    return named(spec, "combine", problem)


def lift_failed(
    spec: Scalars, inputs: Sequence[np.ndarray], rows: np.ndarray | None
) -> UserFunctionError | None:
    """The error for the first event whose `lift` raises; None if none does."""
    assert spec.lift is not None
    lift = interpreted(spec.lift)
    for i, values in enumerate(zip(*(x.tolist() for x in inputs), strict=True)):
        try:
            lift(*values)
        except Exception as found:  # a user's function may raise anything
            return named(spec, "lift", found, None if rows is None else int(rows[i]), _shown(values))
    return None


def _shown(values: Sequence[Any]) -> str:
    return f" ({', '.join(map(repr, values))})"


def named(
    spec: Scalars, role: str, problem: Exception, row: int | None = None, where: str = ""
) -> UserFunctionError:
    """The error that says which function of the user's raised what."""
    function = getattr(getattr(spec, role, None), "__name__", role)
    return _failed(f"{role} function {function!r} of {spec.name!r}", problem, row, where)


def lower_failed(bound: Bound, problem: Exception, where: str = "") -> UserFunctionError:
    """The error for a `lower` of the user's that raised."""
    function = getattr(bound.lower, "__name__", "lower")
    return _failed(f"lower function {function!r} of {bound.partial.name!r}", problem, None, where)


def _failed(what: str, problem: Exception, row: int | None, where: str) -> UserFunctionError:
    if isinstance(problem, Nonsense):
        return UserFunctionError(what, row, f"{where}: {str(problem).rstrip(',')}")
    return UserFunctionError(f"{what} raised {type(problem).__name__}", row, f"{where}: {problem}")

"""What the engine must know of a user's aggregate: its result, and which row broke it; `user_types` finds the types of its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Bound, Scalars, plain
from windrow.compiling.integers import Nonsense, interpreted
from windrow.engine.aligned.cutting import Cells, Runs
from windrow.errors import UserFunctionError

if TYPE_CHECKING:
    from windrow.engine.partials.scalars import Numbers

RESULTS = {"i": pa.int64(), "f": pa.float64(), "b": pa.bool_()}


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
    from windrow.engine.functions.user_types import lower_of, partial_of

    partial = partial_of(bound.partial, bound.kinds)
    lower, kind = lower_of(bound.lower, partial, bound.kinds)
    type_ = RESULTS[kind]
    return replace(bound, partial=partial, lower=lower, type=type_, outputs=(kind,), build=plain(type_))


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

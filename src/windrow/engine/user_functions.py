"""What the engine must know of user functions: the types of their partial, and which row broke them."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from windrow.aggregates.base import Bound, Scalars
from windrow.engine.compiler import compiled, warn_interpreted
from windrow.errors import UserFunctionError

NUMBA_TYPES = {"i": numba.int64, "f": numba.float64}


def field_types(spec: Scalars, kinds: tuple[str, ...]) -> list[np.dtype[Any]]:
    """The dtype of each field: int64 where identity, lift and combine all say so, else float64.

    What Numba cannot compile is kept as float64.
    """
    types = [NUMBA_TYPES[f.dtype] for f in spec.fields]
    try:
        lift, combine = compiled(spec.lift, user=True), compiled(spec.combine, user=True)  # type: ignore[arg-type]
        types = _joined(types, _returned(lift, [NUMBA_TYPES[k] for k in kinds]), spec)
        for _ in range(2):
            partial = types[0] if spec.bare else numba.types.Tuple(types)
            types = _joined(types, _returned(combine, [partial, partial]), spec)
    except numba.core.errors.NumbaError as problem:
        warn_interpreted({"lift": spec.lift, "combine": spec.combine}, problem)
        return [np.dtype(np.float64)] * len(types)
    return [np.dtype(np.int64 if t == numba.int64 else np.float64) for t in types]


def _returned(function: Any, arguments: list[Any]) -> Any:
    function.compile(tuple(arguments))
    return function.overloads[tuple(arguments)].signature.return_type


def _joined(types: list[Any], returned: Any, spec: Scalars) -> list[Any]:
    parts = list(returned.types) if isinstance(returned, numba.types.BaseTuple) else [returned]
    if len(parts) != len(types):
        raise UserFunctionError(
            f"{spec.name!r}: identity has {len(types)} numbers, but lift or combine returns {len(parts)}"
        )
    return [
        numba.int64
        if a == numba.int64 and isinstance(b, (numba.types.Integer, numba.types.Boolean))
        else numba.float64
        for a, b in zip(types, parts, strict=True)
    ]


def blame(
    spec: Scalars, inputs: list[np.ndarray], rows: np.ndarray | None, problem: Exception
) -> UserFunctionError:
    """Run the functions again, event by event, to name the one that raised.

    `rows` are the rows of the events in the batch; None if they are no longer known.
    """
    partial: Any = spec.fields[0].identity if spec.bare else tuple(f.identity for f in spec.fields)
    for i in range(len(inputs[0])):
        values = [x[i].item() for x in inputs]
        role = "lift"
        try:
            lifted = spec.lift(*values)  # type: ignore[misc]
            role = "combine"
            partial = spec.combine(partial, lifted)
        except Exception as found:  # the user's function may raise anything
            shown = ", ".join(repr(v) for v in values)
            return named(spec, role, found, None if rows is None else int(rows[i]), f" ({shown})")
    return named(spec, "combine", problem)


def named(
    spec: Scalars, role: str, problem: Exception, row: int | None = None, where: str = ""
) -> UserFunctionError:
    """The error that says which function of the user's raised what."""
    function = getattr(getattr(spec, role, None), "__name__", role)
    what = f"{role} function {function!r} of {spec.name!r} raised {type(problem).__name__}"
    return UserFunctionError(what, row, f"{where}: {problem}")


def lower_failed(bound: Bound, problem: Exception, where: str = "") -> UserFunctionError:
    """The error for a `lower` of the user's that raised."""
    function = getattr(bound.lower, "__name__", "lower")
    what = f"lower function {function!r} of {bound.partial.name!r} raised {type(problem).__name__}"
    return UserFunctionError(what, None, f"{where}: {problem}")

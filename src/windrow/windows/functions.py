"""Functions of the user's in window specs: their parameters are columns, by name.

    def is_rush(speed, lanes): ...          # parameters are columns, by name

The spec keeps the function as it is, so that it can be pickled and compared; the engine compiles it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from windrow.errors import QueryError
from windrow.windows.arguments import require_column

State = tuple[int | float, ...]


def parameters_of(function: Callable[..., Any], *, what: str) -> tuple[str, ...]:
    """The names of a function's parameters; an error if it is none, or takes any number of them."""
    if not callable(function):
        raise QueryError(f"{what} must be a function, not {type(function).__name__}")
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise QueryError(f"{what} {label(function)!r} does not say what its parameters are called") from None
    for parameter in found:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
            raise QueryError(
                f"{what} {label(function)!r} has the parameter {str(parameter)!r}: "
                "each parameter must be an ordinary one, with a name of its own"
            )
    return tuple(p.name for p in found)


def columns_of(parameters: Sequence[str], columns: Sequence[str] | None, *, what: str) -> tuple[str, ...]:
    """The columns that these parameters read: of the same names, or `columns`, one by one."""
    if columns is None:
        return tuple(parameters)
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise QueryError(f"columns of {what} must be a list of names, not {columns!r}")
    names = tuple(require_column(name, what=f"a column of {what}") for name in columns)
    if len(set(names)) < len(names):
        raise QueryError(f"columns of {what} names a column twice: {', '.join(names)}")
    if len(names) != len(parameters):
        raise QueryError(
            f"{what} has {len(parameters)} parameters for columns ({', '.join(parameters)}), "
            f"but columns names {len(names)} ({', '.join(names)})"
        )
    return names


def state_of(state: Any, *, what: str) -> tuple[State, bool]:
    """The numbers of a state, and whether it was a lone one."""
    bare = not isinstance(state, tuple)
    values = (state,) if bare else state
    if not values:
        raise QueryError(f"the state of {what} must be a number or a tuple of numbers, not an empty tuple")
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise QueryError(f"the state of {what} must hold integers and floats only, not {value!r}")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise QueryError(f"the state of {what} holds {value}, which is beyond 64-bit integers")
    return values, bare


def label(function: Callable[..., Any]) -> str:
    """What to call a function in a message."""
    return str(getattr(function, "__name__", type(function).__name__))

"""Functions of the user's own inside a discretizer: their types, and what is said when they fail.

    step 'trips' of window 'w' raised ZeroDivisionError at time 17 (state=0, speed=3.0): division by zero

A function is compiled for the types of its columns when the query meets a table. Numba then knows
what it returns, so nonsense such as half a window is refused before the first event. What Numba
cannot compile runs as plain Python, and each of its answers is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np

from windrow.compiling.compiler import warn_interpreted
from windrow.compiling.integers import Nonsense
from windrow.compiling.native import NOT_COMPILED, TYPES
from windrow.errors import UserFunctionError
from windrow.measure import INT64_MAX, INT64_MIN
from windrow.windows.functions import label

WHOLE = (numba.types.Integer, numba.types.Boolean)


class Role:
    """A user function in its role: "step of window 'w'". `names` are what it is called with."""

    def __init__(self, role: str, function: Callable[..., Any], shown: str, names: Sequence[str]) -> None:
        self.what = f"{role} {label(function)!r} of {shown}"
        self.names = tuple(names)

    def refused(self, problem: str) -> UserFunctionError:
        """The error for a function that cannot do what it is there for, whatever the event."""
        return UserFunctionError(f"{self.what} {problem}")

    def failed(self, problem: Exception, moment: str, values: Sequence[Any]) -> UserFunctionError:
        """The error for one call."""
        pairs = zip(self.names, values, strict=True)
        where = f" at {moment} ({', '.join(f'{name}={value!r}' for name, value in pairs)})"
        if isinstance(problem, Nonsense):
            return UserFunctionError(self.what, None, f" {problem}{where}")
        raised = f" raised {type(problem).__name__}{where}: {problem}"
        return UserFunctionError(self.what, None, raised)


def state_type(kinds: Sequence[str], bare: bool) -> Any:
    """The Numba type of a state whose numbers are of these kinds."""
    types = [TYPES[kind] for kind in kinds]
    return types[0] if bare else numba.types.Tuple(types)


def joined_kinds(kinds: Sequence[str], found: Any, bare: bool, role: Role) -> list[str]:
    """The kinds of a state after a function gave back one of Numba type `found`: "f" wins over "i"."""
    parts = [found] if bare else list(getattr(found, "types", ()))
    if len(parts) != len(kinds) or not all(isinstance(p, (*WHOLE, numba.types.Float)) for p in parts):
        size = "a number" if bare else f"a tuple of {len(kinds)} numbers"
        raise role.refused(f"returns {found} as the state; {size} is needed, as it began")
    return ["f" if k == "f" or not isinstance(p, WHOLE) else "i" for k, p in zip(kinds, parts, strict=True)]


def settle(kinds: Sequence[str], once: Callable[[list[str]], list[str]], functions: dict[str, Any]) -> Any:
    """Kinds of a state that do not change any more when `once` is applied; None if not compilable."""
    now = list(kinds)
    try:
        for _ in range(len(now) + 1):
            later = once(now)
            if later == now:
                break
            now = later
    except NOT_COMPILED as problem:
        warn_interpreted(functions, problem)
        return None
    return now


def checked_count(value: Any, name: str) -> int:
    """A number of windows or events that an interpreted function gave back."""
    if not isinstance(value, (bool, np.bool_, int, np.integer)):
        raise Nonsense(f"returned {value!r} for {name}, which is not a whole number,")
    return min(max(int(value), INT64_MIN), INT64_MAX)

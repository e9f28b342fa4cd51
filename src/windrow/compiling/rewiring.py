"""Functions with other objects in the place of those that they name. What they were made of stays as it is."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

from windrow.compiling.fingerprint import names_in


def rewired(
    function: types.FunctionType, put: Callable[[Any], Any], more: Mapping[str, Any] | None = None
) -> types.FunctionType:
    """The function with `put(value)` for each global that it reads and each object that it is closed over.

    `more` are globals besides. The function itself is returned where all of this changes nothing.
    """
    names = names_in(function.__code__)
    read = {name: value for name, value in function.__globals__.items() if name in names}
    found = {name: put(value) for name, value in read.items()}
    found |= {name: value for name, value in (more or {}).items() if name in names and name not in read}
    contents = [cell.cell_contents for cell in function.__closure__ or ()]
    held = [put(value) for value in contents]
    if all(map(_is, held, contents)) and all(value is read.get(name) for name, value in found.items()):
        return function
    cells = tuple(map(types.CellType, held)) if function.__closure__ is not None else None
    scope = {**function.__globals__, **found}
    clone = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
    clone.__qualname__, clone.__module__ = function.__qualname__, function.__module__
    return clone


def _is(one: Any, other: Any) -> bool:
    return one is other

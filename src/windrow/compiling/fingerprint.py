"""What a function does, as text: the same in every process, another one as soon as its code changes.

The code counts, and what it reads: defaults, constants, objects that it is closed over, and the functions that
it calls, with all that they read.
"""

from __future__ import annotations

import functools
import numbers
import types
from collections.abc import Callable
from typing import Any


def code_of(function: Callable[..., Any]) -> str:
    """The text for a function, or for anything else that can be called."""
    return _code(function, ())


def _code(function: Any, within: tuple[Any, ...]) -> str:
    function = getattr(function, "py_func", function)
    if isinstance(function, functools.partial):
        given = [_value(a, within) for a in function.args]
        return repr((_code(function.func, within), given, _values(function.keywords, within)))
    if not isinstance(function, types.FunctionType):
        return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function))}"
    if function in within:  # it calls itself
        return function.__qualname__
    within = (*within, function)
    cells = [_value(c.cell_contents, within) for c in function.__closure__ or ()]
    names = names_in(function.__code__)
    read = {n: v for n, v in function.__globals__.items() if n in names}
    told = (numbers.Number, str, bytes, tuple, types.FunctionType)
    known = {n: v for n, v in read.items() if isinstance(v, told) or hasattr(v, "py_func")}
    defaults = function.__defaults__, function.__kwdefaults__
    return repr((_code_object(function.__code__), cells, defaults, _values(known, within)))


def names_in(code: types.CodeType) -> set[str]:
    """The names that a function reads, and those that functions inside it read."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= names_in(constant)
    return found


def _values(named: dict[str, Any], within: tuple[Any, ...]) -> list[tuple[str, str]]:
    return [(name, _value(value, within)) for name, value in sorted(named.items())]


def _value(value: Any, within: tuple[Any, ...]) -> str:
    """What a function reads: the same text in every process, without addresses."""
    if callable(value):
        return _code(value, within)
    shown: Any = type(value).__repr__
    if shown is object.__repr__:
        return f"{type(value).__qualname__}({_values(getattr(value, '__dict__', {}), within)})"
    return repr(value)


def _code_object(code: types.CodeType) -> tuple[Any, ...]:
    constants = [_constant(c) for c in code.co_consts]
    return code.co_code.hex(), constants, code.co_names, code.co_varnames


def _constant(value: Any) -> Any:
    if isinstance(value, types.CodeType):
        return _code_object(value)
    return sorted(map(repr, value)) if isinstance(value, frozenset) else value


def is_users(function: Any) -> bool:
    """Whether a function is none of windrow's own."""
    return not str(function.__module__).startswith("windrow.")

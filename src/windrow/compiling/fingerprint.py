"""What a function does, as text: the same in every process, another one as soon as its code changes.

The code counts, and what it reads: defaults, constants, arrays and containers, objects that it is closed over or bound to, and the
functions that it calls, with all that they read.
"""

from __future__ import annotations

import functools
import hashlib
import numbers
import re
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

# The globals that count, besides what runs Python code.
CONSTANTS = (numbers.Number, str, bytes, tuple, list, dict, set, frozenset, np.ndarray)
# Characters of a text; a hash stands for longer ones.
LONGEST = 1 << 16
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def code_of(function: Callable[..., Any]) -> str:
    """The text for a function, or for anything else that can be called."""
    return _code(function, ())


def _code(function: Any, within: tuple[Any, ...]) -> str:
    function = getattr(function, "py_func", function)
    if isinstance(function, functools.partial):
        given = [_value(a, within) for a in function.args]
        return repr((_code(function.func, within), given, _values(function.keywords, within)))
    if isinstance(function, types.MethodType):
        return repr((_code(function.__func__, within), _value(function.__self__, within)))
    if not isinstance(function, types.FunctionType):
        if not _runs_python(function):
            return (
                f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function))}"
            )
        if hasattr(function, "__wrapped__"):  # by a cache
            return _code(function.__wrapped__, within)
        if _is_among(function, within):
            return type(function).__qualname__
        return repr((_code(type(function).__call__, within), _object(function, within)))
    if _is_among(function, within):  # it calls itself
        return function.__qualname__
    within = (*within, function)
    cells = [_value(c.cell_contents, within) for c in function.__closure__ or ()]
    names = names_in(function.__code__)
    read = {n: v for n, v in function.__globals__.items() if n in names}
    known = {n: v for n, v in read.items() if isinstance(v, CONSTANTS) or _runs_python(v)}
    defaults = _value((function.__defaults__, function.__kwdefaults__), within)
    text = f"({_code_object(function.__code__)!r}, {cells!r}, {defaults}, {_values(known, within)!r})"
    # Each level of calls doubles what is quoted in it.
    return text if len(text) <= LONGEST else hashlib.sha256(text.encode()).hexdigest()


def _runs_python(value: Any) -> bool:
    """Whether it can be called, is no class, and its code is written in Python."""
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)) or hasattr(
        value, "py_func"
    ):
        return True
    if isinstance(value, type) or not callable(value):
        return False
    return hasattr(value, "__wrapped__") or isinstance(type(value).__call__, types.FunctionType)


def _is_among(value: Any, within: tuple[Any, ...]) -> bool:
    return any(value is other for other in within)


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
    if _is_among(value, within):
        return type(value).__qualname__
    inside = (*within, value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_value(k, inside)}: {_value(v, inside)}' for k, v in value.items())}}}"
    if type(value) in (list, tuple, set, frozenset):
        parts = [_value(each, inside) for each in value]
        if isinstance(value, (set, frozenset)):
            return f"{{{', '.join(sorted(parts))}}}"
        inner = ", ".join(parts)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)" if len(parts) == 1 else f"({inner})"
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        return _array(np.asarray(value), inside)  # the text of a long one leaves out most of it
    if is_dataclass(value):
        named = (f"{each.name}={_value(getattr(value, each.name), inside)}" for each in fields(value))
        return f"{type(value).__qualname__}({', '.join(named)})"
    shown: Any = type(value).__repr__
    return _object(value, within) if shown is object.__repr__ else ADDRESS.sub("", repr(value))


def _array(array: np.ndarray, within: tuple[Any, ...]) -> str:
    if array.dtype.hasobject:
        return _value(array.tolist(), within)
    return f"{array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()}"


def _object(value: Any, within: tuple[Any, ...]) -> str:
    """An object by its class and all that it holds."""
    slots = [
        n
        for c in type(value).__mro__
        for n, each in vars(c).items()
        if isinstance(each, types.MemberDescriptorType)
    ]
    held = {n: getattr(value, n) for n in slots if hasattr(value, n)} | getattr(value, "__dict__", {})
    return f"{type(value).__qualname__}({_values(held, (*within, value))})"


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

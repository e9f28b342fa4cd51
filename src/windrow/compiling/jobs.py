"""A loop and the types of its arguments, as bytes that another process can compile.

A loop is made of functions that mostly have no name of their own: the functions of an aggregate in the place of stand-ins, or
source that was written for them. So functions that cannot be imported travel as what they are made of: their code, what they are
closed over and the globals that they read. What a module knows by the same name travels as that name. Numba is not needed for it.
"""

from __future__ import annotations

import importlib
import io
import marshal
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from windrow.compiling.fingerprint import names_in


class Job(NamedTuple):
    """A loop, what its machine code is known by on disk, and a call: arguments of the same types."""

    name: str
    function: Callable[..., Any]
    options: dict[str, Any]
    arguments: tuple[Any, ...]


class ArrayType(NamedTuple):
    """What compiled code knows of an array: neither its size nor its values."""

    dtype: np.dtype[Any]
    dimensions: int
    order: str
    writeable: bool

    def example(self) -> np.ndarray:
        """A small array of this type."""
        shape = (2,) * self.dimensions
        array = np.zeros((*shape, 2), self.dtype)[..., 0]
        if self.order != "A":
            array = np.zeros(shape, self.dtype, order=self.order)  # type: ignore[call-overload]
        array.flags.writeable = self.writeable
        return array


def types_of(value: Any) -> Any:
    """What compiled code depends on of arguments: equal, and with the same hash, where their types are."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return ArrayType(value.dtype, value.ndim, order, flags.writeable)
    if isinstance(value, tuple):
        parts = map(types_of, value)
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    if isinstance(value, (bool, np.generic)):
        return type(value)
    if isinstance(value, int):
        return int if value < 2**63 else np.uint64
    return float if isinstance(value, float) else value


def examples(value: Any) -> Any:
    """Arguments of these types."""
    if isinstance(value, ArrayType):
        return value.example()
    if isinstance(value, tuple):
        parts = map(examples, value)
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    return value(0) if isinstance(value, type) else value


def dumps(job: Job) -> bytes:
    """The job as bytes for `pickle.loads` of a process of the same Python and the same windrow."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(job)
    return buffer.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (value.__name__,)
        if not isinstance(value, types.FunctionType) or _named(value.__module__, value.__qualname__) is value:
            return NotImplemented
        cells = value.__closure__ or ()
        names = names_in(value.__code__)
        read = {
            name: _Global(value.__module__, name) if _named(value.__module__, name) is known else known
            for name, known in value.__globals__.items()
            if name in names
        }
        state = read, [cell.cell_contents for cell in cells]
        made = marshal.dumps(value.__code__), value.__module__, value.__qualname__, len(cells)
        # What it reads is filled in afterwards: it may read itself.
        return _empty_function, (*made, value.__defaults__), state, None, None, _fill


class _Global(NamedTuple):
    """An object that a module knows by this name."""

    module: str
    name: str


def _named(module: str, name: str) -> Any:
    return vars(sys.modules.get(module, types)).get(name)


def _empty_function(code: bytes, module: str, qualname: str, cells: int, defaults: Any) -> types.FunctionType:
    scope = {"__name__": module}
    closure = tuple(types.CellType() for _ in range(cells))
    function = types.FunctionType(marshal.loads(code), scope, None, defaults, closure)
    function.__module__, function.__qualname__ = module, qualname
    return function


def _fill(function: types.FunctionType, state: tuple[dict[str, Any], list[Any]]) -> None:
    read, contents = state
    for name, value in read.items():
        is_named = isinstance(value, _Global)
        function.__globals__[name] = (
            getattr(importlib.import_module(value.module), value.name) if is_named else value
        )
    for cell, value in zip(function.__closure__ or (), contents, strict=True):
        cell.cell_contents = value

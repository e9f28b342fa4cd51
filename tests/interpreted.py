"""Stores at work without a compiler: their functions as plain Python, around any functions of an aggregate.

Compiling each store with each aggregate takes minutes. The algorithms are the same without it, and a partial can be
anything that Python can add up: a string shows at once what came in which order.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from windrow.compiling import compiler
from windrow.compiling.fingerprint import names_in
from windrow.engine.functions.bound_kernels import Operations
from windrow.stores import operations
from windrow.stores.base import Store


class PlainQueue:
    """A store whose partials are Python objects; `combines` counts the calls of combine."""

    def __init__(
        self,
        store: Store,
        capacity: int,
        identity: Any,
        combine: Callable[[Any, Any], Any],
        invert: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        self.combines = 0
        self._cells = [UNUSED] * store.cells(capacity)
        self._notes = np.zeros(store.notes(capacity), np.int64)
        self._state = store.create(capacity, identity)

        def counted(a: Any, b: Any) -> Any:
            self.combines += 1
            return combine(a, b)

        given = {
            operations.combine: counted,
            operations.invert: invert,
            operations.same: lambda a, b: a == b,
            operations.load: _load,
            operations.put: _put,
        }
        self._insert, self._evict, self._query = (
            compiler.bound(function, given) for function in (store.insert, store.evict, store.query)
        )

    def insert(self, partial: Any) -> None:
        self._state = self._insert(self._state, self._cells, self._notes, partial)

    def evict(self) -> None:
        self._state = self._evict(self._state, self._cells, self._notes)

    def query(self) -> Any:
        return self._query(self._state, self._cells, self._notes)


UNUSED = object()


def _load(cells: list[Any], i: int) -> Any:
    assert cells[i] is not UNUSED, "a cell is read that nothing was put into"
    return cells[i]


def _put(cells: list[Any], i: int, partial: Any) -> None:
    cells[i] = partial


def interpreted(loop: Callable[..., Any], store: Store, given: Operations) -> Any:
    """In the place of `engine.stored.compiled`: the loop and the store as plain Python.

    What a sketch does with a value, or with another sketch, is compiled: it goes through thousands of numbers.
    """
    known = {
        getattr(operations, name): with_compiled_sketches(function) for name, function in given.functions
    }
    bound = {
        getattr(operations, name): compiler.bound(getattr(store, name), known)
        for name in ("insert", "evict", "query")
    }
    return compiler.bound(loop, known | bound)


@cache
def with_compiled_sketches(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the functions of sketches compiled, each by itself, wherever it calls them."""
    put: dict[str, Any] = {}
    for name in names_in(function.__code__):
        called = function.__globals__.get(name)
        if name in ("insert_", "absorb_"):
            put[name] = _compiled(name, called)
        elif name.startswith(("lift_", "combine_")) and isinstance(called, types.FunctionType):
            put[name] = with_compiled_sketches(called)
    if all(function.__globals__[name] is called for name, called in put.items()):
        return function
    return types.FunctionType(
        function.__code__, function.__globals__ | put, function.__name__, function.__defaults__
    )


def _compiled(name: str, function: Callable[..., Any]) -> Any:
    arguments = ", ".join(inspect.signature(function).parameters)
    source = f"def call_{name}({arguments}):\n    return {name}({arguments})\n"
    return compiler.kernel(source, f"call_{name}", {name: function})

"""Stores at work without a compiler: their functions as plain Python, around any functions of an aggregate.

Compiling each store with each aggregate takes minutes. The algorithms are the same without it, and a partial can be
anything that Python can add up: a string shows at once what came in which order.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from windrow.engine import compiler
from windrow.engine.stored import Operations
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

    The functions of sketches are compiled, each by itself: they go through thousands of numbers.
    """
    functions = dict(given.functions)
    if any(width is not None for width in given.widths):
        functions = {name: _compiled(name, function) for name, function in functions.items()}
    known = {getattr(operations, name): function for name, function in functions.items()}
    bound = {
        getattr(operations, name): compiler.bound(getattr(store, name), known)
        for name in ("insert", "evict", "query")
    }
    return compiler.bound(loop, known | bound)


def _compiled(name: str, function: Callable[..., Any]) -> Any:
    arguments = ", ".join(inspect.signature(function).parameters)
    source = f"def call_{name}({arguments}):\n    return {name}({arguments})\n"
    return compiler.kernel(source, f"call_{name}", {name: function})

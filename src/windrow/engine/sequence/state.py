"""Numbers by key number: what a discretizer knows of each key.

    key       0     1     2     3    ..     room for keys to come
    open      1     0     0     1    |  0     0     0
    anchor  2.5   0.0   7.1   3.0    |  0.0   0.0   0.0

A key that is new has the initial values. Room is doubled when it runs out, so that keys which come
one by one cost no more than keys which come at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class KeyState:
    """Columns of numbers by key number; `fields` gives each column's dtype and initial value."""

    def __init__(self, fields: dict[str, tuple[Any, Any]]) -> None:
        self.fields = {name: (np.dtype(dtype), initial) for name, (dtype, initial) in fields.items()}
        self.keys = 0
        self._columns = {name: np.empty(0, dtype) for name, (dtype, _) in self.fields.items()}

    def __getitem__(self, name: str) -> np.ndarray:
        """The column of this name, as a view that can be written to."""
        return self._columns[name][: self.keys]

    def grow(self, keys: int) -> None:
        """Make room for `keys` keys; those that are new are in the initial state."""
        if keys <= self.keys:
            return
        for name, column in self._columns.items():
            dtype, initial = self.fields[name]
            if len(column) < keys:
                wider = np.empty(max(keys, 2 * len(column)), dtype)
                wider[: self.keys] = column[: self.keys]
                self._columns[name] = wider
            self._columns[name][self.keys : keys] = initial
        self.keys = keys

    def reset(self, keys: np.ndarray) -> None:
        """Put these keys back into the initial state."""
        for name, (_, initial) in self.fields.items():
            self[name][keys] = initial

    def take(self, keys: np.ndarray) -> list[np.ndarray]:
        """The columns of these keys, copied, in the order of `fields`."""
        return [column[keys] for column in self._columns.values()]

    def put(self, keys: np.ndarray, columns: list[np.ndarray]) -> None:
        """The opposite of `take`."""
        for column, values in zip(self._columns.values(), columns, strict=True):
            column[keys] = values

    def copy(self) -> KeyState:
        twin = KeyState.__new__(KeyState)
        twin.fields, twin.keys = self.fields, self.keys
        twin._columns = {name: column[: self.keys].copy() for name, column in self._columns.items()}
        return twin

    def save(self) -> dict[str, np.ndarray]:
        return {name: self[name].copy() for name in self.fields}

    def load(self, arrays: dict[str, np.ndarray], keys: int) -> None:
        """The opposite of `save`; a ValueError if the arrays are not what `save` gives."""
        found = {name: required(arrays, name, dtype, keys) for name, (dtype, _) in self.fields.items()}
        self._columns = {name: column.copy() for name, column in found.items()}
        self.keys = keys

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self._columns.values())


def required(arrays: dict[str, np.ndarray], name: str, dtype: Any, size: int | None = None) -> np.ndarray:
    """The array of this name, dtype and size; a ValueError if it is missing or something else."""
    array = arrays.get(name)
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
        raise ValueError(f"array {name!r} is missing or not a column of {np.dtype(dtype)}")
    if size is not None and len(array) != size:
        raise ValueError(f"array {name!r} has {len(array)} numbers, and {size} are needed")
    return array

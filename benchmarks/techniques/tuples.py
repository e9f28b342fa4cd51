"""Events as they are kept: columns of eight bytes each, in one matrix.

    time     3  5  5  9          if their order matters
    key      0  1  0  0          if there is a key
    inputs   ..                  what `lift` reads; a float is kept by its bits

One matrix means that an event is copied, moved and dropped by loops that know nothing of types.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.techniques.kept import Kept
from benchmarks.techniques.partials import Partials


class Tuples:
    """See the module. `clock`, `keys` and `inputs` are the columns in their own types."""

    def __init__(self, partials: Partials, *, timed: bool, keyed: bool) -> None:
        self._partials = partials
        self._tick = partials.binding.measure.dtype
        self._types: list[Any] = [self._column_type(name) for name in partials.columns]
        self._types += [self._tick, np.dtype(np.int64)] if partials.timed else []
        # An event of which nothing is read is kept by its time.
        self.timed = timed or not (keyed or self._types)
        self.keyed = keyed
        self._before = int(self.timed) + int(keyed)
        self.matrix = np.zeros((self._before + len(self._types), 64), np.int64)

    def _column_type(self, name: str) -> Any:
        for answer in self._partials.binding.answers.values():
            if answer.bound.kinds and name in answer.columns:
                kind = answer.bound.kinds[answer.columns.index(name)]
                return np.dtype(np.float64 if kind == "f" else np.int64)
        raise KeyError(name)

    @property
    def capacity(self) -> int:
        return self.matrix.shape[1]

    def source(
        self, times: np.ndarray, keys: np.ndarray | None, inputs: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, ...]:
        """The columns of a batch as this matrix has them."""
        first = [times] if self.timed else []
        second = [] if keys is None else [keys]
        columns = [*first, *second, *inputs]
        found = []
        for column in columns:
            bits = column.view(np.int64)
            bits.flags.writeable = False
            found.append(bits)
        return tuple(found)

    @property
    def clock(self) -> np.ndarray:
        return self.matrix[0].view(self._tick)

    @property
    def keys(self) -> np.ndarray:
        return self.matrix[int(self.timed)]

    @property
    def inputs(self) -> tuple[np.ndarray, ...]:
        rows = self.matrix[self._before :]
        return tuple(row.view(self._types[i]) if i < len(self._types) else row for i, row in enumerate(rows))

    def widen(self) -> None:
        """From now on there are nulls: all values so far were none."""
        ones = np.ones((len(self._partials.groups), self.capacity), np.int64)
        self.matrix = np.concatenate([self.matrix, ones])

    def recode(self, column: str, moved: np.ndarray) -> None:
        """Apply old-to-new codes of a column of strings; what was dropped has codes, too."""
        row = self.matrix[self._before + self._partials.columns.index(column)]
        if len(moved):
            row[:] = moved[np.clip(row, 0, len(moved) - 1)]

    def kept(self, position: np.ndarray, row: np.ndarray) -> Kept:
        """Tuples at these positions, each for a row of a result."""
        partials = self._partials
        inputs = self.inputs
        codes = dict(zip(partials.columns, inputs, strict=False))
        masks = inputs[len(self._types) :]
        return Kept(position, row, codes, dict(zip(partials.groups, masks, strict=False)))

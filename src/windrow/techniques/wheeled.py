"""Techniques whose partials lie on a `Wheel`: cells for slots and keys, and what moves them."""

from __future__ import annotations

import numpy as np

from windrow.techniques.base import Method
from windrow.techniques.partials import Cells
from windrow.techniques.wheel import Wheel

NO_KEYS = np.empty(0, np.int64)


class Wheeled(Method):
    """A method with one partial per slot and key."""

    wheel: Wheel
    cells: Cells

    def start_wheel(self, placements: int) -> None:
        """An empty wheel with a ring for each placement."""
        self.wheel = Wheel(placements)
        self.cells = self.partials.cells(0)

    def make_room(self, low: np.ndarray, high: np.ndarray) -> None:
        """Have room for numbers low .. high of each placement, and for all keys."""
        stride = self.stride
        if self.keys.count > stride:
            stride = max(self.keys.count, stride + stride // 2)
        slots = self.wheel.slots
        origin = self.wheel.fit(low, high, stride, self.settings.max_slices)
        if origin is None and stride == self.stride:
            return
        origin = np.arange(slots) if origin is None else origin
        kept = np.flatnonzero(origin >= 0)
        new = self.partials.cells(self.wheel.slots * stride)
        for column, old in zip(new, self.cells, strict=True):
            tail = old.shape[1:]
            moved = old.reshape(slots, self.stride, *tail)[origin[kept]]
            column.reshape(self.wheel.slots, stride, *tail)[kept, : self.stride] = moved
        self.cells, self.stride = new, stride

    @property
    def held(self) -> np.ndarray:
        """How many events each cell holds."""
        return self.cells[self.partials.fields]

    def widen(self) -> None:
        self.cells = self.partials.split_counts(self.cells)

    def recode(self, column: str, moved: np.ndarray) -> None:
        self.partials.recode(self.cells, column, moved)

    def live(self) -> tuple[int, int]:
        return int(np.count_nonzero(self.held)), 0

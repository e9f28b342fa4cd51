"""Techniques whose partials lie on a `Wheel`: cells for slots and keys, what fills and what moves them."""

from __future__ import annotations

import numpy as np

from benchmarks.techniques.base import Method
from benchmarks.techniques.partials import Cells, events
from benchmarks.techniques.wheel import Wheel
from windrow.stores.operations import combine, lift, load, put

NO_KEYS = np.empty(0, np.int64)


def fold_run(inputs, keys, first, stop, slot, stride, cells):
    """Combine events first .. stop-1 into the cells of a slot; how many combines that took.

    Without keys a slot has one cell, whose partial is kept in registers on the way.
    """
    combines = 0
    if keys.shape[0] == 0:
        begin = first
        if events(cells, slot) == 0:
            total = lift(inputs, first)
            begin += 1
        else:
            total = load(cells, slot)
        for i in range(begin, stop):
            total = combine(total, lift(inputs, i))
        combines += stop - begin
        put(cells, slot, total)
    else:
        for i in range(first, stop):
            cell = slot * stride + keys[i]
            if events(cells, cell) == 0:
                put(cells, cell, lift(inputs, i))
            else:
                put(cells, cell, combine(load(cells, cell), lift(inputs, i)))
                combines += 1
    return combines


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

"""The store of shared slices: a FlatFAT whose leaves are slices, for all keys at once.

    leaf       0      1      2          3
    first      12     17     20         31         time of the first event in it
    node i of key k is cell i*stride + k

`append` adds a slice, and updates one path per key; leaves are evicted from the front; the tree doubles when it is full.
The slice that is being filled, `current`, is no leaf yet.

paper    Carbone et al., Cutty: aggregate sharing for user-defined windows, CIKM 2016, section 5.4
"""

from __future__ import annotations

import numpy as np

from benchmarks.techniques.base import Method
from benchmarks.techniques.due import Queues
from benchmarks.techniques.flat_fat import path, rebuilt
from benchmarks.techniques.partials import Cells, events
from windrow.stores.operations import load, put


def append(cells, current, held, stride, keys, capacity, end):
    """The current slice becomes leaf `end`, and is empty then; how many combines that took.

    held: how many events each cell of `current` holds.
    """
    combines = 0
    leaf = capacity + (end & (capacity - 1))
    for key in range(keys):
        put(cells, leaf * stride + key, load(current, key))
        combines += path(cells, key, stride, capacity, end)
        held[key] = 0
    return combines


def regrow(cells, clock, stride, keys, capacity, front, end, new_cells, new_clock, wider, new_stride):
    """Move the live leaves to a tree of another size; how many combines that took."""
    combines = 0
    for p in range(front, end):
        new_clock[p & (wider - 1)] = clock[p & (capacity - 1)]
        of, to = capacity + (p & (capacity - 1)), wider + (p & (wider - 1))
        for key in range(keys):
            if events(cells, of * stride + key) > 0:
                put(new_cells, to * new_stride + key, load(cells, of * stride + key))
    if front < end:
        for key in range(keys):
            combines += rebuilt(new_cells, key, new_stride, wider, front, end)
    return combines


class SliceTree:
    """See the module."""

    def __init__(self, method: Method) -> None:
        self._method = method
        self.stride = max(1, method.keys.count)
        self.capacity = 2
        self.cells = method.partials.cells(2 * self.capacity * self.stride)
        self.current = method.partials.cells(self.stride)
        self._front, self._end = np.zeros(1, np.int64), np.zeros(1, np.int64)
        self.clock = np.zeros(self.capacity, method.measure.dtype)

    @property
    def queues(self) -> Queues:
        base, mask = np.zeros(1, np.int64), np.array([self.capacity - 1])
        return Queues(self.clock, base, mask, self._front, self._end)

    @property
    def front(self) -> int:
        return int(self._front[0])

    @property
    def end(self) -> int:
        return int(self._end[0])

    @end.setter
    def end(self, value: int) -> None:
        self._end[0] = value

    @property
    def held(self) -> np.ndarray:
        """How many events of each key the current slice holds."""
        return self.current[self._method.partials.fields]

    def __len__(self) -> int:
        return self.end - self.front

    def make_room(self, leaves: int) -> None:
        """Have room for so many more leaves, and for all keys."""
        method, count = self._method, self._method.keys.count
        stride = self.stride if count <= self.stride else max(count, self.stride + self.stride // 2)
        wider = self.capacity
        while wider < len(self) + leaves:
            wider *= 2
        if wider == self.capacity and stride == self.stride:
            return
        cells = method.partials.cells(2 * wider * stride)
        clock = np.zeros(wider, self.clock.dtype)
        run = method.partials.loop(regrow)
        sizes = (self.stride, self.stride, self.capacity, self.front, self.end)
        method.combines += int(run(self.cells, self.clock, *sizes, cells, clock, wider, stride))
        current = method.partials.cells(stride)
        for new, old in zip(current, self.current, strict=True):
            new[: self.stride] = old
        self.cells, self.clock, self.current = cells, clock, current
        self.capacity, self.stride = wider, stride

    def widen(self) -> None:
        split = self._method.partials.split_counts
        self.cells, self.current = split(self.cells), split(self.current)

    def recode(self, column: str, moved: np.ndarray) -> None:
        for cells in (self.cells, self.current):
            self._method.partials.recode(cells, column, moved)

    @property
    def partials(self) -> int:
        """How many partials are alive: leaves, what lies above them, and the current slice."""
        inner = max(0, len(self) - 1)
        keys = max(1, self._method.keys.count)
        return (len(self) + inner) * keys + int(np.count_nonzero(self.held))


def rows_of(cells: Cells, there: np.ndarray) -> Cells:
    """These cells alone."""
    return tuple(column[there] for column in cells)

"""What a window needs of whoever makes something of its rows, instead of keeping them or besides.

    cells     a tumbling subwindow has a *cell* from its first row to its flush; rows are folded into cells,
              and no row is kept (`cells`, `summarizers`)
    ranges    each row, or slice of rows, has a place in `order`; windows are ranges of places (`ranges`)

The loop only says where each row went: its `position`. Folding happens afterwards, over columns, once per batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Bound
from windrow.engine.snapshot.parts import Reader, Writer
from windrow.policies.layout import CLOSED, FREE
from windrow.policies.spec import Spec

if TYPE_CHECKING:
    from windrow.policies.contents import Contents
    from windrow.policies.tape import Tape

SMALLEST_CELLS = 16


@dataclass(frozen=True)
class Asked:
    """An aggregate that a window computes, bound to the types of its columns."""

    name: str
    aggregate: Aggregate
    bound: Bound

    @property
    def columns(self) -> tuple[str, ...]:
        return self.aggregate.columns

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns whose values are read; a count only looks for nulls."""
        return self.aggregate.columns if self.bound.kinds else ()


class Folding:
    """The base: does nothing with rows, and keeps none."""

    in_cells = False

    def columns(self) -> dict[str, np.ndarray]:
        """Arrays to be kept beside `order`, empty."""
        return {}

    def partition_columns(self) -> dict[str, np.dtype[Any]]:
        """Types of arrays to be kept for each partition."""
        return {}

    def read(self, batch: pa.RecordBatch) -> None:
        """The next rows are these; an error if they cannot be read, before anything has changed."""

    def choose_slices(self, spec: Spec, settings: np.ndarray) -> None:
        """Nobody needs single rows: keep slices of them, if that is possible."""

    def fold(self, window: Contents, low: int, high: int) -> None:
        """Rows low .. high-1 of the batch have got their positions."""
        raise NotImplementedError

    def answers(self, window: Contents, tape: Tape) -> pa.Table | None:
        """A row for each trigger or flush on the tape."""
        raise NotImplementedError

    def summary(self, window: Contents, number: int) -> Any:
        """What has been made of the rows of a subwindow so far."""
        raise NotImplementedError

    def save(self, window: Contents, writer: Writer) -> None:
        """Write what a snapshot needs besides the arrays of the window."""
        raise NotImplementedError

    def load(self, window: Contents, reader: Reader) -> None:
        """The opposite of `save`."""
        raise NotImplementedError


class InCells(Folding):
    """Folding into cells: which ones are free, and which ones were closed in this call."""

    in_cells = True

    def __init__(self) -> None:
        self.capacity = 0
        self.free = np.empty(0, np.int64)
        self.closed = np.empty(0, np.int64)

    def grow(self, g: np.ndarray) -> None:
        """Have twice as many cells."""
        old, self.capacity = self.capacity, max(2 * self.capacity, SMALLEST_CELLS)
        fresh = np.arange(self.capacity - 1, old - 1, -1)
        self.free = np.concatenate([fresh, np.empty(self.capacity - len(fresh), np.int64)])
        self.closed = np.concatenate(
            [self.closed[: g[CLOSED]], np.empty(self.capacity - int(g[CLOSED]), np.int64)]
        )
        g[FREE] = len(fresh)
        self.resize(old)

    def start_with(self, used: int, g: np.ndarray) -> None:
        """Have these first cells in use, and others free."""
        while self.capacity < used:
            self.grow(g)
        g[FREE] = self.capacity - used
        self.free[: g[FREE]] = np.arange(self.capacity - 1, used - 1, -1)

    def release(self, g: np.ndarray) -> None:
        """Cells that were closed in this call can be used again."""
        closed = self.closed[: g[CLOSED]]
        if len(closed):
            self.empty(closed)
            self.free[g[FREE] : g[FREE] + len(closed)] = closed
            g[FREE] += len(closed)
        g[CLOSED] = 0

    def resize(self, old: int) -> None:
        """There were `old` cells, and are `capacity` now."""
        raise NotImplementedError

    def empty(self, cells: np.ndarray) -> None:
        """Nothing is in these cells any more."""
        raise NotImplementedError

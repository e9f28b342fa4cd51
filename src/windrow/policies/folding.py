"""What a window needs of a summary of its rows, which is kept instead of the rows or besides.

    cells     a tumbling subwindow has a *cell* from its first row to its flush; rows are folded into cells,
              and no row is kept (`cells`, `summarizers`)
    ranges    each row, or slice of rows, has a place in `order`; windows are ranges of places (`ranges`)

The loop only says where each row went: its `position`. Folding happens afterwards, over columns, once per batch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.snapshot.parts import Reader, Writer
from windrow.policies.inputs import BoundAggregate, Inputs
from windrow.policies.layout import of
from windrow.policies.spec import Spec
from windrow.policies.window_state import WindowState

SMALLEST_CELLS = 16


class Folding:
    """The base: reads the columns of the aggregates, and keeps nothing of them."""

    def __init__(self, aggregates: list[BoundAggregate], inputs: Inputs) -> None:
        self._aggregates, self._inputs = aggregates, inputs

    def columns(self) -> dict[str, np.ndarray]:
        """Arrays to be kept beside `order`, empty."""
        return {}

    def partition_columns(self) -> dict[str, np.dtype[Any]]:
        """Types of arrays to be kept for each partition."""
        return {}

    def require(self, batch: pa.RecordBatch) -> None:
        """An error if rows cannot be read; nothing changes."""
        self._inputs.require(batch)

    def read(self, batch: pa.RecordBatch) -> None:
        """The next rows are these; an error if they cannot be read, before anything has changed."""
        self._inputs.read(batch)

    def settle(self, state: WindowState) -> None:
        """Bring what is held in line with what was read, before a row is taken."""
        self._inputs.settle(partial(self._held_codes, state), partial(self._recode, state))

    def _held_codes(self, state: WindowState, column: str) -> np.ndarray:
        """The codes of a column of strings that are held."""
        raise NotImplementedError

    def _recode(self, state: WindowState, column: str, moved: np.ndarray) -> None:
        """Old codes of a column are moved[old] now."""
        raise NotImplementedError

    def complain(self) -> None:
        """A call is over, and everything is in its place: raise what a summarizer has raised."""

    def may_fail(self, rows: int) -> bool:
        """Whether folding or answering may fail, in windows of at most `rows` rows."""
        return self._inputs.may_fail(self._aggregates, rows)

    def saved(self, state: WindowState, touched: np.ndarray) -> Callable[[], None]:
        """What brings back what there is now of these partitions, after rows were folded or not."""
        return lambda: None

    def choose_slices(self, spec: Spec, settings: np.ndarray) -> None:
        """Single rows are not needed: keep slices of them, if that is possible."""

    def fold(self, state: WindowState, low: int, high: int) -> None:
        """Rows low .. high-1 of the batch have got their positions."""
        raise NotImplementedError

    def answers(self, state: WindowState, events: np.ndarray) -> pa.Table | None:
        """A row for each trigger or flush among these events, which are columns of the tape."""
        raise NotImplementedError

    def summary(self, state: WindowState, number: int) -> Any:
        """What has been made of the rows of a subwindow so far."""
        raise NotImplementedError

    def expect(self, regions: dict[str, np.ndarray], has: Callable[[str], bool]) -> None:
        """A snapshot is about to be read, which `has` parts: have the arrays beside `order` that it has."""

    def save(self, state: WindowState, writer: Writer) -> None:
        """Write what a snapshot needs besides the arrays of the window."""
        raise NotImplementedError

    def load(self, state: WindowState, reader: Reader) -> None:
        """The opposite of `save`."""
        raise NotImplementedError


class InCells(Folding):
    """Folding into cells: which ones are free, and which ones were closed in this call."""

    def __init__(self, aggregates: list[BoundAggregate], inputs: Inputs) -> None:
        super().__init__(aggregates, inputs)
        self.capacity = 0
        self.free = np.empty(0, np.int64)
        self.closed = np.empty(0, np.int64)

    def grow(self, g: np.ndarray, wanted: int = 0) -> None:
        """Have at least twice as many cells, or as many as are wanted."""
        old, self.capacity = self.capacity, max(2 * self.capacity, SMALLEST_CELLS, wanted)
        fresh = np.arange(self.capacity - 1, old - 1, -1)
        self.free = np.concatenate([fresh, np.empty(self.capacity - len(fresh), np.int64)])
        self.closed = np.concatenate(
            [self.closed[: g[of.CLOSED]], np.empty(self.capacity - int(g[of.CLOSED]), np.int64)]
        )
        g[of.FREE] = len(fresh)
        self.resize(old)

    def start_with(self, used: int, g: np.ndarray) -> None:
        """Have these first cells in use, and others free."""
        while self.capacity < used:
            self.grow(g)
        g[of.FREE] = self.capacity - used
        self.free[: g[of.FREE]] = np.arange(self.capacity - 1, used - 1, -1)

    def release(self, g: np.ndarray) -> None:
        """Cells that were closed in this call can be used again."""
        closed = self.closed[: g[of.CLOSED]]
        if len(closed):
            self.empty(closed)
            self.free[g[of.FREE] : g[of.FREE] + len(closed)] = closed
            g[of.FREE] += len(closed)
        g[of.CLOSED] = 0

    def release_but(self, state: WindowState) -> None:
        """All cells are free but those of subwindows."""
        table, g = state.partitions.table, state.counters
        used = np.zeros(self.capacity, np.bool_)
        cells = table[state.partitions.live(), of.CELL]
        used[cells[cells >= 0]] = True
        free = np.flatnonzero(~used)
        self.empty(free)
        self.free[: len(free)] = free
        g[of.FREE], g[of.CLOSED] = len(free), 0

    def resize(self, old: int) -> None:
        """There were `old` cells, and are `capacity` now."""
        raise NotImplementedError

    def empty(self, cells: np.ndarray) -> None:
        """Nothing is in these cells any more."""
        raise NotImplementedError

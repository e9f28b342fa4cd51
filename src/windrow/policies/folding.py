"""What a window needs of whoever makes something of its rows, instead of keeping them or besides.

    cells     a tumbling subwindow has a *cell* from its first row to its flush; rows are folded into cells,
              and no row is kept (`cells`, `summarizers`)
    ranges    each row, or slice of rows, has a place in `order`; windows are ranges of places (`ranges`)

The loop only says where each row went: its `position`. Folding happens afterwards, over columns, once per batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate, Bound, Scalars
from windrow.engine.partials.scalars import lowered
from windrow.engine.snapshot.parts import Reader, Writer
from windrow.engine.user_functions import lower_failed
from windrow.errors import DataError
from windrow.policies.layout import CELL, CLOSED, FREE
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

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for aggregates that share a partial."""
        return self.columns, self.bound.kinds, self.bound.partial

    @property
    def own(self) -> bool:
        """Whether it is made of functions of the user's, which may raise."""
        return isinstance(self.bound.partial, Scalars) and self.bound.partial.own

    def lowered(
        self,
        fields: list[np.ndarray],
        n: np.ndarray,
        decoders: list[Any],
        window: Contents,
        partition: np.ndarray,
        row: np.ndarray,
    ) -> pa.Array:
        """Partials to answers; `n` is how many values each is made of.

        The error for a sum that is too large names the row of the batch that caused the answer, if one did.
        """
        overflow = None if self.bound.check is None else self.bound.check(fields, n > 0)
        if overflow is not None:
            place, value = overflow
            key, caused = window.key_of(int(partition[place])), int(row[place])
            where = f"the subwindow of {key!r}" if window.subwindows.by else "the window"
            problem = f"{self.aggregate} of {where} overflows int64"
            raise DataError(self.columns[0], None if caused < 0 else caused, value, problem)
        with blaming(self.own, partial(lower_failed, self.bound)):
            return lowered(self.bound, fields, n, decoders)


@contextmanager
def blaming(own: bool, error: Callable[[Exception], Exception]) -> Iterator[None]:
    """What a user's `own` function raises becomes an error that says which function it was."""
    try:
        yield
    except Exception as problem:  # a user's function may raise anything
        if not own:
            raise
        raise error(problem) from problem


class Folding:
    """The base: does nothing with rows, and keeps none."""

    def columns(self) -> dict[str, np.ndarray]:
        """Arrays to be kept beside `order`, empty."""
        return {}

    def partition_columns(self) -> dict[str, np.dtype[Any]]:
        """Types of arrays to be kept for each partition."""
        return {}

    def require(self, batch: pa.RecordBatch) -> None:
        """An error if rows cannot be read; nothing changes."""

    def read(self, batch: pa.RecordBatch) -> None:
        """The next rows are these; an error if they cannot be read, before anything has changed."""

    def settle(self, window: Contents) -> None:
        """Bring what is held in line with what was read, before a row is taken."""

    def complain(self) -> None:
        """A call is over, and everything is in its place: raise what a summarizer has raised."""

    def may_fail(self, rows: int) -> bool:
        """Whether folding or answering may fail, in windows of at most so many rows."""
        return False

    def saved(self, window: Contents, touched: np.ndarray) -> Callable[[], None]:
        """What brings back what there is now of these partitions, after rows were folded or not."""
        return lambda: None

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

    def expect(self, regions: dict[str, np.ndarray], has: Callable[[str], bool]) -> None:
        """A snapshot is about to be read, which `has` parts: have the arrays beside `order` that it has."""

    def save(self, window: Contents, writer: Writer) -> None:
        """Write what a snapshot needs besides the arrays of the window."""
        raise NotImplementedError

    def load(self, window: Contents, reader: Reader) -> None:
        """The opposite of `save`."""
        raise NotImplementedError


class InCells(Folding):
    """Folding into cells: which ones are free, and which ones were closed in this call."""

    def __init__(self) -> None:
        self.capacity = 0
        self.free = np.empty(0, np.int64)
        self.closed = np.empty(0, np.int64)

    def grow(self, g: np.ndarray, wanted: int = 0) -> None:
        """Have at least twice as many cells, or as many as are wanted."""
        old, self.capacity = self.capacity, max(2 * self.capacity, SMALLEST_CELLS, wanted)
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

    def release_but(self, window: Contents) -> None:
        """All cells are free but those of subwindows."""
        table, g = window.subwindows.table, window.counters
        used = np.zeros(self.capacity, np.bool_)
        cells = table[window.subwindows.live(), CELL]
        used[cells[cells >= 0]] = True
        free = np.flatnonzero(~used)
        self.empty(free)
        self.free[: len(free)] = free
        g[FREE], g[CLOSED] = len(free), 0

    def resize(self, old: int) -> None:
        """There were `old` cells, and are `capacity` now."""
        raise NotImplementedError

    def empty(self, cells: np.ndarray) -> None:
        """Nothing is in these cells any more."""
        raise NotImplementedError

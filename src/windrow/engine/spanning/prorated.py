"""Events that give each window the share of their duration that lies inside it.

    slices     |  0  |  1  |  2  |
    event         |--------|              half of it in slice 0, a quarter in 1 ... by the lengths of its pieces

An event is cut into one piece per slice. Pieces lie in one slice each, so that a window is what its slices hold,
and nothing goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.shares import SHARE
from windrow.engine.arrays import distances
from windrow.engine.binding import Answer
from windrow.engine.columns import takeable
from windrow.engine.cutting import Cells
from windrow.engine.engine import Foldable, Merged
from windrow.engine.input_batches import EventBatch
from windrow.engine.partials import Numbers, Store
from windrow.engine.spanning.engine import Spanning
from windrow.engine.spanning.placing import Grid, Placed
from windrow.engine.staging import Staged
from windrow.engine.windows import ClosedWindows

# So many pieces are made at once.
PIECES = 1 << 20


def pieces(
    events: EventBatch, columns: tuple[str, ...], grid: Grid
) -> Iterator[tuple[pa.RecordBatch, np.ndarray, np.ndarray]]:
    """Events in pieces, some events at a time: rows with their shares, the event and the slice of each."""
    assert events.lasts is not None
    table = takeable(events.batch, [c for c in columns if c != SHARE])
    count = grid.last - grid.first + 1
    total = np.cumsum(count)
    ends = np.nextafter(events.lasts, np.inf) if grid.edges.dtype.kind == "f" else events.lasts + 1
    begin = 0
    while begin < len(count):
        done = total[begin - 1] if begin else 0
        stop = max(begin + 1, int(np.searchsorted(total, done + PIECES, side="right")))
        here = count[begin:stop]
        event = np.repeat(np.arange(begin, stop), here)
        piece = np.arange(len(event)) - np.repeat(np.cumsum(here) - here, here) + grid.first[event]
        start, end = events.times[event], ends[event]
        inner = distances(np.maximum(grid.edges[piece], start), np.minimum(grid.edges[piece + 1], end))
        shares = pa.array(inner / distances(start, end))
        yield table.take(pa.array(event)).append_column(SHARE, shares), event, piece
        begin = stop


class Prorated(Spanning):
    """The engine for events that contribute by shares; see the module."""

    def _accompany(self, answer: Answer) -> None:
        """Pieces do not go on."""

    def targets(self, store: Store, segments: Any) -> list[tuple[Any, Any]]:
        return [(store, segments)] if self._across(store) is None else super().targets(store, segments)

    def _prepare_fold(self, events: EventBatch, placed: Placed, grid: Grid, staged: Staged) -> None:
        staged.on_commit(partial(self._fold_pieces, events, grid))

    def _fold_pieces(self, events: EventBatch, grid: Grid) -> None:
        """Shares are given to aggregates that cannot fail: none is the user's own."""
        numbers = events.numbers
        for rows, event, piece in pieces(events, self.binding.value_columns, grid):
            base = grid.base[piece]
            cells = base if numbers is None else np.where(base < 0, -1, base + numbers[event])
            self.fold(Foldable(self.encode(rows), event, event), Cells(cells), own=False)

    def merged(self, store: Numbers, due: ClosedWindows, slots: np.ndarray, keys: int) -> Merged:
        if self._across(store) is None:
            return store.merge(due, slots, keys)
        return super().merged(store, due, slots, keys)

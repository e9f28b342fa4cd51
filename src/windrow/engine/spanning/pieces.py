"""Events that give each window the share of their duration that lies inside it.

    slices     |  0  |  1  |  2  |
    event         |--------|              half of it in slice 0, a quarter in 1 ... by the lengths of its pieces

An event is cut into one piece per slice. Pieces lie in one slice each, so that a window is what its slices hold: they are
folded as points are, and there is no carry-over.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from windrow.aggregates.shares import SHARE
from windrow.engine.aligned.cutting import Cells
from windrow.engine.arrays import distances
from windrow.engine.intake.batches import EventBatch
from windrow.engine.intake.columns import takeable
from windrow.engine.spanning.placing import Grid

# About this many pieces are made at once.
PIECES = 1 << 20


def pieces(
    events: EventBatch, columns: tuple[str, ...], grid: Grid
) -> Iterator[tuple[pa.RecordBatch, np.ndarray, Cells]]:
    """Events in pieces, some events at a time: rows with their shares, the event of each, and its cell."""
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
        cells = grid.base[piece]
        if events.numbers is not None:
            cells = np.where(cells < 0, -1, cells + events.numbers[event])
        yield table.take(pa.array(event)).append_column(SHARE, shares), event, Cells(cells)
        begin = stop

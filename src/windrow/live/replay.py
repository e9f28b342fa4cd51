"""Events that are there already, as a stream that comes at a pace of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.live.board import Dashboard

# Batches in a second.
PACE = 20


def batches(events: pa.Table, time_column: str, count: int) -> Iterator[pa.Table]:
    """A table in the order of its time, in as many pieces of equally many rows."""
    ordered = events.sort_by(time_column)
    size = max(1, -(-len(ordered) // max(1, count)))
    for low in range(0, len(ordered), size):
        yield ordered.slice(low, size)


def replay(
    board: Dashboard,
    events: pa.Table,
    *,
    seconds: float,
    until: Callable[[], bool] = lambda: False,
    wait: Callable[[float], Any] = time.sleep,
) -> None:
    """Give a table to a dashboard within some seconds; `until` may end it before."""
    column = board.operator.query.time_columns[0]
    begun = time.monotonic()
    count = round(seconds * PACE)
    for number, batch in enumerate(batches(events, column, count), 1):
        if until():
            return
        board.process(batch)
        newest = pc.max(batch[column])
        if newest.is_valid:  # events without a time are bad, and come last
            board.advance(newest)
        wait(max(0.0, begun + number / PACE - time.monotonic()))

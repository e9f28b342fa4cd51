"""What a technique does, counted and not timed: calls of `combine`, partials made and partials kept.

    update    combines while events are taken in
    merge     combines while windows are given out

Events are a row number and values, so that a window of rows is a window of an integer measure. A batch ends wherever a
window begins or ends, and a watermark follows it: each window is given out by the watermark that it ends with.

    rows         . . . . . . | . . . .
    cutty        ----------->|              answers when an event passes the end: the watermark comes before that
    pairs+       ------------|->            closes a slice when an event passes its end: that comes before the watermark
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.papers.contenders import CONTENDERS

CLOSES_LATE = "pairs+"
Period = tuple[int, int]
"""Range and slide of a window."""


@dataclass
class Counted:
    """`held` is the most that was alive at once, partials and tuples; `made` how many partials came into being."""

    events: int = 0
    windows: int = 0
    update: int = 0
    merge: int = 0
    held: int = 0
    made: int = 0
    most_merged: int = 0

    @property
    def total(self) -> int:
        return self.update + self.merge


def sliding(periods: list[Period], aggregates: dict[str, wr.Aggregate]) -> wr.Query:
    """A window for each range and slide, over row numbers."""
    windows = {f"{i}: {r} every {s}": wr.sliding(r, every=s) for i, (r, s) in enumerate(periods)}
    return wr.query(time="row", windows=windows, aggregates=aggregates)


def edges(periods: list[Period], rows: int) -> list[int]:
    """Where windows begin or end, behind the first row and up to the last."""
    found = {rows}
    for length, slide in periods:
        found.update(range(0, rows, slide), range(length % slide, rows, slide))
    return sorted(found - {0})


def count(name: str, periods: list[Period], aggregates: dict[str, wr.Aggregate], events: pa.Table) -> Counted:
    """Take the events in, and count."""
    operator = CONTENDERS[name].make(sliding(periods, aggregates))
    ahead = 1 if name == CLOSES_LATE else 0
    found = Counted(events=len(events))
    (rows,) = events.combine_chunks().to_batches()
    before, done = None, 0
    for high in edges(periods, len(events)):
        operator.process(rows.slice(done, max(0, high + ahead - done)))
        done = max(done, high + ahead)
        taken = operator.counters
        given = len(operator.advance(high))
        after = operator.counters
        found.windows += given
        found.update += taken.combines - (before.combines if before else 0)
        found.merge += after.combines - taken.combines
        if given:
            found.most_merged = max(found.most_merged, -(-(after.combines - taken.combines) // given))
        found.made += max(0, taken.partials - (before.partials if before else 0))
        found.held = max(found.held, taken.partials + taken.tuples)
        before = after
    return found


def numbered(columns: dict[str, np.ndarray]) -> pa.Table:
    """Columns with row numbers."""
    rows = len(next(iter(columns.values())))
    return pa.table({"row": np.arange(rows, dtype=np.int64), **columns})

"""Events that wait until no earlier one can come.

Where a window depends on the order of events, an event takes its place for good only when time has
passed it: until then a late one may come before it. So single events are kept for as long as lateness
lasts, as Figure 4 of Scotty demands, and are then released, each key's in order of time and arrival.
Behind that frontier nothing is ever out of order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from windrow.engine.cutting import extent
from windrow.engine.keyed.cutting import by_key_and_time
from windrow.measure import Tick


@dataclass
class Chunk:
    """Events in order of arrival; `number` is the key of each, None if there are no keys.

    `arrival` is the arrival number of each, or that of the first, if the others follow it one by one.
    """

    batch: pa.RecordBatch
    time: np.ndarray
    arrival: np.ndarray | int
    number: np.ndarray | None
    ordered: bool

    def __len__(self) -> int:
        return len(self.time)

    def arrivals(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """The arrival numbers of these rows."""
        if isinstance(self.arrival, np.ndarray):
            return self.arrival[rows]
        if isinstance(rows, slice):
            return self.arrival + np.arange(len(self))[rows]
        return self.arrival + rows

    def slice(self, begin: int, end: int) -> Chunk:
        part = slice(begin, end)
        number = None if self.number is None else self.number[part]
        arrival = self.arrival[part] if isinstance(self.arrival, np.ndarray) else self.arrival + begin
        return Chunk(self.batch.slice(begin, end - begin), self.time[part], arrival, number, self.ordered)

    def take(self, rows: np.ndarray, *, ordered: bool) -> Chunk:
        number = None if self.number is None else self.number[rows]
        batch = self.batch.take(pa.array(rows))
        return Chunk(batch, self.time[rows], self.arrivals(rows), number, ordered)

    @property
    def extent(self) -> tuple[Tick, Tick]:
        """The first and the last time."""
        if self.ordered and self.number is None:  # with keys, it is each key's events that are in order
            return self.time[0].item(), self.time[-1].item()
        return extent(self.time)


@dataclass
class Released:
    """Events sorted by (key, time, arrival), and where each key's begin."""

    chunk: Chunk
    keys: np.ndarray
    bounds: np.ndarray


class Pending:
    """See the module."""

    def __init__(self, chunks: list[Chunk] | None = None) -> None:
        self.chunks: list[Chunk] = chunks or []

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    def fit(self, names: Sequence[str], schema: pa.Schema) -> None:
        """Give all events these columns; one that they came without is null."""
        for chunk in self.chunks:
            known = set(chunk.batch.schema.names)
            columns = [
                chunk.batch.column(name) if name in known else pa.nulls(len(chunk), schema.field(name).type)
                for name in names
            ]
            chunk.batch = pa.RecordBatch.from_arrays(columns, names=list(names))

    def add(self, chunk: Chunk) -> None:
        self.chunks.append(chunk)

    def upto(self, frontier: Tick, keys: int) -> tuple[Released | None, list[Chunk]]:
        """Events at or before `frontier`, released, and the chunks that then remain.

        Where all came in order and there are no keys, one chunk is released at a time, without a copy.
        """
        chunks = [chunk for chunk in self.chunks if len(chunk)]
        if self._in_line(chunks):
            return self._next_in_line(chunks, frontier)
        whole = joined(chunks)
        due = whole.time <= frontier
        rows, rest = np.flatnonzero(due), np.flatnonzero(~due)
        if not len(rows):
            return None, [whole]
        waiting = [whole.take(rest, ordered=whole.ordered)] if len(rest) else []
        times, numbers = whole.time, whole.number
        if len(rest):
            times, numbers = times[rows], None if numbers is None else numbers[rows]
        order, present, bounds = by_key_and_time(times, numbers, keys, ordered=whole.ordered)
        if order is not None:
            rows = rows[order] if len(rest) else order
        released = whole if order is None and not len(rest) else whole.take(rows, ordered=True)
        return Released(released, present, bounds), waiting

    def _in_line(self, chunks: list[Chunk]) -> bool:
        """Whether there are no keys and all events came in order."""
        return all(chunk.number is None for chunk in chunks) and in_line(chunks)

    def _next_in_line(self, chunks: list[Chunk], frontier: Tick) -> tuple[Released | None, list[Chunk]]:
        if not chunks:
            return None, []
        chunk, others = chunks[0], chunks[1:]
        cut = int(np.searchsorted(chunk.time, frontier, side="right"))
        if not cut:
            return None, chunks
        rest = [chunk.slice(cut, len(chunk))] if cut < len(chunk) else []
        return Released(chunk.slice(0, cut), np.zeros(1, np.int64), np.array([0, cut])), rest + others

    @property
    def nbytes(self) -> int:
        return sum(c.batch.nbytes + 2 * c.time.nbytes for c in self.chunks)


def in_line(chunks: list[Chunk]) -> bool:
    """Whether all events came in order."""
    return all(c.ordered for c in chunks) and all(a.time[-1] <= b.time[0] for a, b in pairwise(chunks))


def joined(chunks: list[Chunk]) -> Chunk:
    """Chunks one behind the other, as one."""
    if len(chunks) == 1:
        return chunks[0]
    table = pa.concat_tables(
        [pa.Table.from_batches([c.batch]) for c in chunks], promote_options="permissive"
    ).combine_chunks()
    numbers = [c.number for c in chunks if c.number is not None]
    return Chunk(
        table.to_batches()[0],
        np.concatenate([c.time for c in chunks]),
        np.concatenate([c.arrivals() for c in chunks]),
        np.concatenate(numbers) if numbers else None,
        in_line(chunks),
    )

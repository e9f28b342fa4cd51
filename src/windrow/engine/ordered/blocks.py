"""The rows of events that wait, found by their arrival numbers.

    block     | 0 .. 255 | 256 .. 511 | 512 .. 527 | 528 .. 531 | 532 |      rows in order of arrival
    live         3 of 256     256           16            4         1

A batch is a block. Sixteen small blocks beside each other become one, so that each row is copied a few times at most and
blocks are few. A block goes with its last row, and is packed when three of four rows are gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from windrow.engine.arrays import different, follow_one_another

# So many small blocks become one; blocks of LEVELS digits to this base are large.
BASE, LEVELS = 16, 4


@dataclass
class Block:
    """Rows in order of arrival; `arrival` are their numbers, None if they follow `first` one by one."""

    batch: pa.RecordBatch
    first: int
    arrival: np.ndarray | None
    alive: np.ndarray | None = None
    live: int = field(init=False)
    level: int = field(init=False)

    def __post_init__(self) -> None:
        self.live = rows = self.batch.num_rows
        self.level = min((rows.bit_length() - 1) // (BASE.bit_length() - 1), LEVELS)

    @property
    def arrivals(self) -> np.ndarray:
        """The numbers of all rows."""
        return (
            np.arange(self.first, self.first + self.batch.num_rows) if self.arrival is None else self.arrival
        )

    def rows(self, arrivals: np.ndarray) -> np.ndarray:
        """Where the rows with these numbers are."""
        return arrivals - self.first if self.arrival is None else np.searchsorted(self.arrival, arrivals)

    def take(self, arrivals: np.ndarray) -> pa.RecordBatch:
        """Rows by their numbers, without a copy if they follow one another."""
        rows = self.rows(arrivals)
        if rows[-1] - rows[0] == len(rows) - 1 and follow_one_another(rows):
            return self.batch.slice(int(rows[0]), len(rows))
        return self.batch.take(pa.array(rows))

    def packed(self) -> Block:
        """The rows that are alive."""
        assert self.alive is not None
        rows = np.flatnonzero(self.alive)
        arrivals = self.arrivals[rows]
        return Block(self.batch.take(pa.array(rows)), int(arrivals[0]), arrivals)


class Blocks:
    """Rows of waiting events, in blocks of record batches."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._firsts = np.empty(0, np.int64)

    def add(self, batch: pa.RecordBatch, arrival: np.ndarray | int) -> None:
        """Keep rows that came after all others, with these arrival numbers or from this one on."""
        if isinstance(arrival, np.ndarray):
            self._blocks.append(Block(batch, int(arrival[0]), arrival))
        else:
            self._blocks.append(Block(batch, arrival, None))
        small = level = 0
        while small < len(self._blocks) and level < LEVELS:
            if self._blocks[-1 - small].level <= level:
                small += 1
                continue
            small = self._join_last(small)
            level += 1
        self._join_last(small)
        self._index()

    def _join_last(self, small: int) -> int:
        """Make one block of so many at the end, if they are enough; how many there are then."""
        if small < BASE:
            return small
        self._blocks[-small:] = [_joined(self._blocks[-small:])]
        return 1

    def _index(self) -> None:
        self._firsts = np.array([block.first for block in self._blocks], np.int64)

    def _of(self, arrivals: np.ndarray) -> np.ndarray:
        """The block of each row."""
        return np.searchsorted(self._firsts, arrivals, side="right") - 1

    def take(self, arrivals: np.ndarray) -> pa.RecordBatch:
        """Rows in the order of these numbers: O(rows + blocks that they are in)."""
        of = self._of(arrivals)
        if (of == of[0]).all():
            return self._blocks[of[0]].take(arrivals)
        order = np.argsort(of, kind="stable")
        bounds = np.searchsorted(of[order], different(of, len(self._blocks)))
        numbers, parts = of[order[bounds]].tolist(), np.split(arrivals[order], bounds[1:])
        # Where nearly all rows between the first and the last of each block are asked for, they are put in order once.
        edges = [
            (int(rows.min()), int(rows.max()) + 1)
            for rows in (self._blocks[i].rows(part) for i, part in zip(numbers, parts, strict=True))
        ]
        if sum(high - low for low, high in edges) <= 2 * len(arrivals):
            slices = [
                self._blocks[i].batch.slice(low, high - low)
                for i, (low, high) in zip(numbers, edges, strict=True)
            ]
            base = np.cumsum([0, *(high - low for low, high in edges)])
            rows = np.empty(len(arrivals), np.int64)
            rows[order] = np.concatenate(
                [
                    self._blocks[i].rows(part) - low + start
                    for i, part, (low, _), start in zip(numbers, parts, edges, base[:-1], strict=True)
                ]
            )
            return joined(slices).take(pa.array(rows))
        found = [self._blocks[i].take(part) for i, part in zip(numbers, parts, strict=True)]
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return joined(found).take(pa.array(place))

    def drop(self, arrivals: np.ndarray) -> None:
        """Forget rows: O(rows), amortised."""
        if not len(arrivals):
            return
        of = self._of(arrivals)
        changed = False
        touched = different(of, len(self._blocks))
        for i in touched.tolist():
            block = self._blocks[i]
            here = arrivals if len(touched) == 1 else arrivals[of == i]
            block.live -= len(here)
            if block.live:
                if block.alive is None:
                    block.alive = np.ones(block.batch.num_rows, bool)
                block.alive[block.rows(here)] = False
                if 4 * block.live < block.batch.num_rows:
                    self._blocks[i] = block.packed()
                    changed = True
        if changed or not all(self._blocks[i].live for i in touched):
            self._blocks = [block for block in self._blocks if block.live]
            self._index()

    def clear(self) -> None:
        """Forget all rows."""
        self._blocks = []
        self._index()

    def fit(self, names: Sequence[str], schema: pa.Schema) -> None:
        """Give all rows these columns."""
        for block in self._blocks:
            block.batch = fitted(block.batch, names, schema)

    @property
    def nbytes(self) -> int:
        return sum(block.batch.nbytes for block in self._blocks)


def fitted(batch: pa.RecordBatch, names: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """A batch with these columns; one that it came without is null."""
    known = set(batch.schema.names)
    columns = [
        batch.column(name) if name in known else pa.nulls(batch.num_rows, schema.field(name).type)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches one behind the other, as one."""
    if len(batches) == 1:
        return batches[0]
    if all(batch.schema.equals(batches[0].schema) for batch in batches):
        return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks().to_batches()[0]


def _joined(blocks: list[Block]) -> Block:
    """Blocks beside each other as one, of the rows that are alive."""
    blocks = [block if block.alive is None else block.packed() for block in blocks]
    batch = joined([block.batch for block in blocks])
    first = blocks[0].first
    last = blocks[-1].arrivals[-1]
    dense = last - first == batch.num_rows - 1
    return Block(batch, first, None if dense else np.concatenate([block.arrivals for block in blocks]))

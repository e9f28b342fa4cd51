"""Rows that arrived and may still be in a window: a log of Arrow batches, and regions of row numbers.

    log       columns of rows, numbered from 0 in order of arrival             kept as few batches
    order     one long array of such numbers; each subwindow owns a region     content = order[HEAD:TAIL]

    region    |..evicted..|....content....|..room..|
              START       HEAD            TAIL     END

A row is appended to its region, and leaves it when HEAD passes it; nothing is moved while rows of a batch are taken
in, so every range that the tape names stays good until the next batch. Before a batch each region that it touches
gets the room it needs: it is moved to its own beginning if at least half of it is free, else to a place twice as large.
Rows that no subwindow holds are dropped from the log once they are more than half of it. All of that is O(1) per row,
amortised; no batch pays for rows that lie untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from windrow.compiling.tiers import jit
from windrow.engine.intake.columns import takeable
from windrow.policies.layout import LIVE, of

SMALLEST_REGION = 8
SMALLEST_LOG = 4096


@jit
def count_rows(numbers, need, touched):  # type: ignore[no-untyped-def]
    """How many rows each partition gets, in `need` (zeros before), and which ones do; how many these are."""
    found = 0
    for i in range(numbers.shape[0]):
        p = numbers[i]
        if need[p] == 0:
            touched[found] = p
            found += 1
        need[p] += 1
    return found


@jit
def lacking(table, need, p):  # type: ignore[no-untyped-def]
    """The size of the region that partition p must have, or 0: it can stay where it is, or move to its beginning."""
    twice = 2 * (table[p, of.TAIL] - table[p, of.HEAD] + need[p])
    if table[p, of.TAIL] + need[p] <= table[p, of.END] or twice <= table[p, of.END] - table[p, of.START]:
        return 0
    return max(twice, SMALLEST_REGION)


@jit
def give_room(table, need, touched, used, capacity, moves):  # type: ignore[no-untyped-def]
    """Find a place for the region of each touched partition that is too small.

    moves[k] = (from, to, rows) is what must then be copied. Returns how many moves there are, and the end of all
    regions; or -1 and how much would be needed, with nothing changed.
    """
    total = 0
    for t in range(touched.shape[0]):
        total += lacking(table, need, touched[t])
    if used + total > capacity:
        return -1, total
    made = 0
    for t in range(touched.shape[0]):
        p = touched[t]
        if table[p, of.TAIL] + need[p] > table[p, of.END]:
            rows = table[p, of.TAIL] - table[p, of.HEAD]
            size = lacking(table, need, p)
            if size > 0:
                table[p, of.START] = used
                table[p, of.END] = used + size
                used += size
            moves[made, 0] = table[p, of.HEAD]
            moves[made, 1] = table[p, of.START]
            moves[made, 2] = rows
            made += 1
            table[p, of.SHIFT] += table[p, of.HEAD] - table[p, of.START]
            table[p, of.HEAD] = table[p, of.START]
            table[p, of.TAIL] = table[p, of.START] + rows
    return made, used


@jit
def pack(table, partitions, moves):  # type: ignore[no-untyped-def]
    """Put the regions of these partitions one behind the other, without room; the end of all regions."""
    used = 0
    for p in range(partitions):
        rows = table[p, of.TAIL] - table[p, of.HEAD] if table[p, of.FLAGS] & LIVE else 0
        moves[p, 0] = table[p, of.HEAD]
        moves[p, 1] = used
        moves[p, 2] = rows
        table[p, of.SHIFT] += table[p, of.HEAD] - used
        table[p, of.START] = table[p, of.HEAD] = used
        table[p, of.TAIL] = table[p, of.END] = used + rows
        used += rows
    return used


@jit
def copy_moved(source, target, moves, count):  # type: ignore[no-untyped-def]
    """Copy what the moves say, forwards: a region may be moved down onto itself."""
    for k in range(count):
        old, new = moves[k, 0], moves[k, 1]
        for j in range(moves[k, 2]):
            target[new + j] = source[old + j]


@jit
def mark_held(table, partitions, order, held):  # type: ignore[no-untyped-def]
    """Set `held` for each log row that a subwindow holds."""
    for p in range(partitions):
        if table[p, of.FLAGS] & LIVE:
            for j in range(table[p, of.HEAD], table[p, of.TAIL]):
                held[order[j]] = True


class Regions:
    """Parallel arrays, with a region for each subwindow: `order`, marks, partials.

    `arrays` are replaced as a whole when they grow, so that none may be kept elsewhere.
    """

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.used = 0

    @property
    def capacity(self) -> int:
        return max((len(a) for a in self.arrays.values()), default=0)

    def reserve(self, table: np.ndarray, partitions: int, numbers: np.ndarray, need: np.ndarray) -> None:
        """Give each partition room for its rows; `need` is zeros, one for each partition."""
        touched = np.empty(min(len(numbers), partitions), np.int64)
        touched = touched[: count_rows(numbers, need, touched)]
        moves = np.empty((len(touched), 3), np.int64)
        made, used = give_room(table, need, touched, self.used, self.capacity, moves)
        if made < 0:
            self._pack(table, partitions, used + int(need[touched].sum()))
            made, used = give_room(table, need, touched, self.used, self.capacity, moves)
        self.used = used
        need[touched] = 0
        if made:
            for array in self.arrays.values():
                copy_moved(array, array, moves, made)

    def _pack(self, table: np.ndarray, partitions: int, more: int) -> None:
        """Leave what is not used behind, and have room for twice what is held and `more`."""
        moves = np.empty((partitions, 3), np.int64)
        held = pack(table, partitions, moves)
        # Each held row may have to move once more, to a region of twice its size.
        capacity = 4 * held + 2 * more + SMALLEST_REGION
        for name, array in self.arrays.items():
            fresh = np.zeros((capacity, *array.shape[1:]), array.dtype)
            copy_moved(array, fresh, moves, partitions)
            self.arrays[name] = fresh
        self.used = held


class Log:
    """Rows in order of arrival; batches of similar size are joined, so that there are few.

    >>> log = Log(pa.schema([("x", pa.int64())]))
    >>> log.append(pa.RecordBatch.from_pydict({"x": [5, 6, 7]}))
    >>> log.take(np.array([0, 2]))["x"].to_pylist()
    [5, 7]
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.base = 0
        self.rows = 0
        self._batches: list[pa.RecordBatch] = []
        self._listeners: list[Callable[[np.ndarray], None]] = []

    def on_moved(self, listener: Callable[[np.ndarray], None]) -> None:
        """Have `listener(old_to_new)` called when rows are renumbered; -1 stands for a row that is gone."""
        self._listeners.append(listener)

    def append(self, batch: pa.RecordBatch) -> None:
        """Rows arrive; the first of them becomes row `base`."""
        self.base = self.rows
        self.rows += batch.num_rows
        if not batch.num_rows:
            return
        self._batches.append(batch)
        # Each row is copied once for every doubling of the log, and there are never more batches than doublings.
        while len(self._batches) > 1 and self._batches[-2].num_rows <= self._batches[-1].num_rows:
            self._batches[-2:] = [_joined(self._batches[-2:], self.schema)]

    def take(self, rows: np.ndarray, *, copied: bool = False) -> pa.Table:
        """These rows, which must be ascending; rows that lie together are not copied unless `copied`."""
        ends = np.cumsum([b.num_rows for b in self._batches])
        cuts = np.searchsorted(rows, np.concatenate([[0], ends]))
        parts = []
        for k, batch in enumerate(self._batches):
            low, high = int(cuts[k]), int(cuts[k + 1])
            if low < high:
                first = int(rows[low]) - int(ends[k]) + batch.num_rows
                if not copied and int(rows[high - 1]) - int(rows[low]) == high - 1 - low:
                    parts.append(batch.slice(first, high - low))
                else:
                    parts.append(batch.take(pa.array(rows[low:high] - (int(ends[k]) - batch.num_rows))))
        return pa.Table.from_batches(parts, self.schema)

    def drop(self, table: np.ndarray, partitions: int, order: np.ndarray, held: int) -> None:
        """Forget rows that no subwindow holds, if they are more than half; `held` rows are."""
        if self.rows < SMALLEST_LOG or 2 * held > self.rows:
            return
        mask = np.zeros(self.rows, np.bool_)
        mark_held(table, partitions, order, mask)
        kept = np.flatnonzero(mask)
        moved = np.full(self.rows, -1, np.int64)
        moved[kept] = np.arange(len(kept))
        rows = self.take(kept, copied=True)
        self._batches = [_joined(rows.to_batches(), self.schema)] if len(kept) else []
        self.rows = self.base = len(kept)
        is_row = (order >= 0) & (order < len(moved))
        order[:] = np.where(is_row, moved[np.where(is_row, order, 0)], -1)
        for listener in self._listeners:
            listener(moved)


def storable(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """These columns of a batch in forms that can be put one behind the other, whatever values are still to come.

    A dictionary has no null among its values, and room for more of them than a narrow index can tell apart.
    """
    taken = takeable(batch, names)
    arrays = [_widened(a, batch.schema.field(n).type) for a, n in zip(taken.columns, names, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def _widened(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if not pa.types.is_dictionary(type_):
        return array
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    index = type_.index_type if type_.index_type.bit_width >= 32 else pa.int32()
    return array.cast(pa.dictionary(index, array.type.value_type, ordered=type_.ordered))


def _joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Batches as one, in memory of its own."""
    columns = [pa.concat_arrays([b.column(i) for b in batches]) for i in range(len(schema))]
    return pa.RecordBatch.from_arrays(columns, schema=schema)

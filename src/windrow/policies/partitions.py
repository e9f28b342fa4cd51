"""The partitions of a window: key columns to numbers, and a row of the table for each subwindow.

Numbers are those of `engine.keys`, dense and in order of first appearance. A number outlives its subwindow: the next
row with the same key finds it again. When most numbers have no subwindow any more, those that have are renumbered,
and all that is kept by number is moved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.intake.columns import settled, shown
from windrow.engine.intake.keys import Keys
from windrow.errors import QueryError
from windrow.policies.layout import LIVE, WIDTH, of
from windrow.rolling.codes import refuse_first
from windrow.schema import require_columns

SMALLEST_TABLE = 16
FEW_PARTITIONS = 1024


def grown(array: np.ndarray, count: int, fill: Any = 0) -> np.ndarray:
    """An array with room for `count` entries: if it has less, twice as many as before, or what is needed."""
    if count <= len(array):
        return array
    size = max(count, 2 * len(array)) - len(array)
    return np.concatenate([array, np.full((size, *array.shape[1:]), fill, array.dtype)])


class Partitions:
    """`table` of subwindows; `heap` and `dues` of partition numbers; other `arrays` with an entry for each number."""

    def __init__(self, schema: pa.Schema, by: tuple[str, ...], arrays: dict[str, np.dtype[Any]]) -> None:
        require_columns(schema, by)
        self.by = by
        self.keys = Keys(pa.schema([schema.field(name) for name in by]))
        self.table = np.zeros((SMALLEST_TABLE, WIDTH), np.int64)
        self.heap = np.zeros(SMALLEST_TABLE, np.int64)
        self.dues = np.zeros(SMALLEST_TABLE, np.int64)
        self.arrays = {name: np.zeros(SMALLEST_TABLE, dtype) for name, dtype in arrays.items()}
        self._none = np.zeros(0, np.int32)
        self._listeners: list[Callable[[np.ndarray], None]] = []

    @property
    def known(self) -> int:
        """How many numbers there are, with a subwindow or without."""
        return self.keys.count

    def on_renumbered(self, listener: Callable[[np.ndarray], None]) -> None:
        """Have `listener(kept)` called when numbers change: number kept[i] is now i, all others are gone."""
        self._listeners.append(listener)

    def require_keys(self, batch: pa.RecordBatch) -> None:
        """Refuse rows that belong to no partition."""
        for name in self.by:
            column = settled(batch.column(name))
            if column.null_count:
                problem = "a row without a key belongs to no partition: leave it out, or fill it"
                refuse_first(column.is_null().to_numpy(zero_copy_only=False), name, None, problem)

    def numbers(self, batch: pa.RecordBatch) -> np.ndarray:
        """The partition of each row."""
        numbers = self.keys.numbers(batch)
        if numbers is None:
            if len(self._none) < batch.num_rows:
                self._none = np.zeros(batch.num_rows, np.int32)
            return self._none[: batch.num_rows]
        self.make_room(self.known)
        return numbers

    def make_room(self, count: int) -> None:
        """Make room for these partition numbers."""
        self.table, self.heap, self.dues = (grown(a, count) for a in (self.table, self.heap, self.dues))
        self.arrays = {name: grown(array, count) for name, array in self.arrays.items()}

    def live(self) -> np.ndarray:
        """The numbers of all subwindows, oldest first."""
        numbers = np.flatnonzero(self.table[: self.known, of.FLAGS] & LIVE)
        return numbers[np.argsort(self.table[numbers, of.CREATED], kind="stable")]

    def number_of(self, key: Any) -> int | None:
        """The number of a key, or None if it has no subwindow."""
        values = key if isinstance(key, tuple) else (key,)
        if not self.by:
            values = ()
        if len(values) != len(self.by):
            raise QueryError(
                f"a key of this window has {len(self.by)} values, for {', '.join(self.by)}; not {key!r}"
            )
        number = 0
        if self.by:
            fields = list(self.keys.schema)
            try:
                arrays = [pa.array([v], f.type) for v, f in zip(values, fields, strict=True)]
            except (pa.ArrowException, TypeError, ValueError) as problem:
                raise QueryError(f"{key!r} is no key of this window: {problem}") from problem
            found = self.numbers(pa.RecordBatch.from_arrays(arrays, schema=self.keys.schema))
            number = int(found[0])
        return number if self.table[number, of.FLAGS] & LIVE else None

    def columns(self, numbers: np.ndarray) -> list[pa.Array]:
        """The key columns of partitions."""
        rows = pa.array(numbers, pa.int64())
        return [column.take(rows) for column in self.keys.columns]

    def key_of(self, number: int) -> Any:
        """The key of a partition: a value, a tuple of several, or None."""
        values = tuple(shown(column[number]) for column in self.keys.columns)
        if not values:
            return None
        return values if len(values) > 1 else values[0]

    def forget(self, g: np.ndarray) -> None:
        """Renumber partitions if most of them have no subwindow any more."""
        if not self.by or self.known < FEW_PARTITIONS or 2 * int(g[of.SUBWINDOWS]) > self.known:
            return
        kept = np.flatnonzero(self.table[: self.known, of.FLAGS] & LIVE)
        moved = np.full(self.known + 1, -1, np.int64)
        moved[kept] = np.arange(len(kept))
        self.keys = self.keys.kept(kept)
        table = grown(self.table[kept], SMALLEST_TABLE)
        # moved[-1] is -1: the end of the list stays what it is.
        for column in (of.BEFORE, of.AFTER):
            table[:, column] = moved[table[:, column]]
        g[of.FIRST], g[of.LAST] = moved[g[of.FIRST]], moved[g[of.LAST]]
        self.table = table
        self.heap = grown(moved[self.heap[: g[of.HEAP]]], len(table))
        self.dues = grown(moved[self.dues[: g[of.DUES]]], len(table))
        self.arrays = {name: grown(array[kept], SMALLEST_TABLE) for name, array in self.arrays.items()}
        for listener in self._listeners:
            listener(kept)

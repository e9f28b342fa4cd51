"""Rows that a sort holds back.

The window that says when a row leaves evicts its oldest one; the sort keeps rows that the window no
longer has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.intake.columns import whole
from windrow.engine.snapshot.parts import stream_of, table_of
from windrow.errors import StateError
from windrow.policies.events import AFTER_INSERT, PARTITION_EVICTION
from windrow.policies.log import Log, storable
from windrow.policies.operators import heaps
from windrow.policies.operators.ordering import Ordering
from windrow.policies.operators.rows import taken
from windrow.policies.operators.state import array_part
from windrow.policies.partitions import grown

# At most this many rows are never tidied up.
FEW = 4096


class SortedRows:
    """The rows of a progressive sort: a log of its own, and a heap for each partition."""

    def __init__(self, schema: pa.Schema, ordering: Ordering) -> None:
        self._schema = storable(whole(schema.empty_table()), schema.names).schema
        self._ordering = ordering
        self._log = Log(self._schema)
        self._keys = np.zeros((0, ordering.width), np.int64)
        self._child = np.zeros(0, np.int64)
        self._sibling = np.zeros(0, np.int64)
        self._owner = np.full(0, -1)
        self._root = np.full(0, -1)
        self._count = 0

    def renumber(self, kept: np.ndarray) -> None:
        """Partition kept[i] becomes partition i."""
        self._root = grown(self._root, int(kept.max(initial=-1)) + 1, -1)
        moved = np.full(len(self._root) + 1, -1)
        moved[kept] = np.arange(len(kept))
        self._root, self._owner = self._root[kept], moved[self._owner]

    def refuse(self, batch: pa.RecordBatch) -> None:
        """An error if rows have no place in order."""
        self._ordering.refuse(batch)

    def played(self, tape: Any, batch: pa.RecordBatch | None) -> tuple[pa.Table, np.ndarray]:
        """Take in a batch, and let rows leave as the tape says."""
        base = self._append(batch) if batch is not None else 0
        return self._play(tape.kind, tape.row, tape.partition, tape.at, base)

    def drained(self, partitions: np.ndarray) -> tuple[pa.Table, np.ndarray]:
        """All rows of these partitions leave."""
        kinds, none = np.full(len(partitions), PARTITION_EVICTION), np.full(len(partitions), -1)
        return self._play(kinds, none, partitions, none, 0)

    def _play(
        self, kind: np.ndarray, row: np.ndarray, partition: np.ndarray, at: np.ndarray, base: int
    ) -> tuple[pa.Table, np.ndarray]:
        """Let rows come and leave as these events say; those that leave, and where sets of them end."""
        self._root = grown(self._root, int(partition.max(initial=-1)) + 1, -1)
        out, marks = np.empty(self._count, np.int64), np.empty(len(kind), np.int64)
        links = (self._keys, self._child, self._sibling, self._owner, self._root)
        left, sets = heaps.play(kind, row, partition, at, base, *links, out, marks)
        table = taken(self._log, out[:left])
        self._count -= left
        if self._log.rows > max(FEW, 2 * self._count):
            self._tidy()
        return table, marks[:sets]

    def _append(self, batch: pa.RecordBatch) -> int:
        """The rows of a batch, in no heap yet; the number of the first."""
        fresh = self._ordering.encoded(batch, self._keys[: self._log.rows])
        self._log.append(storable(batch, self._schema.names))
        base, end = self._log.base, self._log.rows
        links = self._keys, self._child, self._sibling
        self._keys, self._child, self._sibling = (grown(array, end) for array in links)
        self._owner = grown(self._owner, end, -1)
        self._keys[base:end] = fresh
        self._count += len(fresh)
        return base

    def _tidy(self) -> None:
        """Forget the rows that have left."""
        kept = np.flatnonzero(self._owner >= 0)
        moved = np.full(self._log.rows + 1, -1)
        moved[kept] = np.arange(len(kept))
        log = Log(self._schema)
        if len(kept):
            log.append(whole(self._log.take(kept)))
        self._log = log
        count = len(kept)
        self._keys[:count] = self._keys[kept]
        self._ordering.forget(self._keys[:count])
        # A link of -1 is the last place of `moved`, which is -1.
        self._child[:count], self._sibling[:count] = moved[self._child[kept]], moved[self._sibling[kept]]
        self._root = moved[self._root]
        self._owner[:count], self._owner[count:] = self._owner[kept], -1

    # -- state -----------------------------------------------------------------------------------

    def save(self, partitions: np.ndarray) -> dict[str, bytes]:
        """The rows, and for each its partition, as a place among these; heaps are made anew."""
        self._tidy()
        place = np.full(max(len(self._root), int(partitions.max(initial=-1)) + 1), -1)
        place[partitions] = np.arange(len(partitions))
        rows = self._log.take(np.arange(self._log.rows))
        return {"rows": stream_of(rows), "partition of rows": place[self._owner[: self._log.rows]].tobytes()}

    def load(self, parts: dict[str, bytes], partitions: np.ndarray, sizes: np.ndarray) -> None:
        """The opposite of `save`; as many rows are held of each partition as its subwindow has."""
        rows = table_of(parts.pop("rows", b""))
        if rows.schema != self._schema:
            raise StateError("the rows of the snapshot have other columns than the stream")
        place = array_part(parts, "partition of rows", np.int64, rows.num_rows)
        known = (place >= 0) & (place < len(sizes))
        if not known.all() or np.any(np.bincount(place, minlength=len(sizes)) != sizes):
            raise StateError("the rows of the snapshot are not as many as its window holds")
        if rows.num_rows:
            self._append(whole(rows))
            number = np.arange(rows.num_rows)
            self._play(np.full(rows.num_rows, AFTER_INSERT), number, partitions[place], number, 0)

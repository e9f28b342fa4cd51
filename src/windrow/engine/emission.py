"""From windows due to a result table: merge the slices of each window, lower, and lay out columns.

The order of rows is not part of the answer: they come by stretches of time, window by window. Work is done in blocks,
so that a million keys times many windows never lie in memory as partials at once.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.base import Scalars, Sketch
from windrow.engine.binding import Answer, is_own
from windrow.engine.functions.user_functions import lower_failed, named
from windrow.engine.partials import Multisets, Numbers
from windrow.engine.partials.scalars import lower_values
from windrow.engine.windows import ClosedWindows
from windrow.errors import DataError, UserFunctionError
from windrow.measure import Tick

if TYPE_CHECKING:
    pass

BLOCK_CELLS = 1 << 17
BLOCK_BYTES = 1 << 26


class Ledger:
    """How often each emitted window was revised, for windows that were revised at all."""

    def __init__(self) -> None:
        self._revisions: dict[tuple[str, Tick, Tick], np.ndarray] = {}
        # The same windows by their ends: a heap.
        self._ends: list[tuple[Tick, str, Tick]] = []

    def next_for(self, window: tuple[str, Tick, Tick], keys: np.ndarray) -> np.ndarray:
        """The numbers of the next revisions of `window` for `keys`."""
        row = self._revisions.get(window)
        return np.ones(len(keys), np.int32) if row is None else row[keys] + 1

    def raise_for(self, window: tuple[str, Tick, Tick], keys: np.ndarray, stride: int) -> None:
        """Count one more revision of `window` for `keys`."""
        if window not in self._revisions:
            self._enter(window, np.zeros(stride, np.int32))
        self._revisions[window][keys] += 1

    def _enter(self, window: tuple[str, Tick, Tick], row: np.ndarray) -> None:
        name, start, end = window
        self._revisions[window] = row
        heappush(self._ends, (end, name, start))

    def forget(self, horizon: Tick) -> None:
        """Drop the windows that are final; O(log windows) for each of them."""
        while self._ends and self._ends[0][0] <= horizon:
            end, name, start = heappop(self._ends)
            self._revisions.pop((name, start, end), None)

    def drop(self, name: str) -> None:
        """Forget all windows of this name."""
        self._revisions = {w: row for w, row in self._revisions.items() if w[0] != name}

    def repack(self, stride: int, keys: np.ndarray | slice) -> None:
        for window, old in self._revisions.items():
            row = np.zeros(stride, np.int32)
            kept = old[keys]
            row[: len(kept)] = kept
            self._revisions[window] = row

    def save(self) -> list[tuple[str, Tick, Tick, np.ndarray]]:
        return [(*window, row) for window, row in self._revisions.items()]

    def load(self, entries: list[tuple[str, Tick, Tick, np.ndarray]]) -> None:
        for name, start, end, row in entries:
            self._enter((name, start, end), row)


class Emission:
    """The rows of one `advance`."""

    def __init__(self, engine: Any, slots: np.ndarray) -> None:
        self._engine = engine
        self._slots = slots
        self._schema = engine.result_schema
        # For how many keys each window is answered: one, where slices are kept per key.
        self._keys: int = engine.keys_per_window
        self.batches: list[pa.RecordBatch] = []
        self._revised: list[tuple[tuple[str, Tick, Tick], np.ndarray]] = []

    def emit(self, due: ClosedWindows) -> None:
        """Rows for windows that are given out for the first time."""
        for block in self._blocks(due):
            rows = self._present(block)
            picked = self._rows(block, rows)
            extra = self._changes(len(picked[0]), "insert")
            self._append(block, rows, picked, extra)

    def change(self, due: ClosedWindows, op: str, revision: np.ndarray) -> None:
        """Rows for windows of single keys: all of them with this `op`, and with these revisions."""
        begin = 0
        for block in self._blocks(due):
            extra = self._changes(len(block), op)
            if extra:
                extra[1] = pa.array(revision[begin : begin + len(block)])
            begin += len(block)
            picked = self._rows(block, None)
            if op == "delete":
                self._append_rows(block, slice(None), picked[1], self._nulls(len(block)), extra)
            else:
                self._append(block, None, picked, extra)

    def _nulls(self, count: int) -> list[pa.Array]:
        answers = self._engine.binding.answers
        return [pa.nulls(count, answers[name].bound.type) for name in self._engine.query.aggregates]

    def revise(self, due: ClosedWindows, *, unchanged: bool = False) -> None:
        """Rows for windows that events have changed since they were given out, or for all where `unchanged` ones are wanted."""
        engine = self._engine
        for block in self._blocks(due):
            present = self._merged_presence(block)
            there = present > 0
            if not unchanged:
                there &= engine.merged(engine.fresh, block, self._slots, self._keys)[1] > 0
            rows = np.flatnonzero(there)
            if not len(rows):
                continue
            fresh = engine.merged(engine.fresh, block.deciding, self._slots, self._keys)[1]
            known = present[rows] > fresh[rows]
            picked = self._rows(block, rows)
            revision = np.zeros(len(rows), np.int64)
            self._number_revisions(block, picked, known, revision)
            ops = pa.array(np.where(known, "update", "insert"), pa.string())
            self._append(block, rows, picked, [ops, pa.array(revision)])

    def _number_revisions(
        self, block: ClosedWindows, picked: Any, known: np.ndarray, revision: np.ndarray
    ) -> None:
        engine = self._engine
        window, key = picked
        at = np.flatnonzero(known)
        # Rows come window by window.
        for which in np.split(at, np.flatnonzero(np.diff(window[at])) + 1) if len(at) else ():
            w = window[which[0]]
            name = engine.windows.names[block.spec[w]]
            identity = (name, block.start[w].item(), block.end[w].item())
            revision[which] = engine.ledger.next_for(identity, key[which])
            self._revised.append((identity, key[which]))

    def commit(self) -> None:
        """Count the revisions that were given out."""
        for window, keys in self._revised:
            self._engine.ledger.raise_for(window, keys, self._engine.stride)

    def _blocks(self, due: ClosedWindows) -> list[ClosedWindows]:
        if not len(due):
            return []
        cells = min(BLOCK_CELLS, BLOCK_BYTES // max(1, self._engine.binding.largest_cell))
        size = max(1, cells // max(1, self._keys))
        if len(due) <= size:
            return [due]
        return [due.where(slice(i, i + size)) for i in range(0, len(due), size)]

    def _merged_presence(self, block: ClosedWindows) -> np.ndarray:
        """How many events decide that there is a window, for each of them and each key."""
        engine = self._engine
        return engine.merged(engine.presence, block.deciding, self._slots, self._keys)[1]

    def _present(self, block: ClosedWindows) -> np.ndarray | None:
        """Windows x keys that hold an event; None if all do, as they must where there is one key and each slice has some."""
        if self._keys == 1 and not self._engine.may_have_empty_slices:
            return None
        count = self._merged_presence(block)
        return None if count.all() else np.flatnonzero(count)

    def _rows(self, block: ClosedWindows, rows: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The window and the key of each output row; None stands for all windows x keys."""
        keys = self._keys
        if rows is not None:
            return rows // keys, rows % keys
        window = np.arange(len(block))
        if block.key is not None:
            return window, block.key
        if keys == 1:
            return window, np.zeros(len(block), np.int64)
        return np.repeat(window, keys), np.tile(np.arange(keys), len(block))

    def _changes(self, count: int, op: str) -> list[pa.Array]:
        if self._engine.settings.mode == "append":
            return []
        return [pa.repeat(pa.scalar(op, pa.string()), count), pa.array(np.zeros(count, np.int64))]

    def _append(
        self, block: ClosedWindows, rows: np.ndarray | None, picked: Any, extra: list[pa.Array]
    ) -> None:
        window, key = picked
        if rows is None and self._keys == 1:
            window = slice(None)
        self._append_rows(block, window, key, self._aggregates(block, rows, picked), extra)

    def _append_rows(
        self,
        block: ClosedWindows,
        window: Any,
        key: np.ndarray,
        aggregates: list[pa.Array],
        extra: list[pa.Array],
    ) -> None:
        engine = self._engine
        columns = self._of_keys(key, all_of_them=len(key) == len(block) * self._keys and block.key is None)
        spec = block.spec[window].astype(np.int32)
        codes = pa.Array.from_buffers(pa.int32(), len(spec), [None, pa.py_buffer(spec)])
        columns.append(pa.DictionaryArray.from_arrays(codes, engine.windows.labels, safe=False))
        columns += [engine.measure.array(block.start[window]), engine.measure.array(block.end[window])]
        columns += aggregates
        if block.final is not None:
            extra = [*extra, pa.array(block.final[window])]
        self.batches.append(pa.RecordBatch.from_arrays([*columns, *extra], schema=self._schema))

    def _of_keys(self, key: np.ndarray, *, all_of_them: bool) -> list[pa.Array]:
        """The key columns of output rows; where all keys have all windows, of one window after another."""
        if not all_of_them or not len(key):
            return self._engine.keys.taken(key)
        columns = self._engine.keys.columns
        windows = len(key) // self._keys
        return [pa.concat_arrays([column] * windows) if windows > 1 else column for column in columns]

    def _aggregates(self, block: ClosedWindows, rows: np.ndarray | None, picked: Any) -> list[pa.Array]:
        engine = self._engine
        binding = engine.binding
        merged: dict[int, tuple[list[np.ndarray], np.ndarray]] = {}
        columns = []
        for name in engine.query.aggregates:
            answer = binding.answers[name]
            store = answer.store
            if engine.is_merged(store):
                assert isinstance(store, Numbers)
                if id(store) not in merged:
                    merged[id(store)] = self._merged(store, block, rows)
                fields, n = merged[id(store)]
                column = self._lower(name, answer, fields, n, block, picked)
            else:
                where = picked
                if block.key is not None and isinstance(store, Multisets):
                    where = (picked[0], np.zeros(len(block), np.int64))
                column = engine.answer(answer, block, self._slots, where, answer.decoders)
            columns.append(self._nulled(name, column, block, picked) if engine.complete_from else column)
        return columns

    def _merged(
        self, store: Numbers, block: ClosedWindows, rows: np.ndarray | None
    ) -> tuple[list[np.ndarray], np.ndarray]:
        try:
            fields, n = self._engine.merged(store, block, self._slots, self._keys)
        except Exception as problem:  # a user's function may raise anything
            if not is_own(store.spec):
                raise
            raise self._blamed(store, block, problem) from problem
        if rows is None:
            return fields, n
        return [f[rows] for f in fields], n[rows]

    def _blamed(self, store: Numbers, block: ClosedWindows, problem: Exception) -> UserFunctionError:
        """Which window the user's `combine` failed on: merged again, one by one."""
        assert isinstance(store.spec, Scalars)
        for w in range(len(block)):
            try:
                self._engine.merged(store, block.where(slice(w, w + 1)), self._slots, self._keys)
            except Exception as found:  # a user's function may raise anything
                return named(store.spec, "combine", found, where=f" in {self._window(block, w)}")
        return named(store.spec, "combine", problem)

    def _nulled(self, name: str, column: pa.Array, block: ClosedWindows, picked: Any) -> pa.Array:
        """Null where the aggregate was added too late to be complete."""
        floor, starts = self._engine.complete_from.get("aggregate " + name), block.start[picked[0]]
        if floor is None or not (starts < floor).any():
            return column
        return pc.if_else(pa.array(starts >= floor), column, pa.scalar(None, column.type))

    def _lower(
        self, name: str, answer: Answer, fields: Any, n: Any, block: ClosedWindows, picked: Any
    ) -> pa.Array:
        bound, decoders = answer.bound, answer.decoders
        spec = bound.partial
        assert isinstance(spec, (Scalars, Sketch))
        assert bound.build is not None
        if bound.lower is None:
            return bound.build(fields, n, decoders)
        try:
            values, defined = lower_values(bound, fields, n, answer.lowering)
        except Exception as problem:  # a user's function may raise anything
            if not is_own(spec):
                raise
            row = next(
                (i for i in range(len(n)) if _fails(bound, [f[i : i + 1] for f in fields], n[i : i + 1])), 0
            )
            where = f" in {self._where(block, picked, row)}"
            raise lower_failed(bound, problem, where) from problem
        overflow = bound.check(values, defined) if bound.check else None
        if overflow is not None:
            row, value = overflow
            raise DataError(name, row, value, f"the sum of {self._where(block, picked, row)} overflows int64")
        return bound.build(values, defined, decoders)

    def _where(self, block: ClosedWindows, picked: Any, row: int) -> str:
        engine = self._engine
        w, k = int(picked[0][row]), int(picked[1][row])
        key = {f.name: c[k].as_py() for f, c in zip(engine.keys.schema, engine.keys.columns, strict=True)}
        return self._window(block, w) + (f" of key {key}" if key else "")

    def _window(self, block: ClosedWindows, w: int) -> str:
        measure = self._engine.measure
        span = f"[{measure.scalar(block.start[w])}, {measure.scalar(block.end[w])})"
        return f"window {self._engine.windows.names[block.spec[w]]!r} {span}"


def _fails(bound: Any, fields: list[np.ndarray], n: np.ndarray) -> bool:
    """Whether the user's `lower` raises on this one partial."""
    try:
        lower_values(bound, fields, n)
    except Exception:  # a user's function may raise anything
        return True
    return False

"""windrow's aggregates as summarizers of tumbling windows: one partial per subwindow, and no rows.

The loop gives each row the cell of its subwindow; one compiled pass per partial then folds all rows of a batch into
their cells (`engine.partials`). Aggregates that share a partial, as `sum` and `mean` of a column do, share it here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Scalars, Sketch
from windrow.engine.aligned.cutting import Cells
from windrow.engine.functions.user_functions import blame
from windrow.engine.partials.scalars import Numbers
from windrow.engine.snapshot.parts import Reader, Writer
from windrow.policies.events import BEFORE_FLUSH
from windrow.policies.folding import InCells
from windrow.policies.inputs import BoundAggregate, Inputs
from windrow.policies.layout import KIND, LIVE, OF_PARTITION, OF_ROW, OF_TUPLE, of
from windrow.policies.window_state import WindowState

_UNTIMED = np.empty(0, np.int64)


class FoldedCells(InCells):
    """Partials of fixed size in cells."""

    def __init__(self, aggregates: list[BoundAggregate], inputs: Inputs) -> None:
        super().__init__(aggregates, inputs)
        self._stores: dict[Any, Numbers] = {
            key: _store(one) for key, one in {a.key: a for a in aggregates}.items()
        }
        self._taken = 0

    def resize(self, old: int) -> None:
        for store in self._stores.values():
            store.repack(np.arange(old), self.capacity, 1, slice(0, 1))

    def empty(self, cells: np.ndarray) -> None:
        for store in self._stores.values():
            store.reset(cells)

    def _recode(self, state: WindowState, column: str, moved: np.ndarray) -> None:
        for (columns, *_), store in self._stores.items():
            for position, name in enumerate(columns):
                if name == column:
                    store.recode(position, moved)

    def _held_codes(self, state: WindowState, column: str) -> np.ndarray:
        found = [
            store.codes(position)
            for (columns, *_), store in self._stores.items()
            for position, name in enumerate(columns)
            if name == column
        ]
        return np.concatenate(found)

    def saved(self, state: WindowState, touched: np.ndarray) -> Callable[[], None]:
        table = state.partitions.table[touched]
        cells = table[(table[:, of.FLAGS] & LIVE > 0) & (table[:, of.CELL] >= 0), of.CELL]
        kept = [store.save(cells, 1) for store in self._stores.values()]
        taken = self._taken

        def back() -> None:
            self._taken = taken
            self.release_but(state)
            for store, arrays in zip(self._stores.values(), kept, strict=True):
                store.load(arrays, cells, 1)

        return back

    def fold(self, state: WindowState, low: int, high: int) -> None:
        position = state.position[low:high]
        timed = any(store.timed for store in self._stores.values())
        arrival = np.arange(self._taken, self._taken + high - low) if timed else _UNTIMED
        self._taken += high - low
        for (columns, kinds, partial), store in self._stores.items():
            inputs = [codes[low:high] for codes in self._inputs.codes(columns if kinds else ())]
            present = self._inputs.present(columns)
            cells = position if present is None else np.where(present[low:high], position, -1)
            own = isinstance(partial, Scalars) and partial.own
            before = int(store.n.sum()) if own else 0
            try:
                store.fold(Cells(cells), inputs, (arrival, arrival))
            except Exception as problem:  # a user's function may raise anything
                if not own:
                    raise
                rows, done = np.arange(low, high), int(store.n.sum()) - before
                raise blame(store, Cells(cells), inputs, rows, problem, done=done) from problem

    def answers(self, state: WindowState, events: np.ndarray) -> pa.Table | None:
        flushed = np.compress(events[KIND] == BEFORE_FLUSH, events, axis=1)
        partition, cells, row = flushed[OF_PARTITION], flushed[OF_TUPLE], flushed[OF_ROW]
        columns = dict(zip(state.partitions.by, state.partitions.columns(partition), strict=True))
        columns |= {one.name: self._answer(one, cells, state, partition, row) for one in self._aggregates}
        return pa.table(columns)

    def _answer(
        self,
        one: BoundAggregate,
        cells: np.ndarray,
        state: WindowState,
        partition: np.ndarray,
        row: np.ndarray,
    ) -> pa.Array:
        store = self._stores[one.key]
        decoders = self._inputs.decoders(one.columns)
        fields, n = [field[cells] for field in store.fields], store.n[cells]
        return one.lowered(fields, n, decoders, state, partition, row)

    def summary(self, state: WindowState, number: int) -> dict[str, Any]:
        cell = int(state.partitions.table[number, of.CELL])
        if cell < 0:
            return {one.name: None for one in self._aggregates}
        chosen, partition, row = (np.array([value]) for value in (cell, number, -1))
        answers = {one.name: self._answer(one, chosen, state, partition, row) for one in self._aggregates}
        return {name: answer[0].as_py() for name, answer in answers.items()}

    def save(self, state: WindowState, writer: Writer) -> None:
        writer.array("taken", np.array([self._taken]))
        cells = state.partitions.table[_in_use(state), of.CELL]
        for i, store in enumerate(self._stores.values()):
            for name, array in store.save(cells, 1).items():
                writer.array(f"store {i} {name}", array)
        self._inputs.save(writer)

    def load(self, state: WindowState, reader: Reader) -> None:
        self._taken = int(reader.array("taken", np.int64)[0])
        used = _in_use(state)
        state.partitions.table[used, of.CELL] = np.arange(len(used))
        self.start_with(len(used), state.counters)
        for i, store in enumerate(self._stores.values()):
            store.load(reader.arrays(f"store {i} "), np.arange(len(used)), 1)
        self._inputs.load(reader)


def _in_use(state: WindowState) -> np.ndarray:
    """The partitions that have a cell."""
    numbers = np.sort(state.partitions.live())
    return numbers[state.partitions.table[numbers, of.CELL] >= 0]


def _store(one: BoundAggregate) -> Numbers:
    partial = one.bound.partial
    assert isinstance(partial, (Scalars, Sketch))
    return Numbers(partial, len(one.bound.kinds), np.dtype(np.int64))

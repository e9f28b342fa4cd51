"""windrow's aggregates as summarizers of tumbling windows: one partial per subwindow, and no rows.

The loop gives each row the cell of its subwindow; one compiled pass per partial then folds all rows of a batch into
their cells (`engine.partials`). Aggregates that share a partial, as `sum` and `mean` of a column do, share it here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Scalars, Sketch
from windrow.engine.cutting import Cells
from windrow.engine.partials.scalars import Numbers
from windrow.engine.snapshot.parts import Reader, Writer
from windrow.engine.user_functions import blame
from windrow.policies.events import BEFORE_FLUSH
from windrow.policies.folding import Asked, InCells
from windrow.policies.inputs import Inputs
from windrow.policies.layout import CELL, FLAGS, LIVE

if TYPE_CHECKING:
    from windrow.policies.contents import Contents
    from windrow.policies.tape import Tape


_UNTIMED = np.empty(0, np.int64)


class FoldedCells(InCells):
    """Partials of fixed size in cells."""

    def __init__(self, asked: list[Asked], inputs: Inputs) -> None:
        super().__init__()
        self._asked = asked
        self._inputs = inputs
        self._stores: dict[Any, Numbers] = {
            key: _store(one) for key, one in {a.key: a for a in asked}.items()
        }
        self._taken = 0
        inputs.on_recoded(self._recode)

    def resize(self, old: int) -> None:
        for store in self._stores.values():
            store.repack(np.arange(old), self.capacity, 1, slice(0, 1))

    def empty(self, cells: np.ndarray) -> None:
        for store in self._stores.values():
            store.reset(cells)

    def _recode(self, column: str, moved: np.ndarray) -> None:
        for (columns, *_), store in self._stores.items():
            for position, name in enumerate(columns):
                if name == column:
                    store.recode(position, moved)

    def read(self, batch: pa.RecordBatch) -> None:
        self._inputs.read(batch)

    def require(self, batch: pa.RecordBatch) -> None:
        self._inputs.require(batch)

    def settle(self, window: Contents) -> None:
        self._inputs.forget(self._held, self._recode)

    def _held(self, column: str) -> np.ndarray:
        """The codes of a column that cells hold."""
        found = [
            store.codes(position)
            for (columns, *_), store in self._stores.items()
            for position, name in enumerate(columns)
            if name == column
        ]
        return np.concatenate(found)

    def may_fail(self, rows: int) -> bool:
        return self._inputs.may_fail(self._asked, rows)

    def saved(self, window: Contents, touched: np.ndarray) -> Callable[[], None]:
        table = window.subwindows.table[touched]
        cells = table[(table[:, FLAGS] & LIVE > 0) & (table[:, CELL] >= 0), CELL]
        kept = [store.save(cells, 1) for store in self._stores.values()]
        taken = self._taken

        def back() -> None:
            self._taken = taken
            self.release_but(window)
            for store, arrays in zip(self._stores.values(), kept, strict=True):
                store.load(arrays, cells, 1)

        return back

    def fold(self, window: Contents, low: int, high: int) -> None:
        position = window.position[low:high]
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

    def answers(self, window: Contents, tape: Tape) -> pa.Table | None:
        flushed = np.flatnonzero(tape.kind == BEFORE_FLUSH)
        partition, cells = tape.partition[flushed], tape.tuple[flushed]
        columns = dict(zip(window.subwindows.by, window.keys(partition), strict=True))
        row = tape.row[flushed]
        columns |= {one.name: self._answer(one, cells, window, partition, row) for one in self._asked}
        return pa.table(columns)

    def _answer(
        self, one: Asked, cells: np.ndarray, window: Contents, partition: np.ndarray, row: np.ndarray
    ) -> pa.Array:
        store = self._stores[one.key]
        decoders = self._inputs.decoders(one.columns)
        fields, n = [field[cells] for field in store.fields], store.n[cells]
        return one.lowered(fields, n, decoders, window, partition, row)

    def summary(self, window: Contents, number: int) -> dict[str, Any]:
        cell = int(window.subwindows.table[number, CELL])
        if cell < 0:
            return {one.name: None for one in self._asked}
        chosen, partition, row = (np.array([value]) for value in (cell, number, -1))
        answers = {one.name: self._answer(one, chosen, window, partition, row) for one in self._asked}
        return {name: answer[0].as_py() for name, answer in answers.items()}

    def save(self, window: Contents, writer: Writer) -> None:
        writer.array("taken", np.array([self._taken]))
        cells = window.subwindows.table[_in_use(window), CELL]
        for i, store in enumerate(self._stores.values()):
            for name, array in store.save(cells, 1).items():
                writer.array(f"store {i} {name}", array)
        self._inputs.save(writer)

    def load(self, window: Contents, reader: Reader) -> None:
        self._taken = int(reader.array("taken", np.int64)[0])
        used = _in_use(window)
        window.subwindows.table[used, CELL] = np.arange(len(used))
        self.start_with(len(used), window.counters)
        for i, store in enumerate(self._stores.values()):
            store.load(reader.arrays(f"store {i} "), np.arange(len(used)), 1)
        self._inputs.load(reader)


def _in_use(window: Contents) -> np.ndarray:
    """The partitions that have a cell."""
    numbers = np.sort(window.subwindows.live())
    return numbers[window.subwindows.table[numbers, CELL] >= 0]


def _store(one: Asked) -> Numbers:
    partial = one.bound.partial
    assert isinstance(partial, (Scalars, Sketch))
    return Numbers(partial, len(one.bound.kinds), np.dtype(np.int64))

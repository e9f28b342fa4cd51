"""Summarizers: what is kept of a tumbling subwindow instead of its rows (Gedik, section 4.1.6).

A summarizer of the user's own is a class with three methods. One is made for each subwindow, gets the rows that
arrive in it as slices of a table, and decides itself what to keep of them:

    class Average(Summarizer):
        def open(self, partition):  self.n, self.sum = 0, 0.0
        def insert(self, rows):     self.n += len(rows); self.sum += pc.sum(rows["value"]).as_py()
        def close(self):            ...

windrow's aggregates are summarizers too: `aggregates={"average": wr.mean("value")}` folds rows in compiled code, and
every flush or trigger is a row of `tape.answers`. They also work for sliding windows (`ranges`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate
from windrow.engine.snapshot.parts import Reader, Writer
from windrow.errors import QueryError, StateError
from windrow.policies.cells import FoldedCells
from windrow.policies.folding import Folding, InCells
from windrow.policies.inputs import BoundAggregate, Inputs
from windrow.policies.layout import of
from windrow.policies.ranges import Ranges
from windrow.policies.spec import Spec, Tumbling
from windrow.policies.window_state import WindowState


class Summarizer:
    """The base of a user's own summarizers; each of the three methods may be left out."""

    def open(self, partition: Any) -> None:
        """A subwindow of this key begins; the summarizer has just been made."""

    def insert(self, rows: pa.Table) -> None:
        """Rows arrive in the subwindow; they are not kept elsewhere."""

    def close(self) -> None:
        """The subwindow was flushed or evicted; the summarizer is about to be dropped."""


class Summaries(InCells):
    """A summarizer of the user's own for each cell that is in use."""

    def __init__(self, make: Callable[[], Summarizer], schema: pa.Schema) -> None:
        super().__init__([], Inputs(schema, []))
        self._make = make
        self._open: dict[int, Summarizer] = {}
        self._rows: pa.Table | None = None
        self._problem: Exception | None = None

    def resize(self, old: int) -> None:
        """Cells are found by number."""

    def read(self, batch: pa.RecordBatch) -> None:
        self._rows = pa.Table.from_batches([batch])

    def fold(self, state: WindowState, low: int, high: int) -> None:
        assert self._rows is not None
        cells = state.position[low:high]
        order = np.argsort(cells, kind="stable")
        order = order[np.searchsorted(cells[order], 0) :]
        first = np.flatnonzero(np.diff(cells[order], prepend=-1))
        groups = np.split(order, first[1:]) if len(order) else []
        # A user who looks at the order of calls finds that of the rows.
        for rows in sorted(groups, key=lambda group: int(group[0])):
            cell, key = int(cells[rows[0]]), state.partitions.key_of(int(state.rows.numbers[low + rows[0]]))
            try:
                if cell not in self._open:
                    self._open[cell] = self._made(key)
                self._open[cell].insert(self._rows.take(pa.array(rows + low)))
            except Exception as problem:  # a user's method may raise anything
                self._keep(problem, f"the rows of partition {key!r} are not in its summary")

    def _made(self, key: Any) -> Summarizer:
        made = self._make()
        if not isinstance(made, Summarizer):
            raise QueryError(f"{self._make!r} has made {made!r}, and a window needs a Summarizer")
        made.open(key)
        return made

    def _keep(self, problem: Exception, note: str) -> None:
        """Raise a problem only after the other summarizers have got their rows."""
        problem.add_note(f"windrow: a summarizer raised; {note}, everything else is as it should be")
        self._problem = self._problem or problem

    def answers(self, state: WindowState, events: np.ndarray) -> None:
        return None

    def empty(self, cells: np.ndarray) -> None:
        for cell in cells.tolist():
            closed = self._open.pop(cell, None)
            try:
                if closed is not None:
                    closed.close()
            except Exception as problem:  # a user's method may raise anything
                self._keep(problem, "it is dropped nevertheless")

    def complain(self) -> None:
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    def summary(self, state: WindowState, number: int) -> Summarizer | None:
        return self._open.get(int(state.partitions.table[number, of.CELL]))

    def save(self, state: WindowState, writer: Writer | Reader) -> None:
        raise StateError(
            "a window with a summarizer of the user's own has no snapshot: what it keeps is not known"
        )

    def load(self, state: WindowState, reader: Reader) -> None:
        self.save(state, reader)


def folding_of(
    spec: Spec,
    schema: pa.Schema,
    aggregates: Mapping[str, Aggregate] | None,
    summarizer: Callable[[], Summarizer] | None,
) -> Folding | None:
    """What a window makes of its rows, or None: it keeps them."""
    if summarizer is not None:
        if aggregates:
            raise QueryError("a window has a summarizer or aggregates, and not both")
        if not isinstance(spec, Tumbling):
            raise QueryError("a summarizer needs a tumbling window: in a sliding one rows leave one by one")
        if not callable(summarizer):
            raise QueryError(f"a summarizer is a class, or a function that makes one; not {summarizer!r}")
        return Summaries(summarizer, schema)
    if not aggregates:
        return None
    bound = [BoundAggregate.of(name, aggregate, schema) for name, aggregate in aggregates.items()]
    inputs = Inputs(schema, bound)
    fixed = all(one.fixed for one in bound)
    return FoldedCells(bound, inputs) if fixed and isinstance(spec, Tumbling) else Ranges(bound, inputs)

"""The state of a window, and the compiled loops over it: everything but handlers, locks and clocks.

A call goes through four steps. What can be refused is refused in the first one, and nothing has changed then:

    read       keys to partition numbers, delta columns to ticks, inputs of aggregates to codes
    make room  regions for the rows, and the rows themselves in the log
    run        one of the three loops (rows, clock, punctuation), from where it was left
    end        what the rows leave behind: last values, partials, answers; the tape
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.intake.columns import whole
from windrow.errors import DataError, QueryError
from windrow.policies import events, fast, layout, loop, timed
from windrow.policies.deltas import DeltaColumn, keep_last
from windrow.policies.folding import Folding, InCells
from windrow.policies.layout import of
from windrow.policies.log import Log, Regions, storable
from windrow.policies.partitions import Partitions
from windrow.policies.settings import settings_of
from windrow.policies.spec import Count, Delta, Sliding, Spec, Time, TupleCount
from windrow.policies.steps import NOWHERE
from windrow.policies.window_state import NO_ROWS, Rows, WindowState

ROLES = ("eviction", "trigger")
SMALLEST_TAPE = 64
# A guess from the first rows of a batch may be far too high.
MOST_GROWTH = 16
# With slices there are no events of single rows: these are of subwindows.
OF_SUBWINDOWS = ("trigger", "initial_full", "partition_eviction", "partition_selection")
_NO_CELLS = (np.empty(0, np.int64), np.empty(0, np.int64))
_NO_VALUES = np.empty(0, np.int64)


class Machine(WindowState):
    """The state of a window with its loops, and the folding that makes something of its rows, if there is one."""

    def __init__(
        self,
        spec: Spec,
        schema: pa.Schema,
        by: tuple[str, ...],
        folding: Folding | None,
        columns: Sequence[str] | None,
    ) -> None:
        self.spec, self.schema, self.folding = spec, schema, folding
        roles = {"eviction": spec.eviction, "trigger": spec.trigger}
        self.deltas = {r: DeltaColumn(r, p, schema) for r, p in roles.items() if isinstance(p, Delta)}
        self.settings = settings_of(spec)
        self.settings[of.FOLDED] = isinstance(folding, InCells)
        self.counters = np.zeros(layout.COUNTERS, np.int64)
        self.counters[[of.FIRST, of.LAST]] = -1
        mark, reference = (self._type_of(role) for role in roles)
        by_partition = {"reference": reference, "oldest": mark, "need": np.dtype(np.int64)}
        for delta in self.deltas.values():
            by_partition |= delta.arrays()
        by_place: dict[str, np.ndarray] = {}
        self._no_marks = np.zeros(0, mark)
        if folding is None:
            by_place["order"] = np.zeros(0, np.int64)
        if isinstance(spec, Sliding) and isinstance(spec.eviction, (Delta, Time)):
            by_place["marks"] = self._no_marks
        if folding is not None:
            by_partition |= folding.partition_columns()
            by_place |= folding.columns()
        self.partitions = Partitions(schema, by, by_partition)
        self.regions = Regions(by_place)
        kept = list(schema.names if columns is None else columns)
        self.kept = kept if folding is None else []
        self.log = Log(storable(whole(schema.empty_table()), self.kept).schema)
        self.position = np.empty(0, np.int64)
        self.rows = NO_ROWS
        self.chosen = np.empty(0, np.int64)
        self.tape = np.empty((layout.TAPE_WIDTH, SMALLEST_TAPE), np.int64)
        self._folded = 0
        self._began = False
        # What folding has raised in this call: some rows are folded then, and others are not.
        self.broken: BaseException | None = None

    def _type_of(self, role: str) -> np.dtype[Any]:
        return self.deltas[role].dtype if role in self.deltas else np.dtype(np.int64)

    # -- which events are wanted -------------------------------------------------------------------

    def want(self, name: str, setting: int) -> None:
        """Have an event recorded, or have loops stop at it."""
        if self._began and self.settings[of.SLICE] and name not in OF_SUBWINDOWS:
            raise QueryError(f"the window keeps slices and no rows: ask for {name!r} before its first row")
        self.settings[setting] |= events.mask_of([name])

    def begin(self) -> None:
        """A call begins."""
        if not self._began:
            self._began = True
            wanted = int(self.settings[of.RECORD]) | int(self.settings[of.STOP])
            if self.folding is not None and not wanted & ~events.mask_of(OF_SUBWINDOWS):
                self.folding.choose_slices(self.spec, self.settings)
        self.counters[of.TAPE] = 0
        self.forget_rows()

    def forget_rows(self) -> None:
        """No row of the call has been looked at."""
        self.counters[of.ROW] = 0
        self.rows = NO_ROWS
        self._folded = 0
        self.broken = None

    # -- rows --------------------------------------------------------------------------------------

    def read(self, batch: pa.RecordBatch) -> Rows:
        """What loops need of a batch; an error if it cannot be taken."""
        self._require_schema(batch)
        partitions = self.partitions
        partitions.require_keys(batch)
        values = {role: delta.values(batch) for role, delta in self.deltas.items()}
        partitions.forget(self.counters)
        numbers = partitions.numbers(batch)
        rows = Rows(numbers, values)
        problem = self._goes_back(rows)
        if problem is not None:
            if self.spec.partition_eviction is None:
                raise problem
            rows.doubtful = True
        if self.folding is not None:
            self.folding.read(batch)
        return rows

    def check(self, batch: pa.RecordBatch) -> None:
        """An error if rows cannot be taken; none is."""
        self._require_schema(batch)
        self.partitions.require_keys(batch)
        if self.folding is not None:
            self.folding.require(batch)
        if self.deltas:
            self.read(batch)

    def require_forward(self, rows: Rows, evictions: np.ndarray) -> None:
        """An error if values go back, though partitions are evicted on the way: these columns of a tape."""
        at, victim = evictions[layout.OF_ROW], evictions[layout.OF_PARTITION]
        if isinstance(self.spec.partition_eviction, TupleCount):
            # A row that finds no room begins its own partition anew, after it was compared.
            others = rows.numbers[at] != victim
            at, victim = at[others], victim[others]
        problem = self._goes_back(rows, (at, victim))
        if problem is not None:
            raise problem

    def _goes_back(self, rows: Rows, *evicted: tuple[np.ndarray, np.ndarray]) -> DataError | None:
        state = self.partitions.table, self.partitions.arrays
        found = (d.problem(rows.numbers, rows.values[r], *state, *evicted) for r, d in self.deltas.items())
        return next((problem for problem in found if problem is not None), None)

    def may_fail(self, rows: Rows, taken: int) -> bool:
        """Whether something may fail after rows were taken."""
        if self.folding is None:
            return False
        size = self.spec.eviction.size if isinstance(self.spec.eviction, Count) else taken + rows.count
        return self.folding.may_fail(size)

    def _require_schema(self, batch: pa.RecordBatch) -> None:
        twice = [name for name in self.schema.names if len(batch.schema.get_all_field_indices(name)) > 1]
        if twice:
            raise QueryError(f"the rows have several columns called {twice[0]!r}")
        for expected in self.schema:
            if expected.name not in batch.schema.names:
                there = ", ".join(batch.schema.names)
                raise QueryError(f"the rows lack the column {expected.name!r}; they have {there}")
            found = batch.schema.field(expected.name).type
            if found != expected.type:
                raise QueryError(
                    f"column {expected.name!r} of the window is {expected.type}; these rows have {found}"
                )

    def make_room(self, rows: Rows, batch: pa.RecordBatch) -> None:
        """Have room for rows, and keep what windows may hold of them."""
        self.rows, partitions = rows, self.partitions
        if self.folding is not None:
            self.folding.settle(self)
        if len(self.position) < rows.count:
            self.position = np.empty(rows.count, np.int64)
        self.position[: rows.count] = NOWHERE
        if isinstance(self.folding, InCells):
            return
        if self.kept:
            held = int(self.counters[of.TOTAL])
            self.log.drop(partitions.table, partitions.known, self.order, held)
            self.log.append(storable(batch, self.kept))
        self.regions.reserve(partitions.table, partitions.known, rows.numbers, partitions.arrays["need"])

    # -- the loops ---------------------------------------------------------------------------------

    def run(self, rows: Rows, now: int) -> int:
        """Take rows in, from where the loop was left; why it returned."""
        partitions, arrays = self.partitions, self.partitions.arrays
        values = [rows.values.get(role, _NO_VALUES) for role in ROLES]
        limits = [self.deltas[role].threshold if role in self.deltas else np.int64(0) for role in ROLES]
        heaps = self.position, partitions.heap, partitions.dues
        shared = self.tape, self.settings, self.counters
        if not fast.is_plain(self.settings) or self.counters[of.PHASE]:
            held = partitions.table, self.order, self.marks, arrays["reference"], arrays["oldest"]
            state = *held, *heaps, *self._cells(), self.chosen
            return int(loop.run(rows.numbers, *values, *limits, now, self.log.base, *state, *shared))
        if self.settings[of.SLIDING]:
            places = self.log.base, partitions.table, self.marks, self.order
            return int(fast.slide(rows.numbers, now, *places, *heaps, *shared))
        cells = partitions.table, self.marks, arrays["oldest"], *heaps, *self._cells()
        return int(fast.tumble(rows.numbers, values[0], limits[0], now, *cells, *shared))

    def on_clock(self, now: int) -> int:
        """Do what is due, from where the loop was left; why it returned."""
        partitions = self.partitions
        state = partitions.table, self.order, self.marks, partitions.heap, partitions.dues
        return int(timed.advance(now, *state, self._cells()[1], self.tape, self.settings, self.counters))

    def flush_all(self, numbers: np.ndarray, now: int) -> int:
        """Flush these subwindows, from where the loop was left; why it returned."""
        partitions = self.partitions
        state = partitions.table, partitions.heap, partitions.dues, self._cells()[1]
        return int(timed.flush_all(numbers, now, *state, self.tape, self.settings, self.counters))

    def _cells(self) -> tuple[np.ndarray, np.ndarray]:
        return (self.folding.free, self.folding.closed) if isinstance(self.folding, InCells) else _NO_CELLS

    def grow(self, status: int) -> None:
        """A loop needs more of something: twice as much, or what its rows will need if they go on like that."""
        row = int(self.counters[of.ROW])
        times = min(1.1 * self.rows.count / max(row, 1), MOST_GROWTH)
        if status == layout.NEEDS_TAPE:
            written = int(self.counters[of.TAPE])
            size = max(2 * self.tape.shape[1], int(times * written))
            tape = np.empty((layout.TAPE_WIDTH, size), np.int64)
            tape[:, :written] = self.tape[:, :written]
            self.tape = tape
        else:
            assert isinstance(self.folding, InCells)
            self.folding.grow(self.counters, int(times * self.folding.capacity))

    def last_event(self) -> np.ndarray:
        """The event that a loop has stopped at; it stays on the tape only if it is to be recorded."""
        columns = self.tape[:, self.counters[of.TAPE] - 1].copy()
        if not int(self.settings[of.RECORD]) >> int(columns[layout.KIND]) & 1:
            self.counters[of.TAPE] -= 1
        return columns

    # -- afterwards --------------------------------------------------------------------------------

    def fold(self, upto: int) -> None:
        """Let the folding have the rows before `upto` that it has not had."""
        if self.broken is not None:
            raise self.broken
        if self.folding is not None and upto > self._folded:
            low, self._folded = self._folded, upto
            try:
                self.folding.fold(self, low, upto)
            except BaseException as problem:
                self.broken = problem
                raise

    def fold_so_far(self) -> None:
        """Fold what a loop that has stopped has taken."""
        row = int(self.counters[of.ROW])
        if row < self.rows.count:
            self.fold(row + 1 if self.position[row] != NOWHERE else row)

    def end(self, rows: Rows) -> tuple[np.ndarray, pa.Table | None]:
        """These rows were taken: remember what the next ones need; the events as columns, and their answers."""
        for role, values in rows.values.items():
            keep_last(rows.numbers, values, self.partitions.arrays[f"last {role}"])
        written = int(self.counters[of.TAPE])
        columns = self.tape[:, :written]
        self.tape = np.empty((layout.TAPE_WIDTH, max(SMALLEST_TAPE, 5 * written // 4)), np.int64)
        if self.folding is None:
            return columns, None
        try:
            self.fold(rows.count)
            return columns, self.folding.answers(self, columns)
        finally:
            if isinstance(self.folding, InCells) and self.broken is None:
                self.folding.release(self.counters)

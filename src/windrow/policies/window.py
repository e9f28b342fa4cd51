"""Policy windows: containers of rows that evict, trigger and flush by themselves, and tell who asks.

    window = SlidingWindow("sliding, count(100), count(10), partitioned", schema, partition_by="state")
    window.on_trigger(lambda event: print(event.partition, event.content.num_rows))
    window.insert(batch)

A batch goes through one compiled loop (`loop`); it stops only at events that a handler waits for, and hands every
event that `record` named back as arrays. Calls from several threads wait for each other. In a window with
a policy of time, what is due happens when the clock says so, in the clock's thread or in the next call.

What an error leaves behind:

    the batch is wrong                      it is refused as a whole
    a function of an aggregate raises,      the window is as before the batch; what the clock made happen by then
    a sum overflows                         goes to `on_tape`
    a handler, a selection raises           its row is finished without handlers, the rest of the batch is not taken, and
                                            a note at the exception says how many rows were
    a handler inserts into its own window   it is refused
    a summarizer raises                     all rows are taken; its own rows of the batch are not in it
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate
from windrow.engine.intake.columns import whole
from windrow.errors import QueryError, StateError
from windrow.policies import events, state
from windrow.policies.clock import Call, Clock, RealClock, weakly
from windrow.policies.handlers import Handled, Handler
from windrow.policies.layout import NEVER, of
from windrow.policies.machine import Machine
from windrow.policies.options import column_names, require_options
from windrow.policies.spec import Punct, Sliding, Spec, Tumbling
from windrow.policies.summarizers import Summarizer, folding_of
from windrow.policies.tape import Tape
from windrow.policies.text import parse
from windrow.policies.undo import Undo
from windrow.policies.window_state import NO_ROWS, Rows

_EVERY_WINDOW = frozenset(events.NAMES) - events.TUMBLING - events.SLIDING


class Window(Handled):
    """What tumbling and sliding windows have in common.

    Parameters
    ----------
    spec
        Policies, as a value or as text.
    schema
        The schema of the rows to come.
    partition_by
        The columns whose values make a partition, where the spec is partitioned; None by default.
    clock
        For policies of time; None (default) is the machine's own clock.
    partial_windows
        Whether triggers before a subwindow was full for the first time are delivered; True by default.
    columns
        The columns to keep of each row; None (default) keeps all.
    aggregates
        windrow's aggregates by name, computed by the window: rows are then not kept. None by default.
    summarizer
        Makes a summarizer for each subwindow of a tumbling window: rows are then not kept. None by default.

    Raises
    ------
    QueryError
        If the spec is none, is of the other kind, or does not go with the other arguments.
    """

    # The clock's next call, which `__del__` takes back, even of a window that could not be made.
    _call: Call | None = None

    def __init__(
        self,
        spec: Spec | str,
        schema: pa.Schema,
        *,
        partition_by: str | Sequence[str] | None = None,
        clock: Clock | None = None,
        partial_windows: bool = True,
        columns: Sequence[str] | None = None,
        aggregates: Mapping[str, Aggregate] | None = None,
        summarizer: Callable[[], Summarizer] | None = None,
    ) -> None:
        self.spec = parse(spec) if isinstance(spec, str) else spec
        if not isinstance(self.spec, self.kind):
            raise QueryError(f"{self.spec} is no {self.kind.__name__.lower()} window")
        by, kept = column_names(partition_by, "partition_by"), column_names(columns, "columns")
        require_options(self.spec, schema, by, clock, partial_windows, kept, aggregates)
        folding = folding_of(self.spec, schema, aggregates, summarizer)
        self._machine = Machine(self.spec, schema, by, folding, None if columns is None else kept)
        self._machine.settings[of.PARTIAL] = partial_windows
        self.schema = schema
        self.aggregates = dict(aggregates or {})
        self.clock = RealClock() if clock is None else clock
        self.taken = 0
        self.can_take_back = False
        self._undo: Undo | None = None
        self._handlers = {}
        self._consumers = []
        self._lock = threading.RLock()
        self._busy = None
        # What the clock's call has raised, for the next call to raise; and whether a call was interrupted half-way.
        self._failure: BaseException | None = None
        self._lost = False
        if self.aggregates:
            self.record("before_flush" if isinstance(self.spec, Tumbling) else "trigger")

    # -- rows, punctuations and the clock ----------------------------------------------------------

    def insert(self, rows: pa.RecordBatch | pa.Table) -> Tape:
        """Insert rows.

        Parameters
        ----------
        rows
            A record batch or a table with the window's schema.

        Returns
        -------
        Tape
            The events that `record` named.

        Raises
        ------
        DataError
            If a row is refused: no row was inserted then.
        """
        if not isinstance(rows, (pa.RecordBatch, pa.Table)):
            raise QueryError(
                f"a window takes record batches and tables of pyarrow, not {type(rows).__name__}"
            )
        batch = whole(rows) if isinstance(rows, pa.Table) else rows
        machine = self._machine
        with self._entered("insert"):
            read = machine.read(batch)
            machine.begin()
            now = self.clock.now()
            machine.make_room(read, batch)
            self._pass_time(now, f"none of {read.count} rows was taken")
            if read.doubtful:
                machine.require_forward(read, self._rehearsed(read, now))
            may_fail = self.can_take_back or machine.may_fail(read, self.taken)
            self._undo = Undo(machine, read.numbers) if may_fail else None
            try:
                self._drive(lambda: machine.run(read, now), self._told_and_selected)
            except BaseException as problem:
                self._finish_row(read, now, problem)
                raise
            tape = self._end_or_back(read)
            if not self.can_take_back:
                self._undo = None
            return tape

    def _rehearsed(self, rows: Rows, now: int) -> np.ndarray:
        """The evictions of partitions that these rows lead to, as columns of a tape; all is as before then."""
        machine, settings = self._machine, self._machine.settings
        undo, wanted, begin = Undo(machine, rows.numbers), settings.copy(), int(machine.counters[of.TAPE])
        settings[of.RECORD], settings[of.STOP] = events.mask_of(["partition_eviction"]), 0
        try:
            self._drive(lambda: machine.run(rows, now), self._selected)
            return machine.tape[:, begin : machine.counters[of.TAPE]].copy()
        finally:
            settings[:] = wanted
            undo.back()
            machine.rows = rows

    def _finish_row(self, rows: Rows, now: int, problem: BaseException) -> None:
        """A handler has raised: finish its row, and take those before it."""
        machine = self._machine
        if machine.broken is not None:
            self._go_back(rows, problem)
            return
        taken = min(int(machine.counters[of.ROW]) + 1, rows.count)
        self._finish(lambda: machine.run(rows.first(taken), now))
        self._end_or_back(rows.first(taken))
        problem.add_note(f"windrow: {taken} of {rows.count} rows were taken; the last of them is finished")

    def _end_or_back(self, rows: Rows) -> Tape:
        try:
            return self._end(rows)
        except BaseException as problem:
            self._go_back(rows, problem)
            raise

    def _go_back(self, rows: Rows, problem: BaseException) -> None:
        """Folding or answering has failed: be what the window was before the rows."""
        undo, self._undo = self._undo, None
        if undo is None:
            self._lost = self._machine.broken is not None
            return
        undo.back()
        problem.add_note(f"windrow: none of {rows.count} rows was taken")
        if self._machine.counters[of.TAPE] and self._consumers:
            self._consume(self._end(NO_ROWS))

    def take_back(self) -> None:
        """Undo the last insertion, for operators with `can_take_back` that failed at its tape.

        What the clock has done since stays.
        """
        undo, self._undo = self._undo, None
        if undo is not None:
            undo.back()
            self.taken -= undo.rows

    def punctuate(self) -> Tape:
        """A punctuation comes: all subwindows are flushed, oldest first.

        Where a handler raises, all are flushed nevertheless, the rest of them without handlers.
        """
        if not isinstance(self.spec.eviction, Punct):
            raise QueryError(
                f"the window {str(self.spec)!r} has no use for punctuations: its policy is not punct()"
            )
        machine = self._machine
        with self._entered("punctuate"):
            machine.begin()
            numbers, now = machine.partitions.live(), self.clock.now()
            try:
                self._drive(lambda: machine.flush_all(numbers, now), self._told_and_selected)
            except BaseException:
                self._finish(lambda: machine.flush_all(numbers, now))
                self._end(NO_ROWS)
                raise
            return self._end(NO_ROWS)

    def advance(self) -> Tape:
        """Do what is due on the clock; the events that `record` named.

        Where a handler raises, its event is finished, and what else is due is left for the next call.
        """
        with self._entered("advance"):
            self._machine.begin()
            self._pass_time(self.clock.now(), "what else is due is left for the next call")
            return self._end(NO_ROWS)

    def _pass_time(self, now: int, otherwise: str) -> None:
        machine = self._machine
        if not machine.settings[of.CLOCKED]:
            return
        try:
            self._drive(lambda: machine.on_clock(now), self._told_and_selected)
        except BaseException as problem:
            self._finish(lambda: machine.on_clock(-NEVER))
            self._end(NO_ROWS)
            problem.add_note(f"windrow: raised at an event of the clock, which is finished; {otherwise}")
            raise

    def _end(self, rows: Rows) -> Tape:
        columns, answers = self._machine.end(rows)
        self.taken += rows.count
        if self._machine.folding is not None:
            self._machine.folding.complain()
        return Tape(self, columns, answers)

    def check(self, batch: pa.RecordBatch) -> None:
        """An error if `insert` would refuse these rows; none is taken."""
        with self.locked():
            self._machine.check(batch)

    # -- one call at a time ------------------------------------------------------------------------

    def locked(self) -> AbstractContextManager[Any]:
        """Keep the clock and other threads out of the window, to look at it outside of handlers."""
        return self._lock

    @contextmanager
    def _entered(self, what: str) -> Iterator[None]:
        with self.locked():
            # The lock lets a thread in twice, and others wait: this one has come here from a handler.
            if self._busy is not None:
                raise QueryError(
                    f"{what} was called by a handler of this window while it is in {self._busy}: "
                    "a handler may look at its window, but not change it"
                )
            if self._lost:
                raise StateError("a call was interrupted half-way: go on from a snapshot, in a new window")
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            self._busy = what
            try:
                yield
            finally:
                self._busy = None
                self._schedule()

    def _schedule(self) -> None:
        """Be called by the clock when something is due."""
        machine = self._machine
        if not machine.settings[of.CLOCKED]:
            return
        deadline = NEVER
        if machine.counters[of.DUES]:
            deadline = int(machine.partitions.table[machine.partitions.dues[0], of.DUE])
        before = self._call
        if before is not None and before.deadline == deadline:
            return
        never = deadline == NEVER
        self._call = None if never else self.clock.call_at(deadline, weakly(self._on_time))
        if before is not None:
            before.cancel()

    def _on_time(self) -> None:
        """The clock calls. What a handler raises is raised by the next call of the window."""
        with self.locked():
            self._call = None
            # A handler has moved the clock: its window looks at it when it is done.
            if self._busy is not None:
                return
            try:
                self._consume(self.advance())
            except Exception as problem:  # a handler may raise anything
                self._failure = problem

    def _consume(self, tape: Tape) -> None:
        for consumer in self._consumers:
            consumer(tape)

    def close(self) -> None:
        """Detach the window from its clock: nothing happens in it any more by itself."""
        with self.locked():
            if self._call is not None:
                self._call.cancel()
                self._call = None
            self._machine.settings[of.CLOCKED] = 0

    def __del__(self) -> None:
        if self._call is not None:
            self._call.cancel()

    # -- snapshots ---------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """All that the window holds, as bytes; handlers and what is recorded are not part of it.

        Returns
        -------
        bytes
            For `restore` of an equal window.

        Raises
        ------
        QueryError
            Within a handler of this window.
        """
        with self.locked():
            if self._busy is not None:
                raise QueryError(
                    f"a handler cannot take a snapshot of its window, which is in the middle of {self._busy}"
                )
            return state.save(self, self._machine)

    def restore(self, snapshot: bytes) -> None:
        """Hold what another window held when it took a snapshot.

        Parameters
        ----------
        snapshot
            Of a window with the same spec, schema and options.

        Raises
        ------
        StateError
            If this window has begun, or the snapshot is damaged or of another window.
        """
        with self._entered("restore"):
            state.load(self, self._machine, snapshot)


class TumblingWindow(Window):
    """A window that is processed and emptied as a whole when it is full.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = pa.table({"x": [1, 2, 3, 4, 5]})
    >>> window = TumblingWindow("tumbling, count(2)", rows.schema)
    >>> window.on_before_flush(lambda event: print(event.content["x"].to_pylist()))
    >>> tape = window.insert(rows)
    [1, 2]
    [3, 4]
    >>> window.content()["x"].to_pylist()
    [5]
    """

    kind = Tumbling
    events = _EVERY_WINDOW | events.TUMBLING

    def on_before_flush(self, handler: Handler) -> None:
        """Have `handler(event)` called when a subwindow is full, before it is emptied."""
        self.on("before_flush", handler)

    def on_after_flush(self, handler: Handler) -> None:
        """Have `handler(event)` called when a subwindow has been emptied."""
        self.on("after_flush", handler)


class SlidingWindow(Window):
    """A window of the most recent rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = pa.table({"x": [1, 2, 3, 4]})
    >>> window = SlidingWindow("sliding, count(2), count(1)", rows.schema, partial_windows=False)
    >>> window.on_trigger(lambda event: print(event.content["x"].to_pylist()))
    >>> tape = window.insert(rows)
    [1, 2]
    [2, 3]
    [3, 4]
    """

    kind = Sliding
    events = _EVERY_WINDOW | events.SLIDING

    def on_before_evict(self, handler: Handler) -> None:
        """Have `handler(event)` called before a row leaves the window."""
        self.on("before_evict", handler)

    def on_after_evict(self, handler: Handler) -> None:
        """Have `handler(event)` called when a row has left the window."""
        self.on("after_evict", handler)

    def on_trigger(self, handler: Handler) -> None:
        """Have `handler(event)` called when a subwindow is to be processed."""
        self.on("trigger", handler)

    def on_initial_full(self, handler: Handler) -> None:
        """Have `handler(event)` called when a subwindow is full for the first time."""
        self.on("initial_full", handler)

"""Policy windows: containers of rows that evict, trigger and flush by themselves, and tell who asks.

    window = SlidingWindow("sliding, count(100), count(10), partitioned", schema, partition_by="state")
    window.on_trigger(lambda event: print(event.partition, event.content.num_rows))
    window.insert(batch)

A batch goes through one compiled loop (`loop`); it stops only at events that a handler waits for, and hands every
event that was asked for with `record` back as arrays. A window with a policy of time has a clock and a lock: what
is due happens when the clock says so, in the clock's thread or in whoever calls next.

What an error leaves behind: a batch that cannot be taken is refused as a whole. Where a handler raises, its row is
finished without handlers, the rest of the batch is not taken, and the exception goes to the caller with a note that
says how many rows were. A handler that inserts into its own window is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate
from windrow.engine.columns import whole
from windrow.errors import QueryError, UserFunctionError
from windrow.policies import events, layout, state
from windrow.policies.clock import Call, Clock, RealClock
from windrow.policies.contents import Contents
from windrow.policies.machine import NO_ROWS, Machine, Rows
from windrow.policies.spec import Punct, Sliding, Spec, Tumbling, uses_clock
from windrow.policies.summarizers import Summarizer, folding_of
from windrow.policies.tape import Event, Tape
from windrow.policies.text import parse

Handler = Callable[[Event], Any]
_EVERY_WINDOW = frozenset(events.NAMES) - events.TUMBLING - events.SLIDING


class Window(Contents):
    """What tumbling and sliding windows have in common.

    spec             policies, as a value or as text
    schema           of the rows to come
    partition_by     the columns whose values make a partition, where the spec is partitioned
    clock            for policies of time; the machine's own by default
    partial_windows  whether triggers before a subwindow was full for the first time are delivered
    columns          the columns to keep of each row; all by default
    aggregates       windrow's aggregates by name, computed by the window: rows are then not kept
    summarizer       makes a summarizer for each subwindow of a tumbling window: rows are then not kept
    """

    kind: ClassVar[type[Tumbling] | type[Sliding]]
    events: ClassVar[frozenset[str]]

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
        by = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by or ())
        told = str(self.spec)
        if self.spec.partitioned and not by:
            raise QueryError(f"the window {told!r} is partitioned: say by which columns (partition_by)")
        if by and not self.spec.partitioned:
            raise QueryError(f"the window {told!r} is not partitioned, and cannot be by {', '.join(by)}")
        folding = folding_of(self.spec, schema, aggregates, summarizer)
        self._machine = Machine(self.spec, schema, by, folding, columns)
        self._machine.settings[layout.PARTIAL] = partial_windows
        self.schema = schema
        self.aggregates = dict(aggregates or {})
        self.clock = RealClock() if clock is None else clock
        self.taken = 0
        self._handlers: dict[int, list[Handler]] = {}
        self._consumers: list[Callable[[Tape], None]] = []
        self._lock = threading.RLock() if uses_clock(self.spec) else None
        self._busy: str | None = None
        self._failure: BaseException | None = None
        self._call: Call | None = None
        if self.aggregates:
            self.record("before_flush" if isinstance(self.spec, Tumbling) else "trigger")

    # -- who wants to know -------------------------------------------------------------------------

    def on(self, name: str, handler: Handler) -> None:
        """Have `handler(event)` called at each event of this name."""
        self._require_event(name)
        if not callable(handler):
            raise QueryError(f"a handler of {name!r} is a function of an event, not {handler!r}")
        self._machine.want(name, layout.STOP)
        self._handlers.setdefault(events.code_of(name), []).append(handler)

    def on_before_insert(self, handler: Handler) -> None:
        """Have `handler(event)` called before a row comes into the window."""
        self.on("before_insert", handler)

    def on_after_insert(self, handler: Handler) -> None:
        """Have `handler(event)` called when a row has come into the window."""
        self.on("after_insert", handler)

    def on_partition_eviction(self, handler: Handler) -> None:
        """Have `handler(event)` called before a subwindow is evicted."""
        self.on("partition_eviction", handler)

    def on_partition_selection(self, handler: Handler) -> None:
        """Have `handler(event)` called when the user's function is about to select partitions to evict."""
        self.on("partition_selection", handler)

    def record(self, *names: str) -> None:
        """Have the events of these names in the tapes that calls give back."""
        for name in names:
            self._require_event(name)
        for name in names:
            self._machine.want(name, layout.RECORD)

    def on_tape(self, consumer: Callable[[Tape], None]) -> None:
        """Have `consumer(tape)` called with what the clock makes happen between calls."""
        self._consumers.append(consumer)

    def _require_event(self, name: str) -> None:
        events.code_of(name)
        if name not in self.events:
            raise QueryError(f"{name!r} is no event of a {self.kind.__name__.lower()} window")

    # -- rows, punctuations and the clock ----------------------------------------------------------

    def insert(self, rows: pa.RecordBatch | pa.Table) -> Tape:
        """Take rows in; the events that were asked for with `record`."""
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
            try:
                self._drive(lambda: machine.run(read, now))
            except BaseException as problem:
                taken = min(int(machine.counters[layout.ROW]) + 1, read.count)
                self._finish(lambda: machine.run(read.first(taken), now))
                self._end(read.first(taken))
                problem.add_note(
                    f"windrow: {taken} of {read.count} rows were taken; the last of them is finished"
                )
                raise
            return self._end(read)

    def check(self, batch: pa.RecordBatch) -> None:
        """An error if `insert` would refuse these rows; none is taken."""
        with self.locked():
            self._machine.read(batch)

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
                self._drive(lambda: machine.flush_all(numbers, now))
            except BaseException:
                self._finish(lambda: machine.flush_all(numbers, now))
                self._end(NO_ROWS)
                raise
            return self._end(NO_ROWS)

    def advance(self) -> Tape:
        """Do what is due on the clock; the events that were asked for with `record`.

        Where a handler raises, its event is finished, and what else is due is left for the next call.
        """
        with self._entered("advance"):
            self._machine.begin()
            self._pass_time(self.clock.now(), "what else is due is left for the next call")
            return self._end(NO_ROWS)

    def _pass_time(self, now: int, otherwise: str) -> None:
        machine = self._machine
        if not machine.settings[layout.CLOCKED]:
            return
        try:
            self._drive(lambda: machine.on_clock(now))
        except BaseException as problem:
            self._finish(lambda: machine.on_clock(-layout.NEVER))
            self._end(NO_ROWS)
            problem.add_note(f"windrow: raised at an event of the clock, which is finished; {otherwise}")
            raise

    def _end(self, rows: Rows) -> Tape:
        self.taken += rows.count
        return self._machine.end(self, rows)

    # -- the loops, and who is called by them ------------------------------------------------------

    def _drive(self, step: Callable[[], int], *, alone: bool = False) -> None:
        """Run a loop to its end; `alone`: nobody is called."""
        while (status := step()) != layout.DONE:
            if status == layout.STOPPED:
                columns = self._machine.last_event()
                event = Event(self, *(int(v) for v in columns))
                for handler in self._handlers[event.code]:
                    handler(event)
            elif status == layout.NEEDS_CHOICE:
                self._choose(alone)
            else:
                self._machine.grow(status)

    def _finish(self, step: Callable[[], int]) -> None:
        """Run a loop to its end without handlers."""
        settings = self._machine.settings
        stop, settings[layout.STOP] = int(settings[layout.STOP]), 0
        try:
            self._drive(step, alone=True)
        finally:
            settings[layout.STOP] = stop

    def _choose(self, alone: bool) -> None:
        """Let the user's function select partitions to evict; alone, take the least recently updated one."""
        machine, columns = self._machine, self._machine.last_event()
        event = Event(self, *(int(v) for v in columns))
        candidates = machine.partitions.live()
        candidates = candidates[candidates != event.number]
        if alone:
            chosen = candidates[[np.argmin(machine.partitions.table[candidates, layout.UPDATED])]]
        else:
            for handler in self._handlers.get(events.PARTITION_SELECTION, []):
                handler(event)
            chosen = self._selected(candidates, event.row_number)
        machine.chosen = chosen
        machine.counters[[layout.CHOSEN, layout.CHOSEN_AT]] = len(chosen), 0

    def _selected(self, candidates: np.ndarray, row: int) -> np.ndarray:
        select = self.spec.selection
        assert callable(select)
        answer = np.atleast_1d(np.asarray(select(self.described(candidates))))
        if answer.dtype == np.bool_ and len(answer) == len(candidates):
            answer = np.flatnonzero(answer)
        fine = answer.ndim == 1 and len(answer) and answer.dtype.kind in "iu"
        if not fine or answer.min() < 0 or answer.max() >= len(candidates):
            name = getattr(select, "__name__", "selection")
            raise UserFunctionError(
                f"the selection {name!r} must return rows of the table that it gets, one at least, "
                f"and has returned {answer.tolist()!r} for {len(candidates)} partitions",
                row,
            )
        return candidates[np.unique(answer)]

    # -- locks and clocks --------------------------------------------------------------------------

    @contextmanager
    def _entered(self, what: str) -> Iterator[None]:
        with self.locked():
            if self._busy is not None:
                raise QueryError(
                    f"{what} was called by a handler of this window while it is in {self._busy}: "
                    "a handler may look at its window, but not change it"
                )
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
        if not machine.settings[layout.CLOCKED]:
            return
        deadline = layout.NEVER
        if machine.counters[layout.DUES]:
            deadline = int(machine.partitions.table[machine.partitions.dues[0], layout.DUE])
        if self._call is not None:
            if self._call.deadline == deadline:
                return
            self._call.cancel()
            self._call = None
        if deadline != layout.NEVER:
            self._call = self.clock.call_at(deadline, self._on_time)

    def _on_time(self) -> None:
        """The clock calls. What a handler raises goes to whoever calls the window next."""
        with self.locked():
            self._call = None
            if (
                self._busy is not None
            ):  # a handler has moved the clock: its window looks at it when it is done
                return
            try:
                tape = self.advance()
                for consumer in self._consumers:
                    consumer(tape)
            except Exception as problem:  # a handler may raise anything
                self._failure = problem

    def locked(self) -> AbstractContextManager[Any]:
        """Keep the clock out of the window, to look at it outside of handlers; costs nothing without a time policy."""
        return nullcontext() if self._lock is None else self._lock

    def close(self) -> None:
        """Take the window off its clock: nothing happens in it any more by itself."""
        with self.locked():
            if self._call is not None:
                self._call.cancel()
                self._call = None
            self._machine.settings[layout.CLOCKED] = 0

    # -- snapshots ---------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """All that the window holds, as bytes; handlers and what is recorded are not part of it."""
        with self.locked():
            if self._busy is not None:
                raise QueryError(
                    f"a handler cannot take a snapshot of its window, which is in the middle of {self._busy}"
                )
            return state.save(self, self._machine)

    def restore(self, snapshot: bytes) -> None:
        """Hold what another window with the same spec, schema and options held; this one must not have begun."""
        with self._entered("restore"):
            state.load(self, self._machine, snapshot)


class TumblingWindow(Window):
    """A window that is processed and emptied as a whole when it is full.

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

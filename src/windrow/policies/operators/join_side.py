"""One side of a join: its window, its rows by key, and which of them have had a match."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from windrow.engine.aligned.cutting import Runs
from windrow.policies.clock import Clock, weakly
from windrow.policies.events import BEFORE_EVICT
from windrow.policies.operators.chains import Chains, Lives
from windrow.policies.operators.rows import held, taken
from windrow.policies.operators.state import array_part
from windrow.policies.spec import Count, Spec, uses_clock
from windrow.policies.tape import Tape
from windrow.policies.window import SlidingWindow

SIDES = ("left", "right")
OUTER: dict[str, tuple[int, ...]] = {"inner": (), "left": (0,), "right": (1,), "full": (0, 1)}


class JoinSide:
    """One side of a join: its window, and its rows by key.

    In an `outer` join `lone(place, rows)` gets rows that leave by themselves and never had a match.
    """

    def __init__(self, place: int, spec: Spec, outer: bool, lone: Callable[[int, pa.Table], None]) -> None:
        self.place, self.name = place, SIDES[place]
        self.schema: pa.Schema | None = None
        self.window: SlidingWindow | None = None
        self.chains = Chains()
        self.keeps = spec.eviction != Count(0)
        self._spec, self._outer, self._lone = spec, outer, lone

    def __len__(self) -> int:
        return 0 if self.window is None else len(self.window)

    def begin(self, schema: pa.Schema, by: tuple[str, ...], clock: Clock | None, state: bytes | None) -> None:
        """Make the window, or one that goes on from a snapshot."""
        window = SlidingWindow(self._spec, schema, partition_by=by or None, clock=clock)
        window.record("before_evict", "partition_eviction")
        window.on_tape(weakly(self._left))
        if state is not None:
            window.restore(state)
        window.log.on_moved(self.chains.moved)
        self.window, self.schema = window, schema

    def pass_time(self) -> None:
        """Let rows leave that have to by now."""
        if self.window is not None and uses_clock(self._spec):
            self._left(self.window.advance())

    def insert(self, batch: pa.RecordBatch, *, can_take_back: bool = False) -> Tape:
        """Let a batch into the window; its events."""
        assert self.window is not None
        self.window.can_take_back = can_take_back
        try:
            return self.window.insert(batch)
        finally:
            self.window.can_take_back = False

    def link(self, keys: np.ndarray, known: int) -> None:
        """Add the rows that the window has just inserted to those of their keys; `known` is the number of keys."""
        assert self.window is not None
        if self.keeps:
            self.chains.know(known)
            self.chains.append(keys, self.window.log.base)

    def outcome(
        self, tape: Tape, batch: pa.RecordBatch, mine: np.ndarray
    ) -> tuple[pa.Table, np.ndarray, bool]:
        """A batch was let in, of which the rows `mine` have matches.

        Returns rows that leave without one, at which row of the batch each does, and whether that is after
        its matches.
        """
        assert self.window is not None
        if not self.keeps:
            alone = np.ones(batch.num_rows, np.bool_)
            alone[mine] = False
            rows = np.flatnonzero(alone) if self._outer else np.empty(0, np.int64)
            return pa.Table.from_batches([batch]).take(pa.array(rows)), rows, True
        self.chains.matched[self.window.log.base + mine] = True
        alone, when = self._leave(tape)
        return alone, when, False

    def lives(self, tape: Tape, places: np.ndarray) -> Lives | None:
        """Where chains begin, and at which place each row of the log came and left: a batch was let in.

        Its rows have these places. One that was there before came at -1; one that is still there leaves at no
        place that there is.
        """
        assert self.window is not None
        if not self.keeps:
            return None
        came = np.full(len(self.chains.gone), -1)
        came[self.window.log.base : self.window.log.base + len(places)] = places
        left_at = np.where(self.chains.gone, -1, np.iinfo(np.int64).max)
        rows, event = self._leaving(tape)
        # What leaves by the clock does so before any row of the batch comes.
        cause = tape.row[event]
        left_at[rows] = np.where(cause < 0, -1, places[cause])
        return self.chains.heads(), came, left_at

    def take_back(self, ends: np.ndarray | None) -> None:
        """Be as before rows were let in and, if there are `ends` of chains from before that, linked."""
        assert self.window is not None
        self.window.take_back()
        if ends is not None:
            self.chains.cut(ends, self.window.log.base)

    def _left(self, tape: Tape) -> None:
        """Rows have left by themselves."""
        alone, _ = self._leave(tape)
        if alone.num_rows:
            self._lone(self.place, alone)

    def _leave(self, tape: Tape) -> tuple[pa.Table, np.ndarray]:
        """Note which rows leave; those that never had a match in an outer join, and the rows that caused it."""
        assert self.window is not None
        rows, event = self._leaving(tape)
        self.chains.gone[rows] = True
        if not self._outer:
            rows = rows[:0]
        alone = ~self.chains.matched[rows]
        return taken(self.window.log, rows[alone]), tape.row[event[: len(rows)]][alone]

    def _leaving(self, tape: Tape) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the log that leave, and the event of each."""
        assert self.window is not None
        single = tape.kind == BEFORE_EVICT
        # A row that is evicted is the oldest one; a partition that is evicted leaves as a whole.
        high = np.where(single, tape.low + 1, tape.high)
        positions, event = Runs(tape.low, high, np.arange(len(tape))).located()
        return self.window.order[positions], event

    def held_rows(self) -> pa.Table:
        """The rows that the window holds, in the order in which they came."""
        assert self.window is not None
        return taken(self.window.log, held(self.window))

    def save(self) -> dict[str, bytes]:
        """The window, and which of its rows have had a match."""
        if self.window is None:
            return {}
        assert self.schema is not None
        return {
            f"{self.name} schema": self.schema.serialize().to_pybytes(),
            f"{self.name} window": self.window.snapshot(),
            f"{self.name} matched": self.chains.matched[held(self.window)].tobytes(),
        }

    def load(self, parts: dict[str, bytes], keys: np.ndarray, known: int) -> None:
        """The window was restored: put its rows, which have these keys, into chains anew."""
        assert self.window is not None
        rows = held(self.window)
        matched = array_part(parts, f"{self.name} matched", np.bool_, len(rows))
        by_row = np.full(int(rows.max(initial=-1)) + 1, -1)
        by_row[rows] = keys
        self.chains.know(known)
        self.chains.append(by_row, 0)
        self.chains.matched[rows] = matched

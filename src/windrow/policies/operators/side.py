"""One side of a join: its window, its rows by key, and which of them have had a match."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.engine.columns import whole
from windrow.engine.cutting import Runs
from windrow.errors import QueryError, StateError
from windrow.policies.clock import weakly
from windrow.policies.events import BEFORE_EVICT
from windrow.policies.operators.chains import Chains, Lives
from windrow.policies.operators.rows import held, taken
from windrow.policies.operators.state import array_part
from windrow.policies.spec import Count
from windrow.policies.tape import Tape
from windrow.policies.window import SlidingWindow
from windrow.schema import require_columns

if TYPE_CHECKING:
    from windrow.policies.operators.join import Join

SIDES = ("left", "right")
OUTER: dict[str, tuple[int, ...]] = {"inner": (), "left": (0,), "right": (1,), "full": (0, 1)}


class Side:
    """One side of a join: its window, and its rows by key."""

    def __init__(self, join: Join, place: int) -> None:
        self.place = place
        self.schema: pa.Schema | None = None
        self.window: SlidingWindow | None = None
        self.chains = Chains()
        self._join = weakref.proxy(join)
        spec = join.windows[place]
        assert spec is not None
        self.spec = spec
        self.keeps = spec.eviction != Count(0)
        self._outer = place in OUTER[join.how]

    def __len__(self) -> int:
        return 0 if self.window is None else len(self.window)

    def fit(self, schema: pa.Schema, state: bytes | None = None) -> None:
        """The types of the rows are known: make the window, or go on with that of a snapshot."""
        if self.schema is not None:
            if schema != self.schema:
                raise QueryError(
                    f"the columns of the {SIDES[self.place]} side have changed from {self.schema} to {schema}"
                )
            return
        require_columns(schema, tuple(pair[self.place] for pair in self._join.compared))
        self.schema = schema
        try:
            self._join.check_types()
            options: dict[str, Any] = {
                "partition_by": list(self._join.partition_by[self.place]) or None,
                "clock": self._join.clock,
            }
            window = SlidingWindow(self.spec, schema, **options)
            window.record("before_evict", "partition_eviction")
            window.on_tape(weakly(self.left))
            if state is not None:
                window.restore(state)
        except Exception:
            self.schema = None
            raise
        window.log.on_moved(self.chains.moved)
        self.window = window

    def insert(
        self, batch: pa.RecordBatch, keys: np.ndarray, mine: np.ndarray
    ) -> tuple[pa.Table, np.ndarray, bool]:
        """Let a batch in, of which the rows `mine` have matches.

        Returns rows that leave without one, at which row of the batch each does, and whether that is after
        its matches.
        """
        assert self.window is not None
        tape = self.window.insert(batch)
        self.link(keys)
        return self.outcome(tape, batch, mine)

    def link(self, keys: np.ndarray) -> None:
        """Have the rows that the window has just let in among those of their keys."""
        assert self.window is not None
        if self.keeps:
            self.chains.know(self._join.known)
            self.chains.append(keys, self.window.log.base)

    def outcome(
        self, tape: Tape, batch: pa.RecordBatch, mine: np.ndarray
    ) -> tuple[pa.Table, np.ndarray, bool]:
        """See `insert`: what follows once it is known which rows of the batch have matches."""
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

    def take_back(self, ends: np.ndarray) -> None:
        """Be as before rows were let in and linked; `ends` are those of chains, before that."""
        assert self.window is not None
        self.window.take_back()
        self.chains.cut(ends, self.window.log.base)

    def left(self, tape: Any) -> None:
        """Rows have left by themselves."""
        alone, _ = self._leave(tape)
        if alone.num_rows:
            self._join.lone(self, alone)

    def _leave(self, tape: Any) -> tuple[pa.Table, np.ndarray]:
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

    def save(self) -> dict[str, bytes]:
        """The window, and which of its rows have had a match."""
        if self.window is None:
            return {}
        assert self.schema is not None
        name = SIDES[self.place]
        return {
            f"{name} schema": self.schema.serialize().to_pybytes(),
            f"{name} window": self.window.snapshot(),
            f"{name} matched": self.chains.matched[held(self.window)].tobytes(),
        }

    def load(self, parts: dict[str, bytes]) -> None:
        """The opposite of `save`; rows are put into chains anew."""
        name = SIDES[self.place]
        if f"{name} schema" not in parts:
            return
        if f"{name} window" not in parts:
            raise StateError(f"the snapshot lacks the window of the {name} side")
        schema = pa.ipc.read_schema(pa.py_buffer(parts.pop(f"{name} schema")))
        self.fit(schema, parts.pop(f"{name} window"))
        assert self.window is not None
        rows = held(self.window)
        matched = array_part(parts, f"{name} matched", np.bool_, len(rows))
        keys = np.full(int(rows.max(initial=-1)) + 1, -1)
        if len(rows):
            keys[rows] = self._join.numbers(whole(taken(self.window.log, rows)), self)
        self.chains.know(self._join.known)
        self.chains.append(keys, 0)
        self.chains.matched[rows] = matched

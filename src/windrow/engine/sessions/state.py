"""What an engine for sessions holds: a lane of slices for each key and window, and heaps of when to look at them again.

Here is what is done to slices, whoever asks for it: stretches of time are put into them, they are watched and freed, and
keys, lanes and memory are arranged anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.engine.engine import IDLE_BYTES, Engine
from windrow.engine.intake.keys import Keys
from windrow.engine.intake.numbers import frozen
from windrow.engine.ordered.sorting import counting_order
from windrow.engine.partials import Multisets
from windrow.engine.sequence import check_types
from windrow.engine.sessions.lanes import Lanes, gap_of
from windrow.engine.sessions.table import (
    EMITTED,
    ENDING,
    FINE,
    OLDEST,
    TOO_MANY,
    TOUCHED,
    WAITING,
    Slices,
)
from windrow.engine.sessions.timers import Timers
from windrow.errors import LimitError, QueryError
from windrow.measure import Tick
from windrow.planner.plan import Part

MANY_KEYS = 1 << 14


class SessionState(Engine):
    """The slices of the sessions and snapshot windows of a query, and when to look at them."""

    def __init__(self, part: Part, keys: Keys | None = None) -> None:
        super().__init__(part, keys)
        for name, window in self.query.windows.items():
            check_types(name, window, self.binding.types, self.measure)
        if part.span is not None and self.measure.floating:
            raise QueryError(
                f"sessions of events that last need a time of whole ticks, not {self.measure.describe()}"
            )
        dtype = self.measure.dtype
        self.lanes = Lanes.of(self.query.windows, self.measure)
        self.slices = Slices(dtype)
        self.waiting = Timers(dtype, WAITING)
        self.ending = Timers(dtype, ENDING)

    def reach(self) -> tuple[Tick, Tick]:
        longest = max((gap_of(w, self.measure) for w in self.query.windows.values()), default=0)
        low, high = self.windows.reach
        return low, min(high, self.measure.highest - max(longest, 1) - 1)

    def clamp(self, tick: Tick) -> Tick:
        return min(max(tick, self.lowest - 1), self.measure.highest)

    @property
    def final_before(self) -> Tick:
        """Sessions that reach less far than this are final."""
        return self.clamp(self.lowest - 1) if self.watermark is None else self.horizon(self.watermark)

    @property
    def passes_up(self) -> bool:
        """Whether sessions of static gaps are made of those of the next smaller gap."""
        return self.part.passes_up

    @property
    def floors(self) -> np.ndarray:
        """By lane, the first start of a window that is complete."""
        lowest = self.measure.lowest
        floors = [self.complete_from.get("window " + name, lowest) for name in self.lanes.names]
        return np.array(floors, self.measure.dtype)

    # -- slices -----------------------------------------------------------------------------------

    def insert(self, numbers: Any, low: Any, high: Any, gaps: Any, lane: int, horizon: Tick) -> np.ndarray:
        """Put stretches of time into slices; the slice of each. See the loop of this name."""
        if len(numbers) > MANY_KEYS < self.keys.count < len(numbers):
            # Keys whose slices do not fit in the caches are taken one after another.
            order, bounds = counting_order(numbers, self.keys.count)
            numbers = np.repeat(np.arange(self.keys.count, dtype=np.int32), np.diff(bounds))
            same, low = high is low, low[order]
            gaps = frozen(gaps[:, order]) if gaps.shape[1] > 1 else gaps
            cell = np.empty(len(low), np.int64)
            cell[order] = self._insert(numbers, low, low if same else high[order], gaps, lane, horizon)
            return cell
        return self._insert(numbers, low, high, gaps, lane, horizon)

    def _insert(self, numbers: Any, low: Any, high: Any, gaps: Any, lane: int, horizon: Tick) -> np.ndarray:
        """As `insert`, in the order given."""
        limit, cell = self.settings.max_slices, np.empty(len(low), np.int64)
        columns = (
            frozen(numbers),
            frozen(low),
            frozen(high),
            gaps,
            self.measure.dtype.type(self.clamp(horizon)),
        )
        while (status := self.slices.insert(*columns, lane, len(self.lanes), limit, cell)) != FINE:
            if status == TOO_MANY:
                raise LimitError(
                    f"more than {limit:,} live slices would be needed, the limit of max_slices={limit:,}; "
                    "the operator is as it was before"
                )
            self._resize(max(64, 2 * self.slices.capacity, len(low) // 16))
        return cell

    def _resize(self, capacity: int) -> None:
        """Have room for more slices."""
        there = np.arange(self.slices.capacity)
        for store in self.stores():
            store.repack(there, capacity, 1, slice(0, 1))
        self.slices.grow(capacity)

    def watch(self, slices: np.ndarray) -> None:
        """Look at these slices when their time comes."""
        if len(slices):
            self.waiting.push(self.slices, slices, oldest=self.settings.mode == "append")

    def free(self, gone: np.ndarray) -> None:
        """Slices that are in no lane any more hold nothing."""
        self.slices.settle(gone)
        for store in self.binding.stores.values():
            if isinstance(store, Multisets):
                store.reset(gone)

    # -- memory ----------------------------------------------------------------------------------

    def forget_events(self) -> None:
        """Forget events of logs that lie before all slices of their lane, or in none where gaps come from a column."""
        logs = [log for _, log in self.binding.logs]
        if not logs:
            return
        slices, count, static = self.slices, len(self.lanes), self.lanes.static
        oldest = slices.lanes[: self.keys.count * count, OLDEST]
        first = np.full(len(oldest), self.measure.highest, self.measure.dtype)
        first[oldest >= 0] = slices.table["first"][oldest[oldest >= 0]]
        by_key = first.reshape(-1, count)
        if self.passes_up:
            # What a lower lane has will be a part of the sessions above.
            by_key[:, :static] = np.minimum.accumulate(by_key[:, :static], axis=1)
        for log in logs:
            log.evict_before(first)
        # An event that reaches far may begin before the events of a session that is final.
        near = static if self.part.span is None else 0
        if near == count:
            return
        rows = slices.table[slices.in_order()]
        own = rows[rows["lane"] % count >= near]
        others = np.flatnonzero(np.arange(len(first)) % count < near)
        lane = np.concatenate([own["lane"], others])
        low, high = np.concatenate([own["first"], first[others]]), np.full(len(lane), self.measure.highest)
        high = high.astype(low.dtype)
        high[: len(own)] = own["last"]
        order = np.lexsort((low, lane))
        for log in logs:
            log.keep_within(lane[order], low[order], high[order])

    def shrink(self) -> None:
        """Let go of memory that is far more than the slices need."""
        live, capacity = len(self.slices), self.slices.capacity
        idle = not live and sum(store.nbytes for store in self.stores()) > IDLE_BYTES
        if (idle and capacity > 8) or capacity > 8 * live + 1024:
            slots = self.slices.in_order()
            self.place(self.slices.table[slots], slots, 2 * live + 8)

    def place(self, rows: np.ndarray, slots: np.ndarray, capacity: int) -> None:
        """Hold these slices alone, sorted by lane and time, whose partials are in `slots`."""
        for store in self.stores():
            store.repack(slots, capacity, 1, slice(0, 1))
        lanes = max(self.keys.count * len(self.lanes), int(rows["lane"].max(initial=-1)) + 1)
        self.slices.replace(rows, capacity, lanes)
        self.waiting.clear()
        self.ending.clear()
        flags = self.slices.table["flags"][: len(rows)]
        self.ending.push(self.slices, np.flatnonzero(flags & EMITTED))
        self.watch(np.flatnonzero(flags & (EMITTED | TOUCHED) == 0))

    def live_keys(self) -> np.ndarray:
        oldest = self.slices.lanes[: self.keys.count * len(self.lanes), OLDEST]
        live = np.zeros(self.keys.count * len(self.lanes), bool)
        live[: len(oldest)] = oldest >= 0
        return np.asarray(live.reshape(self.keys.count, len(self.lanes)).any(axis=1))

    def renumber(self, live: np.ndarray) -> None:
        count = len(self.lanes)
        slots = self.slices.in_order()
        rows = self.slices.table[slots]
        rows["lane"] = np.searchsorted(live, rows["lane"] // count) * count + rows["lane"] % count
        self.renumber_events((live[:, None] * count + np.arange(count)).ravel())
        self.place(rows, slots, 2 * len(slots) + 8)

    def renumber_events(self, lanes: np.ndarray) -> None:
        """Lane lanes[i] becomes lane i."""
        for _, log in self.binding.logs:
            log.renumber(lanes)

    @property
    def owners(self) -> int:
        return self.keys.count * len(self.lanes)

    # No event waits to be folded.
    pending = 0

    @property
    def oldest(self) -> Tick:
        """Where the first one of all slices begins; the last tick if there are none."""
        return self.slices.table["first"][self.slices.in_order()].min(initial=self.measure.highest)

    @property
    def cells(self) -> int:
        """How many slices are alive."""
        return len(self.slices)

    @property
    def nbytes(self) -> int:
        kept = self.slices.nbytes + self.waiting.nbytes + self.ending.nbytes
        return sum(store.nbytes for store in self.stores()) + kept

"""The engine for sessions and snapshot windows: a lane of slices for each key and window.

    stage(events)      each event into a slice of its lanes -> fold; slices that it connects are joined
    due(watermark)     sessions that have ended come out of the heap -> lower      (endings.py)
    pass_to(watermark) what is final is taken out of its lane

A snapshot window is a session of gap zero. An event is late for a window if the session that it would be on its own is
final; whether other windows take it is for them to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.binding import Answer
from windrow.engine.cache import jit
from windrow.engine.completeness import next_after
from windrow.engine.cutting import Cells, Runs, run_end
from windrow.engine.engine import IDLE_BYTES, Engine, Foldable, Merged
from windrow.engine.input_batches import EventBatch, PartialBatch
from windrow.engine.keys import Keys
from windrow.engine.numbers import frozen
from windrow.engine.ordered.sorting import counting_order
from windrow.engine.partials import Log, Multisets, Numbers, Store
from windrow.engine.runs import changing
from windrow.engine.runs.endings import Passage, emit_final, revise
from windrow.engine.runs.lanes import Lanes, gap_of
from windrow.engine.runs.table import (
    BORN,
    EMITTED,
    ENDING,
    FINE,
    HEADS,
    NONE,
    OLDEST,
    TOO_MANY,
    TOUCHED,
    WAITING,
    Slices,
)
from windrow.engine.runs.timers import Timers
from windrow.engine.sequence import bad_rows, check_types, gaps_of
from windrow.engine.staging import Staged
from windrow.engine.windows import ClosedWindows
from windrow.errors import LimitError, QueryError
from windrow.measure import Tick
from windrow.planner.plan import Part
from windrow.windows.base import Window

Segments = Runs | Cells
NOBODY = np.zeros(1, bool)
MANY_KEYS = 1 << 14
NO_KEY = frozen(np.zeros(1, np.int32))


@jit
def cut_in_order(times, gap, low, high):  # type: ignore[no-untyped-def]
    """Stretches low[i] .. high[i]-1 of ascending times, between which more than `gap` passes; how many there are."""
    count = 0
    i = 0
    while i < times.shape[0]:
        low[count] = i
        # Times that lie within a gap of one of them are in its session, however many there are.
        while i < times.shape[0]:
            end = run_end(times, i, times[i] + gap, 64)
            while end < times.shape[0] and times[end] <= times[i] + gap:
                end += 1
            if end == i + 1:
                i = end
                break
            i = end - 1
        high[count] = i
        count += 1
    return count


class Sessions(Engine):
    """All sessions and snapshot windows of a query."""

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
        self._passage: Passage | None = None

    def reach(self) -> tuple[Tick, Tick]:
        longest = max((gap_of(w, self.measure) for w in self.query.windows.values()), default=0)
        low, high = self.windows.reach
        return low, min(high, self.measure.highest - max(longest, 1) - 1)

    def clamp(self, tick: Tick) -> Tick:
        return min(max(tick, self.lowest - 1), self.measure.highest)

    @property
    def _final_before(self) -> Tick:
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

    # -- events in -------------------------------------------------------------------------------

    def bad_values(self, batch: pa.RecordBatch) -> list[tuple[str, np.ndarray, str]]:
        found = super().bad_values(batch)
        for window in self.lanes.windows[self.lanes.static :]:
            found += bad_rows(window, batch, self.measure)
        return found

    def _lasts(self, incoming: EventBatch | PartialBatch) -> np.ndarray:
        """The last instant of each row."""
        if isinstance(incoming, PartialBatch):
            return incoming.last
        return incoming.times if incoming.lasts is None else incoming.lasts

    def _reach(self, incoming: EventBatch | PartialBatch, j: int) -> np.ndarray:
        """How far each row holds its session of lane j open."""
        lasts = self._lasts(incoming)
        if j < self.lanes.static:
            return lasts + lasts.dtype.type(self.lanes.gap[j])
        return lasts + gaps_of(self.lanes.windows[j], incoming.batch, self.measure)

    def _late(self, incoming: EventBatch | PartialBatch) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """By lane, masks of the rows that are late for its window, and of those that have none in it.

        A snapshot window that was added later is there from where it is complete.
        """
        floors = self.floors
        absent = [
            incoming.times < floors[j] if closed else NOBODY for j, closed in enumerate(self.lanes.closed)
        ]
        late = [self._reach(incoming, j) < self._final_before for j in range(len(self.lanes))]
        return [mask & ~none for mask, none in zip(late, absent, strict=True)], absent

    def too_late(self, incoming: EventBatch | PartialBatch) -> tuple[np.ndarray, np.ndarray] | None:
        """Masks of the events that no window takes, and of those among them that are late for one."""
        gaps = self.lanes.gap
        if self.watermark is None or (gaps and incoming.scan[0] + gaps[-1] >= self._final_before):
            return None
        late, absent = self._late(incoming)
        gone = np.logical_and.reduce([a | b for a, b in zip(late, absent, strict=True)])
        return gone, gone & np.logical_or.reduce(late)

    def partly_late(self, incoming: EventBatch | PartialBatch) -> np.ndarray | None:
        """A mask of the events that have missed some of their windows, but not all; None: nobody has."""
        gaps, all_static = self.lanes.gap, self.lanes.static == len(self.lanes)
        if self.watermark is None or (all_static and incoming.scan[0] + gaps[0] >= self._final_before):
            return None
        return np.logical_or.reduce(self._late(incoming)[0])

    def _stage(self, incoming: EventBatch | PartialBatch, staged: Staged) -> None:
        if isinstance(incoming, EventBatch):
            self.require_room(len(incoming))
        staged.on_rollback(partial(self._roll_back, self.slices.capacity, len(self.slices.lanes)))
        self.slices.grow_lanes(self.keys.count * len(self.lanes))
        self.slices.begin()
        placed = list(self._placed(incoming))
        born = self.slices.listed(BORN)
        for store in self.stores() if len(born) else ():
            store.reset(born)
        if isinstance(incoming, EventBatch):
            self._fold_events(incoming, placed, staged)
        else:
            self._join_slices(incoming, placed, staged)
        into, taken = self.slices.joined
        if len(taken):
            self.absorb_own(into, taken, 1, staged)
        staged.on_commit(partial(self._settle, incoming.high, into, taken))

    def _roll_back(self, capacity: int, lanes: int) -> None:
        """Undo what was staged; room that was made for it is given back."""
        self.slices.rollback()
        if self.slices.capacity > capacity:
            for store in self.stores():
                store.repack(np.arange(capacity), capacity, 1, slice(0, 1))
        self.slices.cut(capacity, lanes)

    def _settle(self, high: Tick, into: np.ndarray, taken: np.ndarray) -> None:
        """Events were folded: join slices, and look at those that are new when their time comes."""
        if len(taken):
            self.absorb_others(into, taken, 1)
            self.free(taken)
        self.watch(self.slices.listed(BORN))
        self.highest_time = high if self.highest_time is None else max(self.highest_time, high)

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

    def _placed(self, incoming: EventBatch | PartialBatch) -> Iterator[Segments]:
        """The slice of each row, in each lane that takes it; where sessions are handed up, in the first one that does."""
        lanes, horizon = self.lanes, self._final_before
        numbers = NO_KEY if incoming.numbers is None else incoming.numbers
        lasts = self._lasts(incoming)
        step = lanes.static if self.passes_up else 1
        for j in range(0, lanes.static, step):
            if self._is_in_line(incoming, j, horizon):
                yield self._cut_in_order(incoming.times, j)
            else:
                yield Cells(self.insert(numbers, incoming.times, lasts, lanes.gaps[j : j + step], j, horizon))
        for j in range(lanes.static, len(lanes)):
            gaps = frozen(gaps_of(lanes.windows[j], incoming.batch, self.measure))[None]
            yield Cells(self.insert(numbers, incoming.times, lasts, gaps, j, horizon))

    def _is_in_line(self, incoming: EventBatch | PartialBatch, j: int, horizon: Tick) -> bool:
        """Whether all events are of one key, in order, and none is late for lane j."""
        if incoming.numbers is not None or not isinstance(incoming, EventBatch) or incoming.lasts is not None:
            return False
        return incoming.scan[2] and incoming.scan[0] + self.lanes.gap[j] >= horizon

    def _cut_in_order(self, times: np.ndarray, j: int) -> Runs:
        """Segments of the events of one key that are in order: they are cut before they meet the slices."""
        low, high = np.empty((2, len(times)), np.int64)
        gaps = self.lanes.gaps[j : j + 1]
        count = cut_in_order(frozen(times), gaps[0, 0], low, high)
        low, high = low[:count].copy(), high[:count].copy()
        return Runs(low, high, self.insert(NO_KEY, times[low], times[high - 1], gaps, j, self.lowest - 1))

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

    def _lanes_of(self, incoming: EventBatch | PartialBatch, j: int) -> np.ndarray:
        """The lane of each row, for the window of lane j."""
        if incoming.numbers is None:
            return np.full(len(incoming), j)
        return incoming.numbers.astype(np.int64) * len(self.lanes) + j

    def _resize(self, capacity: int) -> None:
        """Have room for more slices."""
        there = np.arange(self.slices.capacity)
        for store in self.stores():
            store.repack(there, capacity, 1, slice(0, 1))
        self.slices.grow(capacity)

    def _fold_events(self, events: EventBatch, placed: list[Segments], staged: Staged) -> None:
        times = events.times
        stamps = events.arrivals if self.binding.needs_arrival else times[:0]
        foldable = Foldable(self.encode(events.batch, staged), times, stamps, events.rows)
        for segments in placed:
            self.fold(foldable, segments, own=True, staged=staged)

        def commit() -> None:
            for segments in placed:
                self.fold(foldable, segments, own=False)
                self.presence.fold(segments, [], ())
            # A lane may get its slices later, but has all of its events now.
            for j in range(len(self.lanes)) if self.binding.logs else ():
                rows = np.flatnonzero(self._reach(events, j) >= self._final_before)
                self.keep(foldable, self._lanes_of(events, j), rows)

        staged.on_commit(commit)

    def _join_slices(self, parcel: PartialBatch, placed: list[Segments], staged: Staged) -> None:
        for segments in placed:
            assert isinstance(segments, Cells)
            self.join(segments.cell, parcel, staged, fresh=False)
            staged.on_commit(partial(self.presence.join, segments.cell, [], parcel.sizes))

    # -- watermarks and results ------------------------------------------------------------------

    @property
    def keys_per_window(self) -> int:
        """For how many keys each window is answered."""
        return 1

    def due(self, watermark: Tick) -> list[pa.RecordBatch]:
        finished = watermark >= self.measure.highest
        horizon = self.measure.highest if finished else self.horizon(watermark)
        point = self.measure.highest if finished else self.emission_point(watermark)
        self.slices.begin()
        self._passage = passage = Passage(horizon, point, self.waiting.pop(self.slices, point))
        try:
            return (revise if self.settings.mode == "update" else emit_final)(self, passage)
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        assert self._passage is not None
        self._passage.staged.rollback()
        self.slices.rollback()
        self.waiting.push(self.slices, self._passage.popped)
        self._passage = None

    def pass_to(self, watermark: Tick) -> None:
        assert self._passage is not None
        passage, self._passage = self._passage, None
        slices, table = self.slices, self.slices.table
        final = passage.ended
        if self.settings.mode == "update":
            table["flags"][passage.shown] |= EMITTED
            table["revision"][passage.shown] = passage.revision
            slices.forget_changes()
            self.ending.push(slices, passage.ended)
            final = self.ending.pop(slices, passage.horizon)
        into, taken = passage.joined
        if len(taken):
            self.absorb_others(into, taken, 1)
        self.watermark = watermark
        if len(final):
            slices.drop(final)
        self.watch(passage.later)
        self.watch(slices.listed(HEADS))
        if len(final) or len(taken):
            self.free(np.concatenate([final, taken]))
            self.forget_events()
            self._shrink()

    def merged(self, store: Numbers, due: ClosedWindows, slots: np.ndarray, keys: int) -> Merged:
        if due.covered > len(due):
            return super().merged(store, due, slots, keys)
        cells = slots[due.first]
        return [column[cells] for column in store.fields], store.n[cells]

    def answer(
        self, answer: Answer, due: ClosedWindows, slots: np.ndarray, rows: Any, decoders: Any
    ) -> pa.Array:
        if isinstance(answer.store, Log):
            # Events are kept by lane.
            lane = np.argsort(self.lanes.spec)[due.spec[rows[0]]]
            rows = (rows[0], rows[1] * len(self.lanes) + lane)
        return super().answer(answer, due, slots, rows, decoders)

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

    def _shrink(self) -> None:
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
    def cells(self) -> int:
        """How many slices are alive."""
        return len(self.slices)

    @property
    def nbytes(self) -> int:
        kept = self.slices.nbytes + self.waiting.nbytes + self.ending.nbytes
        return sum(store.nbytes for store in self.stores()) + kept

    # -- queries that change while they run ------------------------------------------------------

    def begin_after(self, newest: Tick) -> Tick:
        """Begin in a running stream whose newest event is at `newest`: the first complete start."""
        if self.lanes.static < len(self.lanes):
            raise QueryError(
                f"window {', '.join(map(repr, self.query.windows))} cannot be added to a running operator: "
                "how far earlier events reach is not known"
            )
        self.highest_time = newest
        return next_after(newest + self.lanes.gap[-1])

    def add_window(self, name: str, window: Window) -> Tick | None:
        if window.gap_column is not None and self.highest_time is not None:
            raise QueryError(
                f"window {name!r} cannot be added to a running operator: how far earlier events reach is not known"
            )
        check_types(name, window, self.binding.types, self.measure)
        return changing.add(self, name, window)

    def remove_window(self, name: str) -> None:
        """Stop answering a window; what the next larger gap needs of it is handed up."""
        changing.remove(self, name)

    def make_store(self, store: Store) -> Tick | None:
        store.repack(NONE, self.slices.capacity, 1, slice(0, 0))
        return None if self.highest_time is None else next_after(self.highest_time)

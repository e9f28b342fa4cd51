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

from windrow.compiling.tiers import jit
from windrow.engine.aligned.cutting import Cells, Runs, run_end
from windrow.engine.binding import Answer
from windrow.engine.completeness import next_after
from windrow.engine.engine import Foldable, Merged
from windrow.engine.intake.batches import EventBatch, PartialBatch
from windrow.engine.intake.keys import Keys
from windrow.engine.intake.numbers import frozen
from windrow.engine.partials import Log, Numbers, Store
from windrow.engine.sequence import bad_rows, check_types, gaps_of
from windrow.engine.sessions import changing
from windrow.engine.sessions.endings import Passage, emit_final, revise
from windrow.engine.sessions.state import SessionState
from windrow.engine.sessions.table import (
    BORN,
    EMITTED,
    HEADS,
    NONE,
)
from windrow.engine.staging import Staged
from windrow.engine.windows import ClosedWindows
from windrow.errors import QueryError
from windrow.measure import Tick
from windrow.options import OperatorOptions
from windrow.planner.plan import Part
from windrow.windows.base import Window

Segments = Runs | Cells
NOBODY = np.zeros(1, bool)
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


class Sessions(SessionState):
    """All sessions and snapshot windows of a query."""

    def __init__(self, part: Part, keys: Keys | None = None) -> None:
        super().__init__(part, keys)
        self._passage: Passage | None = None

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
        late = [self._reach(incoming, j) < self.final_before for j in range(len(self.lanes))]
        return [mask & ~none for mask, none in zip(late, absent, strict=True)], absent

    def too_late(self, incoming: EventBatch | PartialBatch) -> tuple[np.ndarray, np.ndarray] | None:
        """Masks of the events that no window takes, and of those among them that are late for one."""
        gaps = self.lanes.gap
        if self.watermark is None or (gaps and incoming.scan[0] + gaps[-1] >= self.final_before):
            return None
        late, absent = self._late(incoming)
        gone = np.logical_and.reduce([a | b for a, b in zip(late, absent, strict=True)])
        return gone, gone & np.logical_or.reduce(late)

    def absent(self, incoming: EventBatch | PartialBatch) -> np.ndarray | None:
        if not all(self.lanes.closed) or incoming.scan[0] >= self.floors.min():
            return None
        return np.asarray(incoming.times < self.floors.min())

    def partly_late(self, incoming: EventBatch | PartialBatch) -> np.ndarray | None:
        """A mask of the events that have missed some of their windows, but not all; None: nobody has."""
        gaps, all_static = self.lanes.gap, self.lanes.static == len(self.lanes)
        if self.watermark is None or (all_static and incoming.scan[0] + gaps[0] >= self.final_before):
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

    def _placed(self, incoming: EventBatch | PartialBatch) -> Iterator[Segments]:
        """The slice of each row, in each lane that takes it; where sessions are handed up, in the first one that does."""
        lanes, horizon = self.lanes, self.final_before
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

    def _lanes_of(self, incoming: EventBatch | PartialBatch, j: int) -> np.ndarray:
        """The lane of each row, for the window of lane j."""
        if incoming.numbers is None:
            return np.full(len(incoming), j)
        return incoming.numbers.astype(np.int64) * len(self.lanes) + j

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
                rows = np.flatnonzero(self._reach(events, j) >= self.final_before)
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

    def due(self, watermark: Tick | None, *, look: bool = False) -> list[pa.RecordBatch]:
        if watermark is None:
            horizon = point = self.final_before
        else:
            finished = watermark >= self.measure.highest
            horizon = self.measure.highest if finished else self.horizon(watermark)
            point = self.measure.highest if finished else self.emission_point(watermark)
        if look:
            point = self.measure.highest
        self.slices.begin()
        self._passage = passage = Passage(horizon, point, self.waiting.pop(self.slices, point))
        if self.settings.is_early:
            passage.final = self.ending.pop(self.slices, horizon)
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
        self.ending.push(self.slices, self._passage.final)
        self._passage = None

    def pass_to(self, watermark: Tick | None) -> None:
        assert self._passage is not None
        passage, self._passage = self._passage, None
        slices, table = self.slices, self.slices.table
        final = passage.ended
        if self.settings.mode == "update":
            table["flags"][passage.shown] |= EMITTED
            table["revision"][passage.shown] = passage.revision
            slices.forget_changes(passage.held)
            self.ending.push(slices, passage.ended)
            final = self.ending.pop(slices, passage.horizon)
        into, taken = passage.joined
        if len(taken):
            self.absorb_others(into, taken, 1)
        if watermark is not None:
            self.watermark = watermark
        if len(final):
            slices.drop(final)
        self.watch(passage.later)
        self.watch(slices.listed(HEADS))
        if len(final) or len(taken):
            self.free(np.concatenate([final, taken]))
            self.forget_events()
            self.shrink()

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

    def reconfigure(self, options: OperatorOptions) -> None:
        other, handed_up = options.changelog != self.settings.changelog, self.passes_up
        super().reconfigure(options)
        if other:
            changing.change_mode(self, handed_up=handed_up)

    def make_store(self, store: Store) -> Tick | None:
        store.repack(NONE, self.slices.capacity, 1, slice(0, 0))
        return None if self.highest_time is None else next_after(self.highest_time)

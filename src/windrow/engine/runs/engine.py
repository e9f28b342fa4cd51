"""The engine for sessions and snapshot windows: a lane of slices for each key and window.

    stage(events)      each event into a slice of its lanes -> fold; slices that it connects are joined
    due(watermark)     sessions that have ended come out of the heap -> lower
    pass_to(watermark) what is final is taken out of its lane

A snapshot window is a session of gap zero. An event is late for a window if the session that it would be on its own is
final; whether other windows take it is for them to say.

In append mode static gaps share their work (Scotty, section 6.1): a session of a larger gap is made of whole sessions
of the next smaller one. So an event goes to the lane of the smallest gap alone, and a session that is final there is
passed up to the next lane, as one piece with its partials:

    gap 2     o o      o o o            o
              |---|    |----|           |--|
    gap 5     |-------------------|     |- ..      two pieces so far; the third waits until gap 2 has it final

In update mode a session may be emitted long before that, and each lane takes all events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.arrays import different
from windrow.engine.binding import Answer
from windrow.engine.cache import jit
from windrow.engine.completeness import next_after
from windrow.engine.cutting import Cells, Runs, run_end
from windrow.engine.emission import Emission
from windrow.engine.engine import IDLE_BYTES, Engine, Foldable, Merged
from windrow.engine.keys import Keys
from windrow.engine.loads import Events, Parcel
from windrow.engine.numbers import frozen
from windrow.engine.partials import Log, Multisets, Numbers, Store
from windrow.engine.runs.table import ALIVE, EMITTED, ENDING, OLDEST, TOUCHED, WAITING, Slices, subtrees
from windrow.engine.runs.timers import Timers
from windrow.engine.sequence import bad_rows, check_types, gaps_of
from windrow.engine.sequence.ticks import after
from windrow.engine.staging import Staged
from windrow.engine.windows import Due
from windrow.errors import LimitError, QueryError
from windrow.measure import Measure, Tick
from windrow.options import OperatorOptions
from windrow.span import Span
from windrow.spec import QuerySpec
from windrow.windows.base import Window

Segments = Runs | Cells
NONE = np.empty(0, np.int64)
NOBODY = np.zeros(1, bool)


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


@jit
def find_blocked(table, lanes, candidates, level, horizon, again):  # type: ignore[no-untyped-def]
    """Write to `again` when to look at a session once more: at the horizon or later, where a lower lane has a part of it
    that is not final, else its own reach."""
    first, reach, lane = table["first"], table["reach"], table["lane"]
    for i in range(candidates.shape[0]):
        s = candidates[i]
        again[i] = reach[s]
        base = lane[s] - level
        for j in range(level):
            oldest = lanes[base + j, OLDEST]
            if oldest >= 0 and first[oldest] <= reach[s]:
                again[i] = max(again[i], reach[oldest], horizon)


def _same(before: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Which slices are of the lane and the time that they were of."""
    same = now["flags"] & ALIVE > 0
    for name in ("lane", "first", "reach"):
        same &= before[name] == now[name]
    return np.asarray(same)


@dataclass
class Passage:
    """Between `due` and `pass_to`: sessions that are emitted or would be if they were complete, and how to undo it all."""

    horizon: Tick
    point: Tick
    popped: np.ndarray
    ended: np.ndarray = field(default_factory=lambda: NONE)
    shown: np.ndarray = field(default_factory=lambda: NONE)
    revision: np.ndarray = field(default_factory=lambda: NONE)
    later: tuple[np.ndarray, np.ndarray] = (NONE, NONE)
    pairs: tuple[np.ndarray, np.ndarray] = (NONE, NONE)
    staged: Staged = field(default_factory=Staged)


@dataclass(frozen=True)
class Lanes:
    """The windows of a query in the order of their lanes: static gaps, from the smallest up, then gaps of columns.

    spec[j] is the place of lane j's window in the query, gap[j] its gap in ticks for the `static` first ones.
    """

    windows: tuple[Window, ...]
    spec: np.ndarray
    gap: tuple[Tick, ...]
    closed: np.ndarray  # whether the end that is shown is the tick behind the last event

    @classmethod
    def of(cls, windows: dict[str, Window], measure: Measure) -> Lanes:
        known = list(enumerate(windows.values()))
        static = sorted((_gap(w, measure), i) for i, w in known if w.gap_column is None)
        spec = [i for _, i in static] + [i for i, w in known if w.gap_column is not None]
        chosen = tuple(known[i][1] for i in spec)
        closed = np.array([w.pointwise for w in chosen])
        return cls(chosen, np.array(spec), tuple(gap for gap, _ in static), closed)

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def static(self) -> int:
        return len(self.gap)


def _gap(window: Window, measure: Measure) -> Tick:
    return 0 if window.gap is None else measure.ticks(window.gap, what="gap")


class Sessions(Engine):
    """All sessions and snapshot windows of a query."""

    def __init__(
        self, query: QuerySpec, settings: OperatorOptions, schema: pa.Schema, keys: Keys | None = None
    ) -> None:
        super().__init__(query, settings, schema, keys)
        for name, window in query.windows.items():
            check_types(name, window, self.binding.types, self.measure)
        self._lasting = isinstance(query.time, Span) and not query.time.is_point
        if self._lasting and self.measure.floating:
            raise QueryError(
                f"sessions of events that last need a time of whole ticks, not {self.measure.describe()}"
            )
        dtype = self.measure.dtype
        self.lanes = Lanes.of(dict(query.windows), self.measure)
        self.slices = Slices(dtype)
        self.waiting = Timers(dtype, WAITING)
        self.ending = Timers(dtype, ENDING)
        self._passage: Passage | None = None

    def reach(self) -> tuple[Tick, Tick]:
        longest = max((_gap(w, self.measure) for w in self.query.windows.values()), default=0)
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
        return self.settings.mode == "append" and self.lanes.static > 1 and not self._lasting

    @property
    def floors(self) -> np.ndarray:
        """By lane, the first start of a window that is complete."""
        floor = [self.complete_from.get(self._told(j), self.measure.lowest) for j in range(len(self.lanes))]
        return np.array(floor, self.measure.dtype)

    def _seen(self, rows: np.ndarray) -> np.ndarray | None:
        """Which slices are complete; None: all of them."""
        if not self.complete_from:
            return None
        seen = rows["first"] >= self.floors[rows["lane"] % len(self.lanes)]
        return None if seen.all() else seen

    # -- events in -------------------------------------------------------------------------------

    def bad_values(self, batch: pa.RecordBatch) -> list[tuple[str, np.ndarray, str]]:
        found = super().bad_values(batch)
        for window in self.lanes.windows[self.lanes.static :]:
            found += bad_rows(window, batch, self.measure)
        return found

    def _lasts(self, load: Events | Parcel) -> np.ndarray:
        """The last instant of each row."""
        if isinstance(load, Parcel):
            return load.last
        return load.times if load.lasts is None else load.lasts

    def _reach(self, load: Events | Parcel, j: int) -> np.ndarray:
        """How far each row holds its session of lane j open."""
        lasts = self._lasts(load)
        if j < self.lanes.static:
            return lasts + lasts.dtype.type(self.lanes.gap[j])
        return lasts + gaps_of(self.lanes.windows[j], load.batch, self.measure)

    def _late(self, load: Events | Parcel) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """By lane, masks of the rows that are late for its window, and of those that have none in it.

        A snapshot window that was added later is there from where it is complete.
        """
        floors = self.floors
        absent = [load.times < floors[j] if closed else NOBODY for j, closed in enumerate(self.lanes.closed)]
        late = [self._reach(load, j) < self._final_before for j in range(len(self.lanes))]
        return [mask & ~none for mask, none in zip(late, absent, strict=True)], absent

    def too_late(self, load: Events | Parcel) -> tuple[np.ndarray, np.ndarray] | None:
        """Masks of the events that no window takes, and of those among them that are late for one."""
        gaps = self.lanes.gap
        if self.watermark is None or (gaps and load.scan[0] + gaps[-1] >= self._final_before):
            return None
        late, absent = self._late(load)
        gone = np.logical_and.reduce([a | b for a, b in zip(late, absent, strict=True)])
        return gone, gone & np.logical_or.reduce(late)

    def partly_late(self, load: Events | Parcel) -> np.ndarray | None:
        """A mask of the events that have missed some of their windows, but not all; None: nobody has."""
        gaps, all_static = self.lanes.gap, self.lanes.static == len(self.lanes)
        if self.watermark is None or (all_static and load.scan[0] + gaps[0] >= self._final_before):
            return None
        return np.logical_or.reduce(self._late(load)[0])

    def _stage(self, load: Events | Parcel, staged: Staged) -> None:
        if isinstance(load, Events):
            self.require_room(len(load))
        staged.on_rollback(partial(self._roll_back, self.slices.capacity, len(self.slices.lanes)))
        self.slices.grow_lanes(self.keys.count * len(self.lanes))
        self.slices.begin()
        placed = list(self._placed(load))
        limit = self.settings.max_slices
        if len(self.slices) > limit:
            raise LimitError(
                f"{len(self.slices):,} live slices would be more than the limit of max_slices={limit:,}; "
                "the operator is as it was before"
            )
        for store in self.stores():
            store.reset(self.slices.born)
        if isinstance(load, Events):
            self._fold_events(load, placed, staged)
        else:
            self._join_slices(load, placed, staged)
        into, taken = self.slices.resolved(*self.slices.joined)
        if len(taken):
            self.absorb_own(into, taken, 1, staged)
        staged.on_commit(partial(self._settle, load.high, into, taken))

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
        self.waiting.push(self.slices, self.slices.born)
        self._free(taken)
        self.highest_time = high if self.highest_time is None else max(self.highest_time, high)

    def _free(self, gone: np.ndarray) -> None:
        """Slices that are in no lane any more hold nothing."""
        self.slices.settle(gone)
        for store in self.binding.stores.values():
            if isinstance(store, Multisets) and len(gone):
                store.reset(gone)

    def _placed(self, load: Events | Parcel) -> Iterator[Segments]:
        """The slice of each row, in each lane that takes it."""
        horizon = self._final_before
        rows: np.ndarray | None = None  # what is left for the next lane; None: all
        for j in range(len(self.lanes)):
            shared = j < self.lanes.static and self.passes_up
            if not shared:
                rows = None
            elif rows is not None and not len(rows):
                continue
            if rows is None and self._is_in_line(load, j, horizon):
                yield self._cut_in_order(load.times, j)
                rows = NONE if shared else None
                continue
            reach = self._reach(load, j)
            yield Cells(self._cells(load, reach, j, rows))
            if shared:
                late = reach < horizon if rows is None else reach[rows] < horizon
                rows = np.flatnonzero(late) if rows is None else rows[late]

    def _is_in_line(self, load: Events | Parcel, j: int, horizon: Tick) -> bool:
        """Whether all events are of one lane, in order, of a static gap, and none is late."""
        if j >= self.lanes.static or not isinstance(load, Events) or load.lasts is not None:
            return False
        return load.numbers is None and load.scan[2] and load.scan[0] + self.lanes.gap[j] >= horizon

    def _cut_in_order(self, times: np.ndarray, j: int) -> Runs:
        """Segments of the events of one key that are in order: they are cut before they meet the slices."""
        gap = times.dtype.type(self.lanes.gap[j])
        most = len(times)
        low, high = np.empty(most, np.int64), np.empty(most, np.int64)
        count = cut_in_order(frozen(times), gap, low, high)
        low, high = low[:count].copy(), high[:count].copy()
        first, last = times[low], times[high - 1]
        return Runs(
            low, high, self._insert(np.full(count, j), first, last, last + gap, self.clamp(self.lowest - 1))
        )

    def _lanes_of(self, load: Events | Parcel, j: int) -> np.ndarray:
        """The lane of each row, for the window of lane j."""
        if load.numbers is None:
            return np.full(len(load), j)
        return load.numbers.astype(np.int64) * len(self.lanes) + j

    def _cells(self, load: Events | Parcel, reach: np.ndarray, j: int, rows: np.ndarray | None) -> np.ndarray:
        """The slice of each row, -1 for those that are late or not among `rows`."""
        lane, low, high = self._lanes_of(load, j), load.times, self._lasts(load)
        if rows is None:
            return self._insert(lane, low, high, reach, self._final_before)
        cell = np.full(len(load), -1)
        cell[rows] = self._insert(lane[rows], low[rows], high[rows], reach[rows], self._final_before)
        return cell

    def _insert(self, lane: Any, low: Any, high: Any, reach: Any, horizon: Tick) -> np.ndarray:
        """Put stretches of time into slices; the slice of each."""
        columns, cell = (frozen(lane), frozen(low), frozen(high), frozen(reach)), np.empty(len(low), np.int64)
        while not self.slices.insert(*columns, horizon, cell):
            self._resize(max(64, 2 * self.slices.capacity, len(low) // 16))
        return cell

    def _resize(self, capacity: int) -> None:
        """Have room for more slices."""
        there = np.arange(self.slices.capacity)
        for store in self.stores():
            store.repack(there, capacity, 1, slice(0, 1))
        self.slices.grow(capacity)

    def _fold_events(self, events: Events, placed: list[Segments], staged: Staged) -> None:
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

    def _join_slices(self, parcel: Parcel, placed: list[Segments], staged: Staged) -> None:
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
            if self.settings.mode == "update":
                return self._revise(passage)
            emission = self._pass_up(passage) if self.passes_up else self._emit(passage)
        except BaseException:
            self.abandon()
            raise
        return emission.batches

    def _emit(self, passage: Passage) -> Emission:
        """Append mode, each lane by itself."""
        passage.ended = passage.popped
        emission = Emission(self, passage.ended)
        self._insert_rows(emission, passage.ended, np.arange(len(passage.ended)))
        return emission

    def _insert_rows(
        self, emission: Emission, ended: np.ndarray, first: np.ndarray, last: Any = None
    ) -> None:
        """Rows of sessions that are emitted once; the slices of each are first .. last-1 of the emission's."""
        if not len(ended):
            return
        rows = self.slices.table[ended]
        seen = self._seen(rows)
        if seen is not None:
            rows, first, last = rows[seen], first[seen], None if last is None else last[seen]
        emission.change(self._due(rows, first, last), "insert", np.zeros(len(rows), np.int64))

    def _due(self, rows: np.ndarray, first: np.ndarray, last: np.ndarray | None = None) -> Due:
        """Slices as windows; see `_insert_rows`."""
        count = len(self.lanes)
        window, key = (0, rows["lane"]) if count == 1 else (rows["lane"] % count, rows["lane"] // count)
        spec = np.broadcast_to(self.lanes.spec[window], len(rows))
        starts, end, order = rows["first"].copy(), rows["reach"].copy(), None
        if self.lanes.closed.any():
            end = np.where(self.lanes.closed[window], after(rows["last"]), end)
        if self.binding.logs:
            # Events of other sessions, which are final, may lie in its time.
            none = np.zeros(len(rows), np.int64)
            order = (starts, none, after(rows["last"]), none)
        last = first + 1 if last is None else last
        return Due(spec, starts, end, first, last, key.astype(np.int64), order)

    def _pass_up(self, passage: Passage) -> Emission:
        """Append mode: sessions that have ended, from the smallest gap up, each made of those of the one before."""
        slices, lanes, table = self.slices, self.lanes, self.slices.table
        horizon = table["reach"].dtype.type(passage.horizon)
        level = table["lane"][passage.popped] % len(lanes)
        ended: list[np.ndarray] = []
        pairs: list[tuple[np.ndarray, np.ndarray]] = []
        later: list[tuple[np.ndarray, np.ndarray]] = []
        below = NONE
        for j in range(len(lanes)) if len(passage.popped) else ():
            candidates = passage.popped[level == j]
            if len(below) and j < lanes.static:
                candidates = np.concatenate([candidates, self._receive(below, j, pairs)])
                candidates = different(candidates, slices.capacity)
                table = slices.table
                candidates = candidates[table["flags"][candidates] & ALIVE > 0]
            again = np.empty(len(candidates), table["reach"].dtype)
            find_blocked(table, slices.lanes, candidates, j if j < lanes.static else 0, horizon, again)
            over = again < horizon
            later.append((candidates[~over], again[~over]))
            below = candidates[over]
            slices.take_out(below)
            ended.append(below)
        if not ended:
            return Emission(self, NONE)
        passage.ended = ended[lanes.static - 1]
        if lanes.static < len(lanes):
            passage.ended = np.concatenate([passage.ended, *ended[lanes.static :]])
        passage.later = (np.concatenate([s for s, _ in later]), np.concatenate([t for _, t in later]))
        passage.pairs = (
            np.concatenate([NONE, *(a for a, _ in pairs)]),
            np.concatenate([NONE, *(b for _, b in pairs)]),
        )
        together = np.concatenate(ended)
        order, first, last = subtrees(together, *passage.pairs)
        emission = Emission(self, order)
        self._insert_rows(emission, together, first, last)
        passage.pairs = slices.resolved(*passage.pairs)
        self.absorb_own(*passage.pairs, 1, passage.staged)
        return emission

    def _receive(self, pieces: np.ndarray, j: int, pairs: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Sessions of the lane below become parts of sessions of lane j; which."""
        rows = self.slices.table[pieces]
        start = len(self.slices.joined[1])
        born = len(self.slices.born)
        reach = rows["last"] + rows["last"].dtype.type(self.lanes.gap[j])
        lowest = self.clamp(self.lowest - 1)
        lane = rows["lane"].astype(np.int64) + 1
        cell = self._insert(lane, rows["first"], rows["last"], reach, lowest)
        for store in self.stores():
            store.reset(self.slices.born[born:])
        into, taken = (column[start:] for column in self.slices.joined)
        # A piece that went to a slice which was joined to another one then belongs to that.
        pairs += [(cell, pieces), (into, taken)]
        return cell

    def _revise(self, passage: Passage) -> list[pa.RecordBatch]:
        """Update mode: rows that late events have changed, and sessions that have ended."""
        slices = self.slices
        again = slices.revisited.astype(np.int64)
        over = slices.table["reach"][again] < passage.point
        passage.ended = np.concatenate([passage.popped, again[over]])
        passage.later = (again[~over], slices.table["reach"][again[~over]])
        passage.shown, now = passage.ended, slices.table[passage.ended]
        seen = self._seen(now)
        if seen is not None:
            passage.shown, now = passage.ended[seen], now[seen]
        emission = Emission(self, passage.shown)
        passage.revision = np.zeros(len(now), np.int64)
        images, rows = slices.changed
        if not len(images):
            if len(now):
                emission.change(self._due(now, np.arange(len(now))), "insert", passage.revision)
            return emission.batches
        same = _same(images, slices.table[rows])
        gone = images[~same]
        if len(gone):
            none = np.zeros(len(gone), np.int64)
            emission.change(self._due(gone, none, none), "delete", gone["revision"].astype(np.int64) + 1)
        known = np.isin(passage.shown, rows[same])
        passage.revision[known] = now["revision"][known] + 1
        for op, which in (("update", known), ("insert", ~known)):
            if which.any():
                due = self._due(now[which], np.flatnonzero(which))
                emission.change(due, op, passage.revision[which])
        return emission.batches

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
        if self.settings.mode == "update":
            table["flags"][passage.shown] |= EMITTED
            table["revision"][passage.shown] = passage.revision
            slices.forget_changes()
            self.ending.push(slices, passage.ended)
            final = self.ending.pop(slices, passage.horizon)
            slices.take_out(final, for_good=True)
        elif self.passes_up:
            final = different(np.concatenate([passage.ended, passage.pairs[1]]), slices.capacity)
            self.absorb_others(*passage.pairs, 1)
            self.waiting.push(slices, slices.born)
        else:
            final = passage.ended
            slices.take_out(final, for_good=True)
        self.waiting.push(slices, *passage.later)
        self.watermark = watermark
        if len(final):
            self._free(final)
            self._forget_events()
            self._shrink()

    def merged(self, store: Numbers, due: Due, slots: np.ndarray, keys: int) -> Merged:
        if due.covered > len(due):
            return super().merged(store, due, slots, keys)
        cells = slots[due.first]
        return [column[cells] for column in store.fields], store.n[cells]

    def answer(self, answer: Answer, due: Due, slots: np.ndarray, rows: Any, decoders: Any) -> pa.Array:
        if isinstance(answer.store, Log):
            # Events are kept by lane.
            lane = np.argsort(self.lanes.spec)[due.spec[rows[0]]]
            rows = (rows[0], rows[1] * len(self.lanes) + lane)
        return super().answer(answer, due, slots, rows, decoders)

    # -- memory ----------------------------------------------------------------------------------

    def _forget_events(self) -> None:
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
        near = 0 if self._lasting else static
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
        self.waiting.push(self.slices, np.flatnonzero(flags & (EMITTED | TOUCHED) == 0))

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
        self._renumber_events((live[:, None] * count + np.arange(count)).ravel())
        self.place(rows, slots, 2 * len(slots) + 8)

    def _renumber_events(self, lanes: np.ndarray) -> None:
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

    takes_windows = True

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
        """Answer one more window; its first complete start, None if all are.

        Its sessions are made of those of the next smaller gap, as far back as these are there; the smallest one sees
        events from now on.
        """
        if window.gap_column is not None and self.highest_time is not None:
            raise QueryError(
                f"window {name!r} cannot be added to a running operator: how far earlier events reach is not known"
            )
        check_types(name, window, self.binding.types, self.measure)
        old = self.lanes
        self.with_windows({**self.query.windows, name: window})
        self.lanes = Lanes.of(dict(self.query.windows), self.measure)
        at = self.lanes.spec.tolist().index(len(self.query.windows) - 1)
        self._spread([j + (j >= at) for j in range(len(old))], len(old))
        start = self._complete_start(at)
        if start is not None:
            self.complete_from["window " + name] = start
        try:
            if 0 < at < self.lanes.static:
                self._copy_events(at)
                if not self.passes_up:
                    self._hand_up(at - 1, keep=True)
        except BaseException:
            self.remove_window(name)
            raise
        return start

    def _copy_events(self, at: int) -> None:
        """Let a lane have the single events of the one below it."""
        lanes = np.arange(self.owners)
        above = np.where(lanes % len(self.lanes) == at - 1, lanes + 1, -1)
        for _, log in self.binding.logs:
            log.share(above)

    def _complete_start(self, at: int) -> Tick | None:
        """From which start on a window is complete that was just added in lane `at`."""
        if self.highest_time is None:
            return None if self.watermark is None else next_after(self.watermark)
        gap = self.lanes.gap[at] if at < self.lanes.static else 0
        if at == 0 or at >= self.lanes.static:
            return next_after(self.highest_time + gap)
        below, further = self.complete_from.get(self._told(at - 1)), gap - self.lanes.gap[at - 1]
        floors = [] if below is None else [below + further]
        if self.watermark is not None:
            # What is gone from the lane below reached less far than the horizon.
            floors.append(next_after(self.horizon(self.watermark) + further))
        return max(floors, default=None)

    def _told(self, j: int) -> str:
        """What `complete_from` calls the window of a lane."""
        return "window " + list(self.query.windows)[self.lanes.spec[j]]

    def _hand_up(self, j: int, *, keep: bool) -> None:
        """Make the sessions of lane j parts of those of lane j + 1; with `keep` they stay where they are, too.

        Nothing changes if a function of the user's fails.
        """
        slices, count = self.slices, len(self.lanes)
        there = slices.in_order()
        pieces = there[slices.table["lane"][there] % count == j]
        staged = Staged()
        pairs: list[tuple[np.ndarray, np.ndarray]] = []
        slices.begin()
        staged.on_rollback(slices.rollback)
        try:
            if not keep:
                slices.take_out(pieces)
            self._receive(pieces, j + 1, pairs)
            into, taken = (np.concatenate(columns) for columns in zip(*pairs, strict=True))
            into, taken = slices.resolved(into, taken)
            self.absorb_own(into, taken, 1, staged)
        except BaseException:
            staged.rollback()
            raise
        for store in (self.presence, *(other for _, other in self.binding.others)):
            if keep and isinstance(store, Multisets):
                store.copy(into, taken)
            else:
                store.absorb(into, taken, 1)
        self.waiting.push(slices, slices.born)
        if not keep:
            self._free(taken)

    def remove_window(self, name: str) -> None:
        """Stop answering a window; what the next larger gap needs of it is passed up."""
        old, spec = self.lanes, list(self.query.windows).index(name)
        j = old.spec.tolist().index(spec)
        if self.passes_up and j < old.static - 1:
            self._hand_up(j, keep=False)
        self.with_windows({n: w for n, w in self.query.windows.items() if n != name})
        self.lanes = Lanes.of(dict(self.query.windows), self.measure)
        self._spread([i - (i > j) if i != j else -1 for i in range(len(old))], len(old))
        self.complete_from.pop("window " + name, None)

    def _spread(self, places: list[int], old: int) -> None:
        """Lane j of each key, of `old` lanes, becomes lane places[j], or is forgotten if that is -1."""
        slices, count, new = self.slices, len(self.lanes), np.array(places)
        slots = slices.in_order()
        rows, images = slices.table[slots], slices.changed[0].copy()
        slots, rows = slots[new[rows["lane"] % old] >= 0], rows[new[rows["lane"] % old] >= 0]
        images = images[new[images["lane"] % old] >= 0]
        for moved in (rows, images):
            moved["lane"] = moved["lane"] // old * count + new[moved["lane"] % old]
        keys = np.arange(self.keys.count)[:, None]
        known = np.full(count, -1)
        known[new[new >= 0]] = np.flatnonzero(new >= 0)
        # A lane that is new has no events: the number that it had is one that no lane had.
        lanes = np.where(
            known >= 0, keys * old + known, self.keys.count * (old + count) + keys * count + np.arange(count)
        )
        self._renumber_events(lanes.ravel())
        self.place(rows, slots, 2 * len(slots) + 8)
        slices.changed = images

    def make_store(self, store: Store) -> Tick | None:
        store.repack(NONE, self.slices.capacity, 1, slice(0, 0))
        return None if self.highest_time is None else next_after(self.highest_time)

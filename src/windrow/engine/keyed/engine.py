"""The engine for sessions, snapshots, counts and windows that the data places.

    stage(events)      sort by key and time -> cut -> fold into slices of their own -> join to neighbours
    due(watermark)     windows due -> ranges of slices -> merge, lower; pass_to(watermark) lets go of what is final

Where a window depends on the order of events (`Order`), events wait in `Pending` until the horizon has
passed them, so that slices are only ever made of events whose order is known. In update mode windows
are also given out before they are final: each advance then looks ahead from the horizon to the
watermark, on copies, and forgets what it saw.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from windrow.engine.columns import takeable
from windrow.engine.completeness import next_after
from windrow.engine.cutting import Cells, Runs
from windrow.engine.emission import Emission
from windrow.engine.engine import Engine, Foldable
from windrow.engine.keyed.arena import Arena
from windrow.engine.keyed.changelog import Changelog, on_record
from windrow.engine.keyed.cutting import by_key_and_time, give_to_events
from windrow.engine.keyed.ledger import Given
from windrow.engine.keyed.order import Order, places
from windrow.engine.keyed.pending import Chunk, Pending, Released
from windrow.engine.keyed.slices import KeyedSlices
from windrow.engine.keyed.time_windows import TimeWindows
from windrow.engine.keyed.timed import together
from windrow.engine.keys import Keys
from windrow.engine.loads import Events, Parcel
from windrow.engine.partials import Log, Store
from windrow.engine.sequence import bad_rows, check_types, discretizers_for
from windrow.engine.staging import Staged
from windrow.engine.windows import Due
from windrow.errors import LimitError, QueryError
from windrow.measure import Tick
from windrow.options import OperatorOptions
from windrow.spec import QuerySpec

# So many slices may be alive before it is worth a look whether some can be joined.
UNJOINED = 64


@dataclass
class Passage:
    """What is known between `due` and `pass_to`: the horizon then, order and waiting events before, in update mode
    what has been given out, and the strings that are new."""

    horizon: Tick
    order: Order | None
    waiting: Pending
    given: Given | None = None
    staged: Staged = field(default_factory=Staged)


class Keyed(Engine):
    """See the module."""

    def __init__(
        self, query: QuerySpec, settings: OperatorOptions, schema: pa.Schema, keys: Keys | None = None
    ) -> None:
        super().__init__(query, settings, schema, keys)
        for name, window in query.windows.items():
            if window.layout != "ordered":
                check_types(name, window, self.binding.types, self.measure)
        self.timed = TimeWindows(query.windows, self.windows, self.clamp(self.highest))
        dtype = self.measure.dtype
        ordered = any(w.layout == "ordered" for w in query.windows.values())
        self.arena = Arena(self, self.timed.dynamic, ranked=ordered)
        self.changelog = Changelog(dtype)
        self.waiting = Pending()
        discretizers = discretizers_for(query.windows, self.measure, self.binding.types)
        self.order = Order(dtype, discretizers) if discretizers else None
        self.frontier: Tick = self.lowest - 1
        self.threshold: Tick = self.lowest
        self.born: Tick | None = None
        self._unjoined = UNJOINED
        self._passage: Passage | None = None

    @property
    def slices(self) -> KeyedSlices:
        return self.arena.slices

    def reach(self) -> tuple[Tick, Tick]:
        low, high = self.windows.reach
        before: Tick = 0
        behind: Tick = 1
        for window in self.query.windows.values():
            back, ahead = window.begins_before, window.ends_after
            before = before if back is None else max(before, self.measure.ticks(back, what="length"))
            behind = behind if ahead is None else max(behind, self.measure.ticks(ahead, what="length"))
        return max(low, self.measure.lowest + before), min(high, self.measure.highest - behind - 1)

    def clamp(self, tick: Tick) -> Tick:
        return min(max(tick, self.lowest - 1), self.measure.highest)

    # -- events in -------------------------------------------------------------------------------

    def bad_values(self, batch: pa.RecordBatch) -> list[tuple[str, np.ndarray, str]]:
        found = super().bad_values(batch)
        for window in self.query.windows.values():
            found += bad_rows(window, batch, self.measure)
        return found

    def too_late(self, load: Events | Parcel) -> tuple[np.ndarray, np.ndarray] | None:
        """Masks of the events that are too late for all windows, and of those among them that have one.

        Where order matters, an event must not lie before the frontier.
        """
        horizon = self.clamp(self.lowest - 1) if self.watermark is None else self.horizon(self.watermark)
        times = load.times
        if load.scan[0] >= horizon and self.born is None:
            return None
        if self.order is not None:
            before = times < max(horizon, self.frontier)
            if self.born is not None:
                before |= times <= self.born
            return before, before
        return self.timed.too_late(load.batch, times, horizon, self.threshold)

    def partly_late(self, load: Events | Parcel) -> np.ndarray | None:
        """A mask of the events that have missed some of their windows, but not all; None: nobody has."""
        if self.watermark is None or load.scan[0] >= self.horizon(self.watermark):
            return None
        horizon = self.horizon(self.watermark)
        missed = load.times < horizon
        missed[missed] = self.timed.partly_late(load.times[missed], horizon)
        return missed

    def _stage(self, load: Events | Parcel, staged: Staged) -> None:
        """Take in events, or put slices of elsewhere among those that are here."""
        if isinstance(load, Parcel):
            self._prepare_slices(load, staged)
            return
        self.require_room(len(load))
        if self.order is None:
            self._prepare_events(load, staged)
        else:
            self._let_wait(load, staged)
        staged.on_commit(partial(self._note, load))

    def _prepare_slices(self, parcel: Parcel, staged: Staged) -> None:
        if self.order is not None:
            raise QueryError(
                "slices cannot be taken by an operator that waits for the order of single events"
            )
        low, high, _ = parcel.scan
        key = np.zeros(len(parcel), np.int64) if parcel.numbers is None else parcel.numbers.astype(np.int64)
        order = np.lexsort((parcel.times, key))
        placed, key = parcel.where(order), key[order]
        edges = self.timed.edges_of(placed.times, low, high)
        reach = np.empty((0, len(placed)), edges.dtype)
        new = self.arena.new(key, placed.times, placed.last, edges, reach)
        staged.on_rollback(partial(self.arena.give_back, new.slot))
        self.join(new.slot, placed, staged, fresh=True)
        self._prepare_join(new, placed.sizes, staged)
        staged.on_commit(partial(self._note, parcel))

    def _prepare_join(self, new: KeyedSlices, sizes: np.ndarray, staged: Staged) -> None:
        """Put new slices, which hold `sizes` events, among the others, joined where nothing separates them."""
        slices, into, taken = self.slices.insert(new, self.timed.gap, self.timed.pointwise)
        if len(taken):
            self.absorb_own(into, taken, 1, staged)

        def commit() -> None:
            self.presence.n[new.slot] = sizes
            if len(taken):
                self.absorb_others(into, taken, 1)
            self.arena.replace(slices, taken)

        staged.on_commit(commit)

    def _note(self, load: Events | Parcel) -> None:
        """Know how far time has come, and what may have to be revised."""
        if self.settings.mode == "update" and self.watermark is not None and load.scan[0] <= self.watermark:
            self.changelog.note_late(load.times, load.numbers, self.watermark, self.keys.count)
        self.highest_time = load.high if self.highest_time is None else max(self.highest_time, load.high)

    def _let_wait(self, events: Events, staged: Staged) -> None:
        times, numbers = events.times, events.numbers
        limit = self.settings.max_slices
        if len(self.waiting) + len(times) > limit:
            raise LimitError(
                f"{len(self.waiting) + len(times):,} events would wait for the watermark, more than the limit of "
                f"max_slices={limit:,}; nothing of this batch was taken: advance the watermark more often, "
                "lower the lateness, or raise max_slices"
            )
        needed = takeable(events.batch, self.binding.value_columns)
        chunk = Chunk(needed, times, events.arrival, numbers, events.scan[2])

        def commit() -> None:
            assert self.order is not None
            if self.binding.logs:
                self.keep(Foldable(self.encode(needed), times, chunk.arrivals()), numbers, None)
            self.waiting.add(chunk)
            self.order.grow(self.keys.count)

        staged.on_commit(commit)

    def _prepare_events(self, events: Events, staged: Staged) -> None:
        times, numbers = events.times, events.numbers
        stamps = events.arrival + np.arange(len(times)) if self.binding.needs_arrival else times[:0]
        segments: Runs | Cells
        if numbers is None and self.timed.takes_cells(*events.scan[:2]):
            new, segments, sizes = self._cut_by_cells(times, events.scan)
        else:
            new, segments, sizes = self._cut_sorted(events.batch, times, numbers, events.scan)
        staged.on_rollback(partial(self.arena.give_back, new.slot))
        foldable = Foldable(self.encode(events.batch, staged), times, stamps, events.rows)
        self.fold(foldable, segments, own=True)
        staged.on_commit(partial(self.fold, foldable, segments, own=False))
        self._prepare_join(new, sizes, staged)
        staged.on_commit(partial(self.keep, foldable, numbers, None))

    def _cut_by_cells(
        self, times: np.ndarray, scan: tuple[Tick, Tick, bool]
    ) -> tuple[KeyedSlices, Runs | Cells, np.ndarray]:
        """Slices of one key, cut at fixed edges and into cells that no gap fits in; nothing is sorted."""
        found = self.timed.cut_into_cells(times, scan)
        first, last = found.extents(times, *scan[:2])
        reach = np.empty((0, len(first)), times.dtype)
        edges = self.timed.edges_of(first, *scan[:2])
        new = self.arena.new(np.zeros(len(first), np.int64), first, last, edges, reach)
        return new, found.place(new.slot, None, len(times)), found.sizes

    def _cut_sorted(
        self,
        batch: pa.RecordBatch,
        times: np.ndarray,
        numbers: np.ndarray | None,
        scan: tuple[Tick, Tick, bool],
    ) -> tuple[KeyedSlices, Cells, np.ndarray]:
        """Slices of many keys, from events sorted by key and time."""
        order, keys, bounds = by_key_and_time(times, numbers, self.keys.count, ordered=scan[2])
        reach = self.timed.reach_of(batch, times)
        if order is None:
            order = np.arange(len(times))
        times, reach = times[order], reach[:, order]
        new, low, high = self._cut(times, keys, bounds, reach, np.empty(0, np.int64), *scan[:2])
        cell = np.empty(len(times), np.int64)
        give_to_events(low, high, new.slot, order, cell)
        return new, Cells(cell), high - low

    def _cut(
        self,
        times: np.ndarray,
        keys: np.ndarray,
        bounds: np.ndarray,
        reach: np.ndarray,
        marks: np.ndarray,
        low_time: Tick,
        high_time: Tick,
    ) -> tuple[KeyedSlices, np.ndarray, np.ndarray]:
        """Slices of sorted events, and the events of each."""
        pieces = self.timed.cut(times, bounds, reach, marks, low_time, high_time)
        first, last = times[pieces.low], times[pieces.high - 1]
        furthest = np.maximum.reduceat(reach, pieces.low, axis=1) if len(reach) else reach[:, : len(first)]
        new = self.arena.new(keys[pieces.segment], first, last, pieces.edge, furthest)
        return new, pieces.low, pieces.high

    # -- events whose order is known -------------------------------------------------------------

    def _release(self, waiting: Pending, frontier: Tick, *, finished: bool) -> None:
        """Take in all events up to the frontier, in order; `_look_back` takes it back.

        Their slices stay apart from those that were there, so that nothing of these changes.
        """
        assert self.order is not None
        while True:
            part, waiting.chunks = waiting.upto(frontier, self.keys.count)
            if part is None:
                break
            new = self._digest(part, frontier)
            self.arena.slices = self.slices.with_new(new)
        self.order.pass_time(frontier, finished=finished)

    def _look_back(self, order: Order | None) -> None:
        """Go back to an order that was: the slices of events that were released since are forgotten."""
        if order is not None and self.order is not order:
            self.order = order
            alive = self.slices.rank < order.seen[self.slices.key]
            gone = self.slices.slot[~alive]
            self.arena.keep(alive)
            # Nothing must refer to strings that may be forgotten, too.
            for store in self.stores():
                store.reset(gone)

    def _digest(self, part: Released, frontier: Tick) -> KeyedSlices:
        """Slices of released events, folded."""
        assert self.order is not None
        chunk = part.chunk
        before = self.order.seen[part.keys]
        marks = self.order.digest(part, self.slices, frontier)
        reach = self.timed.reach_of(chunk.batch, chunk.time)
        new, low, high = self._cut(chunk.time, part.keys, part.bounds, reach, marks, *chunk.extent)
        segment = np.searchsorted(part.bounds, low, side="right") - 1
        new.ranked[0] = before[segment] + low - part.bounds[segment]
        new.ranked[1] = np.isin(low, marks, assume_unique=True, kind="sort")
        new.ranked[2], new.ranked[3] = chunk.arrivals(low), chunk.arrivals(high - 1)
        segments = Runs(low, high, new.slot)
        try:
            stamps = chunk.arrivals() if self.binding.needs_arrival else chunk.time[:0]
            staged = None if self._passage is None else self._passage.staged
            foldable = Foldable(self.encode(chunk.batch, staged), chunk.time, stamps)
            self.fold(foldable, segments, own=True)
            self.fold(foldable, segments, own=False)
        except BaseException:
            self.arena.give_back(new.slot)
            raise
        self.presence.n[new.slot] = high - low
        return new

    # -- watermarks and results ------------------------------------------------------------------

    @property
    def keys_per_window(self) -> int:
        """For how many keys each window is answered."""
        return 1

    def due(self, watermark: Tick) -> list[pa.RecordBatch]:
        bottom = self.clamp(self.lowest - 1)
        old = bottom if self.watermark is None else self.emission_point(self.watermark)
        point, finished = self.emission_point(watermark), watermark >= self.measure.highest
        horizon = self.measure.highest if finished else self.horizon(watermark)
        if finished:
            point = self.measure.highest
        self._passage = Passage(horizon, self.order, self.waiting)
        try:
            if self.order is not None:
                self.order, self.waiting = self.order.copy(), Pending(self.waiting.chunks)
                self._release(self.waiting, horizon, finished=finished)
            if self.settings.mode == "update":
                return self._revise(old, point, finished=finished).batches
            emission = Emission(self, self.slices.slot)
            for due in self._due(old, point):
                emission.change(due, "insert", np.zeros(len(due), np.int64))
        except BaseException:
            self.abandon()
            raise
        return emission.batches

    def abandon(self) -> None:
        assert self._passage is not None
        self.waiting = self._passage.waiting
        self._look_back(self._passage.order)
        self._passage.staged.rollback()
        self._passage = None

    def pass_to(self, watermark: Tick) -> None:
        assert self._passage is not None
        passage, self._passage = self._passage, None
        if passage.given is not None:
            self.changelog.given = passage.given
            self.changelog.dirty[:] = False
        if self.order is not None:
            self.frontier = passage.horizon
            self.arena.coalesce(self.slices.leads(self.timed.gap, self.timed.pointwise))
        self.watermark = watermark
        self._let_go(passage.horizon)

    def _due(self, after: Tick, until: Tick, *, fresh: bool = False) -> list[Due]:
        """Windows that end in (after, until] and hold an event.

        `fresh` leaves out windows that order places and that end earlier, but were not known then.
        """
        if not len(self.slices):
            return []
        near = self.near(after), self.near(until)
        parts = self.timed.due(self.slices, after, until, near)
        if self.order is not None:
            finished, since = until >= self.measure.highest, after if fresh else None
            parts.append(self.order.due(self.slices, since, until, finished=finished))
        for name, floor in self.complete_from.items():
            if name.startswith("window "):
                spec = self.windows.names.index(name.removeprefix("window "))
                parts = [due.where((due.spec != spec) | (due.start >= floor)) for due in parts]
        return [due for due in parts if len(due)]

    def _revise(self, old: Tick, point: Tick, *, finished: bool) -> Emission:
        """The changes since the last advance: windows revised, replaced, and given out for the first time."""
        order = self.order
        try:
            if order is not None and not finished:
                self.order = order.copy()
                self._release(Pending(self.waiting.chunks), point, finished=False)
            emission = Emission(self, self.slices.slot)
            changelog, dtype = self.changelog, self.measure.dtype
            changelog.grow(self.keys.count)
            given = changelog.given
            if changelog.dirty.any():
                assert self.watermark is not None
                now = together(self._due(self.horizon(self.watermark), old), dtype)
                given = changelog.revise(emission, now, self.slices, self.presence)
            due = together(self._due(old, point, fresh=True), dtype)
            fresh = on_record(due, self.slices, self.presence)
            emission.change(due, "insert", fresh.revision)
        finally:
            self._look_back(order)
        assert self._passage is not None
        self._passage.given = given.with_more(fresh)
        return emission

    # -- letting go ------------------------------------------------------------------------------

    def _let_go(self, horizon: Tick) -> None:
        """Drop what no window needs any more: slices, events, memory."""
        near = self.near(horizon)
        self.threshold = max(self.threshold, self.timed.first_needed(near))
        if self.order is not None:
            waiting = self.order.waiting
            self.order.waiting = waiting.where(waiting.finish > horizon)
        self.changelog.forget(self.timed.inclusive, horizon)
        alive = self.timed.alive(self.slices, horizon, self.threshold)
        if self.order is not None and len(self.slices):
            alive |= self.slices.rank >= self.order.needed()[self.slices.key]
        if not alive.all():
            self.arena.keep(alive)
            self._forget_events()
        self._coalesce(horizon)
        self.arena.shrink()

    def _forget_events(self) -> None:
        """Events of logs that lie before the first live slice of their key, and are not waiting."""
        logs = [store for store in self.binding.stores.values() if isinstance(store, Log)]
        if not logs:
            return
        first = np.full(self.keys.count, self.frontier, self.measure.dtype)
        if self.order is None:
            first[:] = self.threshold if self.highest_time is None else min(self.highest_time, self.threshold)
        np.minimum.at(first, self.slices.key, self.slices.first)
        for log in logs:
            log.evict_before(first)
            if self.timed.dynamic and self.order is None:
                # A late event may reach over sessions that are final; their events must not be found again.
                log.keep_within(self.slices.key, self.slices.first, self.slices.last)

    def _coalesce(self, horizon: Tick) -> None:
        """Join slices between which no window that is not final begins or ends."""
        slices = self.slices
        if len(slices) <= self._unjoined:
            return
        near = self.near(horizon)
        apart = self.timed.apart(slices, horizon, near, self.threshold)
        apart[:1] = True
        apart[1:] |= (np.diff(slices.key) != 0) | (slices.closed[1:] != slices.closed[:-1])
        if self.order is not None:
            key, rank = self.order.boundaries()
            at = places(slices, key, rank)
            apart[at[(at >= 0) & (at < len(slices))]] = True
            tail = self.order.tail()
            if tail is not None:
                apart |= slices.rank >= tail[slices.key]
        self.arena.coalesce(apart)
        self._unjoined = 2 * len(self.slices) + UNJOINED

    @property
    def forgets_keys(self) -> bool:  # type: ignore[override]
        """Not where a key's count goes on."""
        return self.order is None

    def live_keys(self) -> np.ndarray:
        live = np.zeros(self.keys.count, bool)
        live[self.slices.key] = True
        live[self.changelog.given.key] = True
        return live

    def renumber(self, live: np.ndarray) -> None:
        self.slices.key = np.searchsorted(live, self.slices.key)
        self.changelog.renumber(live)
        for store in self.binding.stores.values():
            if isinstance(store, Log):
                store.renumber(live)

    @property
    def pending(self) -> int:
        """How many events wait for their order to be known."""
        return len(self.waiting)

    @property
    def cells(self) -> int:
        """How many slices are alive."""
        return len(self.slices)

    @property
    def nbytes(self) -> int:
        order = 0 if self.order is None else self.order.nbytes
        kept = self.slices.nbytes + self.changelog.given.nbytes + self.waiting.nbytes + order
        return sum(s.nbytes for s in self.stores()) + kept

    # -- queries that change while they run ------------------------------------------------------

    def begin_after(self, newest: Tick) -> Tick:
        """Begin in a running stream whose newest event is at `newest`: the first complete start."""
        if any(origin <= newest for origin in self.windows.origins.values()):
            raise QueryError(
                f"{self._names()} cannot be added: events since its landmark have passed and were not kept for it"
            )
        if self.order is not None:
            self.born = newest
        if self.timed.dynamic:
            raise QueryError(
                f"{self._names()} cannot be added to a running operator: how far earlier events reach is not known"
            )
        longest = self.timed.sessions.ticks.max(initial=0).item()
        return next_after(newest + longest)

    def _names(self) -> str:
        return "window " + ", ".join(map(repr, self.query.windows))

    def remove_window(self, name: str) -> None:
        """Stop answering a window; if it was the last one that needs order, events wait no longer."""
        spec = self.windows.names.index(name)
        rest = {n: w for n, w in self.query.windows.items() if n != name}
        if self.order is not None:
            order = self.order.copy()
            order.remove(spec)
            if not order.discretizers:
                self._end_order(order)
            else:
                self.order = order
        self.arena.slices = self.timed.sessions.without(spec, self.slices)
        self.with_windows(rest)
        self.timed = TimeWindows(self.query.windows, self.windows, self.clamp(self.highest))
        self.complete_from.pop("window " + name, None)
        self.changelog.remove(spec)
        self._refit()

    def _end_order(self, without: Order) -> None:
        """Take in all events that wait, and no longer ask for order; `without` has no windows any more.

        Nothing changes if a function of the user's fails on one of them.
        """
        order = self.order
        try:
            self.order = without
            self._release(Pending(self.waiting.chunks), self.measure.highest, finished=False)
        except BaseException:
            self._look_back(order)
            raise
        self.order, self.waiting = None, Pending()
        self.arena.slices = replace(self.slices, ranked=self.slices.ranked[:0])
        self.arena.coalesce(self.slices.leads(self.timed.gap, self.timed.pointwise))
        self.changelog.forget_order()

    def remove_aggregate(self, name: str) -> None:
        super().remove_aggregate(name)
        self._refit()

    def _refit(self) -> None:
        """Let the events that wait have the columns that are read now."""
        self.waiting.fit(self.binding.value_columns, self.binding.schema)

    def make_store(self, store: Store) -> Tick | None:
        store.repack(self.slices.slot[:0], self.arena.capacity, 1, slice(0, 0))
        self._refit()
        return None if self.highest_time is None else next_after(self.highest_time)

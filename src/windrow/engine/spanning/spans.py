"""Span events in windows of time: a component of the engine, beside its slices of what begins in them.

    slices           [0, 4)      [4, 6)      [9, 12)         as for points
    begins              3           -           7            one cell per slice and key, as points at their starts
    carry-over          -           2           1            what goes on across the start of the slice, from before

    window = the carry-over of its first slice + what begins in its slices

Each event of a window is in one of the two, and in one only, so that nothing is counted twice (the aim of the two-part
slices of Suzanne et al., section 3.2.2). What begins is folded and merged by the engine itself; beside it are a `carry_over`
for each store of numbers; aggregates that need single events have a `SpanLog` as their store. Prorated events are `pieces`, which are folded
where they lie; a carry-over then counts which windows exist, and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Any

import numpy as np

from windrow.engine.aligned.edges import are_few, edges_in, neighbours, stretched
from windrow.engine.aligned.engine import Aligned
from windrow.engine.arrays import as_run
from windrow.engine.binding import Answer
from windrow.engine.completeness import first_start, next_after
from windrow.engine.engine import Foldable, Merged, inputs_of
from windrow.engine.functions.store_compatibility import has_exact_inverse
from windrow.engine.intake.batches import BEGINS, ENDS, CarryOver, EventBatch, PartialBatch
from windrow.engine.partials import Numbers, SpanLog, Store
from windrow.engine.partials.loops import absorb_rows
from windrow.engine.spanning.carry_over import Crossings, Differences
from windrow.engine.spanning.pieces import pieces
from windrow.engine.spanning.placing import (
    Grid,
    Placed,
    cross,
    find_even_slices,
    find_slices,
    positions,
    segments_of,
    step_of,
    table_of,
)
from windrow.engine.staging import Staged
from windrow.engine.windows import ClosedWindows
from windrow.errors import LimitError, QueryError
from windrow.measure import Tick
from windrow.planner.window_set import WindowSet


class Spans:
    """The component of one engine; see `base.SpanState` for what the engine asks of it."""

    def __init__(self, engine: Aligned) -> None:
        self._engine = engine
        self._prorated = engine.part.is_prorated
        # By the ids of the stores that they belong to.
        self.carry_overs: dict[int, Differences | Crossings] = {
            id(store): Differences(store) for store in (engine.fresh, engine.presence)
        }
        self._crossed: tuple[ClosedWindows, bool, np.ndarray, np.ndarray] | None = None
        self._carries: list[Callable[[], None]] = []
        # Slices of elsewhere are made for what goes on before it is known up to when.
        engine.may_have_empty_slices = True
        for answer in engine.binding.answers.values():
            self._accompany(answer)
        self.arrange()

    def _accompany(self, answer: Answer) -> None:
        """Give a store what it needs for events that go on, which pieces do not."""
        store = answer.store
        if self._prorated or id(store) in self.carry_overs or not isinstance(store, Numbers):
            return
        exact = has_exact_inverse(answer.bound)
        self.carry_overs[id(store)] = Differences(store) if exact else Crossings.beside(store)

    def arrange(self) -> None:
        """All carry-overs, in an order that depends on the query alone."""
        late = [self._engine.fresh] if self._engine.settings.mode == "update" else []
        stores = (id(store) for store in (*late, *self._engine.binding.in_order))
        self._in_order = [self.carry_overs[store] for store in stores if store in self.carry_overs]

    @property
    def _differences(self) -> list[Differences]:
        return [each for each in self._in_order if isinstance(each, Differences)]

    @property
    def carries(self) -> list[Numbers]:
        """What goes on from before the first slice."""
        return [each.carry for each in self._differences]

    @property
    def stores(self) -> list[Numbers]:
        return [store for each in self._in_order for store in each.stores]

    def holders(self, store: Store) -> Sequence[Any]:
        beside = self.carry_overs.get(id(store))
        return (store,) if beside is None else (store, *beside.stores)

    # -- events in -------------------------------------------------------------------------------

    def too_late(self, incoming: EventBatch | PartialBatch) -> tuple[np.ndarray, np.ndarray] | None:
        if isinstance(incoming, PartialBatch):
            return None
        assert incoming.lasts is not None
        late = incoming.last_scan[0] < self._engine.late_before
        return self._engine.missed(incoming.times, incoming.lasts) if late else None

    def stage(self, incoming: EventBatch | PartialBatch, staged: Staged) -> None:
        if isinstance(incoming, PartialBatch):
            self._join(incoming, staged)
            return
        self._engine.require_room(len(incoming))
        placed, grid = self._place(incoming, staged)
        if self._prorated:
            staged.on_commit(partial(self._fold_pieces, incoming, grid))
        else:
            foldable = self._foldable(incoming, staged)
            self._engine.fold(foldable, placed, own=True, staged=staged)
            staged.on_commit(partial(self._engine.fold, foldable, placed, own=False))
            staged.on_commit(partial(self._log, foldable, incoming))
        staged.on_commit(partial(self._count_all, incoming, placed))

    def _fold_pieces(self, events: EventBatch, grid: Grid) -> None:
        """Shares are given to aggregates that cannot fail: none is the user's own."""
        engine = self._engine
        for rows, event, cells in pieces(events, engine.binding.value_columns, grid):
            engine.fold(Foldable(engine.encode(rows), event, event), cells, own=False)

    def _foldable(self, events: EventBatch, staged: Staged) -> Foldable:
        engine = self._engine
        stamps = events.arrivals if engine.binding.needs_arrival else events.times[:0]
        return Foldable(engine.encode(events.batch, staged), events.times, stamps, events.rows)

    def carry_on(self, events: EventBatch) -> Staged:
        """Fold open events as far as they go on: all of it at once, so that windows can be answered before it is committed."""
        engine, staged = self._engine, Staged()
        try:
            events.number(engine.keys, staged)
            engine.make_room_for_keys()
            placed, _ = self._place(events, staged)
            foldable = self._foldable(events, staged)
            known = engine.fresh_seen, engine.highest_time, list(engine.touches)
            staged.on_rollback(partial(self._return_to, *known))
            for own in (True, False):
                engine.fold(foldable, placed, own=own, staged=staged)
            self._count_all(events, placed, staged)
        except BaseException:
            staged.rollback()
            raise
        return staged

    def _return_to(self, fresh_seen: bool, highest_time: Tick | None, touches: list[np.ndarray]) -> None:
        engine = self._engine
        engine.fresh_seen, engine.highest_time, engine.touches = fresh_seen, highest_time, touches
        for each in self._differences:
            each.forget()

    def targets(self, store: Store, segments: Any) -> list[tuple[Any, Any]]:
        if isinstance(store, SpanLog):
            return []
        beside = self.carry_overs.get(id(store))
        return [(store, segments)] if beside is None else [(store, segments.begin), *beside.targets(segments)]

    def _count_all(self, events: EventBatch, placed: Placed, staged: Staged | None = None) -> None:
        """Know where events are, and which of them are late; cells are saved for a rollback if there is a `staged`."""
        engine = self._engine
        self._count(engine.presence, placed, staged)
        rows = engine.revising(events.times)
        if len(rows) and events.going is not None:
            rows = rows[self._revised_by(events.going, events.times)[rows]]
        if len(rows):
            self._count(engine.fresh, placed.only(rows), staged)
            engine.touch(placed.met)
        engine.note_time(events.high)

    def _count(self, store: Numbers, placed: Placed, staged: Staged | None) -> None:
        for target, where in self.targets(store, placed):
            if staged is not None:
                staged.on_rollback(target.saved_for(where))
            target.fold(where, [], ())

    def _revised_by(self, going: CarryOver, starts: np.ndarray) -> np.ndarray:
        """Which pieces may lie in windows that were given out, of events that begin before the watermark."""
        latest = self.given_out(self._engine.watermark)[0].max(initial=self._engine.lowest)
        return (going.since < starts) | (going.since < latest)

    def given_out(self, watermark: Any) -> tuple[np.ndarray, np.ndarray]:
        """The windows that have been given out at a watermark and begin last: starts, falling, and ends, rising.

        One that begins earlier than another and ends no later is left out: whoever lies in it lies in the other.
        """
        engine = self._engine
        latest: dict[Tick, Tick] = {}
        since = engine.there_from
        for name, start, end in engine.windows.last_closed(engine.emission_point(watermark)):
            if start >= since.get(name, start):
                latest[start] = max(end, latest.get(start, end))
        found: list[tuple[Tick, Tick]] = []
        for start, end in sorted(latest.items(), reverse=True):
            if not found or end > found[-1][1]:
                found.append((start, end))
        starts, ends = (np.array([pair[i] for pair in found], engine.measure.dtype) for i in range(2))
        return starts, ends

    def _place(self, events: EventBatch, staged: Staged) -> tuple[Placed, Grid]:
        """The cells of events, made where they do not exist, and their slices."""
        assert events.lasts is not None
        engine, count = self._engine, len(events)
        starts, lasts, again = events.times, events.lasts, np.empty(0, bool)
        if events.going is not None:
            # What was folded before is not folded again.
            again = events.going.since >= starts
            starts = np.where(again, events.going.since, starts)
        low_time = events.scan[0] if events.going is None else starts.min().item()
        edges = engine.slices.reconcile(self._edges(starts, lasts, low_time, events.high))
        # The first edge may be a sentinel far below; nothing that begins there is asked.
        inside = engine.windows.covers(edges[:-1]) if engine.windows.may_leave_gaps else None
        if inside is None:
            covered = np.arange(len(edges))
        else:
            covered = np.concatenate([[0], np.cumsum(inside)])
        first, last, begins, low, high = (np.empty(count, np.int32) for _ in range(5))
        upto = np.empty(count, np.int64)
        many = int(covered[-1])
        begun = np.zeros(many + 1, bool)
        entered, left = np.zeros(many + 2, np.int64), np.zeros(many + 2, np.int64)
        limit, step = edges.dtype.type(engine.threshold), self._step(edges)
        if step > 0:
            find_even_slices(starts, lasts, limit, edges[0], step, first, last)
        else:
            find_slices(starts, lasts, limit, edges, *table_of(edges), first, last)
        runs = (upto, begins, low, high)
        many_runs, crossings = cross(
            starts, lasts, again, limit, covered, first, last, *runs, begun, entered, left
        )
        goes_on = np.cumsum(np.subtract(entered, left, out=entered), out=left)[:many]
        met = as_run(np.flatnonzero(begun[1:] | (goes_on > 0)))
        where = met if inside is None else np.flatnonzero(inside)[met]
        met_starts = edges[:-1][where]
        slots = engine.slots_of(met_starts, edges[1:][where], staged)
        for each in self._differences:
            each.forget_crossed(low_time, starts, lasts)
        base = np.full(many + 1, -1)
        base[met] = slots * engine.stride
        found = tuple(column[:many_runs] for column in runs)
        placed = Placed(*segments_of(found, events.numbers, base, engine.keys.count), crossings, met_starts)
        by_edge = base
        if inside is not None:
            by_edge = np.full(len(inside), -1)
            by_edge[where] = base[met]
        return placed, Grid(edges, first, last, by_edge)

    def _step(self, edges: np.ndarray) -> Any:
        """The length of all slices between these edges; 0 if they are of several lengths, or it is not known."""
        windows, mixed = self._engine.windows, self._engine.slices.mixed_until
        regular = len(windows.periods) == 1 and not windows.irregular and not self._engine.measure.floating
        if not regular or (mixed is not None and edges[0] < mixed):
            return edges.dtype.type(0)
        return edges.dtype.type(step_of(edges, int(windows.periods[0])))

    def _edges(self, starts: np.ndarray, lasts: np.ndarray, low: Tick, high: Tick) -> np.ndarray:
        """All edges from the first start to behind the last instant, less long stretches without an event.

        `low` and `high` are the first start and the last instant of all. What lies before the threshold is not looked at, and counts as if it lay there.
        """
        engine, windows = self._engine, self._engine.windows
        low, high = max(low, engine.threshold), max(high, engine.threshold)
        if are_few(windows, low, high, len(starts)):
            return engine.edges.enclosing(starts, low, high, engine.clamp(engine.highest))
        starts, lasts = np.maximum(starts, engine.threshold), np.maximum(lasts, engine.threshold)
        order = np.argsort(starts, kind="stable")
        reached = np.maximum.accumulate(lasts[order])
        apart = np.flatnonzero(starts[order][1:] > reached[:-1]) + 1
        begin = starts[order][np.concatenate([[0], apart])]
        end = reached[np.concatenate([apart - 1, [len(starts) - 1]])]
        room = engine.settings.max_slices
        # Edges of several progressions may be the same, and up to every other slice may lie in no window.
        sure = len(windows.periods) == 1 and not windows.irregular and not windows.may_leave_gaps
        slices = stretched(windows, begin, end) - 4 * len(begin)
        if slices * engine.keys.count > (room if sure else 2 * room + 1_000_000):
            scalar = engine.measure.scalar
            raise LimitError(
                f"events that last from {scalar(low)} to {scalar(high)} cross up to {slices:,} "
                f"slices of {engine.keys.count:,} keys, more than the limit of max_slices={room:,} allows; nothing of this batch "
                "was taken: raise max_slices, or use longer windows"
            )
        return edges_in(windows, begin, end)

    def _log(self, foldable: Foldable, events: EventBatch, only: Container[int] | None = None) -> None:
        """Keep the events themselves where an aggregate needs them; in the logs `only`, known by their ids."""
        assert events.lasts is not None
        owners = np.zeros(len(events), np.int64) if events.numbers is None else events.numbers
        known = (owners, events.times, events.lasts, foldable.stamps)
        for columns, log in self._engine.binding.logs:
            if isinstance(log, SpanLog) and (only is None or id(log) in only):
                rows, inputs = inputs_of(foldable.encoded, columns)
                which = np.arange(len(events)) if rows is None else rows
                taken = [*(column[which] for column in known), *inputs]
                if events.going is None:
                    log.take(taken)
                else:
                    log.take_pieces(events.going.since[which], events.going.on[which], taken)

    def introduce(self, events: EventBatch) -> None:
        """Know open events in logs that are empty: they are of aggregates that were added since."""
        new = {id(log) for _, log in self._engine.binding.logs if not log.held}
        if new:
            engine = self._engine
            events.number(engine.keys, Staged())
            engine.make_room_for_keys()
            foldable = Foldable(engine.encode(events.batch), events.times, events.arrivals)
            self._log(foldable, events, only=new)

    # -- slices of elsewhere ---------------------------------------------------------------------

    def _join(self, parcel: PartialBatch, staged: Staged) -> None:
        """Join slices that were made elsewhere (see `partial_batches`) to those that are here."""
        engine = self._engine
        assert parcel.roles is not None
        if parcel.times.min() < engine.threshold:
            raise QueryError("slices of events that last must come in order of time")
        key = np.zeros(len(parcel), np.int64) if parcel.numbers is None else parcel.numbers
        order = np.argsort(parcel.times, kind="stable")
        times, role = parcel.times[order], parcel.roles[order]
        change = np.where(role == BEGINS, 1, np.where(role == ENDS, -1, 0)) * parcel.sizes[order]
        going = self._going_on() + np.cumsum(change)
        apart = np.flatnonzero(going[:-1] == 0) + 1
        begin = times[np.concatenate([[0], apart])]
        end = times[np.concatenate([apart - 1, [len(times) - 1]])]
        if going[-1]:
            # It first goes on at the start of the next slice.
            end[-1] = neighbours(engine.windows, times[-1:])[1][0]
        edges, base = self._make_slices(begin, end, staged)
        place = positions(parcel.times, edges)
        here = base[place] + key
        begun = np.where(parcel.roles != ENDS, here, -1)
        entered = np.where(parcel.roles == BEGINS, base[place + 1] + key, -1)
        left = np.where(parcel.roles == ENDS, here, -1)
        nothing: list[np.ndarray] = []
        partials = [(parcel.sizes, nothing), *parcel.partials]
        for store, (n, fields) in zip(engine.binding.in_order, partials, strict=True):
            beside = self.carry_overs[id(store)]
            assert isinstance(store, Numbers)
            assert isinstance(beside, Differences)
            for target, cells in ((store, begun), (beside.entered, entered), (beside.left, left)):
                staged.on_commit(partial(target.join, cells, fields, n))
            staged.on_commit(beside.forget)
        staged.on_commit(partial(engine.note_time, parcel.high))

    def reach(self, until: Tick) -> None:
        if self._going_on():
            begin = self._engine.slices.starts[-1:]
            self._make_slices(begin, np.maximum(begin, np.asarray(until, begin.dtype)), Staged())

    def _going_on(self) -> int:
        """How many events have begun, and not ended."""
        across, slots = self.carry_overs[id(self._engine.presence)], self._engine.slices.slots
        assert isinstance(across, Differences)
        entered, left = (s.n.reshape(-1, max(s.stride, 1))[slots].sum() for s in across.stores)
        return int(across.carry.n.sum() + entered - left)

    def _make_slices(
        self, begin: np.ndarray, end: np.ndarray, staged: Staged
    ) -> tuple[np.ndarray, np.ndarray]:
        """Edges, and the first cell of each slice between them; slices from each `begin` to its `end` are made."""
        engine = self._engine
        edges = engine.slices.reconcile(self._edges(begin, end, begin.min().item(), end.max().item()))
        marks = np.zeros(len(edges) + 1, np.int64)
        np.add.at(marks, positions(begin, edges), 1)
        np.add.at(marks, positions(end, edges) + 1, -1)
        met = np.flatnonzero(np.cumsum(marks) > 0)
        slots = engine.slots_of(edges[met], edges[met + 1], staged)
        base = np.full(len(edges) + 1, -1)
        base[met] = slots * engine.stride
        return edges, base

    # -- watermarks and results ------------------------------------------------------------------

    def prepare_evict(self, threshold: Tick) -> None:
        self._crossed = None
        slices, keys = self._engine.slices, self._engine.keys.count
        gone = slice(0, int(np.searchsorted(slices.starts, threshold)))
        self._carries = []
        if gone.stop:
            starts, slots = slices.starts[gone].copy(), slices.slots[gone]
            fresh = self.carry_overs[id(self._engine.fresh)]
            self._carries = [
                each.behind(starts, slots, keys) for each in self._differences if each is not fresh
            ]

    def evict(self) -> None:
        for carry in self._carries:
            carry()

    def merged(self, store: Numbers, due: ClosedWindows, slots: np.ndarray, keys: int) -> Merged:
        fields, n = store.merge(due, slots, keys)
        beside = self.carry_overs.get(id(store))
        if beside is None:
            return fields, n
        engine = self._engine
        starts, first, fresh = engine.slices.starts, due.first, store is engine.fresh
        if fresh:
            # Nothing that is fresh enters or leaves elsewhere.
            slots = slots[np.searchsorted(starts, engine.touched)]
            starts = engine.touched
            first = np.minimum(np.searchsorted(starts, due.start), len(starts) - 1)
        if self._crossed is None or self._crossed[0] is not due or self._crossed[1] is not fresh:
            crossed = np.flatnonzero(starts[first] == due.start)
            cells = (crossed[:, None] * keys + np.arange(keys)).ravel()
            self._crossed = due, fresh, first[crossed], cells
        *_, rows, cells = self._crossed
        more, counts = beside.at(rows, starts, slots, keys)
        store.run(absorb_rows, cells, tuple(more), counts, tuple(fields), n)
        return fields, n

    def forget_fresh(self) -> list[Numbers]:
        beside = self.carry_overs[id(self._engine.fresh)]
        assert isinstance(beside, Differences)
        beside.forget()
        return beside.stores

    def live_keys(self) -> np.ndarray:
        beside, count = self.carry_overs[id(self._engine.presence)], self._engine.keys.count
        assert isinstance(beside, Differences)
        live: np.ndarray = beside.carry.n[:count] > 0
        for store in beside.stores:
            live |= store.n.reshape(-1, store.stride)[self._engine.slices.slots, :count].any(axis=0)
        for _, log in self._engine.binding.logs:
            live[log.owners()] = True
        return live

    def resize(self, stride: int, keys: np.ndarray | slice) -> None:
        for each in self._differences:
            each.repack(keys, stride)

    # -- queries that change while they run ------------------------------------------------------

    def complete_from(self, alone: WindowSet, start: Tick | None) -> Tick | None:
        if self._engine.highest_time is None:
            return start
        # Which of the events seen go on at a new start is not known any more.
        begun = first_start(alone, next_after(self._engine.highest_time))
        return begun if start is None else max(start, begun)

    def add_store(self, store: Store) -> Tick | None:
        engine = self._engine
        self._accompany(next(a for a in engine.binding.answers.values() if a.store is store))
        beside = self.carry_overs.get(id(store))
        for each in () if beside is None else beside.stores:
            each.repack(engine.slices.slots[:0], engine.slices.capacity, engine.stride, slice(0, 0))
        if isinstance(beside, Differences):
            beside.repack(slice(0, 0), engine.stride)
        self.arrange()
        return None if engine.highest_time is None else next_after(engine.highest_time)

    def drop_removed(self) -> None:
        alive = {id(self._engine.fresh), *map(id, self._engine.binding.stores.values())}
        self.carry_overs = {known: each for known, each in self.carry_overs.items() if known in alive}
        self.arrange()

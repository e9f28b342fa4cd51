"""The engine for events that last: slices of what begins in them, and what goes on at the start of each.

    slices           [0, 4)      [4, 6)      [9, 12)         as for events without a duration
    begins              3           -           7            one cell per slice and key
    goes on             -           2           1            at the start of the slice, from before

    window = what goes on at the start of its first slice + what begins in its slices

Each event of a window is in one of the two, and in one only, so that nothing is counted twice (the aim of the two-part
slices of Suzanne et al., section 3.2.2). What begins is folded and merged by the engine for windows of time; what goes
on is the matter of `across`, or, for aggregates that need single events, of `kept`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.aligned import Aligned
from windrow.engine.arrays import as_run
from windrow.engine.binding import Answer
from windrow.engine.completeness import first_start, next_after
from windrow.engine.edges import edges_in, estimate, stretched
from windrow.engine.engine import Foldable, Merged, inputs_of
from windrow.engine.input_batches import CarryOver, EventBatch, PartialBatch
from windrow.engine.keys import Keys
from windrow.engine.partials import Numbers, Store
from windrow.engine.spanning import partial_batches
from windrow.engine.spanning.across import Balance, Noted
from windrow.engine.spanning.kept import Kept
from windrow.engine.spanning.placing import (
    Grid,
    Placed,
    cross,
    find_even_slices,
    find_slices,
    segments_of,
    step_of,
    table_of,
)
from windrow.engine.staging import Staged
from windrow.engine.store_compatibility import has_exact_inverse
from windrow.engine.windows import ClosedWindows
from windrow.errors import LimitError
from windrow.measure import Tick
from windrow.planner.plan import Part
from windrow.planner.spanning import is_noted
from windrow.planner.window_set import WindowSet
from windrow.windows.base import Window


class Spanning(Aligned):
    """See the module."""

    # Parcels make slices for what goes on before it is known up to when.
    may_have_empty_slices = True

    def __init__(self, part: Part, keys: Keys | None = None) -> None:
        super().__init__(part, keys)
        self.fresh_across = Balance(self.fresh)
        self.presence_across = Balance(self.presence)
        self.across: dict[int, Balance | Noted] = {}
        self.kept: dict[int, Kept] = {}
        self._crossed: tuple[ClosedWindows, bool, np.ndarray, np.ndarray] | None = None
        self._in_order: list[Balance | Noted] = []
        self._carries: list[Callable[[], None]] = []
        for answer in self.binding.answers.values():
            self._accompany(answer)
        self._arrange()

    def _accompany(self, answer: Answer) -> None:
        """Give a store what it needs for events that go on."""
        known = id(answer.store)
        if answer.store is self.presence or known in self.across or known in self.kept:
            return
        if not is_noted(answer.bound.partial):
            self.kept[known] = Kept(answer.bound.kinds, self.measure.dtype)
            return
        assert isinstance(answer.store, Numbers)
        kind: Any = Balance if has_exact_inverse(answer.bound) else Noted
        self.across[known] = kind(answer.store)

    def _across(self, store: Store) -> Balance | Noted | None:
        if store is self.presence:
            return self.presence_across
        return self.fresh_across if store is self.fresh else self.across.get(id(store))

    def _arrange(self) -> None:
        """What goes on, in an order that depends on the query alone."""
        found = [self._across(store) for store in (self.presence, *self.binding.in_order[1:])]
        late = [self.fresh_across] if self.settings.mode == "update" else []
        self._in_order = [*late, *(each for each in found if each is not None)]

    def _balances(self) -> list[Balance]:
        return [each for each in self._in_order if isinstance(each, Balance)]

    def carries(self) -> list[Numbers]:
        """What goes on from before the first slice."""
        return [each.carry for each in self._balances()]

    def all_kept(self) -> list[Kept]:
        """The events kept one by one, in an order that depends on the query alone."""
        return [self.kept[id(store)] for store in self.binding.in_order if id(store) in self.kept]

    def stores(self) -> list[Store]:
        return [*super().stores(), *(store for each in self._in_order for store in each.stores)]

    def holders(self, store: Store) -> Sequence[Any]:
        if id(store) in self.kept:
            return (self.kept[id(store)],)
        across = self._across(store)
        return (store,) if across is None else (store, *across.stores)

    # -- events in -------------------------------------------------------------------------------

    def too_late(self, incoming: EventBatch | PartialBatch) -> tuple[np.ndarray, np.ndarray] | None:
        if isinstance(incoming, PartialBatch):
            return None
        assert incoming.lasts is not None
        return self.missed(incoming.times, incoming.lasts) if incoming.lasting[0] < self.late_before else None

    def _stage(self, incoming: EventBatch | PartialBatch, staged: Staged) -> None:
        if isinstance(incoming, PartialBatch):
            partial_batches.prepare(self, incoming, staged)
            return
        self.require_room(len(incoming))
        placed, grid = self._place(incoming, staged)
        self._prepare_fold(incoming, placed, grid, staged)
        staged.on_commit(partial(self._count_all, incoming, placed))

    def _prepare_fold(self, events: EventBatch, placed: Placed, grid: Grid, staged: Staged) -> None:
        """Events into the partials of the aggregates."""
        foldable = self._foldable(events, staged)
        self.fold(foldable, placed, own=True, staged=staged)
        staged.on_commit(partial(self.fold, foldable, placed, own=False))
        staged.on_commit(partial(self._keep, foldable, events))

    def _foldable(self, events: EventBatch, staged: Staged) -> Foldable:
        stamps = events.arrivals if self.binding.needs_arrival or self.kept else events.times[:0]
        return Foldable(self.encode(events.batch, staged), events.times, stamps, events.rows)

    def note(self, events: EventBatch) -> Staged:
        """Note events further that are open: all of it at once, so that windows can be answered before it is committed."""
        staged = Staged()
        try:
            events.number(self.keys, staged)
            self.make_room_for_keys()
            placed, _ = self._place(events, staged)
            foldable = self._foldable(events, staged)
            known = self.fresh_seen, self.highest_time, list(self._touched)
            staged.on_rollback(partial(self._return_to, *known))
            for own in (True, False):
                self.fold(foldable, placed, own=own, staged=staged)
            self._count_all(events, placed, staged)
        except BaseException:
            staged.rollback()
            raise
        return staged

    def _return_to(self, fresh_seen: bool, highest_time: Tick | None, touched: list[np.ndarray]) -> None:
        self.fresh_seen, self.highest_time, self._touched = fresh_seen, highest_time, touched
        for each in self._balances():
            each.forget()

    def targets(self, store: Store, segments: Any) -> list[tuple[Any, Any]]:
        if id(store) in self.kept:
            return []
        across = self._across(store)
        assert across is not None
        return [(store, segments.begin), *across.targets(segments)]

    def _count_all(self, events: EventBatch, placed: Placed, staged: Staged | None = None) -> None:
        """Know where events are, and which of them are late; cells are saved for a rollback if there is a `staged`."""
        self._count(self.presence, placed, staged)
        rows = self._revising(events.times)
        if len(rows) and events.going is not None:
            rows = rows[self._revised_by(events.going, events.times)[rows]]
        if len(rows):
            self._count(self.fresh, placed.only(rows), staged)
            self._touch(placed.met)
        self.note_time(events.high)

    def _count(self, store: Numbers, placed: Placed, staged: Staged | None) -> None:
        for target, where in self.targets(store, placed):
            if staged is not None:
                staged.on_rollback(target.saved_for(where))
            target.fold(where, [], ())

    def _revised_by(self, going: CarryOver, starts: np.ndarray) -> np.ndarray:
        """Which pieces may lie in windows that were given out, of events that begin before the watermark."""
        assert self.watermark is not None
        latest = self.given_out(self.watermark)[0].max(initial=self.lowest)
        return (going.since < starts) | (going.since < latest)

    def given_out(self, watermark: Tick) -> tuple[np.ndarray, np.ndarray]:
        """The windows that have been given out at a watermark and begin last: starts, falling, and ends, rising.

        One that begins earlier than another and ends no later is left out: whoever lies in it lies in the other.
        """
        latest: dict[Tick, Tick] = {}
        since = self.there_from
        for name, start, end in self.windows.last_closed(self.emission_point(watermark)):
            if start >= since.get(name, start):
                latest[start] = max(end, latest.get(start, end))
        found: list[tuple[Tick, Tick]] = []
        for start, end in sorted(latest.items(), reverse=True):
            if not found or end > found[-1][1]:
                found.append((start, end))
        starts, ends = (np.array([pair[i] for pair in found], self.measure.dtype) for i in range(2))
        return starts, ends

    @property
    def final_up_to(self) -> Tick:
        """Windows that end here or before are final."""
        return self.clamp(self.lowest - 1) if self.watermark is None else self.horizon(self.watermark)

    def _place(self, events: EventBatch, staged: Staged) -> tuple[Placed, Grid]:
        """The cells of events, made where they do not exist, and their slices."""
        assert events.lasts is not None
        count = len(events)
        starts, lasts, again = events.times, events.lasts, np.empty(0, bool)
        if events.going is not None:
            # What was noted before need not be noted again.
            again = events.going.since >= starts
            starts = np.where(again, events.going.since, starts)
        low_time = events.scan[0] if events.going is None else starts.min().item()
        edges = self.slices.reconcile(self.edges_for(starts, lasts, low_time, events.high))
        inside = self._inside(edges)
        if inside is None:
            covered = np.arange(len(edges))
        else:
            covered = np.concatenate([[0], np.cumsum(inside)])
        first, last, begins, low, high = (np.empty(count, np.int32) for _ in range(5))
        upto = np.empty(count, np.int64)
        many = int(covered[-1])
        begun, entered, left = (
            np.zeros(many + 1, bool),
            np.zeros(many + 2, np.int64),
            np.zeros(many + 2, np.int64),
        )
        limit, step = edges.dtype.type(self.threshold), self._step(edges)
        if step > 0:
            find_even_slices(starts, lasts, limit, edges[0], step, first, last)
        else:
            find_slices(starts, lasts, limit, edges, *table_of(edges), first, last)
        told = (upto, begins, low, high)
        runs, crossings = cross(
            starts, lasts, again, limit, covered, first, last, *told, begun, entered, left
        )
        goes_on = np.cumsum(np.subtract(entered, left, out=entered), out=left)[:many]
        met = as_run(np.flatnonzero(begun[1:] | (goes_on > 0)))
        where = met if inside is None else np.flatnonzero(inside)[met]
        met_starts = edges[:-1][where]
        slots = self.slots_of(met_starts, edges[1:][where], staged)
        for each in self._balances():
            each.crossed(low_time, starts, lasts)
        base = np.full(many + 1, -1)
        base[met] = slots * self.stride
        segments = segments_of(tuple(column[:runs] for column in told), events.numbers, base, self.keys.count)
        placed = Placed(*segments, crossings, met_starts)
        by_edge = base
        if inside is not None:
            by_edge = np.full(len(inside), -1)
            by_edge[where] = base[met]
        return placed, Grid(edges, first, last, by_edge)

    def _step(self, edges: np.ndarray) -> Any:
        """The length of all slices between these edges; 0 if they are of several lengths, or nobody knows."""
        windows, mixed = self.windows, self.slices.mixed_until
        regular = len(windows.periods) == 1 and not windows.irregular and not self.measure.floating
        if not regular or (mixed is not None and edges[0] < mixed):
            return edges.dtype.type(0)
        return edges.dtype.type(step_of(edges, int(windows.periods[0])))

    def _inside(self, edges: np.ndarray) -> np.ndarray | None:
        """Whether each slice between two edges lies in some window; None if all do."""
        if not self.windows.may_leave_gaps:
            return None
        # The first edge may be a sentinel far below; nothing that begins there is asked.
        return self.windows.covers(edges[:-1])

    def edges_for(self, starts: np.ndarray, lasts: np.ndarray, low: Tick, high: Tick) -> np.ndarray:
        """All edges from the first start to behind the last instant, less long stretches without an event.

        `low` and `high` are the first start and the last instant of all. What lies before the threshold is not looked at, and counts as if it lay there.
        """
        low, high = max(low, self.threshold), max(high, self.threshold)
        if estimate(self.windows, low, high) <= 8 * len(starts) + 1_000_000:
            return self._edges.enclosing(starts, low, high, self.clamp(self.highest))
        starts, lasts = np.maximum(starts, self.threshold), np.maximum(lasts, self.threshold)
        order = np.argsort(starts, kind="stable")
        reached = np.maximum.accumulate(lasts[order])
        apart = np.flatnonzero(starts[order][1:] > reached[:-1]) + 1
        begin = starts[order][np.concatenate([[0], apart])]
        end = reached[np.concatenate([apart - 1, [len(starts) - 1]])]
        room, windows = self.settings.max_slices, self.windows
        # Edges of several progressions may be the same, and up to every other slice may lie in no window.
        sure = len(windows.periods) == 1 and not windows.irregular and not windows.may_leave_gaps
        slices = stretched(windows, begin, end) - 4 * len(begin)
        if slices * self.keys.count > (room if sure else 2 * room + 1_000_000):
            raise LimitError(
                f"events that last from {self.measure.scalar(low)} to {self.measure.scalar(high)} cross up to {slices:,} "
                f"slices of {self.keys.count:,} keys, more than the limit of max_slices={room:,} allows; nothing of this batch "
                "was taken: raise max_slices, or use longer windows"
            )
        return edges_in(windows, begin, end)

    def _keep(self, foldable: Foldable, events: EventBatch, only: Container[int] | None = None) -> None:
        """Keep the events themselves where an aggregate needs them; in those places `only`, known by their ids."""
        assert events.lasts is not None
        for (_, columns), store in self.binding.stores.items():
            kept = self.kept.get(id(store))
            if kept is not None and (only is None or id(kept) in only):
                rows, inputs = inputs_of(foldable.encoded, columns)
                which = np.arange(len(events)) if rows is None else rows
                owners = np.zeros(len(events), np.int64) if events.numbers is None else events.numbers
                told = (owners, events.times, events.lasts, foldable.stamps)
                columns_of = [*(column[which] for column in told), *inputs]
                if events.going is None:
                    kept.take(columns_of)
                else:
                    kept.take_pieces(events.going.where(which), columns_of)

    def meet(self, events: EventBatch) -> None:
        """Know events that go on where single events are kept, and none is yet: these were not asked to, before."""
        new = {id(kept): kept for kept in self.kept.values() if not kept.held}
        if new:
            events.number(self.keys, Staged())
            self.make_room_for_keys()
            foldable = Foldable(self.encode(events.batch), events.times, events.arrivals)
            self._keep(foldable, events, only=new)

    def require_room(self, count: int) -> None:
        held = sum(kept.held + count for kept in self.kept.values())
        if held > self.settings.max_slices:
            raise LimitError(
                f"{held:,} values would be kept one by one, more than the limit of max_slices="
                f"{self.settings.max_slices:,}; nothing of this batch was taken: advance the watermark more often, "
                "or raise max_slices"
            )

    # -- watermarks and results ------------------------------------------------------------------

    def due(self, watermark: Tick) -> list[pa.RecordBatch]:
        rows = super().due(watermark)
        self._crossed = None
        threshold = self._needed_from(self.horizon(watermark))
        gone = slice(0, int(np.searchsorted(self.slices.starts, threshold)))
        self._carries = []
        if gone.stop:
            starts, slots = self.slices.starts[gone].copy(), self.slices.slots[gone]
            lasting = (each for each in self._balances() if each is not self.fresh_across)
            self._carries = [each.behind(starts, slots, self.keys.count) for each in lasting]
        return rows

    def pass_to(self, watermark: Tick) -> None:
        for carry_over in self._carries:
            carry_over()
        super().pass_to(watermark)
        for kept in self.kept.values():
            kept.evict_before(self.threshold)

    def merged(self, store: Numbers, due: ClosedWindows, slots: np.ndarray, keys: int) -> Merged:
        fields, n = store.merge(due, slots, keys)
        across = self._across(store)
        assert across is not None
        starts, first = self.slices.starts, due.first
        if store is self.fresh:
            # Nothing that is fresh enters or leaves elsewhere.
            slots = slots[np.searchsorted(starts, self.touched)]
            starts = self.touched
            first = np.minimum(np.searchsorted(starts, due.start), len(starts) - 1)
        fresh = store is self.fresh
        if self._crossed is None or self._crossed[0] is not due or self._crossed[1] is not fresh:
            crossed = np.flatnonzero(starts[first] == due.start)
            cells = (crossed[:, None] * keys + np.arange(keys)).ravel()
            self._crossed = due, fresh, first[crossed], cells
        *_, rows, cells = self._crossed
        more, counts = across.at(rows, starts, slots, keys)
        store.loop("absorb_rows")(cells, *more, counts, *fields, n)
        return fields, n

    def answer(
        self, answer: Answer, due: ClosedWindows, slots: np.ndarray, rows: Any, decoders: Any
    ) -> pa.Array:
        return self.kept[id(answer.store)].answer(answer.bound, due, rows, decoders)

    def is_merged(self, store: Store) -> bool:
        return id(store) not in self.kept

    # -- letting go ------------------------------------------------------------------------------

    def forget_fresh(self) -> None:
        super().forget_fresh()
        self.fresh_across.forget()

    def fresh_stores(self) -> list[Numbers]:
        return [self.fresh, *self.fresh_across.stores]

    def recall_fresh(self) -> None:
        """What is fresh goes on in slices that count none."""
        self._touched = [self.slices.starts.copy()]

    def live_keys(self) -> np.ndarray:
        live = super().live_keys() | (self.presence_across.carry.n[: self.keys.count] > 0)
        for store in self.presence_across.stores:
            live |= store.n.reshape(-1, self.stride)[self.slices.slots, : self.keys.count].any(axis=0)
        for kept in self.kept.values():
            live[kept.owners()] = True
        return live

    def resize(self, capacity: int, stride: int, keys: np.ndarray | slice) -> None:
        super().resize(capacity, stride, keys)
        for each in self._balances():
            each.repack(keys, stride)
        if not isinstance(keys, slice):
            for kept in self.kept.values():
                kept.renumber(keys)

    def _coalesce(self, horizon: Tick) -> None:
        """A slice stays as long as an event may go on at its start."""

    @property
    def nbytes(self) -> int:
        return super().nbytes + sum(kept.nbytes for kept in self.kept.values())

    # -- queries that change while they run ------------------------------------------------------

    def add_window(self, name: str, window: Window) -> Tick | None:
        start = super().add_window(name, window)
        if self.highest_time is None:
            return start
        # Which of the events seen go on at a new start is not known any more.
        alone = WindowSet.of({name: window}, self.measure)
        begun = first_start(alone, next_after(self.highest_time))
        start = begun if start is None else max(start, begun)
        self.complete_from["window " + name] = start
        return start

    def make_store(self, store: Store) -> Tick | None:
        super().make_store(store)
        answer = next(a for a in self.binding.answers.values() if a.store is store)
        self._accompany(answer)
        across = self._across(store)
        for each in () if across is None else across.stores:
            each.repack(self.slices.slots[:0], self.slices.capacity, self.stride, slice(0, 0))
        if isinstance(across, Balance):
            across.repack(slice(0, 0), self.stride)
        self._arrange()
        return None if self.highest_time is None else next_after(self.highest_time)

    def remove_aggregate(self, name: str) -> None:
        super().remove_aggregate(name)
        alive = {id(store) for store in self.binding.stores.values()}
        self.across = {known: each for known, each in self.across.items() if known in alive}
        self.kept = {known: each for known, each in self.kept.items() if known in alive}
        self._arrange()

"""The engine for context-free windows: all keys are cut at the same instants.

slices        [0, 4)    [4, 6)    [9, 12)          one row of the matrix each
key 0            3         -         7             one cell per slice and key
key 1            1         2         -

stage(events)        keys -> cut -> fold
due(watermark)       windows due -> merge slices -> lower; pass_to(watermark) lets go of dead slices
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.base import Aggregate
from windrow.aggregates.count import COUNT
from windrow.engine.aligned.cutting import Cells, Cut, Runs, cut, cut_by_slices
from windrow.engine.aligned.edges import Edges, neighbours
from windrow.engine.aligned.slices import Slices
from windrow.engine.arrays import ascending
from windrow.engine.completeness import first_complete, first_start, next_after
from windrow.engine.emission import Emission, Ledger
from windrow.engine.engine import IDLE_BYTES, Engine, Foldable, Merged
from windrow.engine.intake.batches import EventBatch, PartialBatch
from windrow.engine.intake.keys import Keys
from windrow.engine.partials import Log, Multisets, Numbers, Store
from windrow.engine.staging import Staged
from windrow.engine.windows import ClosedWindows, Ends, due_windows, first_open_start
from windrow.errors import LimitError, QueryError
from windrow.measure import Tick
from windrow.options import OperatorOptions
from windrow.planner.plan import Part
from windrow.planner.window_set import FEW, UNMERGED, WindowSet
from windrow.windows.base import Window

# So many slices at once are not expected to come again.
MANY = 1 << 20
# With more keys than these slices are large, and there is little room for more of them than there are.
FEW_KEYS = 64
# Where keys have come, there is room for one in so many more.
SPARE_KEYS = 16
# So many events out of order are rather cut by edges than looked up among slices, which knows no table.
FEW_EVENTS = 2048
# Touched slices are remembered call by call, and sorted once they come from so many calls.
MANY_TOUCHES = 64


class Aligned(Engine):
    """All windows of time of a query."""

    def __init__(self, part: Part, keys: Keys | None = None) -> None:
        super().__init__(part, keys)
        dtype = self.measure.dtype
        self.stride = 1
        self.slices = Slices(dtype)
        self.fresh = Numbers(COUNT, 0, dtype)
        self.ledger = Ledger()
        # Windows that were added since the last watermark, and rows of them that were final then.
        self.backlog: set[str] = set()
        self.ready: list[pa.RecordBatch] = []
        self.fresh_seen = False
        # Where the slices begin that hold what is fresh: each at least once, and perhaps others.
        self.touches: list[np.ndarray] = []
        self.threshold: Tick = self.lowest
        self._evicted_to: Tick = self.lowest
        self.kept_from: Tick | None = None
        self._know_edges()
        self._emission: Emission | None = None
        self._some_ended = self._looked = False

    def _know_edges(self) -> None:
        """Know where the windows of now begin and end."""
        self.edges = Edges(self.windows)
        # Ends up to emission points, and those up to horizons.
        self._ends, self._final_ends = Ends(self.windows), Ends(self.windows)

    # -- events in -------------------------------------------------------------------------------

    def too_late(self, incoming: EventBatch | PartialBatch) -> tuple[np.ndarray, np.ndarray] | None:
        """Masks of the events whose windows are all final, and of those among them that have a window."""
        if self.spans is not None:
            return self.spans.too_late(incoming)
        if incoming.scan[0] >= self.threshold:
            return None
        return self.missed(incoming.times, incoming.times)

    def missed(self, starts: np.ndarray, lasts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Masks of the stretches of time whose windows are all final, and of those among them that have a window.

        Windows that were added later are there from where they are complete.
        """
        return self.windows.missed(starts, lasts, self.late_before, self.there_from)

    def absent(self, incoming: EventBatch | PartialBatch) -> np.ndarray | None:
        since = self.there_from
        if isinstance(incoming, PartialBatch) or not (since or self.windows.may_leave_gaps):
            return None
        lasts = incoming.times if incoming.lasts is None else incoming.lasts
        return ~self.windows.meets(incoming.times, lasts, since)

    @property
    def late_before(self) -> Tick:
        """Whatever ends before this instant comes too late for every window: all, once no window is left."""
        if self.watermark is None:
            return self.threshold
        over = self.windows.are_over(self.horizon(self.watermark), self.there_from)
        return math.inf if over else self.threshold

    @property
    def there_from(self) -> dict[str, Tick]:
        """From which start on windows that were added later are given out."""
        if not self.complete_from:
            return {}
        named = ((name, f"window {name}") for name in self.windows.names)
        return {name: self.complete_from[known] for name, known in named if known in self.complete_from}

    def partly_late(self, incoming: EventBatch | PartialBatch) -> np.ndarray | None:
        """A mask of the events that have missed some of their windows, but not all; None: nobody has."""
        if self.watermark is None or incoming.scan[0] >= self.horizon(self.watermark):
            return None
        horizon = self.horizon(self.watermark)
        missed = incoming.times < horizon
        missed[missed] = self.windows.earliest_ends(incoming.times[missed]) <= horizon
        return missed

    def _stage(self, incoming: EventBatch | PartialBatch, staged: Staged) -> None:
        """Cut events into slices and fold them, or join slices of elsewhere to those that are here."""
        if self.spans is not None:
            self.spans.stage(incoming, staged)
            return
        if isinstance(incoming, EventBatch):
            self.require_room(len(incoming))
            self._prepare_events(incoming, staged)
        else:
            self._prepare_slices(incoming, staged)

    def _prepare_events(self, events: EventBatch, staged: Staged) -> None:
        times = events.times
        numbers = events.numbers
        found, starts, base = self._find(events, staged)
        stamps = events.arrival + np.arange(len(times)) if self.binding.needs_arrival else times[:0]
        foldable = Foldable(self.encode(events.batch, staged), times, stamps, events.rows)
        segments: Runs | Cells
        if numbers is None and found.can_be_gathered and self._can_gather(foldable):
            segments = self._gather(foldable, found, base)
            times = foldable.times
        else:
            segments = found.place(base, numbers, len(times))
        self.fold(foldable, segments, own=True, staged=staged)

        def commit() -> None:
            self.fold(foldable, segments, own=False)
            if numbers is None and isinstance(segments, Cells):
                there = base >= 0
                self.presence.n[base[there]] += found.sizes[there]
            else:
                self.presence.fold(segments, [], ())
            inside = segments.located()[0] if self.windows.may_leave_gaps else None
            self.keep(foldable, numbers, inside)
            rows = self.revising(times)
            if len(rows):
                self.fresh.fold(segments if self.settings.is_early else segments.only(rows), [], ())
                self.touch(self.revised(starts))

        staged.on_commit(commit)

    def _can_gather(self, events: Foldable) -> bool:
        """Whether events may be put in another order: many, without nulls, and nobody asks for their rows."""
        whole = all(rows is None for rows in events.encoded[1].values())
        return len(events.times) > FEW_EVENTS and whole and not self.binding.own

    def _gather(self, events: Foldable, found: Cut, base: np.ndarray) -> Runs:
        """Let the events of each slice lie side by side; what the partials need of them, and no more."""
        codes, present = events.encoded
        columns = list(codes.values())
        if self.binding.needs_arrival:
            columns += [events.stamps]
        if self.binding.needs_arrival or self.settings.mode == "update":
            columns += [events.times]
        runs, columns = found.gathered(base, *columns)
        events.encoded = dict(zip(codes, columns, strict=False)), present
        if self.binding.needs_arrival or self.settings.mode == "update":
            events.times = columns.pop()
        if self.binding.needs_arrival:
            events.stamps = columns.pop()
        return runs

    def _prepare_slices(self, parcel: PartialBatch, staged: Staged) -> None:
        found, starts, base = self._find(parcel, staged)
        numbers = np.zeros(len(parcel), np.int32) if parcel.numbers is None else parcel.numbers
        segments = found.place(base, numbers, len(parcel))
        assert isinstance(segments, Cells)
        cells = segments.cell
        self.join(cells, parcel, staged, fresh=False)

        def commit() -> None:
            self.presence.join(cells, [], parcel.sizes)
            self._note_wide(parcel)
            rows = self.revising(parcel.times)
            if len(rows):
                self.fresh.join(cells[rows], [], parcel.sizes[rows])
                self.touch(self.revised(starts))

        staged.on_commit(commit)

    def _note_wide(self, parcel: PartialBatch) -> None:
        """No window that is added later is complete before slices end that are wider than those here, which were cut for
        windows that are gone: how much of them lies where is not known."""
        mixed = self.slices.mixed_until
        if mixed is None or parcel.scan[0] >= mixed:
            return
        at = np.searchsorted(self.slices.starts, parcel.times, side="right") - 1
        wide = parcel.last >= self.slices.ends[at]
        if wide.any():
            end = next_after(parcel.last[wide].max().item())
            self.kept_from = end if self.kept_from is None else max(self.kept_from, end)

    def cut(
        self, times: np.ndarray, scan: tuple[Tick, Tick, bool]
    ) -> tuple[Cut, np.ndarray, np.ndarray, np.ndarray | None]:
        """Which times lie in which slice; where the slices that are hit begin and end, and whether they lie
        in some window (None: all do)."""
        low, high, ordered = scan
        edges = self.slices.reconcile(self.edges.enclosing(times, low, high, self.clamp(self.highest)))
        found = cut(times, edges, ordered=ordered)
        starts = edges[found.slices]
        inside = self.windows.covers(starts) if self.windows.may_leave_gaps else None
        return found, starts, edges[found.slices + 1], inside

    def _find(
        self, incoming: EventBatch | PartialBatch, staged: Staged
    ) -> tuple[Cut, np.ndarray, np.ndarray]:
        """The cut, where the slices begin that are hit, and the first cell of each (-1: in no window)."""
        low, high, ordered = incoming.scan
        few = ordered or len(incoming) <= FEW_EVENTS
        if few and self.slices.enclose(low, high) and self.cells <= self.settings.max_slices:
            there = cut_by_slices(incoming.times, self.slices.starts, self.slices.ends, ordered=ordered)
            if there is not None:
                hit = there.slices
                return there, self.slices.starts[hit], self.slices.slots[hit] * self.stride
        found, starts, ends, inside = self.cut(incoming.times, incoming.scan)
        if inside is not None:
            # The first edge may be a sentinel far below; a slice before every window has no cover.
            starts, ends = starts[inside], ends[inside]
        slots = self.slots_of(starts, ends, staged)
        base = slots * self.stride
        if inside is not None:
            base = np.full(len(inside), -1)
            base[inside] = slots * self.stride
        return found, starts, base

    def slots_of(self, starts: np.ndarray, ends: np.ndarray, staged: Staged) -> np.ndarray:
        """The slots of slices, made where they do not exist."""
        at, need = self.slices.find(starts)
        self._make_room(need)
        slots, fresh = self.slices.resolve(starts, ends, at, need)
        if len(fresh):
            # A slice that exists holds an event.
            staged.on_rollback(partial(self.slices.forget, fresh))
            for store in self.stores():
                store.reset(fresh)
        return slots

    def revising(self, times: np.ndarray) -> np.ndarray:
        """The rows that may revise a window already emitted (update mode): late ones, and all where rows come early."""
        if self.settings.is_early:
            return np.arange(len(times))
        if self.settings.mode != "update" or self.watermark is None:
            return np.empty(0, np.int64)
        return np.flatnonzero(times < self.watermark)

    def revised(self, starts: np.ndarray) -> np.ndarray:
        """Of the starts of slices that events lie in, those of slices that may have revising ones."""
        return starts if self.settings.is_early else starts[starts < self.watermark]

    def touch(self, starts: np.ndarray) -> None:
        """Remember slices that late events may lie in; some are in the same ones, and some in none of these."""
        self.touches.append(starts)
        if len(self.touches) > MANY_TOUCHES:
            self.touches = [ascending(*self.touches)]
        self.fresh_seen = True

    def note_time(self, high: Tick) -> None:
        self.highest_time = high if self.highest_time is None else max(self.highest_time, high)

    def stores(self) -> list[Store]:
        late = [self.fresh] if self.settings.mode == "update" else []
        beside = () if self.spans is None else self.spans.stores
        return [*late, *self.binding.in_order, *beside]

    def holders(self, store: Store) -> Sequence[Any]:
        return super().holders(store) if self.spans is None else self.spans.holders(store)

    def targets(self, store: Store, segments: Any) -> list[tuple[Any, Any]]:
        return super().targets(store, segments) if self.spans is None else self.spans.targets(store, segments)

    def make_room_for_keys(self) -> None:
        if self.keys.count > self.stride:
            self._make_room(0)

    def _make_room(self, need: int) -> None:
        """Room for `need` more slices and for all keys that are known."""
        stride = self.stride
        if self.keys.count > stride or self.presence.stride == 0:
            stride = self.keys.count + (self.keys.count // SPARE_KEYS if self.presence.stride else 0)
        cells = (len(self.slices) + need) * self.keys.count
        if cells > self.settings.max_slices:
            raise LimitError(
                f"{len(self.slices) + need:,} slices of {self.keys.count:,} keys are {cells:,} live slices, "
                f"more than the limit of max_slices={self.settings.max_slices:,}; nothing of this batch was taken"
            )
        capacity = self.slices.room(need, tight=stride > FEW_KEYS or need > MANY)
        if stride != self.stride or capacity != self.slices.capacity or self.presence.stride == 0:
            self.resize(capacity, stride, slice(0, self.keys.count))

    def resize(self, capacity: int, stride: int, keys: np.ndarray | slice) -> None:
        """Move all stores to an arena of `capacity` slots of `stride` keys."""
        for store in self.stores():
            store.repack(self.slices.slots, capacity, stride, keys)
        self.slices.repack(capacity)
        self.ledger.repack(stride, keys)
        if self.spans is not None:
            self.spans.resize(stride, keys)
        self.stride = stride

    # -- watermarks and results ------------------------------------------------------------------

    def due(self, watermark: Tick | None, *, look: bool = False) -> list[pa.RecordBatch]:
        bottom = self.clamp(self.lowest - 1)
        old_point = bottom if self.watermark is None else self.emission_point(self.watermark)
        point = old_point if watermark is None else self.emission_point(watermark)
        emission = Emission(self, self.slices.slots)
        self._looked = look
        if self.settings.is_early:
            self._emit_early(emission, old_point, point)
        else:
            self._emit_ended(emission, old_point, point)
        self._emission = emission
        if self.spans is not None:
            self.spans.prepare_evict(
                self.needed_from(point if watermark is None else self.horizon(watermark))
            )
        return [*self.ready, *emission.batches]

    def _emit_ended(self, emission: Emission, old_point: Tick, point: Tick) -> None:
        """Windows that have ended, and those that late events have changed; with a look, what has come of all others."""
        if self.fresh_seen and self.watermark is not None:
            emission.revise(self._only(self._revised(self.horizon(self.watermark), old_point), backlog=False))
        if self.backlog and self.watermark is not None:
            emission.emit(self._only(self._due(self.horizon(self.watermark), old_point), backlog=True))
        self._some_ended = self._ends.some(old_point, point)
        if self._some_ended:
            emission.emit(self._due(old_point, point))
        if self._looked:
            emission.emit(self._due(point, self.clamp(self.measure.highest)))

    def _emit_early(self, emission: Emission, before: Tick, horizon: Tick) -> None:
        """Windows that are final now, whatever was given out of them; with a look, those that have changed since the last one."""
        if self._ends.some(before, horizon):
            due = self._told(self._due(before, horizon), horizon)
            emission.revise(self._only(due, backlog=False), unchanged=True)
            if self.backlog:
                emission.emit(self._only(due, backlog=True))
        if not self._looked:
            return
        highest = self.clamp(self.measure.highest)
        if self.fresh_seen:
            due = self._told(self._revised(horizon, highest), horizon)
            emission.revise(self._only(due, backlog=False))
        if self.backlog:
            emission.emit(self._only(self._told(self._due(horizon, highest), horizon), backlog=True))

    def _told(self, due: ClosedWindows, horizon: Tick) -> ClosedWindows:
        """Windows that say whether they are final, where rows tell."""
        return replace(due, final=due.end <= horizon) if self.settings.is_early else due

    def pass_to(self, watermark: Tick | None) -> None:
        assert self._emission is not None
        self._emission.commit()
        self._emission = None
        before, self.watermark = self.watermark, self.watermark if watermark is None else watermark
        if self.watermark is not None:
            horizon = self.horizon(self.watermark)
            if before is None or self.backlog or self._some_final(before, horizon):
                self.threshold = self.needed_from(horizon)
        if self._looked or not self.settings.is_early:
            self.backlog.clear()
        self.ready.clear()
        if self.spans is not None:
            self.spans.evict()
        if self.settings.trigger is None or self._looked:
            self._forget_looked()
        if self.watermark is not None:
            self._let_go(horizon)

    def _some_final(self, before: Tick, horizon: Tick) -> bool:
        """Whether windows have become final since a watermark; in append mode they were given out now."""
        if self.settings.mode == "append":
            return self._some_ended
        return self._final_ends.some(self.horizon(before), horizon)

    def abandon(self) -> None:
        self._emission = None

    def _due(self, after: Tick, until: Tick) -> ClosedWindows:
        """The windows that end in (after, until] and hold a slice."""
        return self._there(due_windows(self.windows, self.slices.starts, after, until))

    def _revised(self, after: Tick, until: Tick) -> ClosedWindows:
        """As `_due`, of the windows that hold a slice which late events may have changed."""
        starts, touched = self.slices.starts, self.touched
        if self.windows.origins and len(touched):
            # A late event is in all windows that end behind it and begin at one point.
            due = self._due(after, until)
            return due.where((due.end > touched[0]) & (due.start <= touched[-1]))
        due = self._there(due_windows(self.windows, touched, after, until))
        return replace(due, first=np.searchsorted(starts, due.start), last=np.searchsorted(starts, due.end))

    def _there(self, due: ClosedWindows) -> ClosedWindows:
        """Of windows that were added later, those from where they are complete."""
        since = self.there_from
        if since and len(due):
            floor = np.array([since.get(n, self.lowest - self.windows.longest) for n in self.windows.names])
            keep = due.start >= floor[due.spec]
            if not keep.all():
                due = due.where(keep)
        return due

    def _only(self, due: ClosedWindows, *, backlog: bool) -> ClosedWindows:
        """Of windows that ended before, those that were just added, or all others."""
        if not self.backlog:
            return due
        added = np.array([name in self.backlog for name in self.windows.names])
        return due.where(added[due.spec] == backlog)

    def merged(self, store: Numbers, due: ClosedWindows, slots: np.ndarray, keys: int) -> Merged:
        merge = store.merge if self.spans is None else partial(self.spans.merged, store)
        return merge(due, slots, keys)

    # -- letting go ------------------------------------------------------------------------------

    def _let_go(self, horizon: Tick) -> None:
        """Drop what no window needs any more: slices, events, memory."""
        self.ledger.forget(horizon)
        if self.threshold > self._evicted_to:
            self._evicted_to = self.threshold
            self._evict(self.threshold)
        self._coalesce(horizon)

    def _forget_looked(self) -> None:
        """Nothing is new since the last look; where rows add up, all that there is was given out."""
        if self.fresh_seen:
            self.forget_fresh()
        if self._looked and self.settings.mode == "append" and self.highest_time is not None:
            self.kept_from = next_after(self.highest_time)
            self._evict(self.clamp(self.measure.highest))

    def _evict(self, threshold: Tick) -> None:
        """Drop slices and events before the threshold, and memory that is not needed any more."""
        evicted = self.slices.evict_before(threshold)
        for store in self.binding.stores.values():
            if isinstance(store, Log):
                store.evict_before(threshold)
            elif isinstance(store, Multisets) and len(evicted):
                store.reset(evicted)
        if len(evicted):
            idle = not len(self.slices) and sum(s.nbytes for s in self.stores()) > IDLE_BYTES
            # Room that was in use until now is likely to be so again.
            if idle or self.slices.capacity > 4 * (len(self.slices) + len(evicted)) + 64:
                self.resize(2 * len(self.slices) + 8, self.stride, slice(0, self.keys.count))

    def needed_from(self, horizon: Tick) -> Tick:
        """The first instant that a window which is not final may still ask for.

        It never goes back: a window that was added later asks for no slices that are gone.
        """
        return max(self.threshold, first_open_start(self.windows, horizon, self.there_from))

    @property
    def touched(self) -> np.ndarray:
        """Where the slices begin that hold what is fresh, and perhaps others; ascending."""
        starts = ascending(*self.touches)
        if self.settings.is_early and len(starts):
            # Since they were touched, some slices were evicted, or joined to those before them.
            at = np.searchsorted(self.slices.starts, starts, side="right") - 1
            starts = self.slices.starts[ascending(at[at >= 0])]
        self.touches = [starts]
        return starts

    def forget_fresh(self) -> None:
        """No event is new since the last advance."""
        slots = self.slices.slots[np.searchsorted(self.slices.starts, self.touched)]
        beside = () if self.spans is None else self.spans.forget_fresh()
        for store in (self.fresh, *beside):
            store.reset(slots)
        self.touches.clear()
        self.fresh_seen = False

    def recall_fresh(self) -> None:
        """Know what is fresh by the counts alone, as they were restored."""
        held = self.fresh.n.reshape(-1, self.stride)[self.slices.slots].any(axis=1)
        # Span events that are fresh go on in slices that count none.
        self.touches = [self.slices.starts[held] if self.spans is None else self.slices.starts.copy()]

    def _coalesce(self, horizon: Tick) -> None:
        """Join slices between which no live window begins (they were cut for windows now final).

        A slice stays as long as an event may go on at its start.
        """
        if self.spans is not None:
            return
        # Slices since a landmark are kept for ever: with many keys, few of them.
        endless = self.windows.origins or self.windows.irregular
        spare = FEW // max(1, self.keys.count) if endless else FEW
        fine = UNMERGED * self.windows.windows_per_event + spare
        if len(self.slices) <= fine or self.slices.ending_by(horizon) <= fine:
            return
        found = self.slices.joinable(self.windows.live_starts(horizon, self.threshold), horizon)
        # If the user's combine fails here, it will be named when a window needs it.
        if found is not None and self.absorb(found.into, found.taken, self.keys.count):
            self.slices.join(found, horizon)

    def renumber(self, live: np.ndarray) -> None:
        self.resize(2 * len(self.slices) + 8, max(1, len(live)), live)

    def live_keys(self) -> np.ndarray:
        cells = self.presence.n.reshape(-1, self.stride)[self.slices.slots, : self.keys.count]
        live = np.asarray(cells.any(axis=0))
        return live if self.spans is None else live | self.spans.live_keys()

    # No event waits to be folded.
    pending = 0

    @property
    def keys_per_window(self) -> int:
        """For how many keys each window is answered."""
        return self.keys.count

    def begin_after(self, newest: Tick) -> Tick:
        """Begin in a running stream whose newest event is at `newest`: the first complete start."""
        self._require_later(self.windows, newest)
        self.kept_from = next_after(newest)
        return first_start(self.windows, self.kept_from)

    @property
    def cells(self) -> int:
        """How many slices are alive, counted once per key."""
        return len(self.slices) * self.keys.count

    @property
    def nbytes(self) -> int:
        return sum(s.nbytes for s in self.stores()) + self.slices.nbytes

    # -- queries that change while they run ------------------------------------------------------

    def add_window(self, name: str, window: Window) -> Tick | None:
        alone = WindowSet.of({name: window}, self.measure)
        if self.highest_time is not None:
            self._require_later(alone, self.highest_time)
        if self.windows.may_leave_gaps and self.highest_time is not None:
            # Events in gaps were not kept: nothing before the newest event is complete, now or later.
            self.kept_from = next_after(self.highest_time)
        floor = self.threshold if self.watermark is not None else None
        if self.kept_from is not None:
            floor = self.kept_from if floor is None else max(floor, self.kept_from)
        self._change({**self.query.windows, name: window})
        if self.highest_time is not None and len(self.slices):
            point = np.array([self.highest_time], self.measure.dtype)
            self.slices.shorten_last(neighbours(self.windows, point)[1][0], self.highest_time)
        self.backlog.add(name)
        start = first_complete(alone, self.slices, floor)
        if self.spans is not None:
            start = self.spans.complete_from(alone, start)
        if start is not None:
            self.complete_from["window " + name] = start
        try:
            self._answer_final(name)
        except BaseException:
            self.remove_window(name)
            raise
        return start

    def _answer_final(self, name: str) -> None:
        """Answer the windows of this name that are final now, before a late event comes that counts in others only."""
        if self.watermark is None:
            return
        due = self._due(self.clamp(self.lowest - 1), self.horizon(self.watermark))
        emission = Emission(self, self.slices.slots)
        due = due.where(due.spec == self.windows.names.index(name))
        emission.emit(self._told(due, self.horizon(self.watermark)))
        self.ready += emission.batches

    def add_aggregate(self, name: str, aggregate: Aggregate) -> Tick | None:
        start = super().add_aggregate(name, aggregate)
        self._answer_anew()
        return start

    def remove_aggregate(self, name: str) -> None:
        super().remove_aggregate(name)
        if self.spans is not None:
            self.spans.drop_removed()
        self._answer_anew()

    def arrange(self, aggregates: Sequence[str]) -> None:
        super().arrange(aggregates)
        if self.spans is not None:
            self.spans.arrange()
        self._answer_anew()

    def reconfigure(self, options: OperatorOptions) -> None:
        other = options.changelog != self.settings.changelog
        super().reconfigure(options)
        if not other:
            return
        self.ledger = Ledger()
        self.touches, self.fresh_seen = [], False
        if options.mode == "update":
            self.fresh.repack(self.slices.slots[:0], self.slices.capacity, self.stride, slice(0, 0))
            # Windows between the horizon and the watermark are given out now, and open ones with the next look.
            self.backlog.update(self.windows.names)
        self._answer_anew()

    def _answer_anew(self) -> None:
        """Give the rows that are ready the columns of now."""
        names = {name for batch in self.ready for name in batch.column("window").unique().to_pylist()}
        self.ready.clear()
        for name in sorted(names):
            self._answer_final(name)

    def _require_later(self, windows: WindowSet, newest: Tick) -> None:
        """An error if windows begin at a point that events have passed."""
        for position, origin in windows.origins.items():
            if origin <= newest:
                raise QueryError(
                    f"window {windows.names[position]!r} cannot be added: events since its landmark have passed "
                    "and were not kept for it"
                )

    def remove_window(self, name: str) -> None:
        """Stop answering a window."""
        self._change({n: w for n, w in self.query.windows.items() if n != name})
        self.complete_from.pop("window " + name, None)
        self.backlog.discard(name)
        others = (batch.filter(pc.field("window").cast(pa.string()) != name) for batch in self.ready)
        self.ready = [batch for batch in others if batch.num_rows]
        self.ledger.drop(name)

    def _change(self, windows: dict[str, Window]) -> None:
        self.with_windows(windows)
        self._know_edges()
        if len(self.slices):
            self.slices.mix(self.slices.ends[-1])
        if self.watermark is not None:
            first = first_open_start(self.windows, self.horizon(self.watermark), self.there_from)
            self.threshold = max(self.threshold, first)

    def make_store(self, store: Store) -> Tick | None:
        store.repack(self.slices.slots[:0], self.slices.capacity, self.stride, slice(0, 0))
        if self.spans is not None:
            return self.spans.add_store(store)
        start = self.slices.ends[-1].item() if len(self.slices) else None
        trigger = self.settings.trigger
        if trigger is None or not trigger.discarding or self.kept_from is None:
            return start
        # A look has taken away what came before.
        kept = first_start(self.windows, self.kept_from)
        return kept if start is None else max(start, kept)

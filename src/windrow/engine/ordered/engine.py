"""The engine for windows that depend on the order of events: counts, and windows that the data places.

    process     events wait, because a late one may come before them
    advance     settled track       reads events that the horizon has passed: their order is known
                speculative track   update mode: reads on, up to the watermark, so that windows are given out early

In append mode there is one track, and its windows are final. In update mode the speculative one gives windows out. A late
event makes its key *stale*: the key goes back to where the settled track is, its waiting events are read once more, and
what was given out of it is compared with what is found now. A key that the settled track has overtaken goes on from there,
too. So an advance costs what has come, the waiting events of stale keys, and the windows that it gives out or revises,
whatever else is held.

    time             settled               speculative
    ------------------|------------------------|-------------
                   horizon      waiting    watermark
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.arrays import ascending
from windrow.engine.completeness import next_after
from windrow.engine.emission import Emission
from windrow.engine.engine import Engine, Foldable
from windrow.engine.intake.batches import EventBatch, PartialBatch
from windrow.engine.intake.keys import Keys
from windrow.engine.ordered.changelog import Changelog, EmittedWindows
from windrow.engine.ordered.columns import EventColumns
from windrow.engine.ordered.slices import FIRST, SLOT, Slices, Slots
from windrow.engine.ordered.track import Track, WindowRanges
from windrow.engine.ordered.waiting import Chunk, Released, Waiting
from windrow.engine.partials import Log, Store
from windrow.engine.sequence import bad_rows, discretizer_for, discretizers_for
from windrow.engine.staging import Staged
from windrow.engine.windows import ClosedWindows, joined
from windrow.errors import LimitError, QueryError
from windrow.measure import Tick
from windrow.planner.plan import Part
from windrow.windows.base import Window


class Ordered(Engine):
    """All windows of a query that depend on the order of events."""

    # Each window is answered for one key, and a key's count goes on.
    keys_per_window = 1
    forgets_keys = False

    def __init__(self, part: Part, keys: Keys | None = None) -> None:
        super().__init__(part, keys)
        self.slots = Slots(self)
        self.settled = self._track()
        self.speculative = self._track() if self.settings.mode == "update" else None
        self.columns = self._event_columns()
        self.waiting = Waiting(self.measure.dtype, self.columns)
        self.changelog = Changelog(self.measure.dtype)
        # The horizon of the last advance: what lies before it is final, and no event is taken there.
        self.last_horizon: Tick = self.lowest - 1
        # Keys that the speculative track must read again, and a flag for each key.
        self._stale: list[np.ndarray] = []
        self._is_stale = np.zeros(0, bool)
        self._passage: Staged | None = None
        self._known_keys = 0

    def _track(self) -> Track:
        return Track(self, self.slots, discretizers_for(self.query.windows, self.measure, self.binding.types))

    def _event_columns(self) -> EventColumns:
        """What is kept of an event, from now on."""
        names = self.windows.names
        inputs = [(names[specs[0]], d.input_kinds) for specs, d in self.settled.discretizers]
        columns = EventColumns(self.binding, inputs)
        for track in self.tracks:
            track.columns = columns
        return columns

    @property
    def tracks(self) -> list[Track]:
        return [self.settled] if self.speculative is None else [self.settled, self.speculative]

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

    def bad_values(
        self, batch: pa.RecordBatch, counted: Mapping[str, pa.RecordBatch] | None = None
    ) -> list[tuple[str, np.ndarray, str]]:
        """As other engines do, and by windows: of all rows, or of those that each has `counted`."""
        found = super().bad_values(batch)
        for name, window in self.query.windows.items():
            found += bad_rows(window, batch if counted is None else counted[name], self.measure)
        return found

    def too_late(self, incoming: EventBatch | PartialBatch) -> tuple[np.ndarray, np.ndarray] | None:
        """A mask, twice, of the events that lie before the horizon of the last advance, or before the floors of all windows."""
        floors = self._floors()
        point = self.last_horizon
        if len(floors) == len(self.query.windows):
            point = max(point, min(floors.values()))
        if incoming.scan[0] >= point:
            return None
        late = incoming.times < point
        return late, late

    def partly_late(self, incoming: EventBatch | PartialBatch) -> np.ndarray | None:
        """A mask of the events that some windows do not count, because they were added later."""
        floors = self._floors()
        return incoming.times < max(floors.values()) if floors else None

    def _floors(self) -> dict[int, Tick]:
        """From which time on windows that were added later count events, as far as earlier ones may still come."""
        if not self.complete_from:
            return {}
        floors = {
            place: self.complete_from.get("window " + name, self.last_horizon)
            for place, name in enumerate(self.query.windows)
        }
        return {place: floor for place, floor in floors.items() if floor > self.last_horizon}

    def _stage(self, incoming: EventBatch | PartialBatch, staged: Staged) -> None:
        """Let events wait."""
        if isinstance(incoming, PartialBatch):
            raise QueryError(
                "slices cannot be taken by an operator that waits for the order of single events"
            )
        self.require_room(len(incoming))
        limit, count = self.settings.max_slices, len(self.waiting) + len(incoming)
        if count > limit:
            raise LimitError(
                f"{count:,} events would wait for the watermark, more than the limit of "
                f"max_slices={limit:,}; nothing of this batch was taken: advance the watermark more often, "
                "lower the lateness, or raise max_slices"
            )
        numbers = None if incoming.numbers is None else incoming.numbers.astype(np.int64, copy=False)
        chunk = self.chunk_of(
            incoming.batch, incoming.times, incoming.arrival, numbers, incoming.scan, staged
        )
        staged.on_commit(partial(self._take_in, chunk))

    def chunk_of(
        self,
        batch: pa.RecordBatch,
        times: np.ndarray,
        arrival: np.ndarray | int,
        numbers: np.ndarray | None,
        scan: tuple[Tick, Tick, bool],
        staged: Staged,
    ) -> Chunk:
        """Events as they wait; `scan` is their first and last time, and whether they are in order."""
        inputs = [x for _, d in self.settled.discretizers for x in d.inputs(batch, times)]
        columns = self.columns.read(self.encode(batch, staged), inputs, len(times))
        return Chunk(columns, times, arrival, numbers, *scan)

    def _take_in(self, chunk: Chunk) -> None:
        if self.binding.logs:
            encoded, _ = self.columns.encoded(chunk.columns)
            self.keep(Foldable(encoded, chunk.time, chunk.arrivals), chunk.number, None)
        self.waiting.inbox.append(chunk)
        self.grow()
        high = chunk.high
        self.highest_time = high if self.highest_time is None else max(self.highest_time, high)

    def grow(self) -> None:
        """Have room for all keys that are known."""
        keys = self.keys.count
        if keys == self._known_keys:
            return
        self._known_keys = keys
        self.waiting.grow(keys)
        for track in self.tracks:
            track.grow(keys)
        if self.speculative is not None:
            self.changelog.grow(keys)
            known = len(self._is_stale)
            if keys > known:
                self._is_stale = np.append(self._is_stale, np.zeros(max(keys, 2 * known) - known, bool))

    # -- watermarks and results ------------------------------------------------------------------

    def due(self, watermark: Tick | None, *, look: bool = False) -> list[pa.RecordBatch]:
        finished = watermark is not None and watermark >= self.measure.highest
        horizon = self.last_horizon if watermark is None else self.horizon(watermark)
        horizon = self.measure.highest if finished else horizon
        self.grow()
        staged = self._passage = Staged()
        for track in self.tracks:
            track.begin(staged)
        try:
            if self.speculative is None:
                return self._settle(horizon, staged, finished=finished)
            if self.settings.is_early:
                return self._look(self.speculative, horizon, staged, look=look, finished=finished)
            assert watermark is not None
            return self._revise(self.speculative, watermark, horizon, staged, finished=finished)
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        assert self._passage is not None
        self._passage.rollback()
        self._passage = None

    def pass_to(self, watermark: Tick | None) -> None:
        assert self._passage is not None
        passage, self._passage = self._passage, None
        passage.commit()
        if self.slots.is_wasteful(len(self.settled.seen)):
            self._pack()
        if watermark is None:
            return
        finished = watermark >= self.measure.highest
        self.last_horizon = self.measure.highest if finished else self.horizon(watermark)
        self.watermark = watermark
        if self.binding.logs:
            self._forget_events()

    def _settle(self, horizon: Tick, staged: Staged, *, finished: bool) -> list[pa.RecordBatch]:
        """Append mode: read what the horizon has passed, and give out the windows that end there."""
        track = self.settled
        inbox = self.waiting.inbox
        bulk = self.waiting.in_bulk(horizon, self.keys.count)
        if bulk is None:
            self._distribute()
            self._read_settled(horizon, staged)
        else:
            staged.on_rollback(partial(setattr, self.waiting, "inbox", inbox))
            for part in bulk:
                track.read(part, self._floors(), staged)
                staged.on_commit(partial(self.waiting.skip, part))
        track.pass_time(horizon, staged, ending=self._ending(finished))
        found = track.ready(horizon, staged)
        if not len(found):
            return []
        due, slots = track.due_of(found)
        emission = Emission(self, slots)
        complete = self._complete(due)
        due = due if complete is None else due.where(complete)
        emission.change(due, "insert", np.zeros(len(due), np.int64))
        return emission.batches

    def _ending(self, finished: bool) -> np.ndarray:
        """The keys whose open windows end now: all at the end of the stream, and none before."""
        return np.arange(self.keys.count if finished else 0)

    def _distribute(self) -> None:
        """Put events into the queues of their keys; those that have had late ones are stale, and all, where rows come early."""
        early = self.settings.is_early
        readers = [self.settled] if early else self.tracks
        keys, first = self.waiting.distribute([track.reading for track in readers], self.keys.count)
        if early:
            self._make_stale(keys)
        elif self.speculative is not None and self.watermark is not None:
            self._make_stale(keys[first <= self.emission_point(self.watermark)])

    def _make_stale(self, keys: np.ndarray) -> None:
        self._is_stale[keys] = True
        self._stale.append(keys)

    def make_all_stale(self) -> None:
        """Let the speculative track read all keys again."""
        if self.speculative is not None:
            self._make_stale(np.arange(self.keys.count))

    def _read(self, track: Track, keys: np.ndarray, until: Tick, staged: Staged) -> Released | None:
        """Let a track read on in the queues of these keys, which ascend."""
        part = self.waiting.release(keys, track.seen, until, track.reading)
        if part is not None:
            track.read(part, self._floors(), staged)
        return part

    def _rearm(self, track: Track, keys: np.ndarray) -> None:
        self.waiting.rearm(keys, track.seen, track.reading)

    def _read_settled(self, horizon: Tick, staged: Staged) -> np.ndarray:
        """Let the settled track read what the horizon has passed, which waits no longer on commit: the keys of it."""
        track = self.settled
        keys = np.sort(track.reading.due(horizon))
        staged.on_rollback(partial(self._rearm, track, keys))
        part = self._read(track, keys, horizon, staged)
        if part is None:
            return np.empty(0, np.int64)
        staged.on_commit(partial(self.waiting.forget, part))
        return part.keys

    def _complete(self, due: ClosedWindows) -> np.ndarray | None:
        """A mask of the windows that are complete; None: all are."""
        if not any(name.startswith("window ") for name in self.complete_from):
            return None
        lowest = self.measure.lowest
        floors = [self.complete_from.get("window " + name, lowest) for name in self.query.windows]
        complete: np.ndarray = due.start >= np.array(floors, self.measure.dtype)[due.spec]
        return complete

    def _revise(
        self, track: Track, watermark: Tick, horizon: Tick, staged: Staged, *, finished: bool
    ) -> list[pa.RecordBatch]:
        """Update mode: the changes since the last advance, and the windows that are given out for the first time."""
        old = self.clamp(self.lowest - 1) if self.watermark is None else self.emission_point(self.watermark)
        point = self.measure.highest if finished else self.emission_point(watermark)
        self._distribute()
        if finished:
            # What ends only because everything does may have the identity of a window that was given out.
            self.make_all_stale()
        read = self._read_settled(horizon, staged)
        self.settled.pass_time(horizon, staged, ending=self._ending(finished))
        stale = ascending(*self._stale) if self._stale else np.empty(0, np.int64)
        staged.on_commit(partial(self._freshen, stale))
        behind = ascending(stale, read[self.settled.seen[read] > track.seen[read]])
        keys = ascending(track.reading.due(point), behind)
        staged.on_rollback(partial(self._rearm, track, keys))
        if len(behind):
            track.take_over(self.settled, behind, staged)
        self._read(track, keys, point, staged)
        track.pass_time(point, staged, ending=self._ending(finished=False))
        batches = self._changes(track, track.ready(point, staged), stale, old, horizon, staged)
        self.settled.ready(horizon, staged)
        return batches

    def _freshen(self, keys: np.ndarray) -> None:
        """These keys are not stale any more; they are all that were, or those that windows have become final of."""
        self._is_stale[keys] = False
        rest = [some[self._is_stale[some]] for some in self._stale]
        self._stale = [some for some in rest if len(some)]

    def _look(
        self, track: Track, horizon: Tick, staged: Staged, *, look: bool, finished: bool
    ) -> list[pa.RecordBatch]:
        """Early rows: all windows of the stale keys as they would end now, and those that are final.

        The speculative track goes from where the settled one is to the end of what has come, and back when the rows are made. Of a
        key with a final window all is compared, as its rows on record may be parts of that.
        """
        self._distribute()
        if finished:
            self.make_all_stale()
        self._read_settled(horizon, staged)
        self.settled.pass_time(horizon, staged, ending=self._ending(finished))
        ended = self.settled.ready(horizon, staged)
        keys = ascending(*self._stale, ended.key) if look or finished else ascending(ended.key)
        if not len(keys):
            return []
        tried = Staged()
        try:
            highest = self.measure.highest
            track.take_over(self.settled, keys, tried)
            self._read(track, keys, highest, tried)
            track.pass_time(highest, tried, ending=keys)
            open_ones = track.ready(highest, tried)
            batches = self._compared(keys, ended, track, open_ones, horizon, staged)
        finally:
            tried.rollback()
        staged.on_commit(partial(self._freshen, keys))
        return batches

    def _compared(
        self,
        keys: np.ndarray,
        ended: WindowRanges,
        track: Track,
        found: WindowRanges,
        horizon: Tick,
        staged: Staged,
    ) -> list[pa.RecordBatch]:
        """Rows that turn what was given out of these keys into windows that have ended, and those of a track."""
        (final, slots), (due, more) = self.settled.due_of(ended), track.due_of(found)
        due.first += len(slots)
        due.last += len(slots)
        due = joined([final, due])
        due.final = np.repeat([True, False], [len(ended), len(found)])
        emission = Emission(self, np.concatenate([slots, more]))
        ranges = WindowRanges.joined([ended, found])
        complete = self._complete(due)
        if complete is not None:
            due, ranges = due.where(complete), ranges.where(complete)
        rows = EmittedWindows.holding(ranges, due)
        self.changelog.settle(emission, keys, due, rows, horizon, staged)
        return emission.batches

    def _changes(
        self, track: Track, found: WindowRanges, stale: np.ndarray, old: Tick, horizon: Tick, staged: Staged
    ) -> list[pa.RecordBatch]:
        """Rows for windows that have ended: compared with what was given out of stale keys, where they ended by `old`."""
        # Of a key that has had no late events, what has ended by `old` was given out.
        fresh = found.finish > old
        if not len(found) and not len(stale):
            self.changelog.record(stale, None, horizon, staged)
            return []
        found = found.where(fresh | self._is_stale[found.key])
        due, slots = track.due_of(found)
        emission = Emission(self, slots)
        complete = self._complete(due)
        if complete is not None:
            due, found = due.where(complete), found.where(complete)
        rows, whole = EmittedWindows.holding(found, due), np.zeros(len(due), np.int64)
        fresh = found.finish > old
        kept = rows.where(fresh)
        if len(stale):
            again = self.changelog.revise(emission, stale, due.where(~fresh), rows.where(~fresh))
            kept = again.with_more(kept)
        emission.change(due.where(fresh), "insert", whole[fresh])
        self.changelog.record(stale, kept, horizon, staged)
        return emission.batches

    # -- letting go ------------------------------------------------------------------------------

    def _pack(self) -> None:
        """Let go of memory that is far more than the slices need."""
        at = [track.slices.places(np.arange(len(track.seen))) for track in self.tracks]
        slots = [track.slices.numbers[SLOT, places] for track, places in zip(self.tracks, at, strict=True)]
        self.slots.pack(slots)
        base = 0
        for track, places in zip(self.tracks, at, strict=True):
            track.slices.numbers[SLOT, places] = np.arange(base, base + len(places))
            base += len(places)

    def _forget_events(self) -> None:
        """Events of logs that lie before the first live slice of their key, and are not waiting."""
        slices = self.settled.slices
        first = np.full(self.keys.count, self.last_horizon, self.measure.dtype)
        some = np.flatnonzero(slices.counts(np.arange(len(first))))
        first[some] = np.minimum(first[some], slices.ticks[FIRST, slices.begin[some]])
        for store in self.binding.stores.values():
            if isinstance(store, Log):
                store.evict_before(first)

    @property
    def slices(self) -> Slices:
        """Those of events whose order is known."""
        return self.settled.slices

    @property
    def pending(self) -> int:
        """How many events wait for their order to be known."""
        return len(self.waiting)

    @property
    def cells(self) -> int:
        """How many slices are alive, those of events that wait among them."""
        return self.slots.live

    @property
    def nbytes(self) -> int:
        kept = self.waiting.nbytes + self.changelog.nbytes
        return sum(s.nbytes for s in (*self.stores(), *self.tracks)) + kept

    # -- queries that change while they run ------------------------------------------------------

    def begin_after(self, newest: Tick) -> Tick:
        """Begin in a running stream whose newest event is at `newest`: the first complete start."""
        self.highest_time = newest
        return next_after(newest)

    def add_window(self, name: str, window: Window) -> Tick | None:
        """Answer one more window, which counts the events after the newest one, whenever they come."""
        made = [discretizer_for(window, self.measure, self.binding.types, name=name) for _ in self.tracks]
        spec = len(self.query.windows)
        self.with_windows({**self.query.windows, name: window})
        self.grow()
        for track, discretizer in zip(self.tracks, made, strict=True):
            track.add(spec, window, discretizer)
        self._refit()
        seen = None if self.highest_time is None else next_after(self.highest_time)
        starts = [start for start in (seen, self.last_horizon) if start is not None and start > self.lowest]
        if not starts:
            return None
        self.complete_from["window " + name] = max(starts)
        return max(starts)

    def remove_window(self, name: str) -> None:
        """Stop answering a window."""
        self.grow()
        spec = self.windows.names.index(name)
        self.with_windows({n: w for n, w in self.query.windows.items() if n != name})
        for track in self.tracks:
            track.remove(spec)
        self.complete_from.pop("window " + name, None)
        self.changelog.remove(spec)
        self._refit()

    def remove_aggregate(self, name: str) -> None:
        super().remove_aggregate(name)
        self._refit()

    def forget_emitted(self) -> None:
        """Know no rows that are to be revised: the changelog ends here."""
        self.changelog = Changelog(self.measure.dtype)

    def _refit(self) -> None:
        """Let the events that wait have the columns that are read now."""
        self.columns = self._event_columns()
        self.waiting.fit(self.columns)

    def code_holders(self, column: str) -> list[tuple[Any, int]]:
        return [*super().code_holders(column), (self.waiting, self.columns.value_of(column))]

    def make_store(self, store: Store) -> Tick | None:
        store.repack(np.empty(0, np.int64), self.slots.capacity, 1, slice(0, 0))
        self._refit()
        return None if self.highest_time is None else next_after(self.highest_time)

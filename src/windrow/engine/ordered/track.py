"""The windows of a query at work on the events of each key, in order, up to a point in time.

Each window is a *discretizer* (Cutty, section 5.1): it sees the events of a key in order and says where its windows begin
and end, in *ranks*, the number of events of the key that came before. A track turns ranks into places where slices are
cut, and into ranges of slices.

    events      o  o  o  o  o  o  o        all before here have been read
    windows     |-------)                  ended: found, and ready when time has come to their end
                   |----------- ..         open: its slices stay
    slices      |--|----|--------|

What it costs follows the events that are read, the windows that end, and the keys of both. Each step says how it is
undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.aligned.cutting import Runs
from windrow.engine.arrays import ascending
from windrow.engine.engine import Engine, Foldable
from windrow.engine.ordered.columns import EventColumns
from windrow.engine.ordered.slices import CLOSING, FIRST, LAST, RANK, SLOT, Slices, Slots, cut
from windrow.engine.ordered.timers import Timers
from windrow.engine.ordered.waiting import Released
from windrow.engine.sequence import Discretizer, Run, Windows
from windrow.engine.sequence.base import NEVER
from windrow.engine.sequence.counted import Counted
from windrow.engine.staging import Staged
from windrow.engine.windows import ClosedWindows
from windrow.measure import Tick
from windrow.windows.base import Window

# Rows of what is known of each key.
SEEN, ENDED = range(2)
# With fewer slices of a key it is not worth a look whether some can be joined.
UNJOINED = 64


class WindowRanges:
    """Windows whose end is known: their ranks and what they are, and their times, as the rows of two matrices."""

    # `spec` is the place of the window in the query; `named` is 1 where `start` is known, 0 where it is the time of the first event.
    NUMBERS = ("spec", "key", "begin", "end", "named")
    TICKS = ("finish", "start")

    def __init__(self, numbers: np.ndarray, ticks: np.ndarray) -> None:
        self.numbers, self.ticks = numbers, ticks
        self.spec, self.key, self.begin, self.end, self.named = numbers
        self.finish, self.start = ticks

    @classmethod
    def empty(cls, tick: np.dtype) -> WindowRanges:
        return cls(np.empty((5, 0), np.int64), np.empty((2, 0), tick))

    @classmethod
    def of(cls, specs: np.ndarray, windows: Windows, tick: np.dtype) -> WindowRanges:
        """What a discretizer has found; `specs` are the places of its windows among all."""
        count = len(windows.key)
        if not count:
            return cls.empty(tick)
        numbers, ticks = np.empty((5, count), np.int64), np.empty((2, count), tick)
        numbers[0] = specs if windows.which is None else specs[windows.which]
        numbers[1], numbers[2], numbers[3] = windows.key, windows.begin, windows.end
        numbers[4] = windows.start is not None
        ticks[0], ticks[1] = windows.finish, 0 if windows.start is None else windows.start
        return cls(numbers, ticks)

    def __len__(self) -> int:
        return self.numbers.shape[1]

    def where(self, keep: np.ndarray) -> WindowRanges:
        return WindowRanges(self.numbers.compress(keep, axis=1), self.ticks.compress(keep, axis=1))

    @cached_property
    def earliest(self) -> Tick:
        """When the first of them ends; there must be some."""
        return self.finish.min().item()

    @classmethod
    def joined(cls, parts: list[WindowRanges]) -> WindowRanges:
        if len(parts) == 1:
            return parts[0]
        numbers, ticks = [part.numbers for part in parts], [part.ticks for part in parts]
        return cls(np.concatenate(numbers, axis=1), np.concatenate(ticks, axis=1))


@jit
def count_events(keys, bounds, times, numbers, last):  # type: ignore[no-untyped-def]
    """Know that the events of a run were read. What was known of its keys before, as columns of `numbers` and of `last`, and
    a flag for each event that begins a slice because a window has ended before it."""
    known, known_last = np.empty((3, keys.shape[0]), np.int64), np.empty(keys.shape[0], times.dtype)
    flags = np.zeros(times.shape[0], np.bool_)
    for s in range(keys.shape[0]):
        k = keys[s]
        known[:, s], known_last[s] = numbers[:, k], last[k]
        numbers[SEEN, k] += bounds[s + 1] - bounds[s]
        flags[bounds[s]] = numbers[ENDED, k] != 0
        numbers[ENDED, k] = 0
        last[k] = times[bounds[s + 1] - 1]
    return known, known_last, flags


@jit
def keep_ranks(keys, key, rank, needed):  # type: ignore[no-untyped-def]
    """Of each of the keys, which ascend, all slices from the least of these ranks on are needed; other keys are passed over."""
    for i in range(key.shape[0]):
        s = np.searchsorted(keys, key[i])
        if s < keys.shape[0] and keys[s] == key[i]:
            needed[s] = min(needed[s], rank[i])


@jit
def flag_tails(bounds, before, tail, flags):  # type: ignore[no-untyped-def]
    """Flag the events of each segment from the rank tail[s] on."""
    for s in range(tail.shape[0]):
        for row in range(bounds[s] + max(tail[s] - before[s], 0), bounds[s + 1]):
            flags[row] = True


def least(columns: list[np.ndarray]) -> np.ndarray:
    """The least number of each place."""
    return columns[0] if len(columns) == 1 else np.minimum.reduce(columns)


def among(keys: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Whether each number is one of `keys`, which ascend and are not none."""
    return keys[np.minimum(np.searchsorted(keys, key), len(keys) - 1)] == key


class Track:
    """Events read in order, and the slices and windows that they make. `stores` and slots belong to the engine, which may have several tracks."""

    def __init__(
        self, engine: Engine, slots: Slots, discretizers: list[tuple[np.ndarray, Discretizer]]
    ) -> None:
        self._engine, self._slots = engine, slots
        self.tick = engine.measure.dtype
        self.discretizers = discretizers
        self.columns: EventColumns
        self.slices = Slices(self.tick)
        # Of each key: how many events were read, whether the next one begins a slice because a window has ended before it,
        # and how many slices are too few to be joined.
        self.seen, self.cut, self._few = self._numbers = np.zeros((3, 0), np.int64)
        self.last = np.zeros(0, self.tick)
        # Windows that have ended and wait until time has come to their ends, which are at most one tick ahead.
        self.found: list[WindowRanges] = []
        self.reading = Timers(self.tick)
        self._expiring = Timers(self.tick)
        self._sort_discretizers()

    def _sort_discretizers(self) -> None:
        """Know which windows may end by time alone, and which keep the events of a tail apart."""
        none = np.empty(0, np.int64)
        self._timed = [d for _, d in self.discretizers if d.timers(none, self.seen) is not None]
        self._tailed = [d for _, d in self.discretizers if d.tail(self.seen, none) is not None]

    def grow(self, keys: int) -> None:
        """Have room for this many keys."""
        if keys > len(self.seen):
            more = max(keys, 2 * len(self.seen)) - len(self.seen)
            fresh = np.repeat([[0], [0], [UNJOINED]], more, axis=1)
            self.seen, self.cut, self._few = self._numbers = np.append(self._numbers, fresh, axis=1)
            self.last = np.append(self.last, np.zeros(more, self.tick))
            self.slices.grow(keys)
            self.reading.grow(keys)
            self._expiring.grow(keys)
        for _, discretizer in self.discretizers:
            discretizer.grow(keys)

    # -- events in -------------------------------------------------------------------------------

    def remember(self, keys: np.ndarray, staged: Staged) -> None:
        """A rollback brings these keys back to what they are now: O(keys)."""
        self._remember(keys, self._numbers.take(keys, axis=1), self.last[keys], staged)

    def _remember(self, keys: np.ndarray, numbers: np.ndarray, last: np.ndarray, staged: Staged) -> None:
        found, slices = self.found, self.slices.mark(keys)
        marks = [discretizer.mark(keys) for _, discretizer in self.discretizers]

        def undo() -> None:
            self._numbers[:, keys], self.last[keys], self.found = numbers, last, found
            self.slices.restore(slices)
            for (_, discretizer), mark in zip(self.discretizers, marks, strict=True):
                discretizer.restore(mark)

        staged.on_rollback(undo)

    def read(self, part: Released, floors: Mapping[int, Tick], staged: Staged) -> None:
        """Take in events, which come behind those that were read; their slices stay apart from those that there were.

        Windows in `floors`, which were added later, count events from a time on.
        """
        keys, bounds = part.keys, part.bounds
        known, last, flags = count_events(keys, bounds, part.times, self._numbers, self.last)
        self._remember(keys, known, last, staged)
        before = known[SEEN]
        found = []
        names = self._engine.windows.names
        for specs, discretizer in self.discretizers:
            inputs = self.columns.inputs_of(part.columns, names[specs[0]])
            run = Run(inputs, part.times, keys, bounds, before, self._tail_times)
            counted = self._counted(run, specs, discretizer, floors) if floors else run
            windows = discretizer.release(counted) if len(counted.keys) else Windows.none(self.tick)
            if len(windows):
                found.append(WindowRanges.of(specs, windows, self.tick))
            discretizer.flag(run, windows, flags)
        tail = self._tail(keys)
        if tail is not None:
            flag_tails(bounds, before, tail, flags)
        self._keep_ended(found)
        # What windows have ended keep until they are ready: without a new slice there is none to let go of.
        if self._fold(part, before, flags, staged):
            self._touched.append(keys)
        self.rearm(keys)

    def _counted(self, run: Run, specs: np.ndarray, d: Discretizer, floors: Mapping[int, Tick]) -> Run:
        """The events of a run that count for the windows of a discretizer."""
        for which in [i for i, spec in enumerate(specs.tolist()) if spec in floors]:
            early = np.append(0, np.cumsum(run.times < floors[specs[which]]))
            count = early[run.bounds[1:]] - early[run.bounds[:-1]]
            if count.any():
                run = d.skip(run, count, which)
        return run

    def _tail_times(self, key: np.ndarray, rank: np.ndarray) -> np.ndarray:
        """The times of events that are slices of their own."""
        times: np.ndarray = self.slices.ticks[FIRST, self.slices.at_rank(key, rank)]
        return times

    def _tail(self, keys: np.ndarray) -> np.ndarray | None:
        """From which rank on the events of each of these keys must be kept apart; None if nowhere."""
        tails = [discretizer.tail(self.seen, keys) for discretizer in self._tailed]
        return least([tail for tail in tails if tail is not None]) if tails else None

    def _keep_ended(self, found: list[WindowRanges]) -> None:
        """Windows have ended, and wait until time has come to their ends; the next event of a key may lie behind one of them."""
        for windows in found:
            self.cut[windows.key[windows.end == self.seen[windows.key]]] = 1
        self.found = self.found + [windows for windows in found if len(windows)]

    def _fold(self, part: Released, before: np.ndarray, flags: np.ndarray, staged: Staged) -> int:
        """Slices of a run, which begin at the events that have a flag; those before go on with the last slice of their key.
        How many are new."""
        engine, slices, keys = self._engine, self.slices, part.keys
        # What a slice of multisets held is not known any more once events were added.
        apart = engine.binding.has_multisets
        free = self._slots.free(int(np.count_nonzero(flags)) + len(keys))
        run = (keys, part.bounds, before, *part.stamps, part.times)
        (low, high, cell), counts, numbers, ticks, grown, last = cut(
            flags, apart, *run, slices.edges, slices.numbers, slices.ticks, free
        )
        if len(last):
            staged.on_rollback(partial(slices.end_at, grown[0], grown[2], last))
            for store in engine.binding.numbers:
                staged.on_rollback(store.saved(grown[1]))
        fresh = numbers.shape[1]
        self._slots.take(fresh, staged)
        segments = Runs(low, high, cell)
        stamps = part.arrivals if engine.binding.needs_arrival else part.times[:0]
        encoded, known = self.columns.encoded(part.columns)
        if engine.binding.own:
            own = Foldable(known, part.times, stamps)
            engine.fold(own, segments, own=True, staged=staged if len(last) else None)
        engine.fold(Foldable(encoded, part.times, stamps), segments, own=False)
        engine.presence.n[cell] += high - low
        if fresh:
            slices.push(keys, counts, numbers, ticks)
        return fresh

    def rearm(self, keys: np.ndarray) -> None:
        """Know when time alone will end windows of these keys."""
        for discretizer in self._timed:
            times = discretizer.timers(keys, self.seen)
            if times is not None:
                self._expiring.arm(keys, times)

    # -- time ------------------------------------------------------------------------------------

    def pass_time(self, until: Tick, staged: Staged, *, ending: np.ndarray) -> None:
        """Find the windows that end because time goes on, or because everything ends for the keys of `ending`."""
        if self._timed:
            keys = np.sort(self._expiring.due(until))
            if len(keys):
                staged.on_rollback(partial(self.rearm, keys))
                self.remember(keys, staged)
                self._keep_ended(
                    [
                        WindowRanges.of(s, d.expire(until, self.seen, keys), self.tick)
                        for s, d in self.discretizers
                    ]
                )
                self.rearm(keys)
                self._touched.append(keys)
        if len(ending):
            self.remember(ending, staged)
            closed = [(s, d.close(self.seen, self.last, ending)) for s, d in self.discretizers]
            self._keep_ended([WindowRanges.of(s, windows, self.tick) for s, windows in closed])

    def ready(self, until: Tick, staged: Staged) -> WindowRanges:
        """The windows that have ended by `until`; they wait no longer."""
        if not any(windows.earliest <= until for windows in self.found):
            return WindowRanges.empty(self.tick)
        waiting = WindowRanges.joined(self.found)
        staged.on_rollback(partial(setattr, self, "found", self.found))
        ended = waiting.finish <= until
        ready, self.found = waiting, []
        if not ended.all():
            ready, self.found = waiting.where(ended), [waiting.where(~ended)]
        self._touched.append(ready.key)
        return ready

    def due_of(self, found: WindowRanges) -> tuple[ClosedWindows, np.ndarray]:
        """Windows as ranges of slices, and the slots of these."""
        slots, (low, high, opening, behind), (begun, last, start) = self.slices.laid_out(
            found.numbers[1:], found.start
        )
        order = (begun, opening, last, behind)
        return ClosedWindows(found.spec, start, found.finish, low, high, found.key, order), slots

    # -- letting go ------------------------------------------------------------------------------

    def _needed(self, keys: np.ndarray) -> np.ndarray:
        """The first rank of each of these keys, which ascend, that a window may still ask for."""
        firsts = [discretizer.first_anchor(keys) for _, discretizer in self.discretizers]
        known = [first for first in (*firsts, self._tail(keys)) if first is not None]
        needed = least(known) if known else np.full(len(keys), NEVER)
        for windows in self.found:
            keep_ranks(keys, windows.key, windows.begin, needed)
        return needed

    def _evict(self, keys: np.ndarray) -> np.ndarray:
        """Let go of the slices of these keys that no window needs: the keys that have so many that it is worth to join them."""
        gone, many = self.slices.evict(keys, self._needed(keys), self._few)
        if len(gone):
            self._slots.give_back(gone)
        return many

    def begin(self, staged: Staged) -> None:
        """What follows is one call: on commit, let go of what no window needs after it, and join slices."""
        self._touched: list[np.ndarray] = []
        staged.on_commit(self._end)

    def _end(self) -> None:
        if self._touched:
            many = self._evict(ascending(*self._touched))
            if len(many):
                self._coalesce(many)
        self.slices.settle()
        for _, discretizer in self.discretizers:
            discretizer.settle()

    def _coalesce(self, keys: np.ndarray) -> None:
        """Join the slices of these keys between which no window begins or ends any more."""
        slices = self.slices
        at, count = slices.places(keys), slices.counts(keys)
        apart = np.zeros(len(at), bool)
        base = np.cumsum(count) - count
        apart[base] = True
        ranks = [(windows.key, rank) for windows in self.found for rank in (windows.begin, windows.end)]
        ranks += [d.anchors_of(keys, np.zeros(len(keys), np.int64)) for _, d in self.discretizers]
        for key, rank in ranks:
            place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            here = keys[place] == key
            key, rank, place = key[here], rank[here], place[here]
            found = slices.at_rank(key, rank)
            inside = found < slices.end[key]
            apart[(found - slices.begin[key] + base[place])[inside]] = True
        tail = self._tail(keys)
        if tail is not None:
            apart |= slices.numbers[RANK, at] >= np.repeat(tail, count)
        self._few[keys] = 2 * count + UNJOINED
        if apart.all():
            return
        lead = at[apart]
        number = np.cumsum(apart) - 1
        into, taken = slices.numbers[SLOT, lead[number[~apart]]], slices.numbers[SLOT, at[~apart]]
        if not self._engine.absorb(into, taken, 1):
            return  # a user's `combine` failed: it will be named when a window needs it
        final = at[np.append(np.flatnonzero(apart)[1:], len(at)) - 1]
        left = np.add.reduceat(apart.astype(np.int64), base)
        numbers, ticks = slices.numbers[:, lead], slices.ticks[:, lead]
        numbers[CLOSING], ticks[LAST] = slices.numbers[CLOSING, final], slices.ticks[LAST, final]
        slices.clear(keys)
        slices.push(keys, left, numbers, ticks)
        self._slots.give_back(taken)
        self._few[keys] = 2 * left + UNJOINED

    # -- a second track --------------------------------------------------------------------------

    def take_over(self, other: Track, keys: np.ndarray, staged: Staged) -> None:
        """Be where another track is for these keys, which ascend: O(their slices and open windows)."""
        self.remember(keys, staged)
        engine, slices = self._engine, self.slices
        staged.on_commit(partial(self._slots.give_back, slices.numbers[SLOT, slices.places(keys)]))
        slices.clear(keys)
        at = other.slices.places(keys)
        slots = self._slots.take(len(at), staged)
        for store in engine.stores():
            store.copy(slots, other.slices.numbers[SLOT, at])
        numbers = other.slices.numbers[:, at]
        numbers[SLOT] = slots
        slices.push(keys, other.slices.counts(keys), numbers, other.slices.ticks[:, at])
        self._numbers[:, keys], self.last[keys] = other._numbers[:, keys], other.last[keys]
        for (_, mine), (_, theirs) in zip(self.discretizers, other.discretizers, strict=True):
            mine.take_over(theirs, keys)
        own = [windows.where(~among(keys, windows.key)) for windows in self.found]
        taken = [windows.where(among(keys, windows.key)) for windows in other.found]
        self.found = [windows for windows in (*own, *taken) if len(windows)]
        self.rearm(keys)

    # -- queries that change ---------------------------------------------------------------------

    def add(self, spec: int, window: Window, discretizer: Discretizer) -> None:
        """Find the windows of one more spec, which counts the events that are not read yet."""
        keys = self._engine.keys.count
        specs, first = self.discretizers[0]
        if window.counts and isinstance(first, Counted):
            first.add(window)
            self.discretizers[0] = np.append(specs, spec), first
            first.begin_at(np.arange(keys), self.seen[:keys], len(specs))
        else:
            discretizer.grow(keys)
            # Counts come first, as in `discretizers_for`.
            self.discretizers.insert(
                0 if window.counts else len(self.discretizers), (np.array([spec]), discretizer)
            )
            discretizer.begin_at(np.arange(keys), self.seen[:keys], 0)
        self._sort_discretizers()

    def remove(self, spec: int) -> None:
        """Forget the windows of a spec; those behind it move up."""
        kept: list[tuple[np.ndarray, Discretizer]] = []
        for specs, discretizer in self.discretizers:
            here = np.flatnonzero(specs == spec)
            if isinstance(discretizer, Counted) and len(here) and len(specs) > 1:
                discretizer.remove(int(here[0]))
                kept.append((np.delete(specs, here), discretizer))
            elif not len(here):
                kept.append((specs, discretizer))
        self.discretizers = [(specs - (specs > spec), discretizer) for specs, discretizer in kept]
        self._sort_discretizers()
        found = [windows.where(windows.spec != spec) for windows in self.found]
        self.found = [windows for windows in found if len(windows)]
        for windows in self.found:
            windows.spec -= windows.spec > spec
        self._evict(np.arange(self._engine.keys.count))

    @property
    def nbytes(self) -> int:
        state = sum(discretizer.nbytes for _, discretizer in self.discretizers)
        timers = self.reading.nbytes + self._expiring.nbytes
        return int(self.seen.nbytes + self.last.nbytes) + state + timers + self.slices.nbytes

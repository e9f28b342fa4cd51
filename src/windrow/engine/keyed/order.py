"""The windows of a query that depend on the order of events, at work behind the frontier.

Each is a *discretizer* (Cutty, section 5.1): it sees the events of a key in order and says where its
windows begin and end, in *ranks*, the number of events of the key that came before. This file turns
ranks into places where slices are cut, and into ranges of slices.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from windrow.engine.arrays import different, ranges
from windrow.engine.cache import jit
from windrow.engine.keyed.pending import Released
from windrow.engine.keyed.slices import KeyedSlices
from windrow.engine.sequence import Discretizer, Run, Windows
from windrow.engine.sequence.counted import Counted
from windrow.engine.windows import Due
from windrow.measure import Tick

NEVER = np.iinfo(np.int64).max


@dataclass
class Found:
    """Windows whose end is known and which wait for their time; `spec` says of which kind they are."""

    spec: np.ndarray
    key: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    finish: np.ndarray
    start: np.ndarray
    named: np.ndarray  # whether `start` is given, or is the time of the first event
    cut_short: np.ndarray  # whether it ended only because everything did

    @classmethod
    def empty(cls, tick: np.dtype) -> Found:
        whole, ticks = np.empty(0, np.int64), np.empty(0, tick)
        flags = np.empty(0, np.uint8)
        return cls(whole, whole, whole, whole, ticks, ticks, flags, flags)

    @classmethod
    def of(cls, specs: np.ndarray, windows: Windows, tick: np.dtype, *, cut_short: bool = False) -> Found:
        """What a discretizer has found; `specs` are the places of its windows among all."""
        count = len(windows.key)
        spec = np.repeat(specs, count) if windows.which is None else specs[windows.which]
        start = np.zeros(count, tick) if windows.start is None else windows.start
        named = np.full(count, windows.start is not None, np.uint8)
        columns = (windows.key, windows.begin, windows.end, windows.finish, start, named)
        return cls(spec, *columns, np.full(count, cut_short, np.uint8))

    def __len__(self) -> int:
        return len(self.spec)

    def where(self, keep: np.ndarray) -> Found:
        return Found(*(column[keep] for column in vars(self).values()))

    @classmethod
    def joined(cls, parts: list[Found]) -> Found:
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))


@jit
def find_ranks(key, rank, keys, bounds, ranks, out):  # type: ignore[no-untyped-def]
    """The first slice of each key at or after each rank, or the end of the key's slices; -1 without any.

    keys: the key of each stretch bounds[s] .. bounds[s+1]-1 of slices, ascending.
    """
    for i in range(key.shape[0]):
        s = np.searchsorted(keys, key[i])
        if s == keys.shape[0] or keys[s] != key[i]:
            out[i] = -1
            continue
        low, high = bounds[s], bounds[s + 1]
        while low < high:
            middle = (low + high) // 2
            if ranks[middle] < rank[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low


def places(slices: KeyedSlices, key: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """See `find_ranks`."""
    bounds = slices.bounds()
    out = np.empty(len(key), np.int64)
    find_ranks(key, rank, slices.key[bounds[:-1]], bounds, slices.rank, out)
    return out


def due_of(found: Found, slices: KeyedSlices) -> Due:
    """Windows as ranges of slices."""
    first, last = places(slices, found.key, found.begin), places(slices, found.key, found.end)
    start = np.where(found.named > 0, found.start, slices.first[first])
    order = (slices.first[first], slices.opening[first], slices.last[last - 1], slices.closing[last - 1] + 1)
    return Due(found.spec, start, found.finish, first, last, found.key, order)


@dataclass
class Order:
    """The discretizers of a query, how far each key has come, and windows that wait for their time."""

    tick: np.dtype
    discretizers: list[tuple[np.ndarray, Discretizer]]
    seen: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    last: np.ndarray = field(init=False)
    waiting: Found = field(init=False)

    def __post_init__(self) -> None:
        self.last = np.zeros(len(self.seen), self.tick)
        self.waiting = Found.empty(self.tick)

    def grow(self, keys: int) -> None:
        if keys > len(self.seen):
            more = max(keys, 2 * len(self.seen)) - len(self.seen)
            self.seen = np.append(self.seen, np.zeros(more, np.int64))
            self.last = np.append(self.last, np.zeros(more, self.tick))
            for _, discretizer in self.discretizers:
                discretizer.grow(len(self.seen))

    def remove(self, spec: int) -> None:
        """Forget the windows of a spec; those behind it move up."""
        kept: list[tuple[np.ndarray, Discretizer]] = []
        for specs, discretizer in self.discretizers:
            here = np.flatnonzero(specs == spec)
            if len(here) and isinstance(discretizer, Counted) and len(specs) > 1:
                kept.append((np.delete(specs, here), discretizer.without(int(here[0]))))
            elif not len(here):
                kept.append((specs, discretizer))
        self.discretizers = [(specs - (specs > spec), discretizer) for specs, discretizer in kept]
        self.waiting = self.waiting.where(self.waiting.spec != spec)
        self.waiting.spec = self.waiting.spec - (self.waiting.spec > spec)

    def copy(self) -> Order:
        """An independent copy, to look ahead with or to go back to."""
        twin = replace(self, discretizers=[(specs, d.copy()) for specs, d in self.discretizers])
        twin.seen, twin.last, twin.waiting = self.seen.copy(), self.last.copy(), self.waiting
        return twin

    def digest(self, released: Released, slices: KeyedSlices, frontier: Tick) -> np.ndarray:
        """Take in events; the positions among them at which a slice must begin."""
        chunk, keys, bounds = released.chunk, released.keys, released.bounds

        def tail_times(key: np.ndarray, rank: np.ndarray) -> np.ndarray:
            return slices.first[places(slices, key, rank)]

        run = Run(chunk.batch, chunk.time, keys, bounds, self.seen, frontier, tail_times)
        parts = [self.waiting]
        for specs, discretizer in self.discretizers:
            parts.append(Found.of(specs, discretizer.release(run), self.tick))
        self.waiting = Found.joined(parts)
        before = self.seen[keys]
        self.seen[keys] = before + np.diff(bounds)
        self.last[keys] = chunk.time[bounds[1:] - 1]
        return self._marks(keys, bounds, before, len(chunk))

    def _marks(self, keys: np.ndarray, bounds: np.ndarray, before: np.ndarray, count: int) -> np.ndarray:
        """Where windows begin or end among the events of a run: positions, ascending."""
        ranks = [(self.waiting.key, self.waiting.begin), (self.waiting.key, self.waiting.end)]
        ranks += [discretizer.anchors() for _, discretizer in self.discretizers]
        found = []
        for key, rank in ranks:
            segment = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            position = bounds[segment] + rank - before[segment]
            here = (keys[segment] == key) & (rank >= before[segment]) & (position < bounds[segment + 1])
            found.append(position[here])
        tail = self.tail()
        if tail is not None:
            begin = bounds[:-1] + np.maximum(tail[keys] - before, 0)
            found.append(ranges(np.minimum(begin, bounds[1:]), bounds[1:]))
        return different(np.concatenate(found), count)

    def tail(self) -> np.ndarray | None:
        """From which rank on the events of each key must be kept apart; None if nowhere."""
        tails = [discretizer.tail(self.seen) for _, discretizer in self.discretizers]
        known = [tail for tail in tails if tail is not None]
        return np.minimum.reduce(known) if known else None

    def pass_time(self, frontier: Tick, *, finished: bool) -> None:
        """Find the windows that end because time goes on, or because everything ends."""
        parts = [self.waiting]
        for specs, discretizer in self.discretizers:
            parts.append(Found.of(specs, discretizer.expire(frontier, self.seen), self.tick))
            if finished:
                windows = discretizer.close(self.seen, self.last)
                parts.append(Found.of(specs, windows, self.tick, cut_short=True))
        self.waiting = Found.joined(parts)

    def due(self, slices: KeyedSlices, after: Tick | None, until: Tick, *, finished: bool) -> Due:
        """Windows that end in (after, until]; if all is finished, also those that ended only for that.

        Without `after`, all that end up to `until`: an event at the watermark itself may end a window
        there after others that end there were given out.
        """
        waiting = self.waiting
        ready = waiting.finish <= until
        if after is not None:
            ready &= waiting.finish > after
        ready = (ready & (waiting.cut_short == 0)) | (finished & (waiting.cut_short > 0))
        return due_of(waiting.where(ready), slices)

    def boundaries(self) -> tuple[np.ndarray, np.ndarray]:
        """(key, rank) of every place where slices must not be joined, the tails apart."""
        anchors = [discretizer.anchors() for _, discretizer in self.discretizers]
        keys = [self.waiting.key, self.waiting.key, *(key for key, _ in anchors)]
        ranks = [self.waiting.begin, self.waiting.end, *(rank for _, rank in anchors)]
        return np.concatenate(keys), np.concatenate(ranks)

    def needed(self) -> np.ndarray:
        """The first rank of each key that a window may still ask for."""
        first = np.full(len(self.seen), NEVER)
        key, rank = self.boundaries()
        np.minimum.at(first, key, rank)
        tail = self.tail()
        return first if tail is None else np.minimum(first, tail)

    @property
    def nbytes(self) -> int:
        state = sum(discretizer.nbytes for _, discretizer in self.discretizers)
        return int(self.seen.nbytes + self.last.nbytes) + state

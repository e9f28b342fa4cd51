"""Events that wait until no earlier one can come.

Where a window depends on the order of events, an event takes its place for good only when time has passed it: until then
a late one may come before it. So single events are kept for as long as lateness lasts, as Figure 4 of Scotty demands.

    process   -> inbox      batches as they came
    advance   -> queues     a queue for each key, in order of time and arrival; rows stay in `Blocks`
              -> released   the events at the front of queues whose time has come

Taking an event in costs O(1), and as many steps as events of its key are later. A release costs O(events released, and a
step in a heap for each of their keys). What comes in bulk never enters a queue if most of it is released at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from windrow.engine.cache import jit
from windrow.engine.ordered.blocks import Blocks, fitted, joined
from windrow.engine.ordered.sorting import by_key_and_time
from windrow.engine.ordered.timers import Timers
from windrow.engine.sequence.queues import BEGIN, END, KeyQueues
from windrow.measure import Tick

# Up to so many batches are released without queues.
FEW = 16
NONE = np.empty(0, np.int64)


@dataclass
class Chunk:
    """Events in order of arrival; `number` is the key of each, None if there are no keys.

    `arrival` is the arrival number of each, or that of the first, if the others follow it one by one.
    """

    batch: pa.RecordBatch
    time: np.ndarray
    arrival: np.ndarray | int
    number: np.ndarray | None
    low: Tick
    high: Tick
    ordered: bool

    def __len__(self) -> int:
        return len(self.time)

    @property
    def arrivals(self) -> np.ndarray:
        if isinstance(self.arrival, np.ndarray):
            return self.arrival
        return np.arange(self.arrival, self.arrival + len(self.time))

    def count_until(self, frontier: Tick) -> int:
        """How many events are not after a time."""
        if self.high <= frontier:
            return len(self)
        return 0 if self.low > frontier else int(np.count_nonzero(self.time <= frontier))

    def take(self, rows: np.ndarray) -> Chunk:
        """These events, in the order of their arrival."""
        number = None if self.number is None else self.number[rows]
        time, arrival = self.time[rows], self.arrivals[rows]
        edges = time.min().item(), time.max().item()
        return Chunk(self.batch.take(pa.array(rows)), time, arrival, number, *edges, self.ordered)

    def slice(self, begin: int, end: int) -> Chunk:
        """Events begin .. end-1, of a chunk in order of time."""
        part = slice(begin, end)
        number = None if self.number is None else self.number[part]
        arrival = self.arrival[part] if isinstance(self.arrival, np.ndarray) else self.arrival + begin
        time = self.time[part]
        edges = time[0].item(), time[-1].item()
        return Chunk(self.batch.slice(begin, end - begin), time, arrival, number, *edges, True)


@dataclass
class Released:
    """Events sorted by (key, time, arrival): those of key keys[s] are rows bounds[s] .. bounds[s+1]-1.

    `arrival` is the arrival number of each, or that of the first, if the others follow it one by one.
    """

    batch: pa.RecordBatch
    times: np.ndarray
    arrival: np.ndarray | int
    keys: np.ndarray
    bounds: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """How many events each key has."""
        return self.bounds[1:] - self.bounds[:-1]

    @property
    def stamps(self) -> tuple[int, np.ndarray]:
        """The arrival number of the first event, if they follow one by one, and those of all, if they do not."""
        return (0, self.arrival) if isinstance(self.arrival, np.ndarray) else (self.arrival, NONE)

    def arrivals(self) -> np.ndarray:
        """The arrival numbers of all events."""
        if isinstance(self.arrival, np.ndarray):
            return self.arrival
        return np.arange(self.arrival, self.arrival + len(self.times))


@jit
def insert(keys, bounds, order, times, arrivals, edges, numbers, ticks):  # type: ignore[no-untyped-def]
    """Merge events into the queues of their keys, which have room for them, each from its end; the first time of each key.

    Segment s is the events order[bounds[s]] .. order[bounds[s+1]-1] of key keys[s], in order of time and arrival.
    """
    first = np.empty(keys.shape[0], times.dtype)
    for s in range(keys.shape[0]):
        k = keys[s]
        old = edges[END, k] - 1
        place = old + bounds[s + 1] - bounds[s]
        edges[END, k] = place + 1
        first[s] = times[order[bounds[s]]]
        for row in range(bounds[s + 1] - 1, bounds[s] - 1, -1):
            t = times[order[row]]
            while old >= edges[BEGIN, k] and ticks[0, old] > t:
                ticks[0, place], numbers[0, place] = ticks[0, old], numbers[0, old]
                old -= 1
                place -= 1
            ticks[0, place], numbers[0, place] = t, arrivals[order[row]]
            place -= 1
    return first


@jit
def find_due(keys, seen, passed, until, edges, numbers, ticks):  # type: ignore[no-untyped-def]
    """The events of each key that come behind the first seen[k] of its sequence, and not after `until`: the keys of some,
    where the events of each begin, their times and arrival numbers; and the keys of which more are left, and when the first
    of these is."""
    total = some = more = 0
    low, high = np.empty(keys.shape[0], np.int64), np.empty(keys.shape[0], np.int64)
    left, left_time = np.empty(keys.shape[0], np.int64), np.empty(keys.shape[0], ticks.dtype)
    for s in range(keys.shape[0]):
        a = low[s] = edges[BEGIN, keys[s]] + seen[keys[s]] - passed[keys[s]]
        b = edges[END, keys[s]]
        while a < b:
            middle = (a + b) // 2
            if ticks[0, middle] <= until:
                a = middle + 1
            else:
                b = middle
        high[s] = a
        total += a - low[s]
        some += a > low[s]
        if a < edges[END, keys[s]]:
            left[more], left_time[more] = keys[s], ticks[0, a]
            more += 1
    present, bounds = np.empty(some, np.int64), np.empty(some + 1, np.int64)
    times, arrivals = np.empty(total, ticks.dtype), np.empty(total, np.int64)
    total = some = 0
    for s in range(keys.shape[0]):
        if high[s] > low[s]:
            present[some], bounds[some] = keys[s], total
            some += 1
        for i in range(low[s], high[s]):
            times[total], arrivals[total] = ticks[0, i], numbers[0, i]
            total += 1
    bounds[some] = total
    return present, bounds, times, arrivals, left[:more], left_time[:more]


class Waiting:
    """Events that wait until no earlier one can come, by key."""

    def __init__(self, tick: np.dtype) -> None:
        self.tick = tick
        self.inbox: list[Chunk] = []
        self.queues = KeyQueues(1, 1, tick)
        # How many events of each key have left its queue.
        self.passed = np.zeros(0, np.int64)
        self._blocks = Blocks()

    def __len__(self) -> int:
        return len(self.queues) + sum(map(len, self.inbox))

    def grow(self, keys: int) -> None:
        self.queues.grow(keys)
        known = len(self.passed)
        if keys > known:
            self.passed = np.append(self.passed, np.zeros(max(keys, 2 * known) - known, np.int64))

    def distribute(self, timers: Sequence[Timers], keys: int) -> tuple[np.ndarray, np.ndarray]:
        """Put what is in the inbox into queues, and arm timers: its keys, and the earliest time of each."""
        chunks, self.inbox = self.inbox, []
        if not chunks:
            return np.empty(0, np.int64), np.empty(0, self.tick)
        for chunk in chunks:
            self._blocks.add(chunk.batch, chunk.arrival)
        times, numbers, arrivals = together(chunks)
        order, present, bounds = by_key_and_time(times, numbers, keys, ordered=in_line(chunks))
        order = np.arange(len(times)) if order is None else order
        if not isinstance(arrivals, np.ndarray):
            arrivals = np.arange(arrivals, arrivals + len(times))
        queues = self.queues
        queues.make_room(present, bounds[1:] - bounds[:-1])
        first = insert(present, bounds, order, times, arrivals, queues.edges, queues.numbers, queues.ticks)
        queues.rows += len(times)
        for each in timers:
            each.arm(present, first)
        return present, first

    def in_bulk(self, frontier: Tick, keys: int) -> list[Released] | None:
        """What is released without queues, if that is most of what waits; the inbox then has the rest.

        None, where events are to be released from queues.
        """
        chunks = self.inbox
        if len(self.queues) or not 0 < len(chunks) <= FEW:
            return None
        ordered = in_line(chunks)
        if chunks[0].number is None and ordered:
            return self._next_in_line(frontier)
        due = sum(chunk.count_until(frontier) for chunk in chunks)
        total = len(self)
        if 2 * due < total:
            return None
        times, numbers, arrival = together(chunks)
        batch = joined([chunk.batch for chunk in chunks])
        self.inbox = []
        if due == total:
            order, present, bounds = by_key_and_time(times, numbers, keys, ordered=ordered)
            if order is None:
                return [Released(batch, times, arrival, present, bounds)]
            arrival = arrival[order] if isinstance(arrival, np.ndarray) else arrival + order
            return [Released(batch.take(pa.array(order)), times[order], arrival, present, bounds)]
        whole = Chunk(batch, times, arrival, numbers, 0, 0, ordered)
        passed = times <= frontier
        self.inbox = [whole.take(np.flatnonzero(~passed))]
        rows = np.flatnonzero(passed)
        order, present, bounds = by_key_and_time(
            times[rows], None if numbers is None else numbers[rows], keys, ordered=ordered
        )
        rows = rows if order is None else rows[order]
        arrival = arrival[rows] if isinstance(arrival, np.ndarray) else arrival + rows
        return [Released(batch.take(pa.array(rows)), times[rows], arrival, present, bounds)]

    def _next_in_line(self, frontier: Tick) -> list[Released]:
        """All came in order, and there are no keys: chunk by chunk, without a copy."""
        found = []
        chunks = self.inbox
        for i, chunk in enumerate(chunks):
            cut = int(np.searchsorted(chunk.time, frontier, side="right"))
            if cut:
                part = chunk if cut == len(chunk) else chunk.slice(0, cut)
                bounds = np.array([0, cut])
                found.append(Released(part.batch, part.time, part.arrival, np.zeros(1, np.int64), bounds))
            if cut < len(chunk):
                rest = [chunk.slice(cut, len(chunk))] if cut else [chunk]
                self.inbox = rest + chunks[i + 1 :]
                return found
        self.inbox = []
        return found

    def release(self, keys: np.ndarray, seen: np.ndarray, until: Tick, timers: Timers) -> Released | None:
        """Events of these keys, behind the first seen[k] of each, up to `until`; the others arm the timers again."""
        queues, point = self.queues, self.tick.type(until)
        part = find_due(keys, seen, self.passed, point, queues.edges, queues.numbers, queues.ticks)
        keys, bounds, times, arrivals, more, following = part
        if len(more):
            timers.arm(more, following)
        return Released(self._blocks.take(arrivals), times, arrivals, keys, bounds) if len(keys) else None

    def rearm(self, keys: np.ndarray, seen: np.ndarray, timers: Timers) -> None:
        """Arm the timers of keys with events behind the first seen[k] of each."""
        at = self.queues.begin[keys] + seen[keys] - self.passed[keys]
        some = at < self.queues.end[keys]
        timers.arm(keys[some], self.queues.ticks[0, at[some]])

    def note(self, released: Released) -> None:
        """These events do not wait."""
        self.passed[released.keys] += released.counts

    def forget(self, released: Released) -> None:
        """Events that were released do not wait any more."""
        self.queues.pop(released.keys, released.counts)
        self.note(released)
        if len(self.queues):
            self._blocks.drop(released.arrivals())
        else:
            self._blocks.clear()
        self.queues.settle()

    def fit(self, names: Sequence[str], schema: pa.Schema) -> None:
        """Give all events these columns; one that they came without is null."""
        self._blocks.fit(names, schema)
        for chunk in self.inbox:
            chunk.batch = fitted(chunk.batch, names, schema)

    def everything(self) -> Chunk | None:
        """All events that wait, in order of arrival."""
        key, (arrival,), (time,) = self.queues.all()
        order = np.argsort(arrival)
        parts = [] if not len(order) else [self._blocks.take(arrival[order])]
        batches = [*parts, *(chunk.batch for chunk in self.inbox)]
        if not batches:
            return None
        time = np.concatenate([time[order], *(chunk.time for chunk in self.inbox)])
        arrival = np.concatenate([arrival[order], *(chunk.arrivals for chunk in self.inbox)])
        numbers = [chunk.number for chunk in self.inbox if chunk.number is not None]
        key = np.concatenate([key[order], *numbers])
        return Chunk(joined(batches), time, arrival, key, time.min(), time.max(), False)

    @property
    def nbytes(self) -> int:
        """Bytes of events, wherever they wait: room for more is not counted."""
        inbox = sum(chunk.batch.nbytes for chunk in self.inbox)
        return inbox + self._blocks.nbytes + 2 * self.tick.itemsize * len(self) + self.passed.nbytes


def together(chunks: list[Chunk]) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | int]:
    """Times, keys and arrival numbers of chunks one behind the other."""
    if len(chunks) == 1:
        return chunks[0].time, chunks[0].number, chunks[0].arrival
    numbers = [chunk.number for chunk in chunks if chunk.number is not None]
    times = np.concatenate([chunk.time for chunk in chunks])
    arrivals = np.concatenate([chunk.arrivals for chunk in chunks])
    return times, np.concatenate(numbers) if numbers else None, arrivals


def in_line(chunks: list[Chunk]) -> bool:
    """Whether all events came in order."""
    return all(c.ordered for c in chunks) and all(a.time[-1] <= b.time[0] for a, b in pairwise(chunks))

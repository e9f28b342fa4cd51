"""Events that wait until no earlier one can come.

Where a window depends on the order of events, an event takes its place for good only when time has passed it: until then
a late one may come before it. So single events are kept for as long as lateness lasts, as Figure 4 of Scotty demands.

    process   -> inbox      batches as they came, as columns of numbers (`columns`)
    advance   -> queues     a queue for each key, in order of time and arrival
              -> released   the events at the front of queues whose time has come

Taking an event in costs O(1), and as many steps as events of its key are later. A release costs O(events released, and a
step in a heap for each of their keys). What comes in bulk never enters a queue if most of it is released at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.ordered.columns import Columns, EventColumns, filled, in_words
from windrow.engine.ordered.sorting import by_key_and_time
from windrow.engine.ordered.timers import Timers
from windrow.engine.sequence.queues import BEGIN, END, KeyQueues, make_room
from windrow.measure import Tick

# Up to this many batches are released without queues.
FEW = 16
NONE = np.empty(0, np.int64)
# The number of the key where there are none.
ONLY_KEY = np.zeros(1, np.int64)
# The rows of `KeyQueues.numbers`: the arrival number, then all columns.
ARRIVAL, COLUMNS = 0, 1


def taken(columns: Columns, rows: np.ndarray | slice) -> Columns:
    """These rows of columns."""
    return [None if column is None else column[rows] for column in columns]


@dataclass
class Chunk:
    """Events in order of arrival; `number` is the key of each, None if there are no keys.

    `arrival` is the arrival number of each, or that of the first, if the others follow it one by one.
    """

    columns: Columns
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
        return arrivals_of(self.arrival, len(self.time))

    def count_until(self, horizon: Tick) -> int:
        """How many events are not after a time."""
        if self.high <= horizon:
            return len(self)
        if self.low > horizon:
            return 0
        if self.ordered:
            return int(self.time.searchsorted(self.time.dtype.type(horizon), side="right"))
        return int(np.count_nonzero(self.time <= horizon))

    def take(self, rows: np.ndarray | slice) -> Chunk:
        """These events, in the order of their arrival."""
        number = None if self.number is None else self.number[rows]
        if isinstance(rows, slice) and not isinstance(self.arrival, np.ndarray):
            arrival: np.ndarray | int = self.arrival + rows.start
        else:
            arrival = self.arrivals[rows]
        time = self.time[rows]
        edges = time.min().item(), time.max().item()
        return Chunk(taken(self.columns, rows), time, arrival, number, *edges, self.ordered)

    def release(self, keys: np.ndarray, bounds: np.ndarray, order: np.ndarray | None = None) -> Released:
        """All events in this order, or as they are: those of key keys[s] are then rows bounds[s] .. bounds[s+1]-1."""
        if order is None:
            return Released(self.columns, self.time, self.arrival, keys, bounds)
        arrival = self.arrival[order] if isinstance(self.arrival, np.ndarray) else self.arrival + order
        return Released(taken(self.columns, order), self.time[order], arrival, keys, bounds)


@dataclass
class Released:
    """Events sorted by (key, time, arrival): those of key keys[s] are rows bounds[s] .. bounds[s+1]-1.

    `arrival` is the arrival number of each, or that of the first, if the others follow it one by one.
    """

    columns: Columns
    times: np.ndarray
    arrival: np.ndarray | int
    keys: np.ndarray
    bounds: np.ndarray

    def __post_init__(self) -> None:
        # How many events each key has.
        self.counts = self.bounds[1:] - self.bounds[:-1]

    @property
    def stamps(self) -> tuple[int, np.ndarray]:
        """The arrival number of the first event, if they follow one by one, and those of all, if they do not."""
        return (0, self.arrival) if isinstance(self.arrival, np.ndarray) else (self.arrival, NONE)

    @property
    def arrivals(self) -> np.ndarray:
        return arrivals_of(self.arrival, len(self.times))


def arrivals_of(arrival: np.ndarray | int, count: int) -> np.ndarray:
    """The arrival numbers of `count` events."""
    return arrival if isinstance(arrival, np.ndarray) else np.arange(arrival, arrival + count)


@jit
def insert(keys, counts, edges, used, numbers, ticks, bounds, order, times, rows, first):  # type: ignore[no-untyped-def]
    """Merge events into the queues of their keys, each from its end; what it returns is that of `make_room`.

    Segment s is the events order[bounds[s]] .. order[bounds[s+1]-1] of key keys[s], in order of time and arrival; the time of
    the first one is written to `first`.
    """
    used = make_room(keys, counts, edges, used, numbers, ticks)
    if used < 0:
        return used
    for s in range(keys.shape[0]):
        k = keys[s]
        old = edges[END, k] - 1
        place = old + counts[s]
        edges[END, k] = place + 1
        first[s] = times[order[bounds[s]]]
        for i in range(bounds[s + 1] - 1, bounds[s] - 1, -1):
            row = order[i]
            while old >= edges[BEGIN, k] and ticks[0, old] > times[row]:
                ticks[0, place] = ticks[0, old]
                for c in range(numbers.shape[0]):
                    numbers[c, place] = numbers[c, old]
                old -= 1
                place -= 1
            ticks[0, place] = times[row]
            for c in range(numbers.shape[0]):
                numbers[c, place] = rows[c, row]
            place -= 1
    return used


@jit
def find_due(keys, seen, passed, until, edges, numbers, ticks):  # type: ignore[no-untyped-def]
    """The events of each key that come behind the first seen[k] of its sequence, and not after `until`: the keys of some,
    where the events of each begin, their times and other columns; and the keys of which more are left, and when the first
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
    times, rows = np.empty(total, ticks.dtype), np.empty((numbers.shape[0], total), np.int64)
    total = some = 0
    for s in range(keys.shape[0]):
        if high[s] > low[s]:
            present[some], bounds[some] = keys[s], total
            some += 1
        for i in range(low[s], high[s]):
            times[total] = ticks[0, i]
            for c in range(numbers.shape[0]):
                rows[c, total] = numbers[c, i]
            total += 1
    bounds[some] = total
    return present, bounds, times, rows, left[:more], left_time[:more]


class Waiting:
    """Events that wait until no earlier one can come, by key."""

    def __init__(self, tick: np.dtype, columns: EventColumns) -> None:
        self.tick = tick
        self.columns = columns
        self.inbox: list[Chunk] = []
        self.queues = KeyQueues(COLUMNS + len(columns.names), 1, tick)
        # How many events of each key have left its queue.
        self.passed = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.queues) + sum(map(len, self.inbox))

    def grow(self, keys: int) -> None:
        self.queues.grow(keys)
        known = len(self.passed)
        if keys > known:
            self.passed = np.append(self.passed, np.zeros(max(keys, 2 * known) - known, np.int64))

    def distribute(self, timers: Sequence[Timers], keys: int) -> tuple[np.ndarray, np.ndarray]:
        """Put what is in the inbox into queues, and arm timers: its keys, and the earliest time of each."""
        if not self.inbox:
            return np.empty(0, np.int64), np.empty(0, self.tick)
        chunk, self.inbox = together(self.inbox), []
        count, queues = len(chunk), self.queues
        order, present, bounds = by_key_and_time(chunk.time, chunk.number, keys, ordered=chunk.ordered)
        order = np.arange(count) if order is None else order
        rows = np.empty((len(queues.numbers), count), np.int64)
        rows[ARRIVAL] = chunk.arrivals
        for i, column in enumerate(chunk.columns, COLUMNS):
            rows[i] = in_words(column)
        first = np.empty(len(present), self.tick)
        queues.with_room(insert, present, bounds[1:] - bounds[:-1], bounds, order, chunk.time, rows, first)
        queues.rows += count
        for each in timers:
            each.arm(present, first)
        return present, first

    def in_bulk(self, horizon: Tick, keys: int) -> list[Released] | None:
        """What is released without queues, if that is most of what waits; the inbox then has the rest.

        None, where events are to be released from queues.
        """
        chunks = self.inbox
        if len(self.queues) or not 0 < len(chunks) <= FEW:
            return None
        if chunks[0].number is None and in_line(chunks):
            return self._next_in_line(horizon)
        due = sum(chunk.count_until(horizon) for chunk in chunks)
        if 2 * due < len(self):
            return None
        chunk, self.inbox = together(chunks), []
        if due < len(chunk):
            passed = chunk.time <= horizon
            self.inbox = [chunk.take(np.flatnonzero(~passed))]
            chunk = chunk.take(np.flatnonzero(passed))
        order, present, bounds = by_key_and_time(chunk.time, chunk.number, keys, ordered=chunk.ordered)
        return [chunk.release(present, bounds, order)]

    def _next_in_line(self, horizon: Tick) -> list[Released]:
        """All came in order, and there are no keys: chunk by chunk, without a copy."""
        found = []
        chunks = self.inbox
        for i, chunk in enumerate(chunks):
            cut = chunk.count_until(horizon)
            if cut:
                part = chunk if cut == len(chunk) else chunk.take(slice(0, cut))
                found.append(part.release(ONLY_KEY, np.array([0, cut])))
            if cut < len(chunk):
                rest = [chunk.take(slice(cut, len(chunk)))] if cut else [chunk]
                self.inbox = rest + chunks[i + 1 :]
                return found
        self.inbox = []
        return found

    def release(self, keys: np.ndarray, seen: np.ndarray, until: Tick, timers: Timers) -> Released | None:
        """Events of these keys, behind the first seen[k] of each, up to `until`; the others arm the timers again."""
        queues, point = self.queues, self.tick.type(until)
        found = find_due(keys, seen, self.passed, point, queues.edges, queues.numbers, queues.ticks)
        keys, bounds, times, rows, more, following = found
        if len(more):
            timers.arm(more, following)
        return Released(self._columns_of(rows), times, rows[ARRIVAL], keys, bounds) if len(keys) else None

    def _columns_of(self, rows: np.ndarray) -> Columns:
        """Rows of queues as columns of their dtypes."""
        return [
            row.view(dtype) if dtype.kind == "f" else row != 0 if dtype.kind == "b" else row
            for row, dtype in zip(rows[COLUMNS:], self.columns.dtypes, strict=True)
        ]

    def rearm(self, keys: np.ndarray, seen: np.ndarray, timers: Timers) -> None:
        """Arm the timers of keys with events behind the first seen[k] of each."""
        at = self.queues.begin[keys] + seen[keys] - self.passed[keys]
        some = at < self.queues.end[keys]
        timers.arm(keys[some], self.queues.ticks[0, at[some]])

    def skip(self, released: Released) -> None:
        """These events do not wait, and never were in a queue."""
        self.passed[released.keys] += released.counts

    def forget(self, released: Released) -> None:
        """Events that were released do not wait any more."""
        self.queues.pop(released.keys, released.counts)
        self.skip(released)
        self.queues.settle()

    def fit(self, columns: EventColumns) -> None:
        """Give all events the columns of another query."""
        old, self.columns = self.columns, columns
        for chunk in self.inbox:
            chunk.columns = columns.fitted(old, chunk.columns, len(chunk))
        rows = self.queues.numbers
        room = rows.shape[1]
        self.columns = old
        fitted = columns.fitted(old, self._columns_of(rows), room)
        self.columns = columns
        self.queues.numbers = np.empty((COLUMNS + len(fitted), room), np.int64)
        self.queues.numbers[ARRIVAL] = rows[ARRIVAL]
        for i, column in enumerate(fitted, COLUMNS):
            self.queues.numbers[i] = in_words(column)

    def recode(self, place: int, moved: np.ndarray) -> None:
        """Apply old-to-new codes to a column; -1 stays."""
        for chunk in self.inbox:
            chunk.columns[place] = recoded(chunk.columns[place], moved)
        if len(self.queues):
            row, at = self.queues.numbers[COLUMNS + place], self.queues.all_places()
            row[at] = recoded(row[at], moved)

    def codes(self, place: int) -> np.ndarray:
        """The codes of a column that are in use."""
        column = self.queues.numbers[COLUMNS + place, self.queues.all_places()]
        codes = np.unique(np.concatenate([column, *(filled(c.columns[place], len(c)) for c in self.inbox)]))
        return codes[codes != -1]

    def everything(self) -> Chunk | None:
        """All events that wait, in order of arrival."""
        if not len(self):
            return None
        chunks = self.inbox
        if len(self.queues):
            key, rows, (time,) = self.queues.all()
            chunks = [Chunk(self._columns_of(rows), time, rows[ARRIVAL], key, 0, 0, False), *chunks]
        whole = together(chunks)
        return whole.take(np.argsort(whole.arrivals))

    @property
    def nbytes(self) -> int:
        """Bytes of events, wherever they wait: room for more is not counted."""
        width = sum(dtype.itemsize for dtype in self.columns.dtypes) + 8 + self.tick.itemsize
        return width * len(self) + self.queues.edges.nbytes + self.passed.nbytes


def recoded(codes: np.ndarray | None, moved: np.ndarray) -> np.ndarray:
    """New codes for old ones; -1 stays."""
    assert codes is not None
    return np.append(moved, -1)[codes]


def together(chunks: list[Chunk]) -> Chunk:
    """Chunks one behind the other, as one."""
    if len(chunks) == 1:
        return chunks[0]
    columns: Columns = []
    for parts in zip(*(chunk.columns for chunk in chunks), strict=True):
        whole = [filled(part, len(chunk)) for part, chunk in zip(parts, chunks, strict=True)]
        columns.append(None if all(part is None for part in parts) else np.concatenate(whole))
    numbers = [chunk.number for chunk in chunks if chunk.number is not None]
    number = np.concatenate(numbers) if len(numbers) == len(chunks) else None
    times = np.concatenate([chunk.time for chunk in chunks])
    arrivals = np.concatenate([chunk.arrivals for chunk in chunks])
    edges = min(chunk.low for chunk in chunks), max(chunk.high for chunk in chunks)
    return Chunk(columns, times, arrivals, number, *edges, in_line(chunks))


def in_line(chunks: list[Chunk]) -> bool:
    """Whether all events came in order."""
    return all(c.ordered for c in chunks) and all(a.time[-1] <= b.time[0] for a, b in pairwise(chunks))

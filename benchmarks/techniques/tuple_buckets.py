"""Tuple buckets: one list of events per window, and each event copied into every window that it is in.

    events      a   b     c    d
    buckets    [a   b     c   ]
                   [b     c    d   ]       b and c are kept twice
                         [c    d      ]

A list is folded when its window ends. It is a chain of chunks, which are used again when the list is gone. A session
has one list, for its key alone; when a late event joins two sessions, one of the lists is moved to the end of the
other.

    order       any: a late event is added to its lists; they are sorted at the end if an aggregate asks for order
    windows     periodic windows of time, and sessions
    aggregates  all, also those that need the events themselves
    time        one copy per event and window that holds it, and of those that a fused session takes over; n - 1
                combines per window of n events
    space       the events of each open window, each as often as there are windows that hold it
    paper       Traub et al., Scotty, ACM TODS 2021, section 3.3
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.techniques.aggregate_buckets import first_open, list_ended, windows_at
from benchmarks.techniques.base import Method, Technique
from benchmarks.techniques.folding import Ended, Stretches, folded
from benchmarks.techniques.rows import Rows
from benchmarks.techniques.sessions import Over, Placed
from benchmarks.techniques.tuples import Tuples
from benchmarks.techniques.wheel import Wheel
from windrow.compiling.tiers import jit
from windrow.engine.aligned.cutting import run_end
from windrow.measure import Tick

CHUNK = 256
# Of each list: its first and last chunk, and how many events it has.
Chains = tuple[np.ndarray, np.ndarray, np.ndarray]


@jit
def same_windows(times, e, ordered, since, until):
    """The end of the events from `e` on that lie in [since, until)."""
    if ordered:
        return run_end(times, e, until)
    stop = e + 1
    while stop < times.shape[0] and since <= times[stop] and times[stop] < until:
        stop += 1
    return stop


@jit
def count_into_lists(times, ordered, every, offset, whole, rest, floor, base, mask, sizes):
    """How many events each list will get."""
    for i in range(every.shape[0]):
        e = 0
        while e < times.shape[0]:
            first, last, since, until = windows_at(times[e], every[i], offset[i], whole[i], rest[i])
            stop = same_windows(times, e, ordered, since, until)
            for k in range(max(first, floor[i]), last + 1):
                sizes[base[i] + (k & mask[i])] += stop - e
            e = stop


@jit
def end_of_list(slot, head, tail, length, following, free):
    """Where the next event of a list goes: into its last chunk, or a new one if that is full."""
    at = length[slot] % CHUNK
    if at == 0:
        free[0] -= 1
        chunk = free[1 + free[0]]
        following[chunk] = -1
        if length[slot] == 0:
            head[slot] = chunk
        else:
            following[tail[slot]] = chunk
        tail[slot] = chunk
    return tail[slot] * CHUNK + at


@jit
def append_run(source, x, stop, slot, head, tail, length, following, free, matrix):
    """Copy events x .. stop-1 to the end of a list."""
    while x < stop:
        to = end_of_list(slot, head, tail, length, following, free)
        count = min(stop - x, CHUNK - to % CHUNK)
        for c in range(matrix.shape[0]):
            matrix[c, to : to + count] = source[c][x : x + count]
        length[slot] += count
        x += count


@jit
def copy_into_lists(
    source, times, ordered, every, offset, whole, rest, floor, base, mask, head, tail, length, following,
    free, matrix,
):  # fmt: skip
    """Copy each event to the end of the lists of all windows that hold it and are not final.

    free: how many chunks are free, and which; there are enough.
    """
    for i in range(every.shape[0]):
        e = 0
        while e < times.shape[0]:
            first, last, since, until = windows_at(times[e], every[i], offset[i], whole[i], rest[i])
            stop = same_windows(times, e, ordered, since, until)
            for k in range(max(first, floor[i]), last + 1):
                slot = base[i] + (k & mask[i])
                append_run(source, e, stop, slot, head, tail, length, following, free, matrix)
            e = stop


@jit
def fuse_lists(into, gone, head, tail, length, following, free, matrix):
    """Move the events of lists `gone` to the ends of lists `into`. One chunk that is free is enough."""
    for f in range(into.shape[0]):
        left = length[gone[f]]
        chunk = head[gone[f]]
        while left > 0:
            first = chunk * CHUNK
            stop = first + min(left, CHUNK)
            append_run(matrix, first, stop, into[f], head, tail, length, following, free, matrix)
            left -= CHUNK
            free[1 + free[0]] = chunk
            free[0] += 1
            chunk = following[chunk]
        length[gone[f]] = 0


@jit
def copy_into_sessions(source, run, session, head, tail, length, following, free, matrix):
    """Copy events run[r] .. run[r+1]-1 to the end of the list of session[r]."""
    for r in range(session.shape[0]):
        append_run(source, run[r], run[r + 1], session[r], head, tail, length, following, free, matrix)


@jit
def list_chunks(slots, head, length, following, window, first, last):
    """The chunks of these lists, one stretch each."""
    s = 0
    for w in range(slots.shape[0]):
        left = length[slots[w]]
        chunk = head[slots[w]]
        while left > 0:
            window[s] = w
            first[s] = chunk * CHUNK
            last[s] = chunk * CHUNK + min(left, CHUNK)
            left -= CHUNK
            chunk = following[chunk]
            s += 1


@jit
def sort_lists(clock, window, position, matrix):
    """Sort the tuples of each window by time, arrival among equals."""
    begin = 0
    while begin < window.shape[0]:
        end = begin
        ordered = True
        while end < window.shape[0] and window[end] == window[begin]:
            ordered = ordered and (end == begin or clock[position[end - 1]] <= clock[position[end]])
            end += 1
        if not ordered:
            places = position[begin:end]
            order = places[np.argsort(clock[places], kind="mergesort")]
            for c in range(matrix.shape[0]):
                row = matrix[c]
                row[places] = row[order]
        begin = end


def no_lists() -> Chains:
    return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)


def more_chunks(length: np.ndarray, sizes: np.ndarray) -> int:
    """How many chunks lists of these lengths need besides those they have, to take so many more events each."""
    return int((-(-(length + sizes) // CHUNK) - -(-length // CHUNK)).sum())


class Lists(Method):
    def prepare(self) -> None:
        in_order = any(not a.algebra.commutative for a in self.query.aggregates.values())
        self._tuples = Tuples(self.partials, timed=in_order, keyed=self.keyed)
        self._wheel = Wheel(len(self.windows.every))
        self._floor = np.full(len(self.windows.every), np.iinfo(np.int64).min)
        self._lists = no_lists()
        # Of each window of sessions, a list for each number.
        self._sessions = [no_lists() for _ in self.sessions]
        self._following = np.zeros(0, np.int64)
        self._free = np.zeros(1, np.int64)

    @property
    def _length(self) -> np.ndarray:
        return self._lists[2]

    def insert(
        self, times: np.ndarray, keys: np.ndarray | None, inputs: tuple[np.ndarray, ...], ordered: bool
    ) -> None:
        w, wheel = self.windows, self._wheel
        low, high = (
            np.floor_divide(t - w.offset, w.every).astype(np.int64) for t in (times.min(), times.max())
        )
        low, high = np.maximum(low - w.whole - 1, self._floor), np.maximum(high + 1, self._floor)
        self.fit(low, high)
        placed = (w.every, w.offset, w.whole, w.rest, self._floor, wheel.base, wheel.mask)
        sizes = np.zeros(wheel.slots, np.int64)
        count_into_lists(times, ordered, *placed, sizes)
        self.make_room_for(sizes)
        source = self._tuples.source(times, keys, inputs)
        matrix = self._tuples.matrix
        copy_into_lists(source, times, ordered, *placed, *self._lists, self._following, self._free, matrix)

    def fit(self, low: np.ndarray, high: np.ndarray) -> None:
        """Have lists for windows low .. high of each placement."""
        origin = self._wheel.fit(low, high, 1, self.settings.max_slices)
        if origin is not None:
            head, tail, length = (np.where(origin >= 0, column[origin], 0) for column in self._padded())
            self._lists = head, tail, length

    def make_room_for(self, sizes: np.ndarray) -> None:
        """Have free chunks for so many more events in each list."""
        self._make_room(more_chunks(self._length, sizes))

    def _padded(self) -> list[np.ndarray]:
        """The lists with one more, empty: what -1 stands for."""
        return [np.append(column, 0) for column in self._lists]

    def _make_room(self, chunks: int) -> None:
        """Have so many free chunks."""
        tuples, had = self._tuples, len(self._following)
        short = chunks - int(self._free[0])
        if short <= 0:
            return
        more = max(short, had, 16)
        matrix = np.empty((tuples.matrix.shape[0], (had + more) * CHUNK), np.int64)
        matrix[:, : had * CHUNK] = tuples.matrix[:, : had * CHUNK]
        tuples.matrix = matrix
        self._following = np.append(self._following, np.full(more, -1))
        free = np.empty(1 + had + more, np.int64)
        free[: len(self._free)] = self._free
        count = int(self._free[0])
        free[1 + count : 1 + count + more] = np.arange(had + more - 1, had - 1, -1)
        free[0] = count + more
        self._free = free

    def ended(self, after: Tick, until: Tick, watermark: Tick) -> Iterator[Rows]:
        w = self.windows
        placement, number, slot = list_ended(w, self._wheel, until, 1, self._length)
        start = w.offset[placement] + number * w.every[placement]
        end = w.offset[placement] + (number + w.whole[placement]) * w.every[placement] + w.rest[placement]
        yield from self._folded(Ended(w.owner[placement], start, end), slot, self._lists)

    def into_sessions(
        self,
        window: int,
        placed: Placed,
        times: np.ndarray,
        keys: np.ndarray | None,
        inputs: tuple[np.ndarray, ...],
    ) -> None:
        room = self.sessions[window].room
        head, tail, length = (np.append(c, np.zeros(room - len(c), np.int64)) for c in self._sessions[window])
        lists = self._sessions[window] = head, tail, length
        if len(placed.gone):
            self._make_room(1)
            fuse_lists(placed.into, placed.gone, *lists, self._following, self._free, self._tuples.matrix)
        sizes = np.bincount(placed.session, placed.sizes, minlength=room).astype(np.int64)
        self._make_room(more_chunks(length, sizes))
        source = self._tuples.source(times, keys, inputs)
        chunks = (self._following, self._free, self._tuples.matrix)
        copy_into_sessions(source, placed.run, placed.session, *lists, *chunks)

    def over(self, window: int, sessions: Over) -> Iterator[Rows]:
        ended = Ended(sessions.spec, sessions.start, sessions.end)
        return self._folded(ended, sessions.number, self._sessions[window])

    def _folded(self, ended: Ended, slot: np.ndarray, lists: Chains) -> Iterator[Rows]:
        """Rows of the windows with these lists, which are empty then."""
        head, _, length = lists
        count = int((-(-length[slot] // CHUNK)).sum())
        found = Stretches(*(np.empty(count, np.int64) for _ in range(3)))
        list_chunks(slot, head, length, self._following, found.window, found.first, found.last)
        if self._tuples.timed:
            position, window = found.positions()
            sort_lists(self._tuples.clock, window, position, self._tuples.matrix)
        yield from folded(self, self._tuples, ended, found)
        length[slot] = 0
        free = int(self._free[0])
        self._free[1 + free : 1 + free + count] = found.first // CHUNK
        self._free[0] += count

    def let_go(self, horizon: Tick) -> None:
        self._floor = first_open(self.windows, horizon)

    def widen(self) -> None:
        self._tuples.widen()

    def recode(self, column: str, moved: np.ndarray) -> None:
        self._tuples.recode(column, moved)

    def live(self) -> tuple[int, int]:
        return 0, sum(int(length.sum()) for _, _, length in (self._lists, *self._sessions))


class TupleBuckets(Technique):
    """See the module."""

    method = Lists
    keeps_tuples = True
    no_sessions = ""

"""Tuple buckets: one list of events per window, and each event copied into every window that it is in.

    events      a   b     c    d
    buckets    [a   b     c   ]
                   [b     c    d   ]       b and c are kept twice
                         [c    d      ]

A list is folded when its window ends. It is a chain of chunks, which are used again when the list is gone.

    order       any: a late event is added to its lists; they are sorted at the end if an aggregate asks for order
    windows     periodic windows of time
    aggregates  all, also those that need the events themselves
    time        one copy per event and window that holds it, n - 1 combines per window of n events
    space       the events of each open window, each as often as there are windows that hold it
    paper       Traub et al., Scotty, ACM TODS 2021, section 3.3
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from windrow.engine.cache import jit
from windrow.engine.cutting import run_end
from windrow.measure import Tick
from windrow.techniques.aggregate_buckets import first_open, list_ended, windows_at
from windrow.techniques.base import Method, Technique
from windrow.techniques.folding import Ended, Stretches, folded
from windrow.techniques.rows import Rows
from windrow.techniques.tuples import Tuples
from windrow.techniques.wheel import Wheel

CHUNK = 256


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
                x = e
                while x < stop:
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
                    count = min(stop - x, CHUNK - at)
                    to = tail[slot] * CHUNK + at
                    for c in range(matrix.shape[0]):
                        matrix[c, to : to + count] = source[c][x : x + count]
                    length[slot] += count
                    x += count
            e = stop


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


class Lists(Method):
    def prepare(self) -> None:
        in_order = any(not a.algebra.commutative for a in self.query.aggregates.values())
        self._tuples = Tuples(self.partials, timed=in_order, keyed=self.keyed)
        self._wheel = Wheel(len(self.windows.every))
        self._floor = np.full(len(self.windows.every), np.iinfo(np.int64).min)
        # Of each list: its first and last chunk, and how many events it has.
        self._lists = tuple(np.zeros(0, np.int64) for _ in range(3))
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
            self._lists = tuple(np.where(origin >= 0, column[origin], 0) for column in self._padded())

    def make_room_for(self, sizes: np.ndarray) -> None:
        """Have free chunks for so many more events in each list."""
        chunks = -(-(self._length + sizes) // CHUNK) - -(-self._length // CHUNK)
        self._make_room(int(chunks.sum()))

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

    def due(self, after: Tick, until: Tick, watermark: Tick) -> Iterator[Rows]:
        w = self.windows
        placement, number, slot = list_ended(w, self._wheel, until, 1, self._length)
        start = w.offset[placement] + number * w.every[placement]
        end = w.offset[placement] + (number + w.whole[placement]) * w.every[placement] + w.rest[placement]
        head, _, length = self._lists
        count = int((-(-length[slot] // CHUNK)).sum())
        found = Stretches(*(np.empty(count, np.int64) for _ in range(3)))
        list_chunks(slot, head, length, self._following, found.window, found.first, found.last)
        if self._tuples.timed:
            position, window = found.positions()
            sort_lists(self._tuples.clock, window, position, self._tuples.matrix)
        yield from folded(self, self._tuples, Ended(w.owner[placement], start, end), found)
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
        return 0, int(self._length.sum())


class TupleBuckets(Technique):
    """See the module."""

    method = Lists
    keeps_tuples = True

"""Tuple buffer: keep the events in the order of time, and fold each window from its events when it ends.

    buffer     |  o o  o o oo  o   o o o  o |        front: what the oldest open window needs
    windows         |--------|
                         |----------|              each event is folded once per window that it is in

A late event is inserted where it belongs, and all events behind it move by one place.

    order       any; a late event moves as many events as came after it in time
    windows     periodic windows of time, and sessions: the tuples of a session lie between its first and its last one
    aggregates  all, also those that need the events themselves
    time        O(1) per event in order, n - 1 combines per window of n events
    space       the events of all open windows
    paper       Traub et al., Scotty, ACM TODS 2021, section 3.1
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.techniques.base import Method, Technique
from benchmarks.techniques.due import Pieces, Queues, Windows, pieces, pieces_of, sessions_due, windows_due
from benchmarks.techniques.folding import Ended, Stretches, folded
from benchmarks.techniques.partials import events
from benchmarks.techniques.rows import Rows
from benchmarks.techniques.sessions import Over
from benchmarks.techniques.tuples import Tuples
from windrow.compiling.tiers import jit
from windrow.measure import INT64_MAX, Tick
from windrow.stores.operations import combine, lift, load, put

# The mask of a ring that never begins anew: a place is a place.
EVERYWHERE = np.array([INT64_MAX >> 1])


@jit
def insert_sorted(source, times, matrix, clock, begin, end):
    """Insert each event behind all that are not later; the end of the buffer then."""
    columns = matrix.shape[0]
    for e in range(times.shape[0]):
        t = times[e]
        at = end
        if at > begin and t < clock[at - 1]:
            low = begin
            while low < at:
                middle = (low + at) // 2
                if clock[middle] <= t:
                    low = middle + 1
                else:
                    at = middle
            for c in range(columns):
                row = matrix[c]
                for p in range(end, at, -1):
                    row[p] = row[p - 1]
        for c in range(columns):
            matrix[c, at] = source[c][e]
        end += 1
    return end


@jit
def in_sessions(clock, keys, begin, end, start, last, following, stop, position, row):
    """The tuples of begin .. end-1 that are in one of these sessions, and in which; how many there are.

    Sessions lie in the order of keys, then of time: those of key k are following[k] .. stop[k]-1.
    """
    count = 0
    for i in range(begin, end):
        k = keys[i]
        while following[k] < stop[k] and last[following[k]] < clock[i]:
            following[k] += 1
        s = following[k]
        if s < stop[k] and start[s] <= clock[i]:
            position[count] = i
            row[count] = s
            count += 1
    return count


@jit
def leave_aside(clock, keys, position, row, time, left, since, behind):
    """Move tuples to the end of the list, without the last left[i] of a key at time[i]; where they begin then.

    Those of key k are since[k] .. behind[k]-1, in the order of time.
    """
    kept = position.shape[0]
    for i in range(kept - 1, -1, -1):
        k, t = keys[position[i]], clock[position[i]]
        while behind[k] > since[k] and time[behind[k] - 1] > t:
            behind[k] -= 1
        at = behind[k] - 1
        if at >= since[k] and time[at] == t and left[at] > 0:
            left[at] -= 1
        else:
            kept -= 1
            position[kept] = position[i]
            row[kept] = row[i]
    return kept


def fold_rows(inputs, position, row, cells):
    """Combine each of these tuples into the cell of its row; how many combines that took."""
    combines = 0
    for i in range(position.shape[0]):
        r = row[i]
        if events(cells, r) == 0:
            put(cells, r, lift(inputs, position[i]))
        else:
            put(cells, r, combine(load(cells, r), lift(inputs, position[i])))
            combines += 1
    return combines


class _Buffer(Method):
    def prepare(self) -> None:
        self._tuples = Tuples(self.partials, timed=True, keyed=self.keyed)
        self._begin = self._end = 0

    def insert(
        self, times: np.ndarray, keys: np.ndarray | None, inputs: tuple[np.ndarray, ...], ordered: bool
    ) -> None:
        tuples = self._tuples
        self._make_room(len(times))
        source = tuples.source(times, keys, inputs)
        begin, end = self._begin, self._end
        if ordered and (begin == end or times[0] >= tuples.clock[end - 1]):
            for row, column in zip(tuples.matrix, source, strict=True):
                row[end : end + len(times)] = column
            self._end = end + len(times)
        else:
            self._end = int(insert_sorted(source, times, tuples.matrix, tuples.clock, begin, end))

    def _make_room(self, count: int) -> None:
        """Move the live tuples to the beginning, of a larger buffer if they fill half of this one."""
        tuples, live = self._tuples, self._end - self._begin
        if self._end + count <= tuples.capacity:
            return
        matrix = tuples.matrix
        if 2 * (live + count) > tuples.capacity:
            matrix = np.zeros((matrix.shape[0], 2 * (live + count)), np.int64)
        matrix[:, :live] = tuples.matrix[:, self._begin : self._end].copy()
        tuples.matrix = matrix
        self._begin, self._end = 0, live

    def ended(self, after: Tick, until: Tick, watermark: Tick) -> Iterator[Rows]:
        windows = windows_due(self.windows, self._queue, after, until)
        yield from self._folded(windows, pieces(windows))

    def over(self, window: int, sessions: Over) -> Iterator[Rows]:
        if self.keyed:
            yield self._of_each_key(sessions.where(np.lexsort((sessions.start, sessions.key))))
        else:
            windows = sessions_due(sessions, self._queue)
            yield from self._folded(windows, pieces_of(windows, sessions, self._queue))

    @property
    def _queue(self) -> Queues:
        front, end = np.array([self._begin]), np.array([self._end])
        return Queues(self._tuples.clock, np.zeros(1, np.int64), EVERYWHERE, front, end)

    def _folded(self, windows: Windows, found: Pieces) -> Iterator[Rows]:
        ended = Ended(windows.spec, windows.start, windows.end)
        return folded(self, self._tuples, ended, Stretches(*found))

    def _of_each_key(self, sessions: Over) -> Rows:
        """Sessions whose tuples lie among those of other keys: one pass over all."""
        tuples, known = self._tuples, np.arange(self.keys.count)
        clock = tuples.clock[self._begin : self._end]
        low = self._begin + int(np.searchsorted(clock, sessions.start.min()))
        high = self._begin + int(np.searchsorted(clock, sessions.last.max(), side="right"))
        position, row = np.empty(high - low, np.int64), np.empty(high - low, np.int64)
        following, stop = (np.searchsorted(sessions.key, known, side=side) for side in ("left", "right"))
        bounds = (sessions.start, sessions.last, following, stop)
        count = in_sessions(tuples.clock, tuples.keys, low, high, *bounds, position, row)
        position, row, aside = position[:count], row[:count], sessions.aside
        if len(aside):
            since, behind = (np.searchsorted(aside.key, known, side=side) for side in ("left", "right"))
            left = aside.count.copy()
            kept_from = leave_aside(tuples.clock, tuples.keys, position, row, aside.time, left, since, behind)
            position, row = position[kept_from:], row[kept_from:]
        cells = self.partials.cells(len(sessions))
        self.combines += int(self.partials.loop(fold_rows)(tuples.inputs, position, row, cells))
        kept = tuples.kept(position, row) if self.partials.kept else None
        return Rows(sessions.spec, sessions.start, sessions.end, sessions.key, cells, kept)

    def let_go(self, horizon: Tick) -> None:
        clock = self._tuples.clock[self._begin : self._end]
        self._begin += int(np.searchsorted(clock, self.needed.min()))

    def widen(self) -> None:
        self._tuples.widen()

    def recode(self, column: str, moved: np.ndarray) -> None:
        self._tuples.recode(column, moved)

    def live(self) -> tuple[int, int]:
        return 0, self._end - self._begin


class TupleBuffer(Technique):
    """See the module."""

    method = _Buffer
    keeps_tuples = True
    no_sessions = ""

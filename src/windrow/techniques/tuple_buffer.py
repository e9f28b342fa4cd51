"""Tuple buffer: keep the events in the order of time, and fold each window from its events when it ends.

    buffer     |  o o  o o oo  o   o o o  o |        front: what the oldest open window needs
    windows         |--------|
                         |----------|              each event is folded once per window that it is in

A late event is inserted where it belongs, and all events behind it move by one place.

    order       any; a late event moves as many events as came after it in time
    windows     periodic windows of time
    aggregates  all, also those that need the events themselves
    time        O(1) per event in order, n - 1 combines per window of n events
    space       the events of all open windows
    paper       Traub et al., Scotty, ACM TODS 2021, section 3.1
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from windrow.engine.cache import jit
from windrow.measure import INT64_MAX, Tick
from windrow.techniques.base import Method, Technique
from windrow.techniques.due import Queues, windows_due
from windrow.techniques.folding import Ended, Stretches, folded
from windrow.techniques.rows import Rows
from windrow.techniques.tuples import Tuples

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

    def due(self, after: Tick, until: Tick, watermark: Tick) -> Iterator[Rows]:
        tuples = self._tuples
        front, end = np.array([self._begin]), np.array([self._end])
        queues = Queues(tuples.clock, np.zeros(1, np.int64), EVERYWHERE, front, end)
        due = windows_due(self.windows, queues, after, until)
        stretches = Stretches(np.arange(len(due)), due.first, due.last)
        yield from folded(self, tuples, Ended(due.spec, due.start, due.end), stretches)

    def let_go(self, horizon: Tick) -> None:
        clock = self._tuples.clock[self._begin : self._end]
        self._begin += int(np.searchsorted(clock, self.threshold))

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

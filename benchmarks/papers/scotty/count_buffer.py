"""A tuple buffer for windows of rows, the rival of Figure 21: the sum of `value` in tumbling windows.

Events lie sorted by time. A late one is inserted, and all events behind it move on by one place, which shifts the rows
of all windows behind it at no further cost: windows are only looked for when the watermark has passed their rows.

    buffer     1 2 4 5 6 8 9        7 comes late        1 2 4 5 6 7 8 9
    windows    |---|---|---|                            |---|---|---|

Each window is then summed by itself. The techniques of the library take windows of time, so this one stands here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import windrow as wr
from windrow import QueryError
from windrow.compiling.tiers import jit
from windrow.windows.rows import Rows


@jit
def insert(times, values, held, new_times, new_values):
    """Insert events behind those that are not later; the arrays have room for them."""
    for i in range(new_times.shape[0]):
        place = held
        while place > 0 and times[place - 1] > new_times[i]:
            place -= 1
        for p in range(held, place, -1):
            times[p] = times[p - 1]
            values[p] = values[p - 1]
        times[place] = new_times[i]
        values[place] = new_values[i]
        held += 1
    return held


@jit
def sum_windows(times, values, passed, known, rows, done, complete, out):
    """Sum the windows whose rows are known, each by itself; how many there are.

    passed: rows before the buffer. known: rows that no late event can move. done: windows of each size given out.
    out: window, start, end and sum of each.
    """
    made = 0
    for w in range(rows.shape[0]):
        k = done[w]
        while k * rows[w] < known and (not complete or (k + 1) * rows[w] <= known):
            low = k * rows[w] - passed
            high = min((k + 1) * rows[w], known) - passed
            total = 0
            for i in range(low, high):
                total += values[i]
            out[0, made] = w
            out[1, made] = times[low]
            out[2, made] = times[high - 1] + 1
            out[3, made] = total
            made += 1
            k += 1
        done[w] = k
    return made


@dataclass(frozen=True)
class Counters:
    """As the techniques have it."""

    combines: int
    partials: int
    tuples: int


class CountBuffer:
    """See the module."""

    def __init__(self, query: wr.Query) -> None:
        for name, window in query.windows.items():
            if not isinstance(window, Rows):
                raise QueryError(
                    f"window {name!r} cannot be answered by CountBuffer: it takes windows of rows"
                )
        self._names = list(query.windows)
        self._rows = np.array([window.length for window in query.windows.values()])
        self._done = np.zeros(len(self._rows), np.int64)
        self._times, self._values = np.empty(0, np.int64), np.empty(0, np.int64)
        self._held = self._passed = 0
        self._type: Any = None

    @property
    def counters(self) -> Counters:
        return Counters(0, 0, self._held)

    def process(self, events: pa.RecordBatch) -> None:
        self._type = events["ts"].type
        room = self._held + len(events)
        if room > len(self._times):
            self._times, self._values = (
                np.concatenate([a, np.empty(2 * room - len(a), np.int64)])
                for a in (self._times, self._values)
            )
        times, values = events["ts"].cast(pa.int64()).to_numpy(), events["value"].to_numpy()
        self._held = insert(self._times, self._values, self._held, times, values)

    def advance(self, watermark: pa.Scalar) -> pa.Table:
        known = int(np.searchsorted(self._times[: self._held], watermark.cast(pa.int64()).as_py()))
        return self._give(known, complete=True)

    def finish(self) -> pa.Table:
        return self._give(self._held, complete=False)

    def _give(self, known: int, *, complete: bool) -> pa.Table:
        known += self._passed
        room = int((known // self._rows - self._done + 1).sum())
        out = np.empty((4, room), np.int64)
        made = sum_windows(
            self._times, self._values, self._passed, known, self._rows, self._done, complete, out
        )
        window, start, end, total = out[:, :made]
        self._let_go()
        names = pa.DictionaryArray.from_arrays(pa.array(window), pa.array(self._names))
        columns = {"window": names, "start": pa.array(start).cast(self._type)}
        return pa.table({**columns, "end": pa.array(end).cast(self._type), "answer": total})

    def _let_go(self) -> None:
        """Forget the events before the first window that is open."""
        gone = min(int((self._done * self._rows).min()) - self._passed, self._held)
        if gone > 0:
            for column in (self._times, self._values):
                column[: self._held - gone] = column[gone : self._held].copy()
            self._held -= gone
            self._passed += gone

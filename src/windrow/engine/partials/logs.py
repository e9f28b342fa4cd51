"""The events themselves, in time order per key: for aggregates to which the order matters.

    key      0  0  0  1  1  2
    time     3  5  5  4  9  1        sorted by key, time, arrival
    arrival  0  4  7  1  2  3

A window of a key is then one range of rows, found by two binary searches. This is what Scotty keeps
where Figure 4 says that tuples must be stored. Events that no live window needs are dropped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Bound, Scalars
from windrow.engine.cache import jit
from windrow.engine.cutting import Runs
from windrow.engine.partials.scalars import Numbers, lowered, require
from windrow.engine.user_functions import blame, lower_failed
from windrow.engine.windows import Due, by_time
from windrow.measure import Tick


@jit
def merge_order(key, time, arrival, sorted_count, order, out):  # type: ignore[no-untyped-def]
    """Merge rows 0 .. sorted_count-1, in order, with the rows of `order`, into a permutation."""
    i = 0
    j = 0
    for k in range(out.shape[0]):
        if j == order.shape[0]:
            out[k] = i
            i += 1
            continue
        if i == sorted_count:
            out[k] = order[j]
            j += 1
            continue
        b = order[j]
        if key[i] != key[b]:
            first = key[i] < key[b]
        elif time[i] != time[b]:
            first = time[i] < time[b]
        else:
            first = arrival[i] < arrival[b]
        if first:
            out[k] = i
            i += 1
        else:
            out[k] = b
            j += 1


@jit
def find_ranges(row_key, t0, a0, t1, a1, bounds, time, arrival, low, high):  # type: ignore[no-untyped-def]
    """The rows of each output row: key by its bounds, (time, arrival) by binary search."""
    for i in range(row_key.shape[0]):
        stop = bounds[row_key[i] + 1]
        for side in range(2):
            t = t0[i] if side == 0 else t1[i]
            s = a0[i] if side == 0 else a1[i]
            a = bounds[row_key[i]]
            b = stop
            while a < b:
                middle = (a + b) // 2
                if time[middle] < t or (time[middle] == t and arrival[middle] < s):
                    a = middle + 1
                else:
                    b = middle
            if side == 0:
                low[i] = a
            else:
                high[i] = a


@jit
def mark_within(row_key, time, key, first, last, out):  # type: ignore[no-untyped-def]
    """Whether each row, in order of key and time, lies in one of the stretches first .. last of its key."""
    j = 0
    for i in range(row_key.shape[0]):
        while j < key.shape[0] and (key[j] < row_key[i] or (key[j] == row_key[i] and last[j] < time[i])):
            j += 1
        out[i] = j < key.shape[0] and key[j] == row_key[i] and first[j] <= time[i]


class Log:
    """Events of some columns: key, time, arrival number and codes."""

    def __init__(self, kinds: tuple[str, ...], tick: np.dtype[Any]) -> None:
        self._kinds = kinds
        self._tick = tick
        self._columns: list[np.ndarray] = [
            np.empty(0, d)
            for d in (np.int64, tick, np.int64, *(np.int64 if k == "i" else np.float64 for k in kinds))
        ]
        self._waiting: list[list[np.ndarray]] = []

    def repack(self, slots: np.ndarray, capacity: int, stride: int, keys: np.ndarray | slice) -> None:
        """Slots mean nothing here; keys may be renumbered."""
        if not isinstance(keys, slice):
            self.renumber(keys)

    def renumber(self, keys: np.ndarray) -> None:
        """Key keys[i] becomes key i; events of other keys are forgotten."""
        self._settle()
        places = np.full(int(max(keys.max(initial=0), self._columns[0].max(initial=0))) + 1, -1)
        places[keys] = np.arange(len(keys))
        self._columns[0] = places[self._columns[0]]
        self._keep(self._columns[0] >= 0)
        # Numbers may now be in another order: sort again.
        self._waiting = [self._columns]
        self._columns = [c[:0] for c in self._columns]

    def reset(self, slots: np.ndarray) -> None:
        """Events are found by their time."""

    def absorb(self, into: np.ndarray, taken: np.ndarray, keys: int) -> None:
        """Coalesced slices change no event."""

    def copy(self, into: np.ndarray, source: np.ndarray) -> None:
        """Events are there, whatever slices hold them."""

    def recode(self, position: int, moved: np.ndarray) -> None:
        self._settle()
        self._columns[3 + position] = moved[self._columns[3 + position]]

    def codes(self, position: int) -> np.ndarray:
        self._settle()
        return np.unique(self._columns[3 + position])

    def take(self, key: np.ndarray, times: np.ndarray, arrival: np.ndarray, inputs: list[np.ndarray]) -> None:
        """Keep events."""
        self._waiting.append([key.astype(np.int64), times, arrival, *inputs])

    def _settle(self) -> None:
        if not self._waiting:
            return
        old = len(self._columns[0])
        parts = [self._columns, *self._waiting]
        self._waiting = []
        columns = [np.concatenate([p[i] for p in parts]) for i in range(len(self._columns))]
        key, time, arrival = columns[:3]
        order = old + np.lexsort((arrival[old:], time[old:], key[old:]))
        permutation = np.empty(len(key), np.int64)
        merge_order(key, time, arrival, old, order, permutation)
        self._columns = [c[permutation] for c in columns]

    def _keep(self, mask: np.ndarray) -> None:
        self._columns = [c[mask] for c in self._columns]

    def evict_before(self, threshold: Tick | np.ndarray) -> None:
        """Forget events before `threshold` (one for all, or one per key), once they are a third of all."""
        self._settle()
        key, time = self._columns[:2]
        old = time < (threshold[key] if isinstance(threshold, np.ndarray) else threshold)
        if 3 * int(old.sum()) >= len(old):
            self._keep(~old)

    def keep_within(self, key: np.ndarray, first: np.ndarray, last: np.ndarray) -> None:
        """Forget events that lie in none of these stretches of time, which are sorted by key and do not overlap."""
        self._settle()
        keep = np.empty(len(self._columns[0]), bool)
        mark_within(*self._columns[:2], key, first, last, keep)
        self._keep(keep)

    def answer(self, bound: Bound, due: Due, slots: np.ndarray, rows: Any, decoders: list[Any]) -> pa.Array:
        self._settle()
        window, key = rows
        low, high = np.empty(len(window), np.int64), np.empty(len(window), np.int64)
        bounds = np.searchsorted(self._columns[0], np.arange(int(key.max(initial=0)) + 2))
        order = due.order or by_time(due)
        find_ranges(key, *(o[window] for o in order), bounds, *self._columns[1:3], low, high)
        if isinstance(bound.partial, Scalars):
            numbers = Numbers(bound.partial, len(self._kinds), self._tick)
            numbers.repack(slots[:0], max(len(window), 1), 1, slice(0, 0))
            runs = Runs(low, high, np.arange(len(window)))
            try:
                numbers.fold(runs, self._columns[3:], ())
            except Exception as problem:  # a user's function may raise anything
                raise blame(numbers, runs, self._columns[3:], None, problem) from problem
            fields = [f[: len(window)] for f in numbers.fields]
            try:
                return lowered(bound, fields, numbers.n[: len(window)], decoders)
            except Exception as problem:  # a user's function may raise anything
                raise lower_failed(bound, problem) from problem
        codes = self._columns[3]
        return bound.finish(low, high, lambda positions: decoders[0](codes[positions], None))

    @property
    def held(self) -> int:
        """How many events are kept."""
        return len(self._columns[0]) + sum(len(part[0]) for part in self._waiting)

    @property
    def nbytes(self) -> int:
        parts = [self._columns, *self._waiting]
        return int(sum(c.nbytes for part in parts for c in part))

    @property
    def cell_bytes(self) -> int:
        """A slice keeps nothing of its own; each event costs eight bytes per column."""
        return 0

    def save(self, slots: np.ndarray, keys: int) -> dict[str, np.ndarray]:
        self._settle()
        return {f"c{i}": column for i, column in enumerate(self._columns)}

    def load(self, arrays: dict[str, np.ndarray], slots: np.ndarray, keys: int) -> None:
        columns = [require(arrays, f"c{i}", old.dtype) for i, old in enumerate(self._columns)]
        key, time, arrival = columns[:3]
        if any(len(c) != len(key) for c in columns) or np.any((key < 0) | (key >= keys)):
            raise ValueError("events do not fit the keys")
        order = np.lexsort((arrival, time, key))
        self._columns = [c[order] for c in columns]

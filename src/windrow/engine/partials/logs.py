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

from windrow.aggregates.base import Bound, Scalars, Sketch
from windrow.compiling.tiers import jit
from windrow.engine.aligned.cutting import Runs
from windrow.engine.functions.user_functions import blame, lower_failed
from windrow.engine.partials.scalars import Numbers, lowered, require
from windrow.engine.windows import ClosedWindows, by_time
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
    """Events of some columns: key, instants (one: its time), arrival number and codes.

    Events that wait are sorted in when they are needed.
    """

    def __init__(self, kinds: tuple[str, ...], tick: np.dtype[Any], *, instants: int = 1) -> None:
        self._tick = tick
        self._first_code = 2 + instants
        codes = [np.int64 if kind == "i" else np.float64 for kind in kinds]
        dtypes = (np.int64, *(tick,) * instants, np.int64, *codes)
        self._columns: list[np.ndarray] = [np.empty(0, dtype) for dtype in dtypes]
        self._waiting: list[list[np.ndarray]] = []

    def take(self, columns: list[np.ndarray]) -> None:
        """Keep events: key, instants, arrival number and codes."""
        self._waiting.append([columns[0].astype(np.int64), *columns[1:]])

    def _settle(self) -> None:
        """Sort in what waits."""
        if not self._waiting:
            return
        old = len(self._columns[0])
        columns = self._joined()
        key, time, arrival = columns[0], columns[1], columns[self._first_code - 1]
        order = old + np.lexsort((arrival[old:], time[old:], key[old:]))
        permutation = np.empty(len(key), np.int64)
        merge_order(key, time, arrival, old, order, permutation)
        self._columns = [c[permutation] for c in columns]

    def _joined(self) -> list[np.ndarray]:
        """All columns, with what waits behind the rest; nothing waits any more."""
        parts = [self._columns, *self._waiting]
        self._waiting = []
        return [np.concatenate([part[i] for part in parts]) for i in range(len(self._columns))]

    def _keep(self, mask: np.ndarray) -> None:
        self._columns = [column[mask] for column in self._columns]

    def renumber(self, keys: np.ndarray) -> None:
        """Key keys[i] becomes key i; events of other keys are forgotten."""
        self._settle()
        places = np.full(int(max(keys.max(initial=0), self._columns[0].max(initial=0))) + 1, -1)
        places[keys] = np.arange(len(keys))
        self._columns[0] = places[self._columns[0]]
        self._keep(self._columns[0] >= 0)
        # Numbers may now be in another order: sort again.
        self._waiting = [self._columns]
        self._columns = [column[:0] for column in self._columns]

    def recode(self, position: int, moved: np.ndarray) -> None:
        """Apply old-to-new codes of input column `position`."""
        self._settle()
        column = self._first_code + position
        self._columns[column] = moved[self._columns[column]]

    def codes(self, position: int) -> np.ndarray:
        """The codes of input column `position` that are in use."""
        self._settle()
        return np.unique(self._columns[self._first_code + position])

    def owners(self) -> np.ndarray:
        """The keys whose events are kept."""
        return np.unique(np.concatenate([part[0] for part in (self._columns, *self._waiting)]))

    @property
    def held(self) -> int:
        """How many events are kept."""
        return len(self._columns[0]) + sum(len(part[0]) for part in self._waiting)

    @property
    def nbytes(self) -> int:
        return int(sum(column.nbytes for part in (self._columns, *self._waiting) for column in part))

    def save(self, slots: np.ndarray | None = None, keys: int = 0) -> dict[str, np.ndarray]:
        """The events as columns; slots and keys have no say."""
        self._settle()
        return {f"c{i}": column for i, column in enumerate(self._columns)}

    def load(self, arrays: dict[str, np.ndarray], slots: np.ndarray, keys: int) -> None:
        """The opposite of `save`; a ValueError if the arrays are not what it gives."""
        columns = [require(arrays, f"c{i}", old.dtype) for i, old in enumerate(self._columns)]
        if any(len(c) != len(columns[0]) for c in columns) or np.any((columns[0] < 0) | (columns[0] >= keys)):
            raise ValueError("events do not fit the keys")
        self._columns, self._waiting = [column[:0] for column in columns], [columns]

    def _lowered(
        self,
        bound: Bound,
        runs: tuple[np.ndarray, np.ndarray],
        inputs: list[np.ndarray],
        stamps: tuple[np.ndarray, ...],
        decoders: list[Any],
    ) -> pa.Array:
        """The answers of a partial of numbers; those of row i are made of the events low[i] .. high[i] - 1 of `inputs`."""
        partial, rows = bound.partial, len(runs[0])
        assert isinstance(partial, (Scalars, Sketch))
        numbers = Numbers(partial, len(bound.kinds), self._tick)
        numbers.repack(np.empty(0, np.int64), max(rows, 1), 1, slice(0, 0))
        segments = Runs(*runs, np.arange(rows))
        try:
            numbers.fold(segments, inputs, stamps)
        except Exception as problem:  # a user's function may raise anything
            if not isinstance(partial, Scalars):
                raise
            raise blame(numbers, segments, inputs, None, problem) from problem
        try:
            return lowered(bound, [field[:rows] for field in numbers.fields], numbers.n[:rows], decoders)
        except Exception as problem:  # a user's function may raise anything
            raise lower_failed(bound, problem) from problem

    def repack(self, slots: np.ndarray, capacity: int, stride: int, keys: np.ndarray | slice) -> None:
        """Slots mean nothing here; keys may be renumbered."""
        if not isinstance(keys, slice):
            self.renumber(keys)

    def share(self, owners: np.ndarray) -> None:
        """Events of owner o are from now on those of owners[o], too; -1 is nobody."""
        self._settle()
        rows = np.flatnonzero(owners[self._columns[0]] >= 0)
        owner, *columns = (column[rows] for column in self._columns)
        self._waiting.append([owners[owner], *columns])

    def reset(self, slots: np.ndarray) -> None:
        """Events are found by their time."""

    def absorb(self, into: np.ndarray, taken: np.ndarray, keys: int) -> None:
        """Coalesced slices change no event."""

    def copy(self, into: np.ndarray, source: np.ndarray) -> None:
        """Events are there, whatever slices hold them."""

    def evict_before(self, threshold: Tick | np.ndarray) -> None:
        """Forget events that are over before `threshold` (one for all, or one per key), once they are a third of all."""
        self._settle()
        key, last = self._columns[0], self._columns[self._first_code - 2]
        old = last < (threshold[key] if isinstance(threshold, np.ndarray) else threshold)
        if 3 * int(old.sum()) >= len(old):
            self._keep(~old)

    def keep_within(self, key: np.ndarray, first: np.ndarray, last: np.ndarray) -> None:
        """Forget events that lie in none of these stretches of time, which are sorted by key and do not overlap."""
        self._settle()
        keep = np.empty(len(self._columns[0]), bool)
        mark_within(*self._columns[:2], key, first, last, keep)
        self._keep(keep)

    def answer(
        self, bound: Bound, due: ClosedWindows, slots: np.ndarray, rows: Any, decoders: list[Any]
    ) -> pa.Array:
        self._settle()
        window, key = rows
        low, high = np.empty(len(window), np.int64), np.empty(len(window), np.int64)
        bounds = np.searchsorted(self._columns[0], np.arange(int(key.max(initial=0)) + 2))
        order = due.order or by_time(due)
        find_ranges(key, *(o[window] for o in order), bounds, *self._columns[1:3], low, high)
        if isinstance(bound.partial, Scalars):
            return self._lowered(bound, (low, high), self._columns[3:], (), decoders)
        codes = self._columns[3]
        return bound.finish(low, high, lambda positions: decoders[0](codes[positions], None))

    @property
    def cell_bytes(self) -> int:
        """A slice keeps nothing of its own; each event costs eight bytes per column."""
        return 0

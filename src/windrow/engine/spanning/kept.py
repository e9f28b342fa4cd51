"""Events that last, kept one by one: for aggregates whose partials cannot be noted where an event goes on.

    key      0   0   0   1
    start    1   3   8   2        sorted by key, start, arrival
    last     9   4   9   2
    so far   9   9   9   2        the greatest last instant up to here: nothing before the first one that
                                  reaches a window can lie in it

A window collects its events anew, in this order, and gives them to an empty store of the aggregate. So the holistic
aggregates, which the paper leaves out, and sketches answer as they do for events without a duration.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Bound, Kind, Multiset, Scalars, Sketch
from windrow.engine.cache import jit
from windrow.engine.cutting import Cells, Runs
from windrow.engine.loads import Going
from windrow.engine.partials import Multisets, Numbers, store_for
from windrow.engine.partials.scalars import lowered, require
from windrow.engine.user_functions import blame, lower_failed
from windrow.engine.windows import Due
from windrow.measure import Tick


@jit
def greatest_so_far(key, last, out):  # type: ignore[no-untyped-def]
    """The greatest last instant of each key's events, up to each of them."""
    for i in range(key.shape[0]):
        again = i > 0 and key[i] == key[i - 1]
        out[i] = max(out[i - 1], last[i]) if again else last[i]


@jit
def collect(row_key, begin, end, bounds, start, last, so_far, high, out):  # type: ignore[no-untyped-def]
    """The events of each output row: those that start before `end` and last up to `begin` or longer.

    Fills high[i], how many positions the rows up to i have, and writes these to `out` as far as they fit.
    """
    count = 0
    for i in range(row_key.shape[0]):
        a = bounds[row_key[i]]
        b = bounds[row_key[i] + 1]
        while a < b:
            middle = (a + b) // 2
            if so_far[middle] < begin[i]:
                a = middle + 1
            else:
                b = middle
        for j in range(a, bounds[row_key[i] + 1]):
            if start[j] >= end[i]:
                break
            if last[j] >= begin[i]:
                if count < out.shape[0]:
                    out[count] = j
                count += 1
        high[i] = count
    return count


class Kept:
    """Events of some columns: key, start, last instant, arrival number and codes."""

    def __init__(self, kinds: tuple[Kind, ...], tick: np.dtype[Any]) -> None:
        self._tick = tick
        codes = [np.int64 if kind == "i" else np.float64 for kind in kinds]
        self._columns: list[np.ndarray] = [np.empty(0, d) for d in (np.int64, tick, tick, np.int64, *codes)]
        self._waiting: list[list[np.ndarray]] = []
        self._so_far: np.ndarray | None = None

    def take(self, columns: list[np.ndarray]) -> None:
        """Keep events: key, start, last instant, arrival number and codes."""
        self._waiting.append([columns[0].astype(np.int64), *columns[1:]])

    def take_pieces(self, going: Going, columns: list[np.ndarray]) -> None:
        """Keep events that may go on, and let those end that were kept before."""
        _, starts, lasts, arrival = columns[:4]
        new = going.since < starts
        forever = np.where(going.on, np.iinfo(np.int64).max, lasts)
        self.take([column[new] for column in (*columns[:2], forever, *columns[3:])])
        over = ~new & ~going.on
        self.end(arrival[over], lasts[over])

    def end(self, arrival: np.ndarray, lasts: np.ndarray) -> None:
        """Let the events of these arrival numbers end; numbers that are not here mean nothing."""
        self._settle()
        order = np.argsort(arrival)
        at = np.searchsorted(arrival[order], self._columns[3])
        at[at == len(arrival)] = 0
        found = np.flatnonzero(arrival[order][at] == self._columns[3]) if len(arrival) else at[:0]
        self._columns[2][found] = lasts[order][at[found]]
        self._so_far = None

    def _settle(self) -> None:
        if self._waiting:
            parts = [self._columns, *self._waiting]
            self._waiting = []
            columns = [np.concatenate([part[i] for part in parts]) for i in range(len(self._columns))]
            order = np.lexsort((columns[3], columns[1], columns[0]))
            self._columns = [column[order] for column in columns]
            self._so_far = None

    def owners(self) -> np.ndarray:
        """The keys whose events are kept."""
        return np.unique(np.concatenate([part[0] for part in (self._columns, *self._waiting)]))

    def renumber(self, keys: np.ndarray) -> None:
        """Key keys[i] becomes key i; events of other keys are forgotten."""
        self._settle()
        places = np.full(int(max(keys.max(initial=0), self._columns[0].max(initial=0))) + 1, -1)
        places[keys] = np.arange(len(keys))
        self._columns[0] = places[self._columns[0]]
        kept = self._columns[0] >= 0
        self._waiting = [[column[kept] for column in self._columns]]
        self._columns = [column[:0] for column in self._columns]

    def recode(self, position: int, moved: np.ndarray) -> None:
        """Apply old-to-new codes of input column `position`."""
        self._settle()
        self._columns[4 + position] = moved[self._columns[4 + position]]

    def codes(self, position: int) -> np.ndarray:
        """The codes of input column `position` that are in use."""
        self._settle()
        return np.unique(self._columns[4 + position])

    def evict_before(self, threshold: Tick) -> None:
        """Forget events that are over before `threshold`, once they are a third of all."""
        self._settle()
        over = self._columns[2] < threshold
        if 3 * int(over.sum()) >= len(over):
            self._columns = [column[~over] for column in self._columns]
            self._so_far = None

    def answer(self, bound: Bound, due: Due, rows: Any, decoders: list[Any]) -> pa.Array:
        """The answer column of output rows, a window and a key each, of an aggregate that reads these events."""
        positions, high = self._events_of(due, rows)
        low = np.concatenate([[0], high[:-1]]) if len(high) else high
        inputs = [column[positions] for column in self._columns[4:]]
        partial = bound.partial
        count = max(len(high), 1)
        if isinstance(partial, (Scalars, Sketch)):
            numbers = Numbers(partial, len(bound.kinds), self._tick)
            numbers.repack(np.empty(0, np.int64), count, 1, slice(0, 0))
            runs = Runs(low, high, np.arange(len(high)))
            try:
                numbers.fold(runs, inputs, self._stamps(partial, positions))
            except Exception as problem:  # a user's function may raise anything
                if not isinstance(partial, Scalars):
                    raise
                raise blame(numbers, runs, inputs, None, problem) from problem
            fields = [field[: len(high)] for field in numbers.fields]
            try:
                return lowered(bound, fields, numbers.n[: len(high)], decoders)
            except Exception as problem:  # a user's function may raise anything
                raise lower_failed(bound, problem) from problem
        if isinstance(partial, Multiset):
            store = store_for(bound, self._tick)
            assert isinstance(store, Multisets)
            store.repack(np.empty(0, np.int64), count, 1, slice(0, 0))
            store.fold(Cells(np.repeat(np.arange(len(high)), high - low)), inputs, ())
            places = np.arange(len(high))
            each = Due(places, places, places, places, places + 1)
            return store.answer(bound, each, places, (places, np.zeros(len(high), np.int64)), decoders)
        return bound.finish(low, high, lambda chosen: decoders[0](inputs[0][chosen], None))

    def _stamps(self, partial: Any, positions: np.ndarray) -> tuple[np.ndarray, ...]:
        if isinstance(partial, Scalars) and partial.timed:
            return self._columns[1][positions], self._columns[3][positions]
        return ()

    def _events_of(self, due: Due, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """The positions of the events of all output rows, and up to where those of each row go."""
        self._settle()
        key, start, last = self._columns[:3]
        if self._so_far is None:
            self._so_far = np.empty(len(last), last.dtype)
            greatest_so_far(key, last, self._so_far)
        window, owner = rows
        bounds = np.searchsorted(key, np.arange(int(owner.max(initial=0)) + 2))
        high = np.empty(len(window), np.int64)
        where = (owner, due.start[window], due.end[window], bounds, start, last, self._so_far, high)
        out = np.empty(4 * len(window) + 1024, np.int64)
        count = collect(*where, out)
        if count > len(out):
            out = np.empty(count, np.int64)
            collect(*where, out)
        return out[:count], high

    @property
    def held(self) -> int:
        """How many events are kept."""
        return len(self._columns[0]) + sum(len(part[0]) for part in self._waiting)

    @property
    def nbytes(self) -> int:
        return int(sum(column.nbytes for part in (self._columns, *self._waiting) for column in part))

    def save(self) -> dict[str, np.ndarray]:
        """The events as columns."""
        self._settle()
        return {f"c{i}": column for i, column in enumerate(self._columns)}

    def load(self, arrays: dict[str, np.ndarray], keys: int) -> None:
        """The opposite of `save`; a ValueError if the arrays are not what `save` gives."""
        columns = [require(arrays, f"c{i}", old.dtype) for i, old in enumerate(self._columns)]
        key, start, last = columns[:3]
        if (
            any(len(c) != len(key) for c in columns)
            or np.any((key < 0) | (key >= keys))
            or np.any(last < start)
        ):
            raise ValueError("events do not fit the keys, or end before they start")
        self._columns = [column[:0] for column in columns]
        self._waiting = [columns]

"""Span events, kept one by one: for aggregates whose partials cannot be carried over.

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

from windrow.aggregates.base import Bound, Multiset, Scalars, Sketch
from windrow.compiling.tiers import jit
from windrow.engine.aligned.cutting import Cells
from windrow.engine.partials.logs import Log
from windrow.engine.partials.multisets import Multisets
from windrow.engine.windows import ClosedWindows


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


class SpanLog(Log):
    """Events of some columns: key, first and last instant, arrival number and codes."""

    def __init__(self, kinds: tuple[str, ...], tick: np.dtype[Any]) -> None:
        super().__init__(kinds, tick, instants=2)
        self._so_far: np.ndarray | None = None

    def take_pieces(self, since: np.ndarray, on: np.ndarray, columns: list[np.ndarray]) -> None:
        """Keep events that may go `on` for ever, and let those end that were kept before (see `CarryOver`)."""
        _, starts, lasts, arrival = columns[:4]
        new = since < starts
        forever = np.where(on, np.iinfo(np.int64).max, lasts)
        self.take([column[new] for column in (*columns[:2], forever, *columns[3:])])
        over = ~new & ~on
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
            self._so_far = None
        super()._settle()

    def _keep(self, mask: np.ndarray) -> None:
        super()._keep(mask)
        self._so_far = None

    def answer(
        self, bound: Bound, due: ClosedWindows, slots: np.ndarray, rows: Any, decoders: list[Any]
    ) -> pa.Array:
        """The answer column of output rows, a window and a key each, of an aggregate that reads these events."""
        positions, high = self._events_of(due, rows)
        low = np.concatenate([[0], high[:-1]]) if len(high) else high
        inputs = [column[positions] for column in self._columns[4:]]
        partial = bound.partial
        if isinstance(partial, (Scalars, Sketch)):
            return self._lowered(bound, (low, high), inputs, self._stamps(partial, positions), decoders)
        if isinstance(partial, Multiset):
            store = Multisets(floating=bound.kinds[0] == "f")
            store.repack(np.empty(0, np.int64), max(len(high), 1), 1, slice(0, 0))
            store.fold(Cells(np.repeat(np.arange(len(high)), high - low)), inputs, ())
            places = np.arange(len(high))
            each = ClosedWindows(places, places, places, places, places + 1)
            return store.answer(bound, each, places, (places, np.zeros(len(high), np.int64)), decoders)
        return bound.finish(low, high, lambda chosen: decoders[0](inputs[0][chosen], None))

    def _stamps(self, partial: Any, positions: np.ndarray) -> tuple[np.ndarray, ...]:
        if isinstance(partial, Scalars) and partial.timed:
            return self._columns[1][positions], self._columns[3][positions]
        return ()

    def _events_of(self, due: ClosedWindows, rows: Any) -> tuple[np.ndarray, np.ndarray]:
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

    def load(self, arrays: dict[str, np.ndarray], slots: np.ndarray, keys: int) -> None:
        super().load(arrays, slots, keys)
        if np.any(self._waiting[0][2] < self._waiting[0][1]):
            raise ValueError("events end before they start")

"""Sorted, run-length encoded values per slice and key, for quantiles, distinct counts and top-k.

    cell         values (sorted, different)     up to here (cumulative count)
    slice 0      3  5  9                        2  3  6          i.e. 3 3 5 9 9 9
    slice 1      5  7                           1  2             i.e. 5 7

All cells share two long columns; a cell is an offset and a length into them. New values wait in a
log until somebody asks, then each touched cell is sorted once and merged with what it had. A window
selects a rank from its sorted slices without merging them (Scotty, section 5.4.1).

Floats are kept as integers of the same order (NaN greatest, -0.0 as 0.0), so there is one kind of loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Bound, Field, Scalars
from windrow.aggregates.distinct import CountDistinct
from windrow.aggregates.distinct_values import DistinctValues
from windrow.aggregates.quantile import Ranks
from windrow.aggregates.top_k import MostFrequent
from windrow.compiling.tiers import jit
from windrow.engine.aligned.cutting import Cells, Runs
from windrow.engine.arrays import ranges
from windrow.engine.partials.scalars import Numbers, require
from windrow.engine.windows import ClosedWindows

_MAGNITUDE = np.int64(2**63 - 1)


def to_ordinals(values: np.ndarray) -> np.ndarray:
    """Floats as int64 that compare as the floats do, NaN greatest."""
    if values.dtype.kind != "f":
        return values
    clean = np.where(np.isnan(values), np.nan, values + 0.0)
    bits = clean.view(np.int64)
    return np.where(bits < 0, bits ^ _MAGNITUDE, bits)


def from_ordinals(ordinals: np.ndarray, floating: bool) -> np.ndarray:
    """The opposite of `to_ordinals`."""
    if not floating:
        return ordinals
    return np.where(ordinals < 0, ordinals ^ _MAGNITUDE, ordinals).view(np.float64)


@jit
def lower_bound(values, value, low, high):  # type: ignore[no-untyped-def]
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def encode(cell, value, offset, length, n, values, upto, used):  # type: ignore[no-untyped-def]
    """Merge new values, grouped by cell, into the cells' sorted runs; how much is used then.

    Each touched cell gets a new segment at the end of `values` and `upto`, which have room for all.
    """
    i = 0
    while i < cell.shape[0]:
        j = i + 1
        while j < cell.shape[0] and cell[j] == cell[i]:
            j += 1
        c = cell[i]
        fresh = np.sort(value[i:j])
        begin = used
        old, stop = offset[c], offset[c] + length[c]
        before = 0
        total = 0
        k = 0
        while k < fresh.shape[0] or old < stop:
            if k < fresh.shape[0] and (old == stop or fresh[k] <= values[old]):
                v = fresh[k]
            else:
                v = values[old]
            while k < fresh.shape[0] and fresh[k] == v:
                total += 1
                k += 1
            if old < stop and values[old] == v:
                total += upto[old] - before
                before = upto[old]
                old += 1
            values[used] = v
            upto[used] = total
            used += 1
        offset[c] = begin
        length[c] = used - begin
        n[c] = total
        i = j
    return used


@jit
def compact(offset, length, values, upto, new_values, new_upto):  # type: ignore[no-untyped-def]
    """Copy the segments that are in use to new columns."""
    used = 0
    for c in range(offset.shape[0]):
        for k in range(length[c]):
            new_values[used + k] = values[offset[c] + k]
            new_upto[used + k] = upto[offset[c] + k]
        offset[c] = used
        used += length[c]
    return used


@jit
def expand(cells, offset, length, values, upto, total):  # type: ignore[no-untyped-def]
    """The values of `cells`, repeats included, as (position in cells, value) columns."""
    where = np.empty(total, np.int64)
    value = np.empty(total, np.int64)
    count = 0
    for i in range(cells.shape[0]):
        before = 0
        for k in range(offset[cells[i]], offset[cells[i]] + length[cells[i]]):
            for _ in range(upto[k] - before):
                where[count] = i
                value[count] = values[k]
                count += 1
            before = upto[k]
    return where, value


@jit
def select_ranks(window, key, first, last, slots, stride, offset, length, values, upto, low, high):  # type: ignore[no-untyped-def]
    """For each output row, the values of ranks low[i] and high[i] (0-based, high is low or low + 1).

    Pivots are taken from the segment with the most candidates; each pivot costs one binary search
    per slice and drops candidates in all of them.
    """
    rows = window.shape[0]
    smaller = np.empty(rows, np.int64)
    larger = np.empty(rows, np.int64)
    widest = 1
    for w in range(first.shape[0]):
        widest = max(widest, last[w] - first[w])
    left = np.empty(widest, np.int64)
    right = np.empty(widest, np.int64)
    bottom = np.empty(widest, np.int64)
    at = np.empty(widest, np.int64)
    for i in range(rows):
        count = 0
        for r in range(first[window[i]], last[window[i]]):
            c = slots[r] * stride + key[i]
            if length[c] > 0:
                bottom[count] = offset[c]
                left[count] = offset[c]
                right[count] = offset[c] + length[c]
                count += 1
        rank = low[i]
        answer = np.int64(0)
        reached = np.int64(0)
        while True:
            most = 0
            for s in range(1, count):
                if right[s] - left[s] > right[most] - left[most]:
                    most = s
            pivot = values[(left[most] + right[most]) // 2]
            below = np.int64(0)
            equal = np.int64(0)
            for s in range(count):
                p = lower_bound(values, pivot, left[s], right[s])
                at[s] = p
                under = upto[p - 1] if p > bottom[s] else 0
                below += under
                if p < right[s] and values[p] == pivot:
                    equal += upto[p] - under
            if rank < below:
                for s in range(count):
                    right[s] = at[s]
            elif rank >= below + equal:
                for s in range(count):
                    p = at[s]
                    left[s] = p + 1 if p < right[s] and values[p] == pivot else p
            else:
                answer = pivot
                reached = below + equal
                break
        smaller[i] = answer
        larger[i] = answer
        if high[i] >= reached:
            best = np.int64(9223372036854775807)
            for r in range(first[window[i]], last[window[i]]):
                c = slots[r] * stride + key[i]
                stop = offset[c] + length[c]
                p = lower_bound(values, answer + 1, offset[c], stop)
                if p < stop and values[p] < best:
                    best = values[p]
            larger[i] = best
    return smaller, larger


@jit
def merged_runs(first, last, key, slots, stride, offset, length, values, upto):  # type: ignore[no-untyped-def]
    """The different values of one window and key, sorted, and how often each occurs."""
    total = 0
    for r in range(first, last):
        total += length[slots[r] * stride + key]
    found = np.empty(total, np.int64)
    times = np.empty(total, np.int64)
    count = 0
    for r in range(first, last):
        c = slots[r] * stride + key
        before = 0
        for k in range(offset[c], offset[c] + length[c]):
            found[count] = values[k]
            times[count] = upto[k] - before
            before = upto[k]
            count += 1
    if last - first > 1:
        order = np.argsort(found)
        found, times = found[order], times[order]
        kept = 0
        for i in range(1, count):
            if found[i] == found[kept]:
                times[kept] += times[i]
            else:
                kept += 1
                found[kept] = found[i]
                times[kept] = times[i]
        count = min(count, kept + 1)
    return found[:count], times[:count]


@jit
def count_distinct(window, key, first, last, slots, stride, offset, length, values, upto):  # type: ignore[no-untyped-def]
    out = np.empty(window.shape[0], np.int64)
    for i in range(window.shape[0]):
        w = window[i]
        found, _ = merged_runs(first[w], last[w], key[i], slots, stride, offset, length, values, upto)
        out[i] = found.shape[0]
    return out


@jit
def distinct_values(window, key, first, last, slots, stride, offset, length, values, upto, offsets):  # type: ignore[no-untyped-def]
    """The distinct values of each row; those of row i from place `offsets[i]` on."""
    out = np.empty(offsets[-1], np.int64)
    for i in range(window.shape[0]):
        w = window[i]
        found, _ = merged_runs(first[w], last[w], key[i], slots, stride, offset, length, values, upto)
        for j in range(found.shape[0]):
            out[offsets[i] + j] = found[j]
    return out


@jit
def most_frequent(window, key, first, last, slots, stride, offset, length, values, upto, k):  # type: ignore[no-untyped-def]
    """The k most frequent values of each row; row i has places i*k .. and `size[i]` of them."""
    rows = window.shape[0]
    value = np.zeros(rows * k, np.int64)
    times = np.zeros(rows * k, np.int64)
    size = np.empty(rows, np.int64)
    for i in range(rows):
        w = window[i]
        found, often = merged_runs(first[w], last[w], key[i], slots, stride, offset, length, values, upto)
        base = i * k
        count = 0
        for j in range(found.shape[0]):
            place = count
            while place > 0 and times[base + place - 1] < often[j]:
                place -= 1
            if place >= k:
                continue
            stop = min(count, k - 1)
            for m in range(stop, place, -1):
                value[base + m] = value[base + m - 1]
                times[base + m] = times[base + m - 1]
            value[base + place] = found[j]
            times[base + place] = often[j]
            count = min(count + 1, k)
        size[i] = count
    return value, times, size


SEGMENTS = Scalars("segments", (Field("offset", "i", 0), Field("length", "i", 0)), None, lambda a, b: a)


class Multisets:
    """The sorted values of one column, per slice slot and key."""

    def __init__(self, floating: bool) -> None:
        self.floating = floating
        self._cells = Numbers(SEGMENTS, 1, np.dtype(np.int64))
        self._values = np.empty(0, np.int64)
        self._upto = np.empty(0, np.int64)
        self._used = 0
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []

    @property
    def _offset(self) -> np.ndarray:
        return self._cells.fields[0]

    @property
    def _length(self) -> np.ndarray:
        return self._cells.fields[1]

    @property
    def n(self) -> np.ndarray:
        return self._cells.n

    def repack(self, slots: np.ndarray, capacity: int, stride: int, keys: np.ndarray | slice) -> None:
        self._seal()
        self._cells.repack(slots, capacity, stride, keys)
        if self._used > 2 * int(self._length.sum()):
            self._compact()

    def reset(self, slots: np.ndarray) -> None:
        self._seal()
        self._cells.reset(slots)

    def recode(self, position: int, moved: np.ndarray) -> None:
        self._seal()
        self._compact()
        self._values[: self._used] = moved[self._values[: self._used]]

    def codes(self, position: int) -> np.ndarray:
        self._seal()
        self._compact()
        return np.unique(self._values[: self._used])

    def fold(self, segments: Runs | Cells, inputs: list[np.ndarray], time: tuple[np.ndarray, ...]) -> None:
        rows, cell = segments.located()
        if len(cell):
            self._waiting.append((cell, to_ordinals(inputs[0])[rows]))

    def _seal(self) -> None:
        if not self._waiting:
            return
        cell = np.concatenate([c for c, _ in self._waiting])
        value = np.concatenate([v for _, v in self._waiting])
        self._waiting = []
        if len(cell) > 1 and np.any(cell[1:] < cell[:-1]):
            order = np.argsort(cell, kind="stable")
            cell, value = cell[order], value[order]
        touched = (
            np.unique(cell) if len(cell) < 1_000_000 else cell[np.flatnonzero(np.diff(cell, prepend=-1))]
        )
        need = self._used + len(value) + int(self._length[touched].sum())
        if need > len(self._values):
            self._compact()
            need = self._used + len(value) + int(self._length[touched].sum())
        if need > len(self._values):
            more = np.empty(max(2 * len(self._values), need, 1024) - len(self._values), np.int64)
            self._values = np.concatenate([self._values, more])
            self._upto = np.concatenate([self._upto, more])
        self._used = encode(
            cell, value, self._offset, self._length, self._cells.n, self._values, self._upto, self._used
        )

    def _compact(self) -> None:
        """Drop segments that no cell refers to any more."""
        live = int(self._length.sum())
        values, upto = np.empty(live, np.int64), np.empty(live, np.int64)
        self._used = compact(self._offset, self._length, self._values, self._upto, values, upto)
        self._values, self._upto = values, upto

    def absorb(self, into: np.ndarray, taken: np.ndarray, keys: int) -> None:
        stride, every = self._cells.stride, np.arange(keys)
        self.copy((into[:, None] * stride + every).ravel(), (taken[:, None] * stride + every).ravel())
        self._seal()
        self._cells.reset(taken)

    def copy(self, into: np.ndarray, source: np.ndarray) -> None:
        """Let slots `into`, in an arena of one key, hold what slots `source` do as well."""
        self._seal()
        total = int(self.n[source].sum())
        where, value = expand(source, self._offset, self._length, self._values, self._upto, total)
        self._waiting.append((into[where], value))

    def settle(self) -> None:
        """Sort what waits, and let go of memory that is no longer used."""
        self._seal()
        if self._used > 4096 and self._used > 2 * int(self._length.sum()):
            self._compact()

    def answer(
        self, bound: Bound, due: ClosedWindows, slots: np.ndarray, rows: Any, decoders: list[Any]
    ) -> pa.Array:
        """One output column for `rows`: (window, key) positions of the windows due."""
        self.settle()
        window, key = rows
        stride = self._cells.stride
        segments = (self._offset, self._length, self._values, self._upto)
        where: tuple[Any, ...] = (window, key, due.first, due.last, slots, stride, *segments)
        finish = bound.finish
        assert bound.build is not None
        if isinstance(finish, CountDistinct):
            return bound.build([count_distinct(*where)], np.ones(len(window), bool), decoders)
        if isinstance(finish, DistinctValues):
            offsets = np.concatenate([[0], np.cumsum(count_distinct(*where))])
            found = distinct_values(*where, offsets)
            return bound.build(offsets, from_ordinals(found, self.floating), decoders)
        if isinstance(finish, MostFrequent):
            k = min(finish.k, int(window_counts(*where[:6], self.n).max(initial=1)))
            value, times, size = most_frequent(*where, k)
            kept = (np.arange(k) < size[:, None]).ravel()
            offsets = np.concatenate([[0], np.cumsum(size)])
            decoded = decoders[0](from_ordinals(value[kept], self.floating), None)
            return bound.build(offsets, decoded, times[kept], size > 0, decoders)
        assert isinstance(finish, Ranks)
        n = window_counts(*where[:6], self.n)
        defined = n >= finish.least
        if not defined.all():
            where = (window[defined], key[defined], *where[2:])
        low, high = finish.ranks(n[defined])
        smaller, larger = select_ranks(*where, low, high)
        joined = finish.join(
            from_ordinals(smaller, self.floating), from_ordinals(larger, self.floating), n[defined]
        )
        values = np.zeros(len(window), joined.dtype)
        values[defined] = joined
        return bound.build([values], defined, decoders)

    @property
    def held(self) -> int:
        """How many values are kept."""
        return int(self._length.sum()) + sum(len(values) for _, values in self._waiting)

    @property
    def nbytes(self) -> int:
        waiting = sum(c.nbytes + v.nbytes for c, v in self._waiting)
        return self._cells.nbytes + int(self._values.nbytes + self._upto.nbytes) + waiting

    @property
    def cell_bytes(self) -> int:
        """Bytes of a cell apart from its values."""
        return self._cells.cell_bytes

    def save(self, slots: np.ndarray, keys: int) -> dict[str, np.ndarray]:
        self._seal()
        cells = (slots[:, None] * self._cells.stride + np.arange(keys)).ravel()
        offset, length = self._offset[cells], self._length[cells]
        at = ranges(offset, offset + length)
        arrays = self._cells.save(slots, keys) | {"f0": np.cumsum(length) - length}
        return arrays | {"values": self._values[at], "upto": self._upto[at]}

    def load(self, arrays: dict[str, np.ndarray], slots: np.ndarray, keys: int) -> None:
        self._cells.load(arrays, slots, keys)
        values, upto = (require(arrays, name, np.int64) for name in ("values", "upto"))
        offset, length = self._offset, self._length
        inside = (offset >= 0) & (length >= 0) & (offset <= len(values)) & (length <= len(values) - offset)
        if len(upto) != len(values) or not inside.all():
            raise ValueError("sorted values lie outside their column")
        filled = length > 0
        total = np.zeros(len(length), np.int64)
        total[filled] = upto[(offset + length - 1)[filled]]
        if np.any(total != self.n) or np.any(upto < 1):
            raise ValueError("sorted values do not add up to their counts")
        inner = np.ones(len(values), bool)
        inner[offset[filled]] = False
        if np.any((values[1:] <= values[:-1]) & inner[1:]) or np.any((upto[1:] <= upto[:-1]) & inner[1:]):
            raise ValueError("values are not sorted")
        self._values, self._upto, self._used = values, upto, len(values)


@jit
def window_counts(window, key, first, last, slots, stride, n):  # type: ignore[no-untyped-def]
    """How many values each output row has."""
    out = np.zeros(window.shape[0], np.int64)
    for i in range(window.shape[0]):
        for r in range(first[window[i]], last[window[i]]):
            out[i] += n[slots[r] * stride + key[i]]
    return out

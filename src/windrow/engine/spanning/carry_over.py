"""The carry-over: the partials of the events that go on across the start of each slice, beside those of what begins in it.

    slices            |  0  |  1  |  2  |  3  |
    event                |-----------|
    Differences  entered     x                    where it first goes on ...
                 left              x              ... and where it ends
    Crossings                x     x              at each start that it crosses

A window is what begins in its slices, and the carry-over of its first one; both together hold each of its events once
(in the paper's terms, section 3.2.2, the two parts of a slice; here the part that goes on is kept at its other end).

Where partials can be taken out again exactly, an event is folded twice, whatever its length: the carry-over of a
slice is all that has entered up to it, less all that has left before it. All others are folded at each start, through
a tree where that is cheaper (see `planner.spanning`).

Loops call `lift`, `combine`, `invert`, `load` and `put` by names that stand for those of an aggregate, as stores do
(`engine.bound_kernels`). `inputs` and `cells` are tuples of arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.aligned.cutting import Runs
from windrow.engine.arrays import cells_of
from windrow.engine.binding import is_own
from windrow.engine.partials import Numbers
from windrow.engine.partials.loops import bound
from windrow.engine.spanning.placing import Ends, Placed, Ranges
from windrow.measure import Tick
from windrow.planner.spanning import height
from windrow.stores.operations import combine, invert, lift, load, put

Merged: TypeAlias = "tuple[list[np.ndarray], np.ndarray]"
# Sums are marked after this many cells of slices and keys, and at least this many slices.
MARK_CELLS, FEWEST_SLICES = 1 << 14, 8
# For up to this many events each is asked which marks it crosses.
FEW_EVENTS = 2048


def fold_ranges(upto, low, high, key, base, inputs, cells, n):  # type: ignore[no-untyped-def]
    """Fold events, run by run, into the cells of all slices whose starts they cross."""
    i = 0
    for r in range(upto.shape[0]):
        if low[r] <= high[r] and i < upto[r]:
            one = lift(inputs, i)
            for j in range(i + 1, upto[r]):
                one = combine(one, lift(inputs, j))
            for j in range(low[r], high[r] + 1):
                c = base[j] + key[r]
                put(cells, c, combine(load(cells, c), one))
                n[c] += upto[r] - i
        i = upto[r]


def cover_ranges(upto, low, high, key, keys, offset, inputs, nodes, n):  # type: ignore[no-untyped-def]
    """The same into the nodes of a tree over slices, in which a node of level l stands for 2**l of them.

    Level l begins at `offset[l]`, and each node has a cell per key. An event touches at most two nodes of each level
    below the top.
    """
    top = offset.shape[0] - 1
    i = 0
    for r in range(upto.shape[0]):
        if low[r] <= high[r] and i < upto[r]:
            one = lift(inputs, i)
            for j in range(i + 1, upto[r]):
                one = combine(one, lift(inputs, j))
            run = upto[r] - i
            a, b, level = low[r], high[r] + 1, 0
            while level < top and a < b:
                if a & 1:
                    c = (offset[level] + a) * keys + key[r]
                    put(nodes, c, combine(load(nodes, c), one))
                    n[c] += run
                    a += 1
                if b & 1:
                    b -= 1
                    c = (offset[level] + b) * keys + key[r]
                    put(nodes, c, combine(load(nodes, c), one))
                    n[c] += run
                a >>= 1
                b >>= 1
                level += 1
            for j in range(a, b):
                c = (offset[level] + j) * keys + key[r]
                put(nodes, c, combine(load(nodes, c), one))
                n[c] += run
        i = upto[r]


def push_down(offset, size, keys, nodes, n):  # type: ignore[no-untyped-def]
    """Combine the nodes of a tree into the `size` slices that they stand for, which are its level 0."""
    for level in range(offset.shape[0] - 1, 0, -1):
        below = (size + (1 << (level - 1)) - 1) >> (level - 1)
        for r in range((below + 1) // 2):
            for k in range(keys):
                d = (offset[level] + r) * keys + k
                if n[d] > 0:
                    for child in range(2 * r, min(2 * r + 2, below)):
                        c = (offset[level - 1] + child) * keys + k
                        put(nodes, c, combine(load(nodes, c), load(nodes, d)))
                        n[c] += n[d]


def fold_both(enter, leave, inputs, entered, en, left, ln):  # type: ignore[no-untyped-def]
    """Fold each event where it first goes on, and where it ends; -1 is no cell."""
    for i in range(enter.shape[0]):
        c = enter[i]
        if c >= 0:
            one = lift(inputs, i)
            put(entered, c, combine(load(entered, c), one))
            en[c] += 1
            c = leave[i]
            put(left, c, combine(load(left, c), one))
            ln[c] += 1


def add_up(slot, stride, keys, every, entered, en, left, ln, total, tn, levels, vn, marks, mn):  # type: ignore[no-untyped-def]
    """The carry-over of each slice: `total`, all that has entered up to it less all that has left before it.

    `total` is the carry-over from before the first slice, and becomes that behind the last one. It is marked before every
    `every`-th slice.
    """
    for r in range(slot.shape[0]):
        if r > 0 and r % every == 0:
            for k in range(keys):
                q = (r // every - 1) * stride + k
                put(marks, q, load(total, k))
                mn[q] = tn[k]
        for k in range(keys):
            i = slot[r] * stride + k
            j = r * keys + k
            level = combine(load(total, k), load(entered, i))
            tn[k] += en[i]
            put(levels, j, level)
            vn[j] = tn[k]
            put(total, k, invert(level, load(left, i)))
            tn[k] -= ln[i]


@jit
def crossed_by(low, high):  # type: ignore[no-untyped-def]
    """The numbers of an `Extent`."""
    runs = 0
    crossings = 0
    first = np.int64(9223372036854775807)
    last = np.int64(-1)
    for i in range(low.shape[0]):
        if low[i] <= high[i]:
            runs += 1
            crossings += high[i] - low[i] + 1
            first = min(first, low[i])
            last = max(last, high[i])
    return runs, crossings, first, last


@dataclass
class Extent:
    """How many runs of events cross a start, how many starts these cross together, and the first and the last of them."""

    runs: int
    crossings: int
    first: int
    last: int

    @property
    def slices(self) -> int:
        return self.last - self.first + 1


class Crossings(Numbers):
    """The carry-over of each slice, as partials of their own."""

    @classmethod
    def beside(cls, store: Numbers) -> Crossings:
        """An empty carry-over beside what begins in slices."""
        return cls(store.spec, store.columns, np.dtype(np.int64), store.dtypes)

    @property
    def stores(self) -> list[Numbers]:
        return [self]

    def targets(self, placed: Placed) -> list[tuple[Numbers, Any]]:
        """What events are folded into, and where."""
        return [(self, placed.crossed)] if placed.crossings else []

    def fold(self, segments: Any, inputs: list[np.ndarray], time: tuple[np.ndarray, ...]) -> None:
        """Take in events that cross the starts of `segments`, which are `Ranges`."""
        assert isinstance(segments, Ranges)
        extent = Extent(*crossed_by(segments.low, segments.high))
        if not extent.runs:
            return
        values = [*inputs, *(time if self.timed else ())]
        number, key = np.arange(segments.keys), segments.key
        if extent.slices * segments.keys > 4 * extent.crossings:
            number, key = np.unique(key, return_inverse=True)
        levels = height(extent.crossings, extent.runs, extent.slices, len(number))
        if levels:
            self.fold_through_tree(segments, values, extent, number, key, levels)
        else:
            self.fold_at_each(segments, values)

    def fold_at_each(self, ranges: Ranges, values: list[np.ndarray]) -> None:
        """Fold each event into all slices whose starts it crosses."""
        where = ranges.upto, ranges.low, ranges.high, ranges.key, ranges.base
        bound(fold_ranges, self.operations)(*where, tuple(values), tuple(self.fields), self.n)

    def fold_through_tree(
        self,
        ranges: Ranges,
        values: list[np.ndarray],
        extent: Extent,
        number: np.ndarray,
        key: np.ndarray,
        levels: int,
    ) -> None:
        """The same through a tree of this height; `key` of each event is a place in `number`, the keys that occur."""
        sizes = [-(-extent.slices // 2**level) for level in range(levels + 1)]
        offset = np.concatenate([[0], np.cumsum(sizes)])
        cells = int(offset[-1]) * len(number)
        nodes = tuple(self.empty(i, cells) for i in range(len(self.fields)))
        n = np.zeros(cells, np.int64)
        where = ranges.upto, ranges.low - extent.first, ranges.high - extent.first, key, len(number)
        bound(cover_ranges, self.operations)(*where, offset[:-1], tuple(values), nodes, n)
        bound(push_down, self.operations)(offset[:-1], extent.slices, len(number), nodes, n)
        into = (ranges.base[extent.first : extent.last + 1, None] + number).ravel()
        self.join(into, [node[: len(into)] for node in nodes], n[: len(into)])

    def at(self, rows: np.ndarray, starts: np.ndarray, slots: np.ndarray, keys: int) -> Merged:
        """The carry-over of slices `rows`, slice by slice."""
        if keys == self.stride:
            cells = cells_of(slots[rows], keys)
        else:
            cells = (slots[rows, None] * self.stride + np.arange(keys)).ravel()
        return [field[cells] for field in self.fields], self.n[cells]


class Differences:
    """The carry-over as the difference of what has entered and what has left; `carry` is from before the first slice.

    To find it need not be added up from the first slice on: where many slices were, the sum is marked in between, and
    a mark holds until an event crosses it.

        slices      |   |   |   |   |   |   |   |   |
        marks       carry           ^               ^       the carry-over from before the slice
    """

    def __init__(self, store: Numbers) -> None:
        parts = [Numbers(store.spec, store.columns, np.dtype(np.int64), store.dtypes) for _ in range(3)]
        self.entered, self.left, self.carry = parts
        self._given = store.operations
        self.carry.repack(np.empty(0, np.int64), 1, 1, slice(0, 0))
        self._marked = np.empty(0)
        self._marks: list[np.ndarray] = []
        self._latest: tuple[np.ndarray, Merged] | None = None

    @property
    def stores(self) -> list[Numbers]:
        return [self.entered, self.left]

    def targets(self, placed: Placed) -> list[tuple[Any, Any]]:
        """What events are folded into, and where."""
        if not placed.crossings:
            return []
        if is_own(self.entered.spec):
            # A function of the user's that fails is undone store by store.
            return [(self.entered, placed.ends.entered), (self.left, placed.ends.left)]
        return [(self, placed.ends)]

    def fold(self, segments: Ends, inputs: list[np.ndarray], time: tuple[np.ndarray, ...]) -> None:
        """Take in events where they first go on and where they end: run by run, or each in one loop that lifts it once."""
        entered, left = self.entered, self.left
        if isinstance(segments.entered, Runs) or isinstance(segments.left, Runs):
            entered.fold(segments.entered, inputs, time)
            left.fold(segments.left, inputs, time)
            return
        # A count looks at no value.
        read = tuple(inputs) if entered.fields else ()
        columns = tuple(entered.fields), entered.n, tuple(left.fields), left.n
        loop = bound(fold_both, self._given)
        loop(segments.entered.cell, segments.left.cell, read, *columns)

    def saved_for(self, segments: Ends) -> Callable[[], None]:
        """Remember the cells of these segments; what is given puts them back."""
        entered, left = self.entered.saved_for(segments.entered), self.left.saved_for(segments.left)

        def put_back() -> None:
            entered()
            left()

        return put_back

    def at(self, rows: np.ndarray, starts: np.ndarray, slots: np.ndarray, keys: int) -> Merged:
        """The carry-over of slices `rows`, slice by slice; `starts` and `slots` are those of all slices.

        It costs as much as there are slices between a mark and each of `rows`, times `keys`.
        """
        if self._latest is None or self._latest[0] is not rows:
            self._latest = rows, self._levels(rows, starts, slots, keys)
        return self._latest[1]

    def _levels(self, rows: np.ndarray, starts: np.ndarray, slots: np.ndarray, keys: int) -> Merged:
        *fields, n = self._columns(len(rows) * keys)
        begins = np.concatenate([[0], np.searchsorted(starts, self._marked)])
        group = np.searchsorted(begins, rows, side="right") - 1
        order = np.argsort(group, kind="stable")
        # The last stretch first: marks that are made do not move those that are still needed.
        stretches = np.split(order, np.flatnonzero(np.diff(group[order]) > 1) + 1) if len(rows) else []
        for which in reversed(stretches):
            mark = group[which[0]]
            here = slice(begins[mark], rows[which].max() + 1)
            found = self._walk(self._before(mark), starts[here], slots[here], keys)
            cells, into = cells_of(rows[which] - here.start, keys), cells_of(which, keys)
            for column, values in zip((*fields, n), found, strict=True):
                column[into] = values[cells]
        return fields, n

    def behind(self, starts: np.ndarray, slots: np.ndarray, keys: int) -> Callable[[], None]:
        """Find what goes on behind these slices, which come first; what is given makes it the carry."""
        mark = int(np.searchsorted(self._marked, starts[-1], side="right"))
        begin = np.searchsorted(starts, self._marked[mark - 1]) if mark else 0
        total = self._before(mark)
        self._walk(total, starts[begin:], slots[begin:], keys)

        def carry() -> None:
            *self.carry.fields, self.carry.n = total
            self._keep(self._marked > starts[-1])

        return carry

    def _columns(self, cells: int) -> list[np.ndarray]:
        """Partials of nothing: fields and counts."""
        return [
            *(self.entered.empty(i, cells) for i in range(len(self.entered.fields))),
            np.zeros(cells, np.int64),
        ]

    def _before(self, mark: int) -> list[np.ndarray]:
        """The carry-over from before the slice of a mark, or for mark 0 from before the first slice: fields and count."""
        if mark == 0:
            return [column.copy() for column in (*self.carry.fields, self.carry.n)]
        return [column[mark - 1].copy() for column in self._marks]

    def _walk(
        self, total: list[np.ndarray], starts: np.ndarray, slots: np.ndarray, keys: int
    ) -> list[np.ndarray]:
        """The carry-over of each of these slices; `total` is that from before them, and then that behind them.

        Marks are made on the way, in the place of those that were there.
        """
        stride = self.entered.stride
        every = max(FEWEST_SLICES, MARK_CELLS // max(keys, 1))
        marked = starts[every::every]
        levels, marks = self._columns(len(slots) * keys), self._columns(len(marked) * stride)
        columns: list[Any] = []
        for *fields, n in (self._of(self.entered), self._of(self.left), total, levels, marks):
            columns += [tuple(fields), n]
        bound(add_up, self._given)(slots, stride, keys, every, *columns)
        if len(marked):
            self._keep((self._marked <= starts[0]) | (self._marked > starts[-1]))
            at = np.searchsorted(self._marked, marked)
            self._marked = np.insert(self._marked.astype(marked.dtype), at, marked)
            self._marks = [
                np.insert(old.reshape(-1, stride), at, new.reshape(-1, stride), axis=0)
                for old, new in zip(self._marks or self._columns(0), marks, strict=True)
            ]
        return levels

    @staticmethod
    def _of(store: Numbers) -> list[np.ndarray]:
        return [*store.fields, store.n]

    def _keep(self, which: np.ndarray) -> None:
        """Of the marks, keep these."""
        if not which.all():
            self._marked, self._marks = self._marked[which], [column[which] for column in self._marks]

    def forget_crossed(self, low: Tick, starts: np.ndarray, lasts: np.ndarray) -> None:
        """Forget marks that events cross, or perhaps others; none of them begins before `low`."""
        self._latest = None
        if not len(self._marked) or low >= self._marked[-1]:
            return
        if len(starts) > FEW_EVENTS:
            self._keep(self._marked <= low)
            return
        first, last = (np.searchsorted(self._marked, instants, side="right") for instants in (starts, lasts))
        room = len(self._marked) + 1
        over = np.cumsum(np.bincount(first, minlength=room) - np.bincount(last, minlength=room))
        self._keep(over[:-1] == 0)

    def forget(self) -> None:
        """Forget all marks."""
        self._marked, self._marks, self._latest = self._marked[:0], [], None

    def repack(self, keys: np.ndarray | slice, stride: int) -> None:
        """Keys get other numbers."""
        if stride != self.carry.stride or not isinstance(keys, slice):
            self.forget()
        self.carry.repack(np.zeros(1, np.int64), 1, stride, keys)

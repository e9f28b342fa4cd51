"""What goes on at the start of each slice: the partials of the events that cross it.

    slices            |  0  |  1  |  2  |  3  |
    event                |-----------|
    Balance  entered           x                    where it first goes on ...
             left                    x              ... and where it ends
    Crossed                    x     x              at each start that it crosses

A window is what begins in its slices, and what goes on at its start; both together hold each of its events once
(in the paper's terms, section 3.2.2, the two parts of a slice; here the part that goes on is kept at its other end).

Where partials can be taken out again exactly, an event is noted twice, whatever its length: what goes on at the
start of a slice is all that has entered up to it, less all that has left before it. All others are noted at
each start, through a tree where that is cheaper (see `planner.spanning`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from windrow.aggregates.base import Scalars
from windrow.engine.arrays import cells_of
from windrow.engine.binding import is_own
from windrow.engine.cache import jit
from windrow.engine.compiler import kernel
from windrow.engine.cutting import Runs
from windrow.engine.partials import Numbers
from windrow.engine.spanning import templates
from windrow.engine.spanning.placing import Ends, Placed, Ranges
from windrow.measure import Tick
from windrow.planner.spanning import height

Merged: TypeAlias = "tuple[list[np.ndarray], np.ndarray]"
# Sums are marked after so many cells of slices and keys, and at least so many slices.
MARK_CELLS, FEWEST_SLICES = 1 << 14, 8
# For so many events each is asked which marks it crosses.
FEW_EVENTS = 2048


def _like(store: Numbers, kind: type[Numbers] = Numbers) -> Any:
    """An empty store for the same partials."""
    return kind(store.spec, store.columns, np.dtype(np.int64), store.dtypes)


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


class Crossed(Numbers):
    """The partials of the events that cross the start of each slice, slice by slice."""

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
        tall = height(extent.crossings, extent.runs, extent.slices, len(number))
        if tall:
            self.note_in_tree(segments, values, extent, number, key, tall)
        else:
            self.note_each(segments, values)

    def note_each(self, ranges: Ranges, values: list[np.ndarray]) -> None:
        """Fold each event into all slices whose starts it crosses."""
        where = ranges.upto, ranges.low, ranges.high, ranges.key, ranges.base
        self._range_loop("fold_ranges")(*where, *values, *self.fields, self.n)

    def note_in_tree(
        self,
        ranges: Ranges,
        values: list[np.ndarray],
        extent: Extent,
        number: np.ndarray,
        key: np.ndarray,
        tall: int,
    ) -> None:
        """The same through a tree of this height; `key` of each event is a place in `number`, the keys that occur."""
        sizes = [-(-extent.slices // 2**level) for level in range(tall + 1)]
        offset = np.concatenate([[0], np.cumsum(sizes)])
        cells = int(offset[-1]) * len(number)
        nodes = [self.empty(i, cells) for i in range(len(self.fields))]
        n = np.zeros(cells, np.int64)
        where = ranges.upto, ranges.low - extent.first, ranges.high - extent.first, key, len(number)
        self._range_loop("cover_ranges")(*where, offset[:-1], *values, *nodes, n)
        self._range_loop("push_down")(offset[:-1], extent.slices, len(number), *nodes, n)
        into = (ranges.base[extent.first : extent.last + 1, None] + number).ravel()
        self.join(into, [node[: len(into)] for node in nodes], n[: len(into)])

    def _range_loop(self, name: str) -> Any:
        if name not in self._loops:
            spec = self.spec
            assert isinstance(spec, Scalars)
            source = templates.ranges(self.columns, len(spec.fields), spec.timed, spec.bare)
            used = {"combine": spec.combine} | ({} if name == "push_down" else {"lift": spec.lift})
            self._loops[name] = kernel(source, name, used, user=spec.own)
        return self._loops[name]


class Noted:
    """What goes on, noted at each start."""

    def __init__(self, store: Numbers) -> None:
        self.crossed: Crossed = _like(store, Crossed)

    @property
    def stores(self) -> list[Numbers]:
        return [self.crossed]

    def targets(self, placed: Placed) -> list[tuple[Numbers, Any]]:
        """What events are folded into, and where."""
        return [(self.crossed, placed.crossed)] if placed.crossings else []

    def at(self, rows: np.ndarray, starts: np.ndarray, slots: np.ndarray, keys: int) -> Merged:
        """What goes on at the start of slices `rows`, slice by slice."""
        crossed, stride = self.crossed, self.crossed.stride
        if keys == stride:
            cells = cells_of(slots[rows], keys)
        else:
            cells = (slots[rows, None] * stride + np.arange(keys)).ravel()
        return [field[cells] for field in crossed.fields], crossed.n[cells]


class Balance:
    """What goes on, as the difference of what has entered and what has left; `carry` is for slices gone by.

    To find it need not be added up from the first slice on: where many slices were, the sum is marked in between, and
    a mark holds until an event crosses it.

        slices      |   |   |   |   |   |   |   |   |
        marks       carry           ^               ^       what goes on from before the slice
    """

    def __init__(self, store: Numbers) -> None:
        self.entered: Numbers = _like(store)
        self.left: Numbers = _like(store)
        self.carry: Numbers = _like(store)
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
        entered, left, spec = self.entered, self.left, self.entered.spec
        if isinstance(segments.entered, Runs) or isinstance(segments.left, Runs):
            entered.fold(segments.entered, inputs, time)
            left.fold(segments.left, inputs, time)
            return
        assert isinstance(spec, Scalars)
        # A count looks at no value.
        read = inputs if spec.fields else []
        source = templates.both(len(read), len(spec.fields), spec.bare)
        used = {"combine": spec.combine} | ({"lift": spec.lift} if spec.fields else {})
        loop = kernel(source, "fold_both", used)
        cells = segments.entered.cell, segments.left.cell
        loop(*cells, *read, *entered.fields, entered.n, *left.fields, left.n)

    def saved_for(self, segments: Ends) -> Callable[[], None]:
        """Remember the cells of these segments; what is given puts them back."""
        entered, left = self.entered.saved_for(segments.entered), self.left.saved_for(segments.left)

        def put_back() -> None:
            entered()
            left()

        return put_back

    def at(self, rows: np.ndarray, starts: np.ndarray, slots: np.ndarray, keys: int) -> Merged:
        """What goes on at the start of slices `rows`, slice by slice; `starts` and `slots` are those of all slices.

        It costs as much as there are slices between a mark and each of `rows`, times `keys`.
        """
        if self._latest is None or self._latest[0] is not rows:
            self._latest = rows, self._levels(rows, starts, slots, keys)
        return self._latest[1]

    def _levels(self, rows: np.ndarray, starts: np.ndarray, slots: np.ndarray, keys: int) -> Merged:
        fields = [self.entered.empty(i, len(rows) * keys) for i in range(len(self.entered.fields))]
        n = np.zeros(len(rows) * keys, np.int64)
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

        def carry_over() -> None:
            *self.carry.fields, self.carry.n = total
            self._keep(self._marked > starts[-1])

        return carry_over

    def _before(self, mark: int) -> list[np.ndarray]:
        """What goes on from before the slice of a mark, or for mark 0 from before the first slice: fields and count."""
        if mark == 0:
            return [column.copy() for column in (*self.carry.fields, self.carry.n)]
        return [column[mark - 1].copy() for column in self._marks]

    def _walk(
        self, total: list[np.ndarray], starts: np.ndarray, slots: np.ndarray, keys: int
    ) -> list[np.ndarray]:
        """What goes on at the start of each of these slices; `total` is what goes on before, and then behind them.

        Marks are made on the way, in the place of those that were there.
        """
        entered, left, spec = self.entered, self.left, self.entered.spec
        assert isinstance(spec, Scalars)
        every = max(FEWEST_SLICES, MARK_CELLS // max(keys, 1))
        marked = starts[every::every]

        def columns(rows: int, width: int) -> list[np.ndarray]:
            fields = [entered.empty(i, rows * width) for i in range(len(entered.fields))]
            return [*fields, np.zeros(rows * width, np.int64)]

        levels, marks = columns(len(slots), keys), columns(len(marked), entered.stride)
        used = {"combine": spec.combine, "invert": spec.invert}
        loop = kernel(templates.balance(len(entered.fields), spec.bare), "go_on", used, user=spec.own)
        stores = (*entered.fields, entered.n, *left.fields, left.n)
        loop(slots, entered.stride, keys, every, *stores, *total, *levels, *marks)
        if len(marked):
            self._keep((self._marked <= starts[0]) | (self._marked > starts[-1]))
            at = np.searchsorted(self._marked, marked)
            self._marked = np.insert(self._marked.astype(marked.dtype), at, marked)
            old = self._marks or columns(0, entered.stride)
            rows = (column.reshape(-1, entered.stride) for column in (*old, *marks))
            both = list(rows)
            self._marks = [
                np.insert(o, at, new, axis=0)
                for o, new in zip(both[: len(old)], both[len(old) :], strict=True)
            ]
        return levels

    def _keep(self, which: np.ndarray) -> None:
        """Of the marks, keep these."""
        if not which.all():
            self._marked, self._marks = self._marked[which], [column[which] for column in self._marks]

    def crossed(self, low: Tick, starts: np.ndarray, lasts: np.ndarray) -> None:
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

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
from windrow.planner.spanning import height

Merged: TypeAlias = "tuple[list[np.ndarray], np.ndarray]"


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

    def at(self, rows: np.ndarray, slots: np.ndarray, keys: int) -> Merged:
        """What goes on at the start of slices `rows`, slice by slice."""
        crossed, stride = self.crossed, self.crossed.stride
        if keys == stride:
            cells = cells_of(slots[rows], keys)
        else:
            cells = (slots[rows, None] * stride + np.arange(keys)).ravel()
        return [field[cells] for field in crossed.fields], crossed.n[cells]

    def behind(self, slots: np.ndarray, keys: int) -> Callable[[], None]:
        """See `Balance.behind`: here nothing is carried over."""
        return self.forget

    def repack(self, keys: np.ndarray | slice, stride: int) -> None:
        """Keys get other numbers."""

    def forget(self) -> None:
        """Slices have changed."""

    def going_on(self, keys: int) -> np.ndarray:
        """Whether an event of each key goes on at the first slice, from before."""
        return np.zeros(keys, bool)


class Balance:
    """What goes on, as the difference of what has entered and what has left; `carry` is for slices gone by."""

    def __init__(self, store: Numbers) -> None:
        self.entered: Numbers = _like(store)
        self.left: Numbers = _like(store)
        self.carry: Numbers = _like(store)
        self.carry.repack(np.empty(0, np.int64), 1, 1, slice(0, 0))
        self._known: Merged | None = None

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

    def at(self, rows: np.ndarray, slots: np.ndarray, keys: int) -> Merged:
        """What goes on at the start of slices `rows`, slice by slice; `slots` are those of all slices asked for."""
        known = self._known
        if known is None or len(known[1]) < len(slots) * keys:
            try:
                known = self._known = self._running(slots, keys, *self._carried())
            except (
                Exception
            ):  # a user's function may raise anything, and here for slices that are not asked for
                known = self._running(slots[: int(rows.max(initial=-1)) + 1], keys, *self._carried())
        fields, n = known
        cells = cells_of(rows, keys)
        return [field[cells] for field in fields], n[cells]

    def behind(self, slots: np.ndarray, keys: int) -> Callable[[], None]:
        """Find what goes on behind the slices in these slots, which come first; what is given makes it the carry."""
        fields, n = self._carried()
        self._running(slots, keys, fields, n)

        def carry_over() -> None:
            self.carry.fields, self.carry.n = fields, n

        return carry_over

    def _carried(self) -> Merged:
        return [field.copy() for field in self.carry.fields], self.carry.n.copy()

    def _running(self, slots: np.ndarray, keys: int, total: list[np.ndarray], n: np.ndarray) -> Merged:
        """What goes on at the start of each slice; `total` is what goes on before, and then behind them."""
        entered, left, spec = self.entered, self.left, self.entered.spec
        assert isinstance(spec, Scalars)
        fields = [entered.empty(i, len(slots) * keys) for i in range(len(entered.fields))]
        counts = np.empty(len(slots) * keys, np.int64)
        if len(slots):
            loop = kernel(
                templates.balance(len(fields), spec.bare),
                "go_on",
                {"combine": spec.combine, "invert": spec.invert},
                user=spec.own,
            )
            columns = (*entered.fields, entered.n, *left.fields, left.n, *total, n, *fields, counts)
            loop(len(slots), slots, entered.stride, keys, *columns)
        return fields, counts

    def forget(self) -> None:
        """Slices have changed."""
        self._known = None

    def repack(self, keys: np.ndarray | slice, stride: int) -> None:
        """Keys get other numbers."""
        self.carry.repack(np.zeros(1, np.int64), 1, stride, keys)

    def clear(self) -> None:
        """Nothing goes on."""
        for store in (self.entered, self.left, self.carry):
            for i, field in enumerate(store.fields):
                field[:] = store.identities[i]
            store.n[:] = 0

    def going_on(self, keys: int) -> np.ndarray:
        """Whether an event of each key goes on at the first slice, from before."""
        return self.carry.n[:keys] > 0

"""Slices with room for events that end in them and for events that go on, and what moves them.

    time        0     5     10    15    20
    slices      |     |     |     |     |          cut as Pairs does: where windows begin and where they end
    ends here   |  8  |  19 |  15 |  18 |          aggregates that count an event twice if they see it twice
    goes on     |  25 |  18 |  12 |  14 |
    any         |  20 |  63 |  19 |  33 |          aggregates that do not mind: max, min, first ...

So the aggregates of a query fall into two *layers*, each with partials of its own: a layer of cumulative functions
has two parts in each slice, one of selective functions has one. A slice may have several levels (`height`). The
cells of a layer are numbered

    ((slot * height + level) * parts + part) * stride + key

Slices lie on a `Wheel`: the circular array of the paper's section 6.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from benchmarks.techniques.aggregate_buckets import first_open
from benchmarks.techniques.fragments import BLOCK, Fragments, list_spans, wipe
from benchmarks.techniques.pairs import pairs_of
from benchmarks.techniques.partials import Cells, Partials, events
from benchmarks.techniques.rows import Rows
from benchmarks.techniques.spanning.base import Places, Spanning, SpanTechnique, extent
from benchmarks.techniques.spanning.places import NO_FLOOR, slices_over
from benchmarks.techniques.wheel import Wheel
from benchmarks.techniques.wheeled import NO_KEYS
from windrow.measure import Tick
from windrow.stores.operations import combine, load, put


def add(cells, cell, partial):
    """Combine a partial into a cell; how many combines that took."""
    if events(cells, cell) == 0:
        put(cells, cell, partial)
        return 0
    put(cells, cell, combine(load(cells, cell), partial))
    return 1


def join(cells, cell, found, total):
    """Combine a cell to a total, of which there is none unless `found`; and how many combines that took."""
    if events(cells, cell) == 0:
        return found, total, 0
    if found:
        return True, combine(total, load(cells, cell)), 1
    return True, load(cells, cell), 0


@dataclass
class Layer:
    """The cells of some aggregates; `parts` is 2 where it matters whether an event ends in a slice."""

    partials: Partials
    parts: int
    height: int
    cells: Cells

    @property
    def per_slot(self) -> int:
        """How many cells a slot has for each key."""
        return self.height * self.parts

    @property
    def held(self) -> np.ndarray:
        """How many events each cell holds."""
        return self.cells[self.partials.fields]

    def move(self, origin: np.ndarray, slots: int, old: int, new: int) -> None:
        """Slot s becomes what slot origin[s] was, or is empty (-1); a row of cells grows from old to new keys."""
        kept = np.flatnonzero(origin >= 0)
        cells = self.partials.cells(len(origin) * self.per_slot * new)
        for column, before in zip(cells, self.cells, strict=True):
            tail = before.shape[1:]
            moved = before.reshape(slots, self.per_slot, old, *tail)[origin[kept]]
            column.reshape(len(origin), self.per_slot, new, *tail)[kept, :, :old] = moved
        self.cells = cells


class Sliced(Spanning):
    """A method with slices. How events go into them and windows come out of them is for each technique to say."""

    # The loops that insert events and release windows.
    inserting: ClassVar[Callable[..., int]]
    releasing: ClassVar[Callable[..., int]]
    # How many levels a slice has, and the same for loops that know of levels.
    height = 1
    levels: tuple[int, ...] = ()

    def prepare(self) -> None:
        answers = self.binding.answers
        twice = {n: a for n, a in answers.items() if not self.query.aggregates[n].algebra.idempotent}
        once = {n: a for n, a in answers.items() if n not in twice}
        self.layers = []
        for some, parts in ((twice, 2), (once, 1)):
            if some:
                partials = Partials(self.binding, some)
                self.layers.append(Layer(partials, parts, self.height, partials.cells(0)))
        self.cut: Fragments = pairs_of(self.windows)
        self.wheel = Wheel(len(self.windows.every))
        self._floor = np.full(len(self.windows.every), NO_FLOOR)

    @property
    def groups(self) -> tuple[Partials, ...]:
        return tuple(layer.partials for layer in self.layers)

    def _insert_into(
        self,
        layer: Layer,
        inputs: tuple[np.ndarray, ...],
        slices: tuple[np.ndarray, np.ndarray],
        keys: np.ndarray,
        ring: tuple[int, int],
    ) -> int:
        """Insert events into their slices, first to last, of the ring (base, mask); how many combines that took."""
        run = layer.partials.loop(self.inserting)
        return int(run(inputs, *slices, keys, *ring, *self.levels, layer.parts, self.stride, layer.cells))

    def _release_from(
        self,
        layer: Layer,
        windows: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
        keys: int,
        out: Cells,
    ) -> int:
        """The partials of windows and keys to `out`; how many combines that took.

        windows: placement, first and last live slice (it is behind the last one), and the last slice of all.
        """
        run, wheel = layer.partials.loop(self.releasing), self.wheel
        shape = (*self.levels, layer.parts, self.stride, keys)
        return int(run(*windows, wheel.base, wheel.mask, wheel.top, *shape, layer.cells, out))

    # -- events in -------------------------------------------------------------------------------

    def insert_spans(
        self,
        starts: np.ndarray,
        lasts: np.ndarray,
        keys: np.ndarray | None,
        inputs: tuple[tuple[np.ndarray, ...], ...],
    ) -> None:
        cut = self.cut
        places: Places = []
        for i in range(len(cut.every)):
            found = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
            slices_over(starts, lasts, cut.every[i], cut.offset[i], cut.rest[i], self._floor[i], *found)
            places.append(found)
        self.make_room(*extent(places))
        numbers = NO_KEYS if keys is None else keys
        for i, found in enumerate(places):
            ring = self.wheel.base[i], self.wheel.mask[i]
            for layer, read in zip(self.layers, inputs, strict=True):
                self.combines += int(self._insert_into(layer, read, found, numbers, ring))

    def make_room(self, low: np.ndarray, high: np.ndarray) -> None:
        """Have room for slices low .. high of each placement, and for all keys."""
        stride = self.stride
        if self.keys.count > stride:
            stride = max(self.keys.count, stride + stride // 2)
        slots, most = self.wheel.slots, sum(layer.per_slot for layer in self.layers)
        origin = self.wheel.fit(low, high, stride * most, self.settings.max_slices)
        if origin is None and stride == self.stride:
            return
        origin = np.arange(slots) if origin is None else origin
        for layer in self.layers:
            layer.move(origin, slots, self.stride, stride)
        self.stride = stride

    # -- windows out -----------------------------------------------------------------------------

    def ended(self, after: Tick, until: Tick, watermark: Tick) -> Iterator[Rows]:
        w, cut, wheel = self.windows, self.cut, self.wheel
        tick = w.every.dtype.type
        room = 1024
        while True:
            out = tuple(np.empty(room, np.int64) for _ in range(4))
            count = list_spans(
                w.every, w.offset, w.whole, w.rest, cut.per, cut.span, tick(after), tick(until),
                wheel.bottom, wheel.top, out,
            )  # fmt: skip
            if count >= 0:
                break
            room *= 4
        size = max(1, BLOCK // max(1, self.keys.count))
        for begin in range(0, count, size):
            yield self._rows(*(column[begin : min(count, begin + size)] for column in out))

    def _rows(self, placement: np.ndarray, number: np.ndarray, first: np.ndarray, last: np.ndarray) -> Rows:
        w, keys = self.windows, max(1, self.keys.count)
        final = number * self.cut.per[placement] + self.cut.span[placement] - 1
        found = []
        for layer in self.layers:
            out = layer.partials.cells(len(placement) * keys)
            self.combines += int(self._release_from(layer, (placement, first, last, final), keys, out))
            found.append(out)
        there = np.flatnonzero(found[0][self.layers[0].partials.fields])
        at, k = placement[there // keys], number[there // keys]
        start = w.offset[at] + k * w.every[at]
        end = w.offset[at] + (k + w.whole[at]) * w.every[at] + w.rest[at]
        cells = tuple(column[there] for out in found for column in out)
        return Rows(w.owner[at], start, end, there % keys, cells)

    def let_go(self, horizon: Tick) -> None:
        wheel = self.wheel
        self._floor = first_open(self.windows, horizon) * self.cut.per
        floor = np.clip(self._floor, wheel.bottom, np.maximum(wheel.top, wheel.bottom))
        for layer in self.layers:
            wipe(wheel.bottom, floor, wheel.base, wheel.mask, layer.per_slot * self.stride, layer.held)
        wheel.bottom = floor

    def widen(self) -> None:
        for layer in self.layers:
            layer.cells = layer.partials.split_counts(layer.cells)

    def recode(self, column: str, moved: np.ndarray) -> None:
        for layer in self.layers:
            layer.partials.recode(layer.cells, column, moved)

    def live(self) -> tuple[int, int]:
        return sum(int(np.count_nonzero(layer.held)) for layer in self.layers), 0

    # -- a look inside ---------------------------------------------------------------------------

    def table(self) -> pa.Table:
        """What the slices hold: a row for each slice, level and key, a column for each part of an aggregate."""
        rings = [np.arange(low, high) for low, high in zip(self.wheel.bottom, self.wheel.top, strict=True)]
        placement = np.repeat(np.arange(len(rings)), [len(ring) for ring in rings])
        number = np.concatenate(rings)
        keys = max(1, self.keys.count)
        shape = (len(number), self.height, keys)
        which, level, key = (axis.ravel() for axis in np.indices(shape))
        slot = (self.wheel.base[placement] + (number & self.wheel.mask[placement]))[which]
        start, end = (edge[which] for edge in self._edges(placement, number))
        columns = dict(zip(self.query.key, (c.take(pa.array(key)) for c in self.keys.columns), strict=True))
        names = np.array(self.windows.names)[self.windows.owner[placement]]
        columns |= {"window": pa.array(names[which], pa.string())}
        columns |= {"start": self.measure.array(start), "end": self.measure.array(end)}
        columns |= {"level": pa.array(level + 1)}
        for layer in self.layers:
            for part in range(layer.parts):
                cell = ((slot * self.height + level) * layer.parts + part) * self.stride + key
                cells = layer.partials.cells(len(cell))
                full = layer.held[cell] > 0
                for fresh, column in zip(cells, layer.cells, strict=True):
                    fresh[full] = column[cell[full]]
                suffix = ("", " ends here", " goes on")[part + layer.parts - 1]
                for name, answer in self.binding.answers.items():
                    if answer.key in layer.partials.parts:
                        columns[name + suffix] = layer.partials.lowered(name, answer, cells)
        return pa.table(columns)

    def _edges(self, placement: np.ndarray, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where slices of these numbers begin and end."""
        cut = self.cut
        every, offset, rest = (column[placement] for column in (cut.every, cut.offset, cut.rest))
        paired = rest > 0
        k = np.where(paired, number >> 1, number)
        second = paired & (number & 1 == 1)
        start = offset + k * every + np.where(second, rest, 0)
        end = np.where(paired & ~second, offset + k * every + rest, offset + (k + 1) * every)
        return start, end


class SlicingTechnique(SpanTechnique):
    """A technique whose slices can be looked into."""

    @property
    def slices(self) -> pa.Table:
        """What the slices hold now: a row for each slice, level and key; nothing before the first batch."""
        methods: Any = self._operator.engines
        return methods[0].table() if methods else pa.table({})

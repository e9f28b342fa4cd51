"""Slices of each query's own: time cut into fragments, and windows folded from them when they end.

Panes and pairs differ in where they cut, and in nothing else. Per query, fragments are numbered:

    rest = 0    number k is [offset + k*every, offset + (k+1)*every)
    rest > 0    number 2k is the first `rest` ticks of that, number 2k+1 what follows

Window w holds the fragments w*per .. w*per + span - 1. Queries share nothing: an event is combined once for each.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.techniques.aggregate_buckets import first_open
from benchmarks.techniques.partials import events
from benchmarks.techniques.rows import Rows
from benchmarks.techniques.wheel import number_at
from benchmarks.techniques.wheeled import NO_KEYS, Wheeled, fold_run
from windrow.compiling.tiers import jit
from windrow.engine.aligned.cutting import run_end
from windrow.engine.windows import first_ending_after
from windrow.measure import Tick
from windrow.stores.operations import combine, load, put

BLOCK = 1 << 20


@dataclass
class Fragments:
    """See the module; an entry for each placement."""

    every: np.ndarray
    offset: np.ndarray
    rest: np.ndarray
    per: np.ndarray
    span: np.ndarray


@jit
def fragment_at(t, every, offset, rest):
    """The number of the fragment that holds `t`, and where it ends."""
    k = number_at(t, every, offset)
    if rest > 0:
        split = offset + k * every + rest
        if t < split:
            return 2 * k, split
        return 2 * k + 1, offset + (k + 1) * every
    return k, offset + (k + 1) * every


def fold_into_fragments(inputs, times, keys, every, offset, rest, base, mask, stride, cells):
    """Combine each event into its fragment of each query; how many combines that took. Times ascend."""
    combines = 0
    count = times.shape[0]
    for i in range(every.shape[0]):
        e = 0
        while e < count:
            number, until = fragment_at(times[e], every[i], offset[i], rest[i])
            stop = run_end(times, e, until)
            slot = base[i] + (number & mask[i])
            combines += fold_run(inputs, keys, e, stop, slot, stride, cells)
            e = stop
    return combines


@jit
def list_spans(every, offset, whole, rest, per, span, after, until, bottom, top, out):
    """Windows that end in (after, until] and hold live fragments; how many, or -1 if there is no room.

    out: placement, number of the window, its first live fragment, the one behind its last.
    """
    placement, number, first, last = out
    count = 0
    for i in range(every.shape[0]):
        if bottom[i] >= top[i]:
            continue
        k = first_ending_after(after, every[i], offset[i], whole[i], rest[i])
        # The first window that holds the fragment at the bottom.
        k = max(k, -((span[i] - 1 - bottom[i]) // per[i]))
        while k * per[i] < top[i] and offset[i] + (k + whole[i]) * every[i] + rest[i] <= until:
            if count == placement.shape[0]:
                return -1
            placement[count] = i
            number[count] = k
            first[count] = max(k * per[i], bottom[i])
            last[count] = min(k * per[i] + span[i], top[i])
            count += 1
            k += 1
    return count


def fold_fragments(placement, first, last, base, mask, stride, keys, cells, out):
    """The partial of each window and key to `out`, which begins empty; how many combines that took."""
    combines = 0
    for w in range(placement.shape[0]):
        i = placement[w]
        for key in range(keys):
            found = False
            total = load(cells, key)
            for f in range(first[w], last[w]):
                cell = (base[i] + (f & mask[i])) * stride + key
                if events(cells, cell) > 0:
                    if found:
                        total = combine(total, load(cells, cell))
                        combines += 1
                    else:
                        total = load(cells, cell)
                        found = True
            if found:
                put(out, w * keys + key, total)
    return combines


@jit
def wipe(bottom, floor, base, mask, stride, held):
    """Empty the fragments bottom .. floor-1."""
    for i in range(bottom.shape[0]):
        for f in range(bottom[i], floor[i]):
            slot = base[i] + (f & mask[i])
            held[slot * stride : (slot + 1) * stride] = 0


class Fragmented(Wheeled):
    """A method whose fragments are those of `fragments`."""

    in_order = True

    @abstractmethod
    def fragments(self) -> Fragments:
        """Where each query is cut."""

    def prepare(self) -> None:
        self._cut = self.fragments()
        self.start_wheel(len(self.windows.every))

    def insert(
        self, times: np.ndarray, keys: np.ndarray | None, inputs: tuple[np.ndarray, ...], ordered: bool
    ) -> None:
        cut, wheel = self._cut, self.wheel
        twice = 1 + (cut.rest > 0)
        low, high = (
            np.floor_divide(t - cut.offset, cut.every).astype(np.int64) for t in (times[0], times[-1])
        )
        if self.measure.floating:
            low, high = low - 1, high + 1
        low, high = low * twice, high * twice + twice - 1
        self.make_room(low, high)
        run = self.partials.loop(fold_into_fragments)
        self.combines += int(
            run(
                inputs,
                times,
                NO_KEYS if keys is None else keys,
                cut.every,
                cut.offset,
                cut.rest,
                wheel.base,
                wheel.mask,
                self.stride,
                self.cells,
            )
        )

    def ended(self, after: Tick, until: Tick, watermark: Tick) -> Iterator[Rows]:
        w, cut, wheel = self.windows, self._cut, self.wheel
        points = (w.every.dtype.type(after), w.every.dtype.type(until))
        room = 1024
        while True:
            out = tuple(np.empty(room, np.int64) for _ in range(4))
            count = list_spans(
                w.every,
                w.offset,
                w.whole,
                w.rest,
                cut.per,
                cut.span,
                *points,
                wheel.bottom,
                wheel.top,
                out,
            )
            if count >= 0:
                break
            room *= 4
        keys = max(1, self.keys.count)
        size = max(1, BLOCK // keys)
        for begin in range(0, count, size):
            yield self._rows(tuple(column[begin : min(count, begin + size)] for column in out), keys)

    def _rows(self, spans: tuple[np.ndarray, ...], keys: int) -> Rows:
        w, wheel = self.windows, self.wheel
        placement, number, first, last = spans
        out = self.partials.cells(len(placement) * keys)
        run = self.partials.loop(fold_fragments)
        self.combines += int(
            run(placement, first, last, wheel.base, wheel.mask, self.stride, keys, self.cells, out)
        )
        there = np.flatnonzero(out[self.partials.fields])
        at, k = placement[there // keys], number[there // keys]
        start = w.offset[at] + k * w.every[at]
        end = w.offset[at] + (k + w.whole[at]) * w.every[at] + w.rest[at]
        return Rows(w.owner[at], start, end, there % keys, tuple(column[there] for column in out))

    def let_go(self, horizon: Tick) -> None:
        w, wheel = self.windows, self.wheel
        floor = first_open(w, horizon) * self._cut.per
        floor = np.clip(floor, wheel.bottom, np.maximum(wheel.top, wheel.bottom))
        wipe(wheel.bottom, floor, wheel.base, wheel.mask, self.stride, self.held)
        wheel.bottom = floor

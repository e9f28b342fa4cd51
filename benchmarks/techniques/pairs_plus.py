"""Pairs+: the edges of all queries together cut time into fragments that all of them share, kept in a FlatFAT.

query A    range 5, slide 3      |---|-|---|-|---|-|
query B    range 4, slide 4      |----|----|----|
fragments                        |---|||-|-|||...        cut wherever a window of either begins or ends

order       in order only
windows     periodic windows of time
aggregates  those with a partial of fixed size
time        1 combine per event, log2(n) per fragment; at most 2 log2(n) per window, n fragments being alive
space       2 n partials
paper       fragments: Krishnamurthy, Wu and Franklin, On-the-fly sharing for streamed aggregation, SIGMOD
            2006; with an eager store: Carbone et al., Cutty, CIKM 2016, section 7.1
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.techniques.base import CUT_BEFOREHAND, Method, Technique
from benchmarks.techniques.due import Windows, windows_due
from benchmarks.techniques.flat_fat import between
from benchmarks.techniques.partials import events
from benchmarks.techniques.rows import Rows
from benchmarks.techniques.slice_tree import SliceTree, append, rows_of
from benchmarks.techniques.wheeled import NO_KEYS
from windrow.engine.aligned.cutting import run_end
from windrow.engine.aligned.edges import Edges
from windrow.measure import Tick
from windrow.stores.operations import combine, lift, load, put

BLOCK = 1 << 20


def fold_run(inputs, keys, begin, stop, current):
    """Combine events begin .. stop-1 into the current slice; how many combines that took."""
    combines = 0
    if keys.shape[0] == 0:
        at = begin
        if events(current, 0) == 0:
            total = lift(inputs, begin)
            at += 1
        else:
            total = load(current, 0)
        for x in range(at, stop):
            total = combine(total, lift(inputs, x))
        put(current, 0, total)
        return stop - at
    for x in range(begin, stop):
        k = keys[x]
        if events(current, k) == 0:
            put(current, k, lift(inputs, x))
        else:
            put(current, k, combine(load(current, k), lift(inputs, x)))
            combines += 1
    return combines


def fold_into_slices(
    inputs, times, keys, edges, until, cells, clock, stride, count, capacity, end, current, held
):
    """Fold events into slices that end at edges; `until` is where the current one ends, with its first time.

    Returns the combines, how many leaves there are then, and where the current slice ends.
    """
    combines = 0
    p = 0
    e = 0
    while e < times.shape[0]:
        if times[e] >= until[0]:
            if until[1] == 1:
                clock[end & (capacity - 1)] = until[2]
                combines += append(cells, current, held, stride, count, capacity, end)
                end += 1
            while edges[p + 1] <= times[e]:
                p += 1
            until[0] = edges[p + 1]
            until[1] = 1
            until[2] = times[e]
        stop = run_end(times, e, until[0])
        combines += fold_run(inputs, keys, e, stop, current)
        e = stop
    return combines, end


def close(cells, clock, stride, count, capacity, end, current, held, first):
    """The current slice becomes a leaf; how many combines that took."""
    clock[end & (capacity - 1)] = first
    return append(cells, current, held, stride, count, capacity, end)


def answer(cells, stride, keys, capacity, first, last, out):
    """Windows from the leaves that they hold, for all keys, to `out`; how many combines that took."""
    combines = 0
    for w in range(first.shape[0]):
        for key in range(keys):
            found, total, joins = between(cells, key, stride, capacity, first[w], last[w])
            combines += joins
            if found:
                put(out, w * keys + key, total)
    return combines


class _Shared(Method):
    in_order = True

    def prepare(self) -> None:
        self._tree = SliceTree(self)
        self._edges = Edges(self.windows)
        # Of the current slice: where it ends, whether there is one, and its first time.
        self._until = np.array([self.lowest - 1, 0, 0], self.measure.dtype)

    def insert(
        self, times: np.ndarray, keys: np.ndarray | None, inputs: tuple[np.ndarray, ...], ordered: bool
    ) -> None:
        tree = self._tree
        low, high = times[0].item(), times[-1].item()
        edges = self._edges.enclosing(times, low, high, self.clamp(self.highest))
        tree.make_room(min(len(times), len(edges)) + 1)
        run = self.partials.loop(fold_into_slices)
        numbers = NO_KEYS if keys is None else keys
        shape = (tree.stride, max(1, self.keys.count), tree.capacity, tree.end)
        combines, tree.end = run(
            inputs,
            times,
            numbers,
            edges,
            self._until,
            tree.cells,
            tree.clock,
            *shape,
            tree.current,
            tree.held,
        )
        self.combines += int(combines)

    def ended(self, after: Tick, until: Tick, watermark: Tick) -> Iterator[Rows]:
        tree = self._tree
        if self._until[1] == 1 and self._until[0] <= watermark:
            tree.make_room(1)
            run = self.partials.loop(close)
            shape = (tree.stride, max(1, self.keys.count), tree.capacity, tree.end)
            first = self._until[2]
            self.combines += int(run(tree.cells, tree.clock, *shape, tree.current, tree.held, first))
            tree.end += 1
            self._until[1] = 0
        windows = windows_due(self.windows, tree.queues, after, until)
        size = max(1, BLOCK // max(1, self.keys.count))
        for begin in range(0, len(windows), size):
            yield self._rows(windows.where(slice(begin, begin + size)))

    def _rows(self, windows: Windows) -> Rows:
        tree, keys = self._tree, max(1, self.keys.count)
        out = self.partials.cells(len(windows) * keys)
        run = self.partials.loop(answer)
        self.combines += int(
            run(tree.cells, tree.stride, keys, tree.capacity, windows.first, windows.last, out)
        )
        there = np.flatnonzero(out[self.partials.fields])
        w = there // keys
        return Rows(windows.spec[w], windows.start[w], windows.end[w], there % keys, rows_of(out, there))

    def let_go(self, horizon: Tick) -> None:
        self._tree.queues.evict(self.threshold)

    def widen(self) -> None:
        self._tree.widen()

    def recode(self, column: str, moved: np.ndarray) -> None:
        self._tree.recode(column, moved)

    def live(self) -> tuple[int, int]:
        return self._tree.partials, 0


class PairsPlus(Technique):
    """See the module."""

    method = _Shared
    no_sessions = CUT_BEFOREHAND

"""Aggregate trees: a binary tree of partials over the tuples themselves, one tree per key.

    Reactive Aggregator    a FlatFAT: each event updates the path from its leaf to the root
    base intervals         B-Int: intervals of 2, 4, 8, .. tuples, computed when their last tuple comes

A window is then joined from a few nodes, however many events it holds. A late event is inserted between its
neighbours: all leaves behind it move by one place, and the nodes above them are computed again.

    leaves   a b c e f .      d comes late      a b c d e f
                                                      * * *    moved, with every node above them

                RA                                       B-Int
    order       any; a late event costs about one combine for each leaf that moves
    windows     periodic windows of time, and sessions: their tuples are found by time
    aggregates  those with a partial of fixed size
    time        log2(n) combines per event               1 combine per event, amortised
                at most 2 log2(n) per window             at most 2 log2(n) per window
    space       n tuples as leaves, n - 1 partials above them
    paper       Tangwongsan, Hirzel, Schneider and Wu,   Arasu and Widom, Resource sharing in
                General incremental sliding-window       continuous sliding-window aggregates,
                aggregation, VLDB 2015                   VLDB 2004
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from benchmarks.techniques.base import Method, Technique
from benchmarks.techniques.due import (
    Pieces,
    Queues,
    Windows,
    first_behind,
    pieces,
    pieces_of,
    sessions_due,
    windows_due,
)
from benchmarks.techniques.flat_fat import between, completed, path, rebuilt
from benchmarks.techniques.rows import Rows
from benchmarks.techniques.sessions import Over
from windrow.measure import Tick
from windrow.stores.operations import combine, lift, load, put


def move_behind(cells, clock, at, base, capacity, place, end):
    """Move leaves place .. end-1 by one."""
    mask = capacity - 1
    for p in range(end, place, -1):
        to, of = p & mask, (p - 1) & mask
        clock[base + to] = clock[base + of]
        put(cells, at + capacity + to, load(cells, at + capacity + of))


def climb(cells, at, step, capacity, leaf):
    """Bring nodes above a leaf at the end up to date: `path`, or `completed`."""
    raise NotImplementedError


def insert_leaves(inputs, times, keys, cells, clock, base, mask, front, end):
    """A leaf for each event, and what changes above it; how many combines that took."""
    combines = 0
    for e in range(times.shape[0]):
        k = keys[e] if keys.shape[0] > 0 else 0
        capacity = mask[k] + 1
        at = 2 * base[k]
        place = end[k]
        late = place > front[k] and times[e] < clock[base[k] + ((place - 1) & mask[k])]
        if late:
            place = first_behind(clock, base[k], mask[k], front[k], end[k], times[e])
            move_behind(cells, clock, at, base[k], capacity, place, end[k])
        clock[base[k] + (place & mask[k])] = times[e]
        put(cells, at + capacity + (place & mask[k]), lift(inputs, e))
        end[k] += 1
        if late:
            combines += rebuilt(cells, at, 1, capacity, place, end[k])
        else:
            combines += climb(cells, at, 1, capacity, place)
    return combines


def regrow(cells, clock, base, mask, front, end, new_cells, new_clock, new_base, new_mask):
    """Move the live leaves of all keys to trees of other sizes; how many combines that took."""
    combines = 0
    for k in range(base.shape[0]):
        capacity, wider = mask[k] + 1, new_mask[k] + 1
        at = 2 * new_base[k]
        for p in range(front[k], end[k]):
            new_clock[new_base[k] + (p & new_mask[k])] = clock[base[k] + (p & mask[k])]
            leaf = load(cells, 2 * base[k] + capacity + (p & mask[k]))
            put(new_cells, at + wider + (p & new_mask[k]), leaf)
        if front[k] < end[k]:
            combines += rebuilt(new_cells, at, 1, wider, front[k], end[k])
    return combines


def answer(cells, base, mask, key, window, first, last, out):
    """Windows from the pieces of leaves that they hold, to `out`; how many combines that took."""
    combines = 0
    for p in range(window.shape[0]):
        w = window[p]
        k = key[w]
        _, total, joins = between(cells, 2 * base[k], 1, mask[k] + 1, first[p], last[p])
        if p > 0 and window[p - 1] == w:
            total = combine(load(out, w), total)
            joins += 1
        put(out, w, total)
        combines += joins
    return combines


class _Tree(Method):
    # What an event at the end changes above its leaf.
    climb: ClassVar[Callable[..., Any]]

    def prepare(self) -> None:
        none = np.empty(0, np.int64)
        self._queues = Queues(np.empty(0, self.measure.dtype), none, none, none, none)
        self._cells = self.partials.cells(0)

    def insert(
        self, times: np.ndarray, keys: np.ndarray | None, inputs: tuple[np.ndarray, ...], ordered: bool
    ) -> None:
        self._make_room(len(times), keys)
        q = self._queues
        numbers = np.empty(0, np.int64) if keys is None else keys
        run = self.partials.loop(insert_leaves, climb=type(self).climb)
        self.combines += int(
            run(inputs, times, numbers, self._cells, q.clock, q.base, q.mask, q.front, q.end)
        )

    def _make_room(self, count: int, keys: np.ndarray | None) -> None:
        """Trees that can take all of these events."""
        q = self._queues
        known = len(q.base)
        more = self.keys.count
        incoming = np.array([count]) if keys is None else np.bincount(keys, minlength=more)
        front, end, mask, base = (
            np.append(column, np.full(more - known, empty))
            for column, empty in ((q.front, 0), (q.end, 0), (q.mask, -1), (q.base, 0))
        )
        need = end - front + incoming
        if (need <= mask + 1).all():
            q.front, q.end, q.mask, q.base = front, end, mask, base
            return
        capacity = np.where(need <= mask + 1, mask + 1, 2 ** np.ceil(np.log2(np.maximum(need, 8))))
        capacity = capacity.astype(np.int64)
        new_base = np.concatenate([[0], np.cumsum(capacity)[:-1]])
        total = int(capacity.sum())
        clock, cells = np.zeros(total, self.measure.dtype), self.partials.cells(2 * total)
        self.combines += int(
            self.partials.loop(regrow)(
                self._cells, q.clock, base, mask, front, end, cells, clock, new_base, capacity - 1
            )
        )
        self._queues = Queues(clock, new_base, capacity - 1, front, end)
        self._cells = cells

    def ended(self, after: Tick, until: Tick, watermark: Tick) -> Iterator[Rows]:
        windows = windows_due(self.windows, self._queues, after, until)
        if len(windows):
            yield self._rows(windows, pieces(windows))

    def over(self, window: int, sessions: Over) -> Iterator[Rows]:
        windows = sessions_due(sessions, self._queues)
        yield self._rows(windows, pieces_of(windows, sessions, self._queues))

    def _rows(self, windows: Windows, found: Pieces) -> Rows:
        q = self._queues
        out = self.partials.cells(len(windows))
        run = self.partials.loop(answer)
        self.combines += int(run(self._cells, q.base, q.mask, windows.key, *found, out))
        return Rows(windows.spec, windows.start, windows.end, windows.key, out)

    def let_go(self, horizon: Tick) -> None:
        self._queues.evict(self.needed)

    def widen(self) -> None:
        self._cells = self.partials.split_counts(self._cells)

    def recode(self, column: str, moved: np.ndarray) -> None:
        self.partials.recode(self._cells, column, moved)

    def live(self) -> tuple[int, int]:
        held = self._queues.end - self._queues.front
        return int(np.maximum(held - 1, 0).sum()), int(held.sum())


class _Reactive(_Tree):
    climb = path


class _Intervals(_Tree):
    climb = completed


class ReactiveAggregator(Technique):
    """RA: see the module."""

    method = _Reactive
    no_sessions = ""


class BaseIntervals(Technique):
    """B-Int: see the module."""

    method = _Intervals
    no_sessions = ""

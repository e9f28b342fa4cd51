"""Aggregate buckets: one partial per window, and each event combined into every window that it is in.

    events      o   o     o    o
    buckets    [1 2 3 .. partial    ]
                   [1 2 ..  partial    ]       nothing is shared: an event in 20 windows is combined 20 times
                       [1 ..   partial    ]

This is what Flink and Spark do. When a window ends, its answer is there. A session has one bucket, for its key alone;
the buckets of two sessions are combined into one when a late event joins them.

    order       any: a late event is combined into the windows that are not final, like any other
    windows     periodic windows of time, and sessions
    aggregates  those with a partial of fixed size that do not depend on the order of events
    time        one combine per event and window that holds it, and per pair of sessions that are fused; none when
                a window ends
    space       one partial per open window
    paper       Li, Maier, Tufte, Papadimos and Tucker, Semantics and evaluation techniques for window
                aggregates in data streams, SIGMOD 2005; Traub et al., Scotty, section 3.3
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.techniques.base import Technique
from benchmarks.techniques.flat_fat import join
from benchmarks.techniques.partials import Cells
from benchmarks.techniques.rows import Rows
from benchmarks.techniques.sessions import Over, Placed
from benchmarks.techniques.wheel import Wheel, number_at
from benchmarks.techniques.wheeled import NO_KEYS, Wheeled, fold_run
from windrow.compiling.tiers import jit
from windrow.engine.aligned.cutting import run_end
from windrow.measure import Tick
from windrow.planner.window_set import WindowSet


@jit
def windows_at(t, every, offset, whole, rest):
    """The numbers of the windows that hold `t`, first and last, and the stretch around it where no edge is."""
    k = number_at(t, every, offset)
    since, until = offset + k * every, offset + (k + 1) * every
    if rest > 0:
        split = offset + k * every + rest
        if t < split:
            return k - whole, k, since, split
        since = split
    return k - whole + 1, k, since, until


def fold_into_buckets(
    inputs, times, keys, ordered, every, offset, whole, rest, floor, base, mask, stride, cells
):
    """Combine each event into all windows that hold it and are not final; how many combines that took.

    Events that follow each other between two edges of a placement are in the same windows.
    """
    combines = 0
    count = times.shape[0]
    for i in range(every.shape[0]):
        e = 0
        while e < count:
            first, last, since, until = windows_at(times[e], every[i], offset[i], whole[i], rest[i])
            if ordered:
                stop = run_end(times, e, until)
            else:
                stop = e + 1
                while stop < count and since <= times[stop] and times[stop] < until:
                    stop += 1
            for k in range(max(first, floor[i]), last + 1):
                slot = base[i] + (k & mask[i])
                combines += fold_run(inputs, keys, e, stop, slot, stride, cells)
            e = stop
    return combines


def fold_into_sessions(inputs, run, session, into, gone, keys, cells, held):
    """Fuse buckets of sessions, then combine each event into the one of its session; how many combines that took.

    keys: none, as a session has one key. held: how many events each cell holds.
    """
    combines = 0
    for f in range(into.shape[0]):
        combines += join(cells, into[f], into[f], gone[f])
        held[gone[f]] = 0
    for r in range(session.shape[0]):
        combines += fold_run(inputs, keys, run[r], run[r + 1], session[r], 1, cells)
    return combines


@jit
def collect_ended(every, offset, whole, rest, until, bottom, top, base, mask, stride, held, out):
    """Buckets with events whose windows end at or before `until`; how many, or -1 if there is no room.

    out: placement, number, cell. `bottom` moves on where there was room for all.
    """
    placement, number, cell = out
    count = 0
    following = bottom.copy()
    for i in range(every.shape[0]):
        k = bottom[i]
        while k < top[i] and offset[i] + (k + whole[i]) * every[i] + rest[i] <= until:
            slot = base[i] + (k & mask[i])
            for c in range(slot * stride, (slot + 1) * stride):
                if held[c] > 0:
                    if count == placement.shape[0]:
                        return -1
                    placement[count] = i
                    number[count] = k
                    cell[count] = c
                    count += 1
            k += 1
        following[i] = k
    bottom[:] = following
    return count


def list_ended(
    windows: WindowSet, wheel: Wheel, until: Tick, stride: int, held: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Placement, number and cell of the buckets that end at or before `until` and hold something."""
    w = windows
    placed = (w.every, w.offset, w.whole, w.rest, w.every.dtype.type(until))
    room = 1024
    while True:
        out = (np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64))
        count = collect_ended(*placed, wheel.bottom, wheel.top, wheel.base, wheel.mask, stride, held, out)
        if count >= 0:
            return out[0][:count], out[1][:count], out[2][:count]
        room *= 4


def first_open(windows: WindowSet, horizon: Tick) -> np.ndarray:
    """The number of the first window of each placement that ends after the horizon."""
    w = windows
    last = np.floor_divide(horizon - w.offset - w.rest, w.every).astype(np.int64) - w.whole
    for _ in range(2 if w.measure.floating else 0):
        last += w.ends(last + 1) <= horizon
        last -= w.ends(last) > horizon
    return last + 1


class Buckets(Wheeled):
    def prepare(self) -> None:
        self.start_wheel(len(self.windows.every))
        self._floor = np.full(len(self.windows.every), np.iinfo(np.int64).min)
        # Of each window of sessions, a partial for each number.
        self._sessions: list[Cells] = [self.partials.cells(0) for _ in self.sessions]

    def insert(
        self, times: np.ndarray, keys: np.ndarray | None, inputs: tuple[np.ndarray, ...], ordered: bool
    ) -> None:
        w = self.windows
        low, high = (
            np.floor_divide(t - w.offset, w.every).astype(np.int64) for t in (times.min(), times.max())
        )
        self.make_room(np.maximum(low - w.whole - 1, self._floor), np.maximum(high + 1, self._floor))
        run = self.partials.loop(fold_into_buckets)
        self.combines += int(
            run(
                inputs,
                times,
                NO_KEYS if keys is None else keys,
                ordered,
                w.every,
                w.offset,
                w.whole,
                w.rest,
                self._floor,
                self.wheel.base,
                self.wheel.mask,
                self.stride,
                self.cells,
            )
        )

    def ended(self, after: Tick, until: Tick, watermark: Tick) -> Iterator[Rows]:
        w = self.windows
        placement, number, cell = list_ended(w, self.wheel, until, self.stride, self.held)
        if not len(cell):
            return
        taken = tuple(column[cell] for column in self.cells)
        self.held[cell] = 0
        start = w.offset[placement] + number * w.every[placement]
        end = w.offset[placement] + (number + w.whole[placement]) * w.every[placement] + w.rest[placement]
        yield Rows(w.owner[placement], start, end, cell % self.stride, taken)

    def into_sessions(
        self,
        window: int,
        placed: Placed,
        times: np.ndarray,
        keys: np.ndarray | None,
        inputs: tuple[np.ndarray, ...],
    ) -> None:
        cells = self._sessions[window] = self.partials.grown(
            self._sessions[window], self.sessions[window].room
        )
        runs = (placed.run, placed.session, placed.into, placed.gone)
        run = self.partials.loop(fold_into_sessions)
        self.combines += int(run(inputs, *runs, NO_KEYS, cells, cells[self.partials.fields]))

    def over(self, window: int, sessions: Over) -> Iterator[Rows]:
        cells = self._sessions[window]
        taken = tuple(column[sessions.number] for column in cells)
        cells[self.partials.fields][sessions.number] = 0
        yield Rows(sessions.spec, sessions.start, sessions.end, sessions.key, taken)

    def let_go(self, horizon: Tick) -> None:
        self._floor = first_open(self.windows, horizon)

    def widen(self) -> None:
        super().widen()
        self._sessions = [self.partials.split_counts(cells) for cells in self._sessions]

    def recode(self, column: str, moved: np.ndarray) -> None:
        super().recode(column, moved)
        for cells in self._sessions:
            self.partials.recode(cells, column, moved)

    def live(self) -> tuple[int, int]:
        return super().live()[0] + sum(len(sessions) for sessions in self.sessions), 0


class AggregateBuckets(Technique):
    """See the module."""

    method = Buckets
    restores_order = False
    no_sessions = ""

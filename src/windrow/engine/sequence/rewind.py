"""Windows of a fixed length that look back at every n-th event.

    time      0    1    2    3    4    5             length 3, every 2 rows
    rank      0    1    23        4    5
    events    o    o    oo        o    o
              |---------|                            rank 3 gives rise to (-1, 2], which holds 0 .. 3
                             |---------|             rank 5 to (2, 5], which holds 4 and 5

A window is known by the time t of the event that gave rise to it: it begins with the first event
after `t - length`, and ends behind the last one at t. Later ties belong to it, so it waits until an
event with a later time is released, or until time has passed.

    tail      the events after (last time - length): each may be the first of a window to come, and the
              first of them is the first event of the window that waits, if one does
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.compiling.tiers import jit
from windrow.engine.intake.numbers import frozen
from windrow.engine.sequence.base import KeyStated, below, require_flags, require_ticks
from windrow.engine.sequence.run import Run, Windows, spread
from windrow.engine.sequence.state import KeyState
from windrow.engine.sequence.ticks import after, back, clipped, last_tick
from windrow.measure import Measure, Tick
from windrow.windows.slide_by_rows import SlideByRows


@jit
def look_back(  # type: ignore[no-untyped-def]
    bounds,
    first,
    times,
    cutoffs,
    every,
    left,
    left_from,
    stop,
    tail,
    last,
    waiting,
    base,
    segment,
    time,
    begin,
    end,
):
    """The windows of a run that no longer wait: how many there are.

    Segment s is the rows `bounds[s] .. bounds[s+1]-1`, whose first has the rank `first[s]`; row i looks
    back to `cutoffs[i]`. Its tail begins with rank `tail[s]`; the times of the ranks from there to
    `stop[s]-1`, which leave the tail in this run, are `left[left_from[s]]` and following. `last[s]` is
    the time before the run, and `waiting[s]` is 1 if a window of that time waits; all three are updated. Events are counted
    from the rank `base[s]` on.
    Writes the segment, time, first rank and rank behind the last of each window.
    """
    n = 0
    for s in range(first.shape[0]):
        low, high = bounds[s], bounds[s + 1]
        tail_rank = pointer = tail[s]
        carried = waiting[s] == 1
        if carried and times[low] != last[s]:
            segment[n], time[n], begin[n], end[n] = s, last[s], pointer, first[s]
            n += 1
            carried = False
        i = low
        while i < high:
            j = i + 1
            while j < high and times[j] == times[i]:
                j += 1
            while pointer < stop[s] and left[left_from[s] + pointer - tail_rank] <= cutoffs[i]:
                pointer += 1
            rank, behind = first[s] + (i - low), first[s] + (j - low)
            while first[s] <= pointer < rank and times[low + pointer - first[s]] <= cutoffs[i]:
                pointer += 1
            wanted = carried or (behind - base[s]) // every > (rank - base[s]) // every
            carried = False
            if j == high:
                waiting[s] = 1 if wanted else 0
            elif wanted:
                segment[n], time[n], begin[n], end[n] = s, times[i], pointer, behind
                n += 1
            i = j
        tail[s] = pointer
        last[s] = times[high - 1]
    return n


class LookingBack(KeyStated):
    """See the module."""

    def __init__(self, window: SlideByRows, measure: Measure, schema: pa.Schema, *, shown: str) -> None:
        super().__init__(measure.dtype)
        self.length = measure.ticks(window.length, what="length")
        self.every = window.every_rows
        whole = (np.int64, 0)
        self.state = KeyState(
            {"tail": whole, "last": (self.dtype, 0), "waiting": (np.uint8, 0), "base": whole}
        )

    def release(self, run: Run) -> Windows:
        cutoffs = back(run.times, self.length)
        tail, last, waiting, base = self.state.take(run.keys)
        ranks = run.ranks
        stop = first_after(cutoffs[run.bounds[1:] - 1], tail, ranks, run)
        owner, leaving = spread(tail, stop)
        left = run.tail_times(run.keys[owner], leaving) if len(owner) else np.empty(0, self.dtype)
        most = int((run.lengths // self.every + 2).sum())
        segment, begin, end = (np.empty(most, np.int64) for _ in range(3))
        time = np.empty(most, self.dtype)
        n = look_back(
            frozen(run.bounds),
            ranks,
            frozen(run.times),
            cutoffs,
            self.every,
            frozen(left),
            np.cumsum(stop - tail) - (stop - tail),
            stop,
            tail,
            last,
            waiting,
            base,
            segment,
            time,
            begin,
            end,
        )
        self.state.put(run.keys, [tail, last, waiting, base])
        return self._windows(run.keys[segment[:n]], begin[:n], end[:n], time[:n])

    def _windows(self, key: np.ndarray, begin: np.ndarray, end: np.ndarray, time: np.ndarray) -> Windows:
        return Windows(key, begin, end, after(time), after(back(time, self.length)))

    def expire(self, until: Tick, seen: np.ndarray, keys: np.ndarray | None = None) -> Windows:
        now = clipped(until, self.dtype)
        keys = np.arange(self.state.keys) if keys is None else keys
        last = self.state["last"][keys]
        windows = self._take(keys[(self.state["waiting"][keys] == 1) & (last < now)], seen)
        # What lies so far back that no event to come looks back to it.
        dead = keys[last <= back(np.array([now], self.dtype), self.length)]
        self.state["tail"][dead] = seen[dead]
        return windows

    def timers(self, keys: np.ndarray, seen: np.ndarray) -> np.ndarray:
        last, waiting = self.state["last"][keys], self.state["waiting"][keys] == 1
        never = last_tick(self.dtype)
        dead = np.where(last <= back(np.array([never]), self.length), last + self.length, never)
        dead[self.state["tail"][keys] == seen[keys]] = never
        return np.where(waiting, after(last), dead)

    def close(self, seen: np.ndarray, last_time: np.ndarray, keys: np.ndarray) -> Windows:
        return self._take(keys[self.state["waiting"][keys] != 0], seen)

    def _take(self, keys: np.ndarray, seen: np.ndarray) -> Windows:
        """The windows of these keys, which then wait no longer."""
        self.state["waiting"][keys] = 0
        return self._windows(keys, self.state["tail"][keys], seen[keys], self.state["last"][keys])

    def tail(self, seen: np.ndarray, keys: np.ndarray | None = None) -> np.ndarray:
        tail = self.state["tail"]
        return tail.copy() if keys is None else tail[keys]

    def begin_at(self, keys: np.ndarray, ranks: np.ndarray, which: int) -> None:
        self.state["tail"][keys] = self.state["base"][keys] = ranks

    def require_sound(self, state: KeyState, seen: np.ndarray | None) -> None:
        below(state["tail"], seen, what="the first event of a tail")
        below(state["base"], seen, what="the first event of a window")
        if (state["base"] > state["tail"]).any():
            raise ValueError("a tail begins before the first event of its window")
        require_flags(state["waiting"], what="whether a window waits")
        require_ticks(state["last"], what="the time of a last event")
        if seen is not None and (state["tail"] >= seen[: state.keys])[state["waiting"] == 1].any():
            raise ValueError("a window waits that holds no event")


def first_after(cutoffs: Any, low: np.ndarray, high: np.ndarray, run: Run) -> np.ndarray:
    """By segment, the first rank in `low .. high-1` with a time after the cutoff, or `high`.

    A binary search in all segments at once, because the tail belongs to the engine.
    """
    low, high = low.copy(), high.copy()
    searched = np.flatnonzero(low < high)
    while len(searched):
        middle = (low[searched] + high[searched]) // 2
        later = run.tail_times(run.keys[searched], middle) > cutoffs[searched]
        high[searched[later]] = middle[later]
        low[searched[~later]] = middle[~later] + 1
        searched = searched[low[searched] < high[searched]]
    return low

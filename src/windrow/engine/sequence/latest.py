"""The latest events at each look: how many there were is known when time reaches the look.

    time      0    1    2    3    4    5    6        rows 3, every 3
    rank        0    12   3         4
    events      o    oo   o         o
    look                   |              |
                     |----|                          begins 3 before the 4 events seen
                           ...                       waits: has seen 5 events

After an event a look waits at the next multiple of `every`. It ends when an event at or after it is
released, or when time has passed, behind the last event seen; it begins `rows` before that.

    tail      the last `rows` events, and one less if no look waits, as the next one needs a new event
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.compiling.compiler import kernel
from windrow.engine.intake.numbers import frozen
from windrow.engine.sequence.base import KeyStated, below, require_flags, require_ticks
from windrow.engine.sequence.run import Run, Windows
from windrow.engine.sequence.state import KeyState
from windrow.engine.sequence.ticks import clipped, last_tick
from windrow.measure import Measure, Tick
from windrow.windows.base import Periodic
from windrow.windows.latest import Latest, next_look_float, next_look_integer

# Segment s is the rows `bounds[s] .. bounds[s+1]-1`, whose first has the rank `first[s]`. If `waiting[s]`
# is 1 a look waits at `due[s]`; both are updated. Writes the segment of each look that ends, the rank
# behind its last event and its time; at most one per row. Returns how many there are.
SOURCE = """
def looks(bounds, first, times, every, offset, due, waiting, segment, end, look):
    n = 0
    for s in range(first.shape[0]):
        low = bounds[s]
        if waiting[s] == 0:
            due[s] = next_look(times[low], every, offset)
            waiting[s] = 1
        now = due[s]
        for i in range(low, bounds[s + 1]):
            if times[i] >= now:
                segment[n], end[n], look[n] = s, first[s] + (i - low), now
                n += 1
                now = next_look(times[i], every, offset)
        due[s] = now
    return n
"""


class LatestEvents(KeyStated):
    """See the module."""

    def __init__(self, window: Latest, measure: Measure, schema: pa.Schema, *, shown: str) -> None:
        super().__init__(measure.dtype)
        self.rows = window.rows
        every = measure.ticks(window.every, what="every")
        offset = measure.ticks(window.offset, what="offset")
        placed = Periodic.of(length=every, every=every, offset=offset)
        self.every, self.offset = placed.every, placed.offset
        self.state = KeyState({"due": (self.dtype, 0), "waiting": (np.uint8, 0), "base": (np.int64, 0)})
        self._looks: Any = None

    def release(self, run: Run) -> Windows:
        if self._looks is None:
            function = next_look_float if self.dtype.kind == "f" else next_look_integer
            self._looks = kernel(SOURCE, "looks", {"next_look": function})
        due, waiting, base = self.state.take(run.keys)
        arguments = (frozen(run.bounds), run.ranks, frozen(run.times), self.every, self.offset)
        rows = len(run.times)
        segment, end, look = np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, self.dtype)
        n = self._looks(*arguments, due, waiting, segment, end, look)
        self.state.put(run.keys, [due, waiting, base])
        return self._windows(run.keys[segment[:n]], end[:n].copy(), look[:n].copy())

    def _windows(self, key: np.ndarray, end: np.ndarray, look: np.ndarray) -> Windows:
        return Windows(key, np.maximum(end - self.rows, self.state["base"][key]), end, look)

    def expire(self, until: Tick, seen: np.ndarray, keys: np.ndarray | None = None) -> Windows:
        now = clipped(until, self.dtype)
        keys = np.arange(self.state.keys) if keys is None else keys
        return self._take(keys[(self.state["waiting"][keys] == 1) & (self.state["due"][keys] <= now)], seen)

    def timers(self, keys: np.ndarray, seen: np.ndarray) -> np.ndarray:
        return np.where(self.state["waiting"][keys] == 1, self.state["due"][keys], last_tick(self.dtype))

    def close(self, seen: np.ndarray, last_time: np.ndarray, keys: np.ndarray) -> Windows:
        return self._take(keys[self.state["waiting"][keys] != 0], seen)

    def _take(self, keys: np.ndarray, seen: np.ndarray) -> Windows:
        """The looks of these keys, which then wait no longer."""
        self.state["waiting"][keys] = 0
        return self._windows(keys, seen[keys], self.state["due"][keys])

    def tail(self, seen: np.ndarray, keys: np.ndarray | None = None) -> np.ndarray:
        keys = np.arange(self.state.keys) if keys is None else keys
        waiting = self.state["waiting"][keys]
        tail: np.ndarray = seen[keys] - self.rows + (1 - waiting.astype(np.int64))
        return np.maximum(tail, self.state["base"][keys])

    def begin_at(self, keys: np.ndarray, ranks: np.ndarray, which: int) -> None:
        self.state["base"][keys] = ranks

    def require_sound(self, state: KeyState, seen: np.ndarray | None) -> None:
        require_flags(state["waiting"], what="whether a look waits")
        require_ticks(state["due"], what="the time of a look")
        below(state["base"], seen, what="the first event of a window")
        if seen is not None and (seen[: state.keys] == state["base"])[state["waiting"] == 1].any():
            raise ValueError("a look waits that holds no event")

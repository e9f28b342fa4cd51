"""Count windows by arithmetic: they cost as much as there are windows, not events.

    rank     0    1    2    3    4    5    6    7        length 4, every 2
    k = 0    |-----------------|
    k = 1              |-----------------|
    k = 2                        |------------- ..
             |------ seen -------|---- run ----|

Window k holds ranks `k*every .. k*every + length - 1`. A run that takes a key from `seen` to `seen + n`
events ends the windows whose last rank lies in it. No state but the number of events seen, so one
object serves all count windows of a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from windrow.engine.cache import jit
from windrow.engine.numbers import frozen
from windrow.engine.sequence.base import NEVER, KeyStated, below
from windrow.engine.sequence.open_windows import MOST_OPEN, too_many_open
from windrow.engine.sequence.run import Run, Windows
from windrow.engine.sequence.state import KeyState
from windrow.engine.sequence.ticks import after


@jit
def ended_after(seen, length, every):  # type: ignore[no-untyped-def]
    """How many windows have ended after `seen` events; also the number of the first that has not."""
    return (seen - length) // every + 1 if seen >= length else 0


@jit
def begun_after(seen, every):  # type: ignore[no-untyped-def]
    """How many windows have begun after `seen` events."""
    return (seen + every - 1) // every


@jit
def count_windows(first, bounds, length, every):  # type: ignore[no-untyped-def]
    """How many windows end in a run, and how many more are open then than before.

    Segment s has the rows `bounds[s] .. bounds[s+1]-1`, the first of rank `first[s]`; window type w has
    length[w] and every[w].
    """
    total = opened = 0
    for w in range(length.shape[0]):
        for s in range(first.shape[0]):
            now = first[s] + bounds[s + 1] - bounds[s]
            ended = ended_after(now, length[w], every[w]) - ended_after(first[s], length[w], every[w])
            total += ended
            opened += begun_after(now, every[w]) - begun_after(first[s], every[w]) - ended
    return total, opened


@jit
def list_windows(first, bounds, length, every, which, segment, begin, end, last):  # type: ignore[no-untyped-def]
    """Write each window that ends in a run: its type, its segment, its ranks, and its last row."""
    n = 0
    for w in range(length.shape[0]):
        for s in range(first.shape[0]):
            now = first[s] + bounds[s + 1] - bounds[s]
            low, high = ended_after(first[s], length[w], every[w]), ended_after(now, length[w], every[w])
            for k in range(low, high):
                which[n], segment[n], begin[n] = w, s, k * every[w]
                end[n] = k * every[w] + length[w]
                last[n] = end[n] - 1 - first[s] + bounds[s]
                n += 1


@jit
def list_open(seen, since, length, every):  # type: ignore[no-untyped-def]
    """Type, place and first rank of each window that is open and begins at rank `since` or later.

    Keys have so many events, and `since` is one rank for each.
    """
    total = 0
    for w in range(length.shape[0]):
        for s in range(seen.shape[0]):
            low = max(ended_after(seen[s], length[w], every[w]), begun_after(since[s], every[w]))
            total += max(begun_after(seen[s], every[w]) - low, 0)
    which, place, begin = np.empty(total, np.int64), np.empty(total, np.int64), np.empty(total, np.int64)
    n = 0
    for w in range(length.shape[0]):
        for s in range(seen.shape[0]):
            low = max(ended_after(seen[s], length[w], every[w]), begun_after(since[s], every[w]))
            for k in range(low, begun_after(seen[s], every[w])):
                which[n], place[n], begin[n] = w, s, k * every[w]
                n += 1
    return which, place, begin


@jit
def first_open(seen, length, every):  # type: ignore[no-untyped-def]
    """The first rank of the first window that is open, for keys with so many events; NEVER without one."""
    out = np.full(seen.shape[0], NEVER)
    for w in range(length.shape[0]):
        for s in range(seen.shape[0]):
            k = ended_after(seen[s], length[w], every[w])
            if k < begun_after(seen[s], every[w]):
                out[s] = min(out[s], k * every[w])
    return out


class Counted(KeyStated):
    """All count windows of a query at once; see the module. `open` is how many windows are open."""

    def __init__(self, windows: Sequence[Any], dtype: np.dtype[Any], *, shown: str) -> None:
        super().__init__(dtype)  # of windows that have a length and a slide in rows
        self.length = np.array([window.length for window in windows])
        self.every = np.array([window.every for window in windows])
        self.shown = shown
        self.state = KeyState({"seen": (np.int64, 0)})
        self.open = 0

    def release(self, run: Run) -> Windows:
        self.grow(run.keys_needed)
        segments = (run.ranks, frozen(run.bounds), self.length, self.every)
        total, opened = count_windows(*segments)
        if self.open + opened > MOST_OPEN:
            raise too_many_open(self.shown)
        which, segment, begin, end, last = (np.empty(total, np.int64) for _ in range(5))
        list_windows(*segments, which, segment, begin, end, last)
        self.state["seen"][run.keys] = run.ranks + run.lengths
        self.open += opened
        return Windows(run.keys[segment], begin, end, after(run.times[last]), which=which)

    def close(self, seen: np.ndarray, last_time: np.ndarray) -> Windows:
        which, key, begin = self._open()
        self.state.reset()
        self.open = 0
        return Windows(key, begin, seen[key], after(last_time[key]), which=which)

    def anchors(self) -> tuple[np.ndarray, np.ndarray]:
        return self._open()[1:]

    def _open(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Type, key and first rank of each window that is open."""
        seen = self.state["seen"]
        found: tuple[np.ndarray, np.ndarray, np.ndarray]
        found = list_open(seen, np.zeros(len(seen), np.int64), self.length, self.every)
        return found

    def anchors_of(self, keys: np.ndarray, since: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, place, begin = list_open(self.state["seen"][keys], since, self.length, self.every)
        return keys[place], begin

    def first_anchor(self, keys: np.ndarray) -> np.ndarray:
        first: np.ndarray = first_open(self.state["seen"][keys], self.length, self.every)
        return first

    def mark(self, keys: np.ndarray) -> Any:
        return super().mark(keys), self.open

    def restore(self, mark: Any) -> None:
        numbers, self.open = mark
        super().restore(numbers)

    def take_over(self, other: Self, keys: np.ndarray) -> None:
        self.open -= self._count_open(self.state["seen"][keys])
        super().take_over(other, keys)
        self.open += self._count_open(self.state["seen"][keys])

    def without(self, number: int) -> Counted:
        """The same without one window type."""
        twin = self.copy()
        twin.length, twin.every = np.delete(self.length, number), np.delete(self.every, number)
        twin.open = twin._count_open(twin.state["seen"])
        return twin

    def _count_open(self, seen: np.ndarray) -> int:
        seen = seen[:, None]
        ended = np.maximum((seen - self.length) // self.every + 1, 0)
        return int(((seen + self.every - 1) // self.every - ended).sum())

    def load(self, arrays: dict[str, np.ndarray], keys: int, seen: np.ndarray | None = None) -> None:
        super().load(arrays, keys, seen)
        self.open = self._count_open(self.state["seen"])

    def require_sound(self, state: KeyState, seen: np.ndarray | None) -> None:
        below(state["seen"], seen, what="the number of events in count windows")
        if self._count_open(state["seen"]) > MOST_OPEN:
            raise ValueError("more windows are open than may be")

"""Count windows by arithmetic: they cost as much as there are windows, not events.

    rank     0    1    2    3    4    5    6    7        length 4, every 2
    k = 0    |-----------------|
    k = 1              |-----------------|
    k = 2                        |------------- ..
             |------ seen -------|---- run ----|

Window k holds ranks `k*every .. k*every + length - 1`. A run that takes a key from `seen` to `seen + n`
events ends the windows whose last rank lies in it. No state but the number of events seen, so one
object serves all count windows of a query. A window that was added later counts from its `base`, the number of events
that each key had then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.sequence.base import NEVER, KeyStated, below
from windrow.engine.sequence.open_windows import MOST_OPEN, too_many_open
from windrow.engine.sequence.run import Run, Windows
from windrow.engine.sequence.state import KeyState, required
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
def since_base(seen, base, w, key):  # type: ignore[no-untyped-def]
    """How many of `seen` events of a key window type w counts."""
    return max(seen - base[w, key], 0)


@jit
def list_windows(keys, first, bounds, most, counted, base, length, every):  # type: ignore[no-untyped-def]
    """Each window that ends in a run: its type, key, ranks and last row as rows of a matrix; and how many more are open then.

    Segment s has the rows `bounds[s] .. bounds[s+1]-1` of keys[s], the first of rank `first[s]`; window type w has
    length[w] and every[w]. How many events each key has then is written to `counted`, unless more than `most` more are open.
    """
    total = opened = 0
    for w in range(length.shape[0]):
        for s in range(first.shape[0]):
            old = since_base(first[s], base, w, keys[s])
            now = since_base(first[s] + bounds[s + 1] - bounds[s], base, w, keys[s])
            ended = ended_after(now, length[w], every[w]) - ended_after(old, length[w], every[w])
            total += ended
            opened += begun_after(now, every[w]) - begun_after(old, every[w]) - ended
    if opened <= most:
        for s in range(first.shape[0]):
            counted[keys[s]] = first[s] + bounds[s + 1] - bounds[s]
    found = np.empty((5, total), np.int64)
    n = 0
    for w in range(length.shape[0] if total else 0):
        for s in range(first.shape[0]):
            seen = first[s] + bounds[s + 1] - bounds[s]
            now = since_base(seen, base, w, keys[s])
            low = ended_after(since_base(first[s], base, w, keys[s]), length[w], every[w])
            for k in range(low, ended_after(now, length[w], every[w])):
                begin = seen - now + k * every[w]
                found[0, n], found[1, n], found[2, n], found[3, n] = w, keys[s], begin, begin + length[w]
                found[4, n] = begin + length[w] - 1 - first[s] + bounds[s]
                n += 1
    return found, opened


@jit
def flag_windows(keys, first, bounds, base, length, every, flags):  # type: ignore[no-untyped-def]
    """Flag the events of a run, as for `list_windows`, at which a window begins, and those behind the end of one."""
    for w in range(length.shape[0]):
        for s in range(first.shape[0]):
            seen = first[s] + bounds[s + 1] - bounds[s]
            old, now = since_base(first[s], base, w, keys[s]), since_base(seen, base, w, keys[s])
            row = bounds[s + 1] - now
            for k in range(begun_after(old, every[w]), begun_after(now, every[w])):
                flags[row + k * every[w]] = True
            for k in range(ended_after(old, length[w], every[w]), ended_after(now, length[w], every[w])):
                if k * every[w] + length[w] < now:
                    flags[row + k * every[w] + length[w]] = True


@jit
def count_open(keys, seen, base, length, every):  # type: ignore[no-untyped-def]
    """How many windows of these keys are open, after seen[k] events of key k."""
    total = 0
    for w in range(length.shape[0]):
        for s in range(keys.shape[0]):
            now = since_base(seen[keys[s]], base, w, keys[s])
            total += begun_after(now, every[w]) - ended_after(now, length[w], every[w])
    return total


@jit
def list_open(keys, seen, since, base, length, every):  # type: ignore[no-untyped-def]
    """Type, key and first rank of each window that is open and begins at rank `since` or later, as rows of a matrix.

    Key k has seen[k] events, and since[s] is a rank of keys[s].
    """
    total = 0
    for fill in range(2):
        found = np.empty((3, total if fill else 0), np.int64)
        total = 0
        for w in range(length.shape[0]):
            for s in range(keys.shape[0]):
                now = since_base(seen[keys[s]], base, w, keys[s])
                early = begun_after(since_base(since[s], base, w, keys[s]), every[w])
                for k in range(max(ended_after(now, length[w], every[w]), early), begun_after(now, every[w])):
                    if fill:
                        begin = seen[keys[s]] - now + k * every[w]
                        found[0, total], found[1, total], found[2, total] = w, keys[s], begin
                    total += 1
    return found


@jit
def first_open(keys, seen, base, length, every):  # type: ignore[no-untyped-def]
    """The first rank of the first window of each key that is open, after seen[k] events of key k; NEVER without one."""
    out = np.full(keys.shape[0], NEVER)
    for w in range(length.shape[0]):
        for s in range(keys.shape[0]):
            now = since_base(seen[keys[s]], base, w, keys[s])
            k = ended_after(now, length[w], every[w])
            if k < begun_after(now, every[w]):
                out[s] = min(out[s], seen[keys[s]] - now + k * every[w])
    return out


class Counted(KeyStated):
    """All count windows of a query at once; `open` is how many windows are open."""

    def __init__(self, windows: Sequence[Any], dtype: np.dtype[Any], *, shown: str) -> None:
        super().__init__(dtype)  # of windows that have a length and a slide in rows
        self.length = np.array([window.length for window in windows])
        self.every = np.array([window.every for window in windows])
        self.shown = shown
        self.state = KeyState({"seen": (np.int64, 0)})
        # How many events come before the first that counts: window types x keys.
        self.base = np.zeros((len(windows), 0), np.int64)
        self.open = 0

    @property
    def _types(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.base, self.length, self.every

    def release(self, run: Run) -> Windows:
        room = MOST_OPEN - self.open
        found, opened = list_windows(run.keys, run.ranks, run.bounds, room, self.state["seen"], *self._types)
        if opened > room:
            raise too_many_open(self.shown)
        self.open += opened
        if not found.shape[1]:
            return Windows.none(self.dtype)
        which, key, begin, end, last = found
        return Windows(key, begin, end, after(run.times[last]), which=which)

    def close(self, seen: np.ndarray, last_time: np.ndarray, keys: np.ndarray) -> Windows:
        which, key, begin = self._open_since(keys, np.zeros(len(keys), np.int64))
        self.state.reset(keys)
        self.open -= len(key)
        return Windows(key, begin, seen[key], after(last_time[key]), which=which)

    def _open_since(self, keys: np.ndarray, since: np.ndarray) -> np.ndarray:
        found: np.ndarray = list_open(keys, self.state["seen"], since, *self._types)
        return found

    def anchors_of(self, keys: np.ndarray, since: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, key, begin = self._open_since(keys, since)
        return key, begin

    def flag(self, run: Run, windows: Windows, flags: np.ndarray) -> None:
        flag_windows(run.keys, run.ranks, run.bounds, *self._types, flags)

    def first_anchor(self, keys: np.ndarray) -> np.ndarray:
        first: np.ndarray = first_open(keys, self.state["seen"], *self._types)
        return first

    def begin_at(self, keys: np.ndarray, ranks: np.ndarray, which: int) -> None:
        self.base[which, keys] = ranks

    def skip(self, run: Run, count: np.ndarray, which: int) -> Run:
        some = np.flatnonzero(count)
        self.begin_at(run.keys[some], run.ranks[some] + count[some], which)
        return run  # other windows may count all of it

    def grow(self, keys: int) -> None:
        super().grow(keys)
        types, known = self.base.shape
        if known < keys:
            more = np.zeros((types, max(keys, 2 * known) - known), np.int64)
            self.base = np.append(self.base, more, axis=1)

    def mark(self, keys: np.ndarray) -> Any:
        return super().mark(keys), self.open, self.base.take(keys, axis=1)

    def restore(self, mark: Any) -> None:
        (keys, seen), self.open, base = mark
        self.base[:, keys] = base
        super().restore((keys, seen))

    def take_over(self, other: Self, keys: np.ndarray) -> None:
        self.open -= self._count_open(keys)
        super().take_over(other, keys)
        self.base[:, keys] = other.base[:, keys]
        self.open += self._count_open(keys)

    def add(self, window: Any) -> None:
        """Serve one more window, from the first event on."""
        self.length, self.every = np.append(self.length, window.length), np.append(self.every, window.every)
        self.base = np.append(self.base, np.zeros((1, self.base.shape[1]), np.int64), axis=0)

    def remove(self, number: int) -> None:
        """Serve one window less."""
        self.length, self.every = np.delete(self.length, number), np.delete(self.every, number)
        self.base = np.delete(self.base, number, axis=0)
        self.open = self._count_open(np.arange(self.state.keys))

    def _count_open(self, keys: np.ndarray) -> int:
        return int(count_open(keys, self.state["seen"], *self._types))

    def save(self) -> dict[str, np.ndarray]:
        return super().save() | {"base": self.base[:, : self.state.keys].ravel()}

    def load(self, arrays: dict[str, np.ndarray], keys: int, seen: np.ndarray | None = None) -> None:
        types = len(self.length)
        base = required(arrays, "base", np.int64, types * keys).reshape(types, keys).copy()
        for row in base:
            below(row, seen, what="the first event of a count window")
        old, self.base = self.base, base
        try:
            super().load(arrays, keys, seen)
        except ValueError:
            self.base = old
            raise
        self.open = self._count_open(np.arange(keys))

    def require_sound(self, state: KeyState, seen: np.ndarray | None) -> None:
        below(state["seen"], seen, what="the number of events in count windows")
        if count_open(np.arange(state.keys), state["seen"], *self._types) > MOST_OPEN:
            raise ValueError("more windows are open than may be")

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.base.nbytes

"""What every discretizer does: from the events of a key, in order, to windows over ranks.

    release(run)   events, in order        -> windows whose end became known
    expire(..)     time has passed         -> windows whose end became known without an event
    close(..)      the stream has ended    -> windows that are still open

The word is Cutty's (section 5.1). One object serves one window of the query and all keys; what it
knows is held in columns by key number. A call that fails leaves it as it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import pyarrow as pa

from windrow.compiling.tiers import jit
from windrow.engine.sequence.run import Run, Windows
from windrow.engine.sequence.state import KeyState
from windrow.measure import Tick

# The rank of an event that is not needed.
NEVER = np.iinfo(np.int64).max


@jit
def flag_ranks(keys, bounds, before, key, rank, flags):  # type: ignore[no-untyped-def]
    """Flag the events of a run that have these ranks; others are passed over.

    keys are those of the segments, ascending, and before[s] is the rank of the first event of segment s.
    """
    s = 0
    for i in range(key.shape[0]):
        if keys[s] != key[i]:
            s += 1
            if s == keys.shape[0] or keys[s] != key[i]:
                s = np.searchsorted(keys, key[i])
                if s == keys.shape[0] or keys[s] != key[i]:
                    s = 0
                    continue
        row = bounds[s] + rank[i] - before[s]
        if rank[i] >= before[s] and row < bounds[s + 1]:
            flags[row] = True


class Discretizer(ABC):
    """See the module. `dtype` is the dtype of ticks."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    # "i", "f" or "b" for each number that is read of an event, besides its time.
    input_kinds = ""

    def inputs(self, batch: pa.RecordBatch, times: np.ndarray) -> list[np.ndarray]:
        """What is read of each event, a column each: once, when it comes. A user's function may fail here."""
        return []

    @abstractmethod
    def release(self, run: Run) -> Windows:
        """Take in a run, of keys that there is room for (`grow`): all windows whose end is known through it.

        Their `finish` may lie after the run.
        """

    def expire(self, until: Tick, seen: np.ndarray, keys: np.ndarray | None = None) -> Windows:
        """Windows whose end is known because everything before `until` is released; of these keys, or of all.

        To be called after `release` with the same `until`.
        """
        return Windows.none(self.dtype)

    def timers(self, keys: np.ndarray, seen: np.ndarray) -> np.ndarray | None:
        """When `expire` has something to do for each of these keys, the last tick if never; None: never for any."""
        return None

    def close(self, seen: np.ndarray, last_time: np.ndarray, keys: np.ndarray) -> Windows:
        """The windows of these keys that are open when the stream ends; nothing of them is open afterwards.

        `last_time` is the time of each key's last event.
        """
        return Windows.none(self.dtype)

    def anchors_of(self, keys: np.ndarray, since: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Key and rank of the first event of each open window of these keys, where slices stay cut.

        Those at the ranks `since`, one for each key, or later: O(keys + anchors).
        """
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def flag(self, run: Run, windows: Windows, flags: np.ndarray) -> None:
        """Flag the events of a run at which windows begin, or which lie behind their ends; `windows` have ended in it."""
        ended = (windows.key, windows.begin), (windows.key, windows.end)
        for key, rank in (*ended, self.anchors_of(run.keys, run.ranks)):
            if len(key):
                flag_ranks(run.keys, run.bounds, run.ranks, key, rank, flags)

    def first_anchor(self, keys: np.ndarray) -> np.ndarray | None:
        """The rank of the first anchor of each of these keys, NEVER without one; None: there are none."""
        return None

    def tail(self, seen: np.ndarray, keys: np.ndarray | None = None) -> np.ndarray | None:
        """The rank from which on any event may turn out to be the first of a window: by key number, or of these keys.

        Those events are kept apart. None where no window type needs it. `seen` counts events by key number.
        """
        return None

    @abstractmethod
    def begin_at(self, keys: np.ndarray, ranks: np.ndarray, which: int) -> None:
        """The first events of these keys that count have these ranks: the window was added behind those before.

        `which` is the window's number in a discretizer that serves several.
        """

    def skip(self, run: Run, count: np.ndarray, which: int) -> Run:
        """Pass over `count[s]` events at the front of each segment, which do not count: what is left of the run."""
        some = np.flatnonzero(count)
        self.begin_at(run.keys[some], run.ranks[some] + count[some], which)
        return run.without(count)

    @abstractmethod
    def mark(self, keys: np.ndarray) -> Any:
        """What `restore` needs to bring these keys back to what they are, until `settle`: O(keys)."""

    @abstractmethod
    def restore(self, mark: Any) -> None:
        """Bring keys back to what they were at a mark."""

    @abstractmethod
    def settle(self) -> None:
        """No mark is needed any more."""

    @abstractmethod
    def take_over(self, other: Self, keys: np.ndarray) -> None:
        """Know of these keys what another discretizer of the same window knows."""

    @abstractmethod
    def grow(self, keys: int) -> None:
        """Make room for `keys` keys; those that are new are in the initial state."""

    @abstractmethod
    def save(self) -> dict[str, np.ndarray]:
        """The state as arrays of int64, float64 and uint8."""

    @abstractmethod
    def load(self, arrays: dict[str, np.ndarray], keys: int, seen: np.ndarray | None = None) -> None:
        """The opposite of `save`; a ValueError if the arrays are not what `save` gives.

        `seen` counts the events of each key, and ranks are checked against it.
        """

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of state."""


class KeyStated(Discretizer):
    """A discretizer all of whose state is numbers by key number."""

    state: KeyState

    def mark(self, keys: np.ndarray) -> Any:
        return keys, self.state.take(keys)

    def restore(self, mark: Any) -> None:
        self.state.put(*mark)

    def settle(self) -> None:
        """A mark is a copy: there is nothing to do."""

    def take_over(self, other: Self, keys: np.ndarray) -> None:
        self.state.put(keys, other.state.take(keys))

    def grow(self, keys: int) -> None:
        self.state.grow(keys)

    def save(self) -> dict[str, np.ndarray]:
        return self.state.save()

    def load(self, arrays: dict[str, np.ndarray], keys: int, seen: np.ndarray | None = None) -> None:
        state = self.state.copy()
        state.load(arrays, keys)
        self.require_sound(state, seen)
        self.state = state

    @abstractmethod
    def require_sound(self, state: KeyState, seen: np.ndarray | None) -> None:
        """A ValueError if a loaded state is one that no events lead to."""

    @property
    def nbytes(self) -> int:
        return self.state.nbytes


def require_flags(flags: np.ndarray, *, what: str) -> None:
    """A ValueError if a column of flags holds anything but 0 and 1."""
    if (flags > 1).any():
        raise ValueError(f"{what} is neither 0 nor 1")


def require_ticks(ticks: np.ndarray, *, what: str) -> None:
    """A ValueError if a time is none."""
    if ticks.dtype.kind == "f" and not np.isfinite(ticks).all():
        raise ValueError(f"{what} is not a time")


def below(ranks: np.ndarray, seen: np.ndarray | None, *, what: str) -> None:
    """A ValueError if a rank by key number is negative or above the number of events seen."""
    if (ranks < 0).any():
        raise ValueError(f"{what} is negative")
    if seen is not None and (ranks > seen[: len(ranks)]).any():
        raise ValueError(f"{what} lies beyond the events seen")

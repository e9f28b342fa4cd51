"""Windows that have begun and whose end is not known: one queue per key, all of them in flat columns.

    key      0   0   0   3   7   7          sorted
    rank     5   8  11   0   2   2          of the first event; never falls within a key
    time    10  14  14   3   1   1          of the first event

    one run:  take from the front of each touched queue, add to its end, and write the columns anew

First in, first out: a window that began earlier ends no later (Cutty, section 2.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.engine.cache import jit
from windrow.engine.numbers import frozen
from windrow.engine.sequence.run import Windows
from windrow.engine.sequence.state import required
from windrow.errors import LimitError

MOST_OPEN = 10_000_000
# With fewer open windows than this per key that is looked for, a walk is faster than searches.
WALK = 16


def too_many_open(window: str) -> LimitError:
    """The error for too many windows that have begun and not ended."""
    return LimitError(
        f"{window}: more than {MOST_OPEN:,} windows would be open at once, over all keys; begin fewer of them, "
        "or end them earlier"
    )


@jit
def find_queues(key, keys, low, high):  # type: ignore[no-untyped-def]
    """Write where in the sorted column `key` each of `keys`, sorted too, begins and ends: one walk."""
    at = 0
    for s in range(keys.shape[0]):
        while at < key.shape[0] and key[at] < keys[s]:
            at += 1
        low[s] = at
        while at < key.shape[0] and key[at] == keys[s]:
            at += 1
        high[s] = at


@jit
def pair_up(  # type: ignore[no-untyped-def]
    keys, low, high, begun_to, ended_to, old_rank, old_time, new_rank, new_time, key, begin, start
):
    """Say of each window that ended in a run which one it was: write `key`, `begin` and `start`.

    Segment s is key `keys[s]`; its queue is `low[s] .. high[s]-1` of `old_rank` and `old_time`, and
    behind it the entries of `new_rank` and `new_time` up to `begun_to[s]`. `ended_to[s]` windows have
    ended up to the end of the segment.
    """
    new = 0
    j = 0
    for s in range(keys.shape[0]):
        old = low[s]
        while j < ended_to[s]:
            key[j] = keys[s]
            if old < high[s]:
                begin[j], start[j] = old_rank[old], old_time[old]
                old += 1
            else:
                begin[j], start[j] = new_rank[new], new_time[new]
                new += 1
            j += 1
        new = begun_to[s]


@jit
def merge_queues(  # type: ignore[no-untyped-def]
    keys, low, high, begun_to, ended_to, key, rank, time, new_rank, new_time, out_key, out_rank, out_time
):
    """Write the queues anew, without what ended and with what began; arguments as above.

    The `out` columns are just large enough.
    """
    n = old = new = ended = 0
    for s in range(keys.shape[0]):
        for i in range(old, low[s]):
            out_key[n], out_rank[n], out_time[n] = key[i], rank[i], time[i]
            n += 1
        gone = ended_to[s] - ended
        held = high[s] - low[s]
        for i in range(low[s] + min(gone, held), high[s]):
            out_key[n], out_rank[n], out_time[n] = key[i], rank[i], time[i]
            n += 1
        for i in range(new + max(gone - held, 0), begun_to[s]):
            out_key[n], out_rank[n], out_time[n] = keys[s], new_rank[i], new_time[i]
            n += 1
        old, new, ended = high[s], begun_to[s], ended_to[s]
    for i in range(old, key.shape[0]):
        out_key[n], out_rank[n], out_time[n] = key[i], rank[i], time[i]
        n += 1


class OpenWindows:
    """See the module."""

    def __init__(self, tick: np.dtype[Any]) -> None:
        self.key = np.empty(0, np.int64)
        self.rank = np.empty(0, np.int64)
        self.time = np.empty(0, tick)

    def __len__(self) -> int:
        return len(self.key)

    def slices(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the queue of each of these keys begins and ends."""
        if len(self) > WALK * len(keys):
            return np.searchsorted(self.key, keys, "left"), np.searchsorted(self.key, keys, "right")
        low, high = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        find_queues(self.key, frozen(keys), low, high)
        return low, high

    def apply(
        self,
        keys: np.ndarray,
        slices: tuple[np.ndarray, np.ndarray],
        counts: tuple[np.ndarray, np.ndarray],
        begun: tuple[np.ndarray, np.ndarray],
        ended: tuple[np.ndarray, np.ndarray],
    ) -> Windows:
        """Windows that ended in a run; take them from the queues and add those that began.

        `counts` are how many windows had begun and ended at the end of each segment, `begun` their
        ranks and times, `ended` the ranks behind them and the ticks they end at.
        """
        size = len(ended[0])
        key, begin = np.empty(size, np.int64), np.empty(size, np.int64)
        start = np.empty(size, self.time.dtype)
        if size:
            pair_up(keys, *slices, *counts, self.rank, self.time, *begun, key, begin, start)
        if size or len(begun[0]):
            left = len(self) + len(begun[0]) - size
            out = (np.empty(left, np.int64), np.empty(left, np.int64), np.empty(left, self.time.dtype))
            merge_queues(keys, *slices, *counts, self.key, self.rank, self.time, *begun, *out)
            self.key, self.rank, self.time = out
        return Windows(key, begin, ended[0], ended[1], start)

    def copy(self) -> OpenWindows:
        """A twin; the columns are never written to, only replaced, so both may share them."""
        twin = OpenWindows(self.time.dtype)
        twin.key, twin.rank, twin.time = self.key, self.rank, self.time
        return twin

    def save(self) -> dict[str, np.ndarray]:
        return {"open_key": self.key, "open_rank": self.rank, "open_time": self.time}

    def load(self, arrays: dict[str, np.ndarray], keys: int, seen: np.ndarray | None) -> None:
        """The opposite of `save`; a ValueError if the arrays are not what `save` gives."""
        key = required(arrays, "open_key", np.int64)
        rank = required(arrays, "open_rank", np.int64, len(key))
        time = required(arrays, "open_time", self.time.dtype, len(key))
        if len(key) > MOST_OPEN:
            raise ValueError("more windows are open than may be")
        same = key[1:] == key[:-1]
        if len(key) and (key[0] < 0 or key[-1] >= keys or (key[1:] < key[:-1]).any()):
            raise ValueError("open windows belong to keys that are not there, or are not sorted")
        if (rank < 0).any() or (rank[1:] < rank[:-1])[same].any() or (time[1:] < time[:-1])[same].any():
            raise ValueError("open windows of a key are not in order")
        if time.dtype.kind == "f" and not np.isfinite(time).all():
            raise ValueError("an open window begins at no time")
        if seen is not None and len(key) and (rank >= seen[key]).any():
            raise ValueError("an open window begins with an event that has not been seen")
        self.key, self.rank, self.time = key.copy(), rank.copy(), time.copy()

    @property
    def nbytes(self) -> int:
        return self.key.nbytes + self.rank.nbytes + self.time.nbytes

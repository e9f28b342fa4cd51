"""Windows that have begun and whose end is not known: one queue per key.

    key      0   0   0   3   7   7
    rank     5   8  11   0   2   2          of the first event; never falls within a key
    time    10  14  14   3   1   1          of the first event

    one run:  take from the front of each touched queue, and add to its end

First in, first out: a window that began earlier ends no later (Cutty, section 2.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.engine.cache import jit
from windrow.engine.sequence.queues import KeyQueues, ranges
from windrow.engine.sequence.run import Windows
from windrow.engine.sequence.state import required
from windrow.errors import LimitError

MOST_OPEN = 10_000_000


def too_many_open(window: str) -> LimitError:
    """The error for too many windows that have begun and not ended."""
    return LimitError(
        f"{window}: more than {MOST_OPEN:,} windows would be open at once, over all keys; begin fewer of them, "
        "or end them earlier"
    )


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
def count_since(keys, since, begin, end, rank, count):  # type: ignore[no-untyped-def]
    """How many windows of each key begin at `since[s]` or later: those at the end of its queue."""
    for s in range(keys.shape[0]):
        i = end[keys[s]]
        while i > begin[keys[s]] and rank[i - 1] >= since[s]:
            i -= 1
        count[s] = end[keys[s]] - i


class OpenWindows(KeyQueues):
    """See the module."""

    def __init__(self, tick: np.dtype[Any]) -> None:
        super().__init__((np.int64, tick))
        self.tick = tick

    @property
    def rank(self) -> np.ndarray:
        return self.columns[0]

    @property
    def time(self) -> np.ndarray:
        return self.columns[1]

    def apply(
        self,
        keys: np.ndarray,
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
        start = np.empty(size, self.tick)
        if size:
            queues = (self.begin[keys], self.end[keys])
            pair_up(keys, *queues, *counts, self.rank, self.time, *begun, key, begin, start)
        if len(begun[0]):
            self.push(keys, np.diff(counts[0], prepend=0), begun)
        if size:
            self.pop(keys, np.diff(counts[1], prepend=0))
        return Windows(key, begin, ended[0], ended[1], start)

    def since(self, keys: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Key and rank of the windows of each of these keys that begin at `ranks` or later."""
        count = np.empty(len(keys), np.int64)
        count_since(keys, ranks, self.begin, self.end, self.rank, count)
        end = self.end[keys]
        return np.repeat(keys, count), self.rank[ranges(end - count, end)]

    def save(self) -> dict[str, np.ndarray]:
        key, (rank, time) = self.all()
        return {"open_key": key, "open_rank": rank, "open_time": time}

    def load(self, arrays: dict[str, np.ndarray], keys: int, seen: np.ndarray | None) -> None:
        """The opposite of `save`; a ValueError if the arrays are not what `save` gives."""
        key = required(arrays, "open_key", np.int64)
        rank = required(arrays, "open_rank", np.int64, len(key))
        time = required(arrays, "open_time", self.tick, len(key))
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
        self.grow(keys)
        self.fill(key, (rank, time))

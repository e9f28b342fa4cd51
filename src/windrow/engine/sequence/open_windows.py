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

from windrow.compiling.tiers import jit
from windrow.engine.sequence.queues import BEGIN, END, KeyQueues
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
def pair_up(keys, begun_to, ended_to, edges, numbers, ticks, begun_rank, begun_time, found, start):  # type: ignore[no-untyped-def]
    """Say of each window that ended in a run which one it was, and take it out of its queue: its key and first rank into
    `found`, and its time into `start`.

    Segment s is key `keys[s]`; behind its queue come the entries of `begun_rank` and `begun_time` up to `begun_to[s]`.
    `ended_to[s]` windows have ended up to the end of the segment. How many windows of each segment stay for the queue is
    written to `begun_to`, and those are moved to the front of `begun_rank` and `begun_time`.
    """
    new = j = stay = 0
    for s in range(keys.shape[0]):
        k = keys[s]
        while j < ended_to[s]:
            found[0, j] = k
            if edges[BEGIN, k] < edges[END, k]:
                found[1, j], start[j] = numbers[0, edges[BEGIN, k]], ticks[0, edges[BEGIN, k]]
                edges[BEGIN, k] += 1
            else:
                found[1, j], start[j] = begun_rank[new], begun_time[new]
                new += 1
            j += 1
        old = stay
        while new < begun_to[s]:
            begun_rank[stay], begun_time[stay] = begun_rank[new], begun_time[new]
            stay += 1
            new += 1
        begun_to[s] = stay - old
    return stay


@jit
def list_since(keys, since, edges, numbers):  # type: ignore[no-untyped-def]
    """Key and rank of the windows of each key that begin at `since[s]` or later, at the end of its queue."""
    total = 0
    for fill in range(2):
        out = np.empty((2, total if fill else 0), np.int64)
        total = 0
        for s in range(keys.shape[0]):
            i = edges[END, keys[s]]
            while i > edges[BEGIN, keys[s]] and numbers[0, i - 1] >= since[s]:
                i -= 1
                if fill:
                    out[0, total], out[1, total] = keys[s], numbers[0, i]
                total += 1
    return out


class OpenWindows(KeyQueues):
    """Windows by the rank and the time of their first event."""

    def __init__(self, tick: np.dtype[Any]) -> None:
        super().__init__(1, 1, tick)

    def apply(
        self,
        keys: np.ndarray,
        counts: tuple[np.ndarray, np.ndarray],
        begun: tuple[np.ndarray, np.ndarray],
        ended: tuple[np.ndarray, np.ndarray],
    ) -> Windows:
        """Windows that ended in a run; take them from the queues and add those that began and did not end.

        `counts` are how many windows had begun and ended at the end of each segment, `begun` their
        ranks and times, `ended` the ranks behind them and the ticks they end at. The former three are written over.
        """
        size = len(ended[0])
        found, start = np.empty((2, size), np.int64), np.empty(size, self.ticks.dtype)
        queues = (self.edges, self.numbers, self.ticks)
        stay = pair_up(keys, *counts, *queues, *begun, found, start)
        self.rows -= size - (len(begun[0]) - stay)
        if stay:
            self.push(keys, counts[0], begun[0][None, :stay], begun[1][None, :stay])
        return Windows(found[0], found[1], ended[0], ended[1], start)

    def since(self, keys: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Key and rank of the windows of each of these keys that begin at `ranks` or later."""
        key, rank = list_since(keys, ranks, self.edges, self.numbers)
        return key, rank

    def save(self) -> dict[str, np.ndarray]:
        key, (rank,), (time,) = self.all()
        return {"open_key": key, "open_rank": rank, "open_time": time}

    def load(self, arrays: dict[str, np.ndarray], keys: int, seen: np.ndarray | None) -> None:
        """The opposite of `save`; a ValueError if the arrays are not what `save` gives."""
        key = required(arrays, "open_key", np.int64)
        rank = required(arrays, "open_rank", np.int64, len(key))
        time = required(arrays, "open_time", self.ticks.dtype, len(key))
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
        self.fill(key, rank[None], time[None])

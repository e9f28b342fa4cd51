"""The rival of the windowing library: operators whose windows and logic are one hand-written loop.

Each does one thing with one window: it reads a column, knows its policy and its partitions, and nothing
else. Batches come as Arrow tables and answers leave as an array, as in the library; keys are numbered by the
same code. Sums are those of windrow's mean, so that answers are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from windrow.aggregates.numerics import add_float as add
from windrow.aggregates.numerics import lift_float as lift
from windrow.aggregates.numerics import lower_float as lower
from windrow.compiling.tiers import jit
from windrow.engine.intake.columns import whole
from windrow.engine.intake.keys import Keys


@jit
def averages(number, t, x, size, by_delta, n, first, total, out):  # type: ignore[no-untyped-def]
    """The mean of each tumbling window of `size` rows, or `by_delta` of `size` ticks; how many there were."""
    made = 0
    for i in range(x.shape[0]):
        p = number[i]
        if by_delta:
            if n[p] > 0 and t[i] - first[p] > size:
                out[made] = lower((total[p, 0], total[p, 1], total[p, 2], total[p, 3])) / n[p]
                made += 1
                n[p] = 0
            if n[p] == 0:
                first[p] = t[i]
        lifted = lift(x[i])
        if n[p] == 0:
            total[p, 0], total[p, 1], total[p, 2], total[p, 3] = lifted
        else:
            held = (total[p, 0], total[p, 1], total[p, 2], total[p, 3])
            total[p, 0], total[p, 1], total[p, 2], total[p, 3] = add(held, lifted)
        n[p] += 1
        if not by_delta and n[p] == size:
            out[made] = lower((total[p, 0], total[p, 1], total[p, 2], total[p, 3])) / n[p]
            made += 1
            n[p] = 0
    return made


@jit
def percentiles(number, t, x, size, by_delta, every, ring, times, n, since, last, share, out):  # type: ignore[no-untyped-def]
    """The percentile `share` of the last `size` rows, or ticks, of a partition, every so many rows or ticks."""
    made = 0
    room = ring.shape[1]
    values = np.empty(room, np.float64)
    for i in range(x.shape[0]):
        p = number[i]
        begin, end = n[p, 0], n[p, 1]
        due = False
        if by_delta:
            if since[p] == 0:
                since[p] = 1
                last[p] = t[i]
            elif t[i] - last[p] > every:
                last[p] = t[i]
                due = True
        if due:
            out[made] = ranked(ring[p], begin, end, values, share)
            made += 1
        if by_delta:
            while begin < end and t[i] - times[p, begin % room] > size:
                begin += 1
        elif end - begin == size:
            begin += 1
        ring[p, end % room] = x[i]
        times[p, end % room] = t[i]
        end += 1
        n[p, 0], n[p, 1] = begin, end
        if not by_delta:
            since[p] += 1
            if since[p] == every:
                since[p] = 0
                out[made] = ranked(ring[p], begin, end, values, share)
                made += 1
    return made


@jit
def ranked(ring, begin, end, values, share):  # type: ignore[no-untyped-def]
    """The value at the lower place of a share of the sorted rows."""
    for j in range(begin, end):
        values[j - begin] = ring[j % ring.shape[0]]
    found = np.sort(values[: end - begin])
    return found[int(share * (end - begin - 1))]


@dataclass
class Coupled:
    """A coupled operator: the mean of tumbling windows, or the percentile `share` of sliding ones."""

    size: int
    by_delta: bool
    partitioned: bool
    partitions: int
    every: int = 0
    share: float | None = None
    keys: Keys = field(default_factory=lambda: Keys(pa.schema([("k", pa.int64())])))

    def __post_init__(self) -> None:
        p = self.partitions if self.partitioned else 1
        self._n = np.zeros((p, 2) if self.share is not None else p, np.int64)
        self._first, self._since = np.zeros(p, np.int64), np.zeros(p, np.int64)
        self._total = np.zeros((p, 4))
        if self.share is not None:
            self._ring, self._times = np.zeros((p, self.size + 2)), np.zeros((p, self.size + 2), np.int64)

    def process(self, table: pa.Table) -> np.ndarray:
        """The answers of the windows that a batch has completed."""
        batch = whole(table)
        number = self.keys.numbers(batch) if self.partitioned else np.zeros(batch.num_rows, np.int32)
        t, x = batch.column("t").to_numpy(), batch.column("x").to_numpy()
        out = np.empty(batch.num_rows)
        if self.share is None:
            state = (self._n, self._first, self._total)
            return out[: averages(number, t, x, self.size, self.by_delta, *state, out)]
        state = (self._ring, self._times, self._n, self._since, self._first)
        return out[: percentiles(number, t, x, self.size, self.by_delta, self.every, *state, self.share, out)]

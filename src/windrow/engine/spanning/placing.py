"""Where span events lie among slices.

    slices      |  0  |  1  |  2  |  3  |  4  |
    event           |--------------|                    begins in slice 0, crosses the starts of 1, 2, 3
    begins        0
    low .. high         1  ..  3

A window holds an event that begins in one of its slices, or that goes on across the start of its first slice.
So an event leaves its value in the slice where it begins, and in the carry-over of slices whose starts it crosses:
`low` is the first of these slices and `high` the last one, in which the event ends. `high < low` if it crosses none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.aligned.cutting import Cells, Runs
from windrow.engine.aligned.lookup import lookup
from windrow.engine.arrays import different, ranges

# The slice of the last instant is looked for next to that of the first one, up to this many slices far.
FEW_STEPS = 4
# Runs of events are folded as such if each has at least this many, in the mean.
LONG_RUN = 4


@dataclass
class Ranges:
    """Events upto[r-1] .. upto[r]-1, of one key, cross the starts of slices low[r] .. high[r].

    `base` is the first cell of each slice, `keys` how many keys there are.
    """

    upto: np.ndarray
    low: np.ndarray
    high: np.ndarray
    key: np.ndarray
    base: np.ndarray
    keys: int

    def only(self, rows: np.ndarray) -> Ranges:
        """The ranges of a table that has these rows only (ascending)."""
        kept = np.zeros(self.upto[-1] + 1, np.int64)
        kept[rows + 1] = 1
        return replace(self, upto=np.cumsum(kept)[self.upto])

    def touched(self, limit: int) -> np.ndarray:
        """The different cells of all starts that are crossed, ascending; all are below `limit`.

        Where events are many and long, all slices from the first to the last one, of each key that occurs.
        """
        crosses = np.flatnonzero(self.low <= self.high)
        if not len(crosses):
            return np.empty(0, np.int64)
        low, high, key = (column[crosses].astype(np.int64) for column in (self.low, self.high, self.key))
        keys, first, last = np.unique(key), int(low.min()), int(high.max())
        if int((high - low + 1).sum()) < (last - first + 1) * len(keys):
            slices = ranges(low, high + 1)
            cells = self.base[slices] + np.repeat(key, high - low + 1)
        else:
            cells = (self.base[first : last + 1, None] + keys).ravel()
        return different(cells[cells >= 0], limit)


@dataclass
class Ends:
    """The segments in which events first go on (`entered`) and in which they end (`left`); of those that cross a start."""

    entered: Runs | Cells
    left: Runs | Cells

    def only(self, rows: np.ndarray) -> Ends:
        """The segments of a table that has these rows only."""
        return Ends(self.entered.only(rows), self.left.only(rows))


@dataclass
class Placed:
    """Events in segments: where they `begin`, and where they go on and end; `met` are the starts of all of these slices."""

    begin: Runs | Cells
    ends: Ends
    crossed: Ranges
    crossings: int
    met: np.ndarray

    def only(self, rows: np.ndarray) -> Placed:
        """The places of a table that has these rows only."""
        parts = self.begin.only(rows), self.ends.only(rows), self.crossed.only(rows)
        return Placed(*parts, self.crossings, self.met)


@dataclass
class Grid:
    """Slices between `edges`: those in which events begin and end, and the first cell of each (-1: it has none)."""

    edges: np.ndarray
    first: np.ndarray
    last: np.ndarray
    base: np.ndarray


@jit
def slice_of(t, edges, base, scale, shift, table):  # type: ignore[no-untyped-def]
    """The slice that holds an instant, through the lookup table of the edges."""
    j = np.int64(table[min(max(np.int64((t - base) * scale) >> shift, 0), table.shape[0] - 1)])
    while edges[j] > t:
        j -= 1
    while edges[j + 1] <= t:
        j += 1
    return j


@jit
def slice_at(t, first, step, share):  # type: ignore[no-untyped-def]
    """The same where all slices are of one length: by a product with `share` = 1 / step, which is at most one off."""
    j = np.int64((t - first) * share)
    j -= np.int64(first + j * step > t)
    return j + np.int64(first + (j + 1) * step <= t)


@jit
def fill_positions(times, edges, base, scale, shift, table, out):  # type: ignore[no-untyped-def]
    for i in range(times.shape[0]):
        out[i] = slice_of(times[i], edges, base, scale, shift, table)


def table_of(edges: np.ndarray) -> tuple[Any, Any, Any, np.ndarray]:
    """The lookup table of slices between edges; the outermost edges may be the ends of the number range."""
    inner = edges[1:-1] if len(edges) > 2 else np.zeros(1, edges.dtype)
    return lookup(edges[:-1], inner[0], inner[-1])


def positions(times: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The slice of each time, counted in `edges`, which must enclose all times."""
    position = np.empty(len(times), np.int32)
    fill_positions(times, edges, *table_of(edges), position)
    return position


def step_of(edges: np.ndarray, period: int) -> int:
    """The length of all slices between edges of a progression of this period; 0 if one is missing, or they are many.

    The first edges must not be further apart than a float can tell exactly.
    """
    span = int(edges[-1]) - int(edges[0])
    return period if span == period * (len(edges) - 1) and span < 2**52 else 0


@jit
def find_slices(starts, lasts, threshold, edges, base, scale, shift, table, first, last):  # type: ignore[no-untyped-def]
    """The slices of the first and of the last instant of each event. What lies before `threshold` counts as if it lay there."""
    for i in range(starts.shape[0]):
        t = max(lasts[i], threshold)
        j = slice_of(max(starts[i], threshold), edges, base, scale, shift, table)
        first[i] = j
        steps = 0
        while edges[j + 1] <= t:
            j += 1
            steps += 1
            if steps == FEW_STEPS:
                j = slice_of(t, edges, base, scale, shift, table)
                break
        last[i] = j


@jit
def find_even_slices(starts, lasts, threshold, begin, step, first, last):  # type: ignore[no-untyped-def]
    """As `find_slices`, where slices are `step` long from `begin` on."""
    share = 1.0 / step
    for i in range(starts.shape[0]):
        first[i] = slice_at(max(starts[i], threshold), begin, step, share)
        last[i] = slice_at(max(lasts[i], threshold), begin, step, share)


@jit
def cross(  # type: ignore[no-untyped-def]
    starts, lasts, again, threshold, covered, first, last, upto, begins, low, high, begun, entered, left
):
    """The slices in which events begin and whose starts they cross, counted in slices that lie in some window.

    Mostly an event meets the slices of the one before it; so they are told for runs of events: run r is before event upto[r].
    again[i] says that event i does not begin here, but goes on from an instant that was looked at; empty: all begin. So
    does what ends before `threshold`: it crosses nothing that is looked at. covered[j]: how many of the slices before j
    lie in some window. begins[r] becomes the covered slice in which they begin, or -1; low[r] .. high[r] those whose
    starts they cross. begun[b + 1] becomes true for a slice b in which one begins; entered and left[h + 1] count runs that
    first go on in a slice, and that end in slice h. Returns how many runs there are, and how many starts all events cross.
    """
    runs = crossings = size = np.int64(0)
    met_first = met_last = met_how = np.int64(-1)
    for i in range(starts.shape[0]):
        j, k = first[i], last[i]
        known = starts[i] >= threshold
        gone = lasts[i] < threshold
        new = (known or not gone) and not (again.shape[0] > 0 and again[i])
        how = np.int64(known or gone) + 2 * np.int64(new)
        if j != met_first or k != met_last or how != met_how:
            met_first, met_last, met_how = j, k, how
            b = covered[j] if how == 3 and covered[j + 1] > covered[j] else -1
            lo = covered[j + 1] if how & 1 else covered[j]
            hi = covered[k + 1] - 1
            size = max(np.int64(0), hi - lo + 1)
            begins[runs] = b
            low[runs] = lo
            high[runs] = hi
            begun[b + 1] = True
            if size > 0:
                entered[lo] += 1
                left[hi + 1] += 1
            runs += 1
        crossings += size
        upto[runs - 1] = i + 1
    return runs, crossings


@jit
def give_cells(upto, begins, low, high, key, base, begin, entered, left):  # type: ignore[no-untyped-def]
    """The cells of each event, from the first cells of the slices of its run; -1 is no cell."""
    r = np.int64(0)
    for i in range(key.shape[0]):
        r += np.int64(i == upto[r])
        begin[i] = base[begins[r]] + key[i] if begins[r] >= 0 else -1
        crosses = high[r] >= low[r]
        # The number behind the last slice, and -1 before the first, are places of `base`, too.
        first = base[low[r]] + key[i]
        last = base[high[r]] + key[i]
        entered[i] = first if crosses else -1
        left[i] = last if crosses else -1


def segments_of(
    found: tuple[np.ndarray, ...], key: np.ndarray | None, base: np.ndarray, keys: int
) -> tuple[Runs | Cells, Ends, Ranges]:
    """Where events begin, where they enter and leave, and what they cross; from `upto`, `begins`, `low` and `high` of runs."""
    upto, begins, low, high = found
    count = int(upto[-1])
    if key is None and len(upto) * LONG_RUN <= count:
        begin = np.concatenate([[0], upto[:-1]])

        def runs(slices: np.ndarray, some: np.ndarray) -> Runs:
            return Runs(begin[some], upto[some], base[slices[some]])

        ends = Ends(runs(low, high >= low), runs(high, high >= low))
        return runs(begins, begins >= 0), ends, Ranges(upto, low, high, np.zeros_like(low), base, keys)
    cells = [np.empty(count, np.int64) for _ in range(3)]
    give_cells(*found, np.zeros(count, np.int32) if key is None else key, base, *cells)
    one, entered, left = map(Cells, cells)
    if key is None:
        return one, Ends(entered, left), Ranges(upto, low, high, np.zeros_like(low), base, keys)
    sizes = np.diff(upto, prepend=0)
    each = np.arange(1, count + 1), np.repeat(low, sizes), np.repeat(high, sizes)
    return one, Ends(entered, left), Ranges(*each, key, base, keys)

"""Where events that last lie among slices.

    slices      |  0  |  1  |  2  |  3  |  4  |
    event           |--------------|                    begins in slice 0, crosses the starts of 1, 2, 3
    begins        0
    low .. high         1  ..  3

A window holds an event that begins in one of its slices, or that goes on across the start of its first slice.
So an event leaves its value in the slice where it begins, and is noted at the starts of slices that it crosses:
`low` is the first of these slices and `high` the last one, in which the event ends. `high < low` if it crosses none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from windrow.engine.cache import jit
from windrow.engine.cutting import Cells
from windrow.engine.lookup import lookup

# The slice of the last instant is looked for next to that of the first one, so many slices far.
FEW_STEPS = 4


@dataclass
class Ranges:
    """Event i crosses the starts of slices low[i] .. high[i]; `base` is the first cell of each slice.

    `keys` is how many keys there are.
    """

    low: np.ndarray
    high: np.ndarray
    key: np.ndarray
    base: np.ndarray
    keys: int

    def only(self, rows: np.ndarray) -> Ranges:
        """The ranges of a table that has these rows only."""
        return Ranges(self.low[rows], self.high[rows], self.key[rows], self.base, self.keys)


@dataclass
class Ends:
    """The cells in which events first go on (`entered`) and in which they end (`left`); both are -1 if they cross nothing."""

    entered: Cells
    left: Cells

    def only(self, rows: np.ndarray) -> Ends:
        """The cells of a table that has these rows only."""
        return Ends(self.entered.only(rows), self.left.only(rows))


@dataclass
class Placed:
    """Events in cells: where they `begin`, and where they go on and end."""

    begin: Cells
    ends: Ends
    crossed: Ranges
    crossings: int

    def only(self, rows: np.ndarray) -> Placed:
        """The places of a table that has these rows only."""
        return Placed(self.begin.only(rows), self.ends.only(rows), self.crossed.only(rows), self.crossings)


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
def slice_at(t, first, step):  # type: ignore[no-untyped-def]
    """The same where all slices are of one length: by a product, which is at most one off."""
    j = np.int64((t - first) * (1.0 / step))
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
def find_places(  # type: ignore[no-untyped-def]
    starts,
    lasts,
    again,
    threshold,
    step,
    edges,
    base,
    scale,
    shift,
    table,
    covered,
    first,
    last,
    begins,
    low,
    high,
    marks,
):
    """The slices that events meet, counted in edges (first, last) and in slices that lie in some window (the rest).

    `step` is the length of all slices, or 0. What lies before `threshold` is not looked at. again[i] says that event i does not begin here, but goes on from an
    instant that was looked at; empty: all begin. covered[j]: how many of the slices before j lie in some window.
    begins[i] becomes the covered slice in which it begins, or -1; low[i] .. high[i] those whose starts it crosses. Slices
    that are met are marked in differences. Returns how many starts are crossed by all events together.
    """
    total = 0
    for i in range(starts.shape[0]):
        s, t = starts[i], lasts[i]
        known = s >= threshold
        new = again.shape[0] == 0 or not again[i]
        if not known:
            s = threshold
            if t < s:
                # It crosses nothing that is looked at; as a piece of an event it may go on.
                t, known, new = s, True, False
        if step > 0:
            j = slice_at(s, edges[0], step)
            k = slice_at(t, edges[0], step)
        else:
            j = slice_of(s, edges, base, scale, shift, table)
            k = j
            steps = 0
            while edges[k + 1] <= t:
                k += 1
                steps += 1
                if steps == FEW_STEPS:
                    k = slice_of(t, edges, base, scale, shift, table)
                    break
        first[i] = j
        last[i] = k
        b = covered[j] if known and new and covered[j + 1] > covered[j] else -1
        lo = covered[j + 1] if known else covered[j]
        hi = covered[k + 1] - 1
        begins[i] = b
        low[i] = lo
        high[i] = hi
        # Without a branch, which nobody could foresee where some events cross a start and others do not.
        crosses = np.int64(hi >= lo)
        total += (hi - lo + 1) * crosses
        marks[lo] += crosses
        marks[hi + 1] -= crosses
        if b >= 0:
            marks[b] += 1
            marks[b + 1] -= 1
    return total


@jit
def give_cells(begins, low, high, key, base, begin, entered, left):  # type: ignore[no-untyped-def]
    """The cells of each event, from the first cells of slices; -1 is no cell."""
    for i in range(begins.shape[0]):
        begin[i] = base[begins[i]] + key[i] if begins[i] >= 0 else -1
        crosses = high[i] >= low[i]
        # The number behind the last slice, and -1 before the first, are places of `base`, too.
        first = base[low[i]] + key[i]
        last = base[high[i]] + key[i]
        entered[i] = first if crosses else -1
        left[i] = last if crosses else -1

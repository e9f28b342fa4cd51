"""Windows folded from kept tuples: once per window, from scratch.

The tuples of a window lie in one or more *stretches* of the matrix, each for one window, in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.techniques.rows import Rows
from benchmarks.techniques.tuples import Tuples
from windrow.stores.operations import combine, lift, load, put

if TYPE_CHECKING:
    from benchmarks.techniques.base import Method

# So many tuples of windows are handled at once.
BLOCK = 1 << 22


@dataclass
class Stretches:
    """Stretch s is tuples first[s] .. last[s]-1 of window[s]; windows ascend, and none is without a stretch."""

    window: np.ndarray
    first: np.ndarray
    last: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        return self.last - self.first

    def positions(self) -> tuple[np.ndarray, np.ndarray]:
        """All tuples one by one, and their windows."""
        sizes = self.sizes
        ends = np.cumsum(sizes)
        count = int(ends[-1]) if len(ends) else 0
        position = np.arange(count) + np.repeat(self.first - ends + sizes, sizes)
        return position, np.repeat(self.window, sizes)


@dataclass
class Ended:
    """Windows that are due: which, and where."""

    spec: np.ndarray
    start: np.ndarray
    end: np.ndarray


def fold_stretches(inputs, window, first, last, cells):
    """The partial of each window to the cell of its number, less that of the first; how many combines that took."""
    combines = 0
    for s in range(first.shape[0]):
        w = window[s] - window[0]
        begin = first[s]
        if s == 0 or window[s - 1] != window[s]:
            total = lift(inputs, begin)
            begin += 1
        else:
            total = load(cells, w)
        for i in range(begin, last[s]):
            total = combine(total, lift(inputs, i))
        combines += last[s] - begin
        put(cells, w, total)
    return combines


def fold_stretches_by_key(inputs, keys, window, first, last, row_of, cells, which, key):
    """As `fold_stretches`, a cell for each key of each window; how many cells, and how many combines it took.

    row_of: for each key, the last row that it had (-1 at first). which, key: of each row.
    """
    rows = 0
    combines = 0
    begin = 0
    for s in range(first.shape[0]):
        if s > 0 and window[s - 1] != window[s]:
            begin = rows
        for i in range(first[s], last[s]):
            k = keys[i]
            r = row_of[k]
            if r < begin:
                row_of[k] = rows
                which[rows] = window[s]
                key[rows] = k
                put(cells, rows, lift(inputs, i))
                rows += 1
            else:
                put(cells, r, combine(load(cells, r), lift(inputs, i)))
                combines += 1
    return rows, combines


def folded(method: Method, tuples: Tuples, ended: Ended, stretches: Stretches) -> Iterator[Rows]:
    """Rows of windows from their stretches of tuples, for each key by itself."""
    window, reach = stretches.window, np.cumsum(stretches.sizes)
    begin = 0
    while begin < len(window):
        done = reach[begin - 1] if begin else 0
        most = max(begin + 1, int(np.searchsorted(reach, done + BLOCK, side="right")))
        # A window stays whole.
        stop = int(np.searchsorted(window, window[most - 1], side="right"))
        part = slice(begin, stop)
        yield _block(
            method, tuples, ended, Stretches(window[part], stretches.first[part], stretches.last[part])
        )
        begin = stop


def _block(method: Method, tuples: Tuples, ended: Ended, stretches: Stretches) -> Rows:
    partials, inputs = method.partials, tuples.inputs
    where = (stretches.window, stretches.first, stretches.last)
    low, high = int(stretches.window[0]), int(stretches.window[-1]) + 1
    if tuples.keyed:
        count = method.keys.count
        room = int(min((high - low) * count, stretches.sizes.sum()))
        cells = partials.cells(room)
        window, key = np.empty(room, np.int64), np.empty(room, np.int64)
        run = partials.loop(fold_stretches_by_key)
        rows, combines = run(inputs, tuples.keys, *where, np.full(count, -1), cells, window, key)
        window, key = window[:rows], key[:rows]
        cells = tuple(column[:rows] for column in cells)
    else:
        cells = partials.cells(high - low)
        combines = partials.loop(fold_stretches)(inputs, *where, cells)
        window, key = np.arange(low, high), np.zeros(high - low, np.int64)
    method.combines += int(combines)
    found = Rows(ended.spec[window], ended.start[window], ended.end[window], key, cells)
    if partials.kept:
        position, owner = stretches.positions()
        row = owner - low
        if tuples.keyed:
            pairs = window * count + key
            order = np.argsort(pairs)
            row = order[np.searchsorted(pairs[order], owner * count + tuples.keys[position])]
        found.kept = tuples.kept(position, row)
    return found

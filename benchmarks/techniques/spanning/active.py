"""The active events of a sweep: those that have started before a window ends and not ended before it begins.

    Cumulative    one partial for each key, which gains and loses events
    Selective     a heap for each key, whose root is the event that is selected

Either keeps the partial of each event in the cell of its node. As windows are passed, nodes enter and leave; how many of
them at each window is in `upto`.
"""

from __future__ import annotations

import numpy as np

from benchmarks.techniques.partials import Cells, Partials, events
from benchmarks.techniques.spanning.pairing_heap import meld, remove
from windrow.stores.operations import combine, invert, load, put


def sweep_cumulative(entered, left, upto, owner, cells, active, keys, out):
    """The partial of the active events at each window; how many combines and inversions that took."""
    work = 0
    came = went = 0
    for w in range(upto.shape[1]):
        for n in range(came, upto[0, w]):
            node = entered[n]
            key = owner[node]
            if events(active, key) == 0:
                put(active, key, load(cells, node))
            else:
                put(active, key, combine(load(active, key), load(cells, node)))
                work += 1
        for n in range(went, upto[1, w]):
            node = left[n]
            key = owner[node]
            put(active, key, invert(load(active, key), load(cells, node)))
            work += 1
        came, went = upto[0, w], upto[1, w]
        for key in range(keys):
            if events(active, key) > 0:
                put(out, w * keys + key, load(active, key))
    return work


def sweep_selective(entered, left, upto, owner, cells, links, roots, work, keys, out):
    """The active event that is selected at each window; work[0] counts the comparisons that it took."""
    came = went = 0
    for w in range(upto.shape[1]):
        for n in range(came, upto[0, w]):
            node = entered[n]
            roots[owner[node]] = meld(cells, links, roots[owner[node]], node, work)
        for n in range(went, upto[1, w]):
            node = left[n]
            roots[owner[node]] = remove(cells, links, roots[owner[node]], node, work)
        came, went = upto[0, w], upto[1, w]
        for key in range(keys):
            if roots[key] >= 0:
                put(out, w * keys + key, load(cells, roots[key]))


class Cumulative:
    """The partials of all cumulative functions: of each event, and of the active ones of each key."""

    def __init__(self, partials: Partials) -> None:
        self.partials = partials
        self.cells, self.active = partials.cells(0), partials.cells(0)

    def grow(self, nodes: int, keys: int) -> None:
        """Have room for so many events and keys."""
        self.cells, self.active = (
            grown(self.partials, cells, count) for cells, count in ((self.cells, nodes), (self.active, keys))
        )

    def release(self, read: tuple[np.ndarray, ...], owner: np.ndarray, keys: int, out: Cells) -> int:
        """Windows and keys to `out`, from who enters and leaves on the way; how much work that took."""
        run = self.partials.loop(sweep_cumulative)
        return int(run(*read, owner, self.cells, self.active, keys, out))

    def widen(self) -> None:
        """The first null has come."""
        self.cells, self.active = map(self.partials.split_counts, (self.cells, self.active))

    def recode(self, column: str, moved: np.ndarray) -> None:
        """The codes of a column of strings have changed."""
        for cells in (self.cells, self.active):
            self.partials.recode(cells, column, moved)

    @property
    def live(self) -> int:
        """How many keys have an active event."""
        return int(np.count_nonzero(self.active[self.partials.fields]))

    def clear(self) -> None:
        """No event is left."""
        for cells in (self.cells, self.active):
            cells[self.partials.fields][:] = 0


class Selective:
    """The partials of one selective function: of each event; the active ones of each key are a heap."""

    def __init__(self, partials: Partials) -> None:
        self.partials = partials
        self.cells = partials.cells(0)
        self.links = tuple(np.full(0, -1) for _ in range(3))
        self.roots = np.full(0, -1)

    def grow(self, nodes: int, keys: int) -> None:
        """Have room for so many events and keys."""
        self.cells = grown(self.partials, self.cells, nodes)
        self.links = tuple(np.append(link, np.full(nodes - len(link), -1)) for link in self.links)
        self.roots = np.append(self.roots, np.full(keys - len(self.roots), -1))

    def release(self, read: tuple[np.ndarray, ...], owner: np.ndarray, keys: int, out: Cells) -> int:
        """Windows and keys to `out`, from who enters and leaves on the way; how much work that took."""
        work = np.zeros(1, np.int64)
        run = self.partials.loop(sweep_selective)
        run(*read, owner, self.cells, self.links, self.roots, work, keys, out)
        return int(work[0])

    def widen(self) -> None:
        """The first null has come."""
        self.cells = self.partials.split_counts(self.cells)

    def recode(self, column: str, moved: np.ndarray) -> None:
        """The codes of a column of strings have changed."""
        self.partials.recode(self.cells, column, moved)

    @property
    def live(self) -> int:
        """How many keys have an active event."""
        return int(np.count_nonzero(self.roots >= 0))

    def clear(self) -> None:
        """No event is left."""
        self.cells[self.partials.fields][:] = 0
        for link in (*self.links, self.roots):
            link[:] = -1


def grown(partials: Partials, cells: Cells, count: int) -> Cells:
    """These cells and more, so that there are `count`."""
    if len(cells[0]) == count:
        return cells
    new = partials.cells(count)
    for column, old in zip(new, cells, strict=True):
        column[: len(old)] = old
    return new

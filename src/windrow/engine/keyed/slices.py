"""The live slices of all keys: flat columns, sorted by key and then by time.

    key      0       0       1       1       1
    first    3       9       1       4       8         time of the first event of the slice
    last     5       9       1       6       8         time of the last one
    slot     4       0       2       7       1         where its partials lie

A slice is a stretch of one key's events between which no window begins or ends. What separates two
neighbours is one of Scotty's three kinds of separators (section 7.1.3): *fixed* where a context-free
window has an edge (`edge` differs), *flexible* where only a gap or a mark lies between them, *combined*
where both do. They are not stored: they follow from the columns. New events come as slices of their
own and are joined to their neighbours where nothing separates them any more, so all of `update`,
`merge` and `split` of section 5.2 are one pass of `insert`; a split never divides events, because a new
slice can only come to lie in a gap (section 6.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from windrow.engine.cache import jit


@dataclass
class KeyedSlices:
    """Parallel columns, one entry per slice; see the module.

    `edge` is the beginning of the fixed slice that it lies in. `closed` says for which session windows
    its events are final. `reach[d]` is how far the sessions of dynamic gap d extend. Where the order of
    events matters, `ranked[0]` is the number of events of the key before it, `ranked[1]` is set where a
    window that depends on order begins or ends, and `ranked[2]` and `ranked[3]` are the arrival numbers
    of the first and the last event; elsewhere `ranked` has no rows.
    """

    key: np.ndarray
    first: np.ndarray
    last: np.ndarray
    edge: np.ndarray
    closed: np.ndarray
    slot: np.ndarray
    reach: np.ndarray
    ranked: np.ndarray

    @classmethod
    def empty(cls, tick: np.dtype, dynamic: int, *, ranked: bool) -> KeyedSlices:
        whole, ticks = np.empty(0, np.int64), np.empty(0, tick)
        reach, order = np.empty((dynamic, 0), tick), np.empty((4 if ranked else 0, 0), np.int64)
        return cls(whole, ticks, ticks, ticks, whole, whole, reach, order)

    @property
    def rank(self) -> np.ndarray:
        return self.ranked[0]

    @property
    def opening(self) -> np.ndarray:
        return self.ranked[2]

    @property
    def closing(self) -> np.ndarray:
        return self.ranked[3]

    def __len__(self) -> int:
        return len(self.key)

    @property
    def slots(self) -> np.ndarray:
        return self.slot

    def columns(self) -> Iterator[tuple[str, np.ndarray]]:
        for field in fields(self):
            yield field.name, getattr(self, field.name)

    def where(self, keep: np.ndarray) -> KeyedSlices:
        return KeyedSlices(**{name: column[..., keep] for name, column in self.columns()})

    def joined_with(self, others: KeyedSlices) -> KeyedSlices:
        """Both, one behind the other; not sorted."""
        return KeyedSlices(
            **{
                name: np.concatenate([column, getattr(others, name)], axis=-1)
                for name, column in self.columns()
            }
        )

    def with_new(self, new: KeyedSlices) -> KeyedSlices:
        """Both in order, none joined."""
        return self.joined_with(new).where(merge_order(self.key, self.first, new.key, new.first))

    def insert(
        self, new: KeyedSlices, gap: object, pointwise: bool
    ) -> tuple[KeyedSlices, np.ndarray, np.ndarray]:
        """All slices with the new ones among them, and (into, taken): the slots that were joined.

        `gap` is the smallest gap of a session, -1 if there is none; `pointwise` says that events of
        different times must stay apart.
        """
        together = self.with_new(new)
        return together.joined(together.leads(gap, pointwise))

    def leads(self, gap: object, pointwise: bool) -> np.ndarray:
        """Whether something separates each slice from the one before; see `insert`."""
        columns = (self.key, self.first, self.last, self.edge, self.closed, self.ranked, self.reach)
        return find_leads(*columns, self.first.dtype.type(gap), pointwise)

    def joined(self, leads: np.ndarray) -> tuple[KeyedSlices, np.ndarray, np.ndarray]:
        """Each slice that does not lead, joined to the one that leads before it; see `insert`."""
        if leads.all():
            return self, self.slot[:0], self.slot[:0]
        begin = np.flatnonzero(leads)
        kept = self.where(begin)
        leader = np.cumsum(leads) - 1
        into, taken = kept.slot[leader[~leads]], self.slot[~leads]
        final = np.append(begin[1:], len(self)) - 1
        kept.last = np.maximum.reduceat(self.last, begin)
        if len(self.reach):
            kept.reach = np.maximum.reduceat(self.reach, begin, axis=1)
        if len(self.ranked):
            kept.ranked[3] = self.closing[final]
        return kept, into, taken

    def bounds(self) -> np.ndarray:
        """Where the slices of each key begin, and where the last ones end."""
        return np.append(np.flatnonzero(np.diff(self.key, prepend=-1)), len(self))

    @property
    def nbytes(self) -> int:
        return int(sum(column.nbytes for _, column in self.columns()))


@jit
def merge_order(key, first, other_key, other_first):  # type: ignore[no-untyped-def]
    """The order of both lists together, each sorted by (key, first); entries of the first list go first."""
    count, others = key.shape[0], other_key.shape[0]
    order = np.empty(count + others, np.int64)
    i = 0
    j = 0
    for r in range(count + others):
        if j == others:
            mine = True
        elif i == count:
            mine = False
        elif key[i] != other_key[j]:
            mine = key[i] < other_key[j]
        else:
            mine = first[i] <= other_first[j]
        if mine:
            order[r] = i
            i += 1
        else:
            order[r] = count + j
            j += 1
    return order


@jit
def find_leads(key, first, last, edge, closed, ranked, reach, gap, pointwise):  # type: ignore[no-untyped-def]
    """Whether something separates each slice from the one before it; all are in order."""
    count = key.shape[0]
    leads = np.ones(count, np.bool_)
    furthest = np.empty(reach.shape[0], reach.dtype)
    latest = gap
    for i in range(count):
        apart = (
            i == 0
            or key[i] != key[i - 1]
            or edge[i] != edge[i - 1]
            or closed[i] != closed[i - 1]
            or (ranked.shape[0] > 0 and ranked[1, i] > 0)
            or (gap >= 0 and first[i] > latest + gap)
            or (pointwise and first[i] != latest)
        )
        for d in range(reach.shape[0]):
            apart = apart or first[i] > furthest[d]
        leads[i] = apart
        if apart:
            latest = last[i]
            for d in range(reach.shape[0]):
                furthest[d] = reach[d, i]
        else:
            latest = max(latest, last[i])
            for d in range(reach.shape[0]):
                furthest[d] = max(furthest[d], reach[d, i])
    return leads

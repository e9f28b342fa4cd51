"""FiBA: a B-tree of entries in the order of their times, entered from its two ends.

                 root                 entries are in the leaves, in the order of their times;
               /  |   \\               each node above has its children as one
            left  ..  right
           /  |        |   \\
     finger   ..      ..   finger     a window is three totals, kept along the spines

A finger is a leaf at an end of the tree; the nodes from there to the root are a spine. An entry that comes `d` places
before the end goes up the spine and down again no further than it must, and the totals along the spine are mended
from there. In order, that is the finger alone.

The papers keep entries in inner nodes too. Here they are in the leaves: a node, whatever its level, is then a row of
times and a row of partials, and all of it is combined without a look at another node. And the nodes of the left spine
may run empty, where the papers refill them: evicting then moves nothing, and height is bounded by the right spine.

    order       any
    needs       an associative combine
    time        log d combines per partial amortised, d its distance to the nearer end: a few in order;
                n of them evicted at once as fast as one, but for log n
    space       n / MINIMUM * MAXIMUM partials at worst
    papers      Tangwongsan, Hirzel and Schneider, Optimal and general out-of-order sliding-window
                aggregation, VLDB 2019; Out-of-order sliding-window aggregation with efficient bulk
                evictions and insertions, VLDB 2023
"""

from __future__ import annotations

import numpy as np

from windrow.stores.base import Store
from windrow.stores.fiba.eviction import evict, evict_until
from windrow.stores.fiba.insertion import insert, place
from windrow.stores.fiba.layout import cells, notes
from windrow.stores.fiba.nodes import has_room
from windrow.stores.operations import combine


def create(capacity, identity):
    """The time after the last entry, and the three totals that are a window."""
    return 0, identity, identity, identity, identity


def query(state, cells, notes):
    _, head, middle, last, _ = state
    return combine(combine(head, middle), last)


def grow(old, old_notes, capacity):
    """The same tree with room for `capacity` entries: its cells and notes."""
    wider = tuple(np.empty((cells(capacity), *array.shape[1:]), array.dtype) for array in old)
    for array, wide in zip(old, wider, strict=True):
        wide[: len(array)] = array
    longer = np.zeros(notes(capacity), np.int64)
    longer[: len(old_notes)] = old_notes
    return wider, longer


FIBA = Store("fiba", create, insert, evict, query, cells, notes)

__all__ = [
    "FIBA",
    "create",
    "evict",
    "evict_until",
    "grow",
    "has_room",
    "insert",
    "place",
    "query",
]

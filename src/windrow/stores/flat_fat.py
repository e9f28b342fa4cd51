"""FlatFAT, the flat fixed-size aggregator: a binary tree over a ring, kept in one array.

    1                  abcdefgh               node i has the children 2 i and 2 i + 1, and
    2, 3           abcd        efgh           the leaves are the ring; nodes of places that
    4 .. 7       ab    cd    ef    gh         are free hold the partial of nothing
    8 .. 15     a  b  c  d  e  f  g  h

An insert or an evict changes a leaf, and then each node on the way up to the root. The root is the window, as long
as the window does not run over the end of the ring. If it does, its older part lies on the right, and root and
order disagree: then the window is the right part + the left part, each gathered on one way up.

    ring      |i j . . e f g h|        efgh + ij, not ij + efgh

    order       first in, first out (a tree could change any leaf; the interface does not)
    needs       an associative combine
    time        log n combines per insert, log n per evict, 0 to 2 log n per answer; at worst as well
    space       2 n partials, n rounded up to a power of two
    paper       Tangwongsan, Hirzel, Schneider and Wu, General Incremental Sliding-Window Aggregation, VLDB 2015
"""

from __future__ import annotations

from windrow.stores.base import Store, power_of_two
from windrow.stores.operations import combine, load, put


def create(capacity, identity):
    """Leaves; where the partials begin and end; the partial of nothing."""
    return power_of_two(capacity), 0, 0, identity


def insert(state, cells, notes, partial):
    leaves, front, end, identity = state
    if end == 0:
        for node in range(1, 2 * leaves):
            put(cells, node, identity)
    change(cells, leaves + (end & (leaves - 1)), partial)
    return leaves, front, end + 1, identity


def evict(state, cells, notes):
    leaves, front, end, identity = state
    change(cells, leaves + (front & (leaves - 1)), identity)
    return leaves, front + 1, end, identity


def change(cells, node, partial):
    """Put a partial into a leaf, and bring all nodes above it up to date."""
    put(cells, node, partial)
    while node > 1:
        node >>= 1
        put(cells, node, combine(load(cells, 2 * node), load(cells, 2 * node + 1)))


def query(state, cells, notes):
    leaves, front, end, identity = state
    if front == end:
        return identity
    first = leaves + (front & (leaves - 1))
    last = leaves + ((end - 1) & (leaves - 1))
    if first <= last:
        return load(cells, 1)
    older = load(cells, first)
    while first > 1:
        if first & 1 == 0:
            older = combine(older, load(cells, first + 1))
        first >>= 1
    younger = load(cells, last)
    while last > 1:
        if last & 1 == 1:
            younger = combine(load(cells, last - 1), younger)
        last >>= 1
    return combine(older, younger)


FLAT_FAT = Store("flat_fat", create, insert, evict, query, lambda capacity: 2 * power_of_two(capacity))

"""FlatFAT: a binary tree of partials in an array, over a ring of leaves.

                 1                    node i joins nodes 2i and 2i+1
            2         3               leaf p, counted from 0, is node capacity + (p & (capacity - 1))
          4   5     6   7
          a   b     c   d             capacity 4

Any range of leaves is the join of two nodes per level, at most. A range that runs over the end of the ring is two
ranges. Nodes of several trees may lie in the same cells: node i of a tree is cell `at + i*step`.

    path         after a leaf has changed: all nodes above it       log2(capacity) joins (FlatFAT)
    completed    after a leaf was appended: those that it completes  one join, on average (base intervals)
    rebuilt      after a range of leaves has changed                  as many joins as leaves, about

An empty cell joins without a combine.

paper    Tangwongsan, Hirzel, Schneider and Wu, General incremental sliding-window aggregation, VLDB 2015;
         base intervals: Arasu and Widom, Resource sharing in continuous sliding-window aggregates, VLDB 2004
"""

from __future__ import annotations

from benchmarks.techniques.partials import events
from windrow.stores.operations import combine, load, put


def join(cells, into, left, right):
    """Cell `into` becomes the join of two cells; how many combines that took."""
    if events(cells, right) == 0:
        put(cells, into, load(cells, left))
        return 0
    if events(cells, left) == 0:
        put(cells, into, load(cells, right))
        return 0
    put(cells, into, combine(load(cells, left), load(cells, right)))
    return 1


def path(cells, at, step, capacity, leaf):
    """Bring all nodes above a leaf up to date; how many combines that took."""
    combines = 0
    node = (capacity + (leaf & (capacity - 1))) >> 1
    while node >= 1:
        combines += join(cells, at + node * step, at + 2 * node * step, at + (2 * node + 1) * step)
        node >>= 1
    return combines


def completed(cells, at, step, capacity, leaf):
    """Bring the nodes up to date of which this leaf is the last one; how many combines that took."""
    combines = 0
    node = capacity + (leaf & (capacity - 1))
    while node & 1 and node > 1:
        node >>= 1
        combines += join(cells, at + node * step, at + 2 * node * step, at + (2 * node + 1) * step)
    return combines


def rebuilt(cells, at, step, capacity, first, last):
    """Bring all nodes above leaves first .. last-1 up to date; how many combines that took."""
    if last - first >= capacity:
        return _levels(cells, at, step, capacity, 2 * capacity - 1)
    low, high = first & (capacity - 1), (last - 1) & (capacity - 1)
    if low <= high:
        return _levels(cells, at, step, low + capacity, high + capacity)
    return _levels(cells, at, step, low + capacity, 2 * capacity - 1) + _levels(
        cells, at, step, capacity, high + capacity
    )


def _levels(cells, at, step, low, high):
    combines = 0
    low >>= 1
    high >>= 1
    while low >= 1:
        for node in range(low, high + 1):
            combines += join(cells, at + node * step, at + 2 * node * step, at + (2 * node + 1) * step)
        low >>= 1
        high >>= 1
    return combines


def between(cells, at, step, capacity, first, last):
    """Leaves first .. last-1 as one partial (no matter what, if found is false); found, and how many combines.

    Returns (found, partial, combines).
    """
    low, high = first & (capacity - 1), (last - 1) & (capacity - 1)
    if low <= high:
        return _flat(cells, at, step, capacity, low, high + 1)
    head, left, some = _flat(cells, at, step, capacity, low, capacity)
    tail, right, more = _flat(cells, at, step, capacity, 0, high + 1)
    if head and tail:
        return True, combine(left, right), some + more + 1
    if tail:
        return True, right, some + more
    return head, left, some + more


def _flat(cells, at, step, capacity, low, high):
    """As `between`, of leaves that do not run over the end of the ring."""
    combines = 0
    left = right = load(cells, at + step)
    has_left = has_right = False
    low += capacity
    high += capacity
    while low < high:
        if low & 1:
            if events(cells, at + low * step) > 0:
                if has_left:
                    left = combine(left, load(cells, at + low * step))
                    combines += 1
                else:
                    left = load(cells, at + low * step)
                    has_left = True
            low += 1
        if high & 1:
            high -= 1
            if events(cells, at + high * step) > 0:
                if has_right:
                    right = combine(load(cells, at + high * step), right)
                    combines += 1
                else:
                    right = load(cells, at + high * step)
                    has_right = True
        low >>= 1
        high >>= 1
    if has_left and has_right:
        return True, combine(left, right), combines + 1
    if has_right:
        return True, right, combines
    return has_left, left, combines

"""SlickDeque for aggregates that select: keep only the partials that can still be an answer.

Where combine gives back one of its two partials (max: the larger), a partial that loses against a younger one will
lose for as long as it stays. So the younger one throws it out when it comes, and the answer is always the first
of those that are left:

    came        5 1 4 2 3
    kept        5   4   3        max: 5, then 4, then 3

Beside each partial stands the place at which it came, so that one knows when it leaves.

    order       first in, first out
    needs       a combine that selects
    time        2 combines per partial amortised, n at worst; none per evict or answer
    space       n partials and n numbers at worst (values that fall), 1 at best (values that rise)
    paper       Shein, Chrysanthis and Labrinidis, SlickDeque: High Throughput and Low Latency Incremental
                Sliding-Window Aggregation, EDBT 2018
"""

from __future__ import annotations

from windrow.stores.base import Store, power_of_two
from windrow.stores.operations import combine, load, put, same


def create(capacity, identity):
    """Mask of the ring; begin and end of what is kept; how many have left and have come; the partial of nothing."""
    return power_of_two(capacity) - 1, 0, 0, 0, 0, identity


def insert(state, cells, notes, partial):
    mask, first, last, left, come, identity = state
    while first < last and same(combine(load(cells, (last - 1) & mask), partial), partial):
        last -= 1
    put(cells, last & mask, partial)
    notes[last & mask] = come
    return mask, first, last + 1, left, come + 1, identity


def evict(state, cells, notes):
    mask, first, last, left, come, identity = state
    if notes[first & mask] == left:
        first += 1
    return mask, first, last, left + 1, come, identity


def query(state, cells, notes):
    mask, first, last, _, _, identity = state
    if first == last:
        return identity
    return load(cells, first & mask)


SLICK_DEQUE = Store(
    "slick_deque", create, insert, evict, query, power_of_two, notes=power_of_two, needs="selection"
)

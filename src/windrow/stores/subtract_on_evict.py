"""Subtract-on-evict: one running total, from which the first partial is taken out again when it leaves.

    ring      |a b c d|        total: a+b+c+d
    evict       |b c d|        total - a

Only where taking out is exact. A float sum is refused: after 1e16 has come and gone, what is left of the small
numbers beside it is wrong, and stays wrong.

    order       first in, first out
    needs       an exact inverse, and a combine for which the order does not matter
    time        1 combine per insert, 1 inverse per evict, none per answer; at worst as well
    space       n + 1 partials
    paper       folklore; named so in Hirzel, Schneider and Tangwongsan, Sliding-Window Aggregation Algorithms,
                DEBS 2017
"""

from __future__ import annotations

from windrow.stores.base import Store, power_of_two
from windrow.stores.lazy import touched
from windrow.stores.operations import combine, invert, load, put


def create(capacity, identity):
    """Mask of the ring; where the partials begin and end; all of them as one."""
    return power_of_two(capacity) - 1, 0, 0, identity


def insert(state, cells, notes, partial):
    mask, front, end, total = state
    put(cells, end & mask, partial)
    return mask, front, end + 1, combine(total, partial)


def evict(state, cells, notes):
    mask, front, end, total = state
    return mask, front + 1, end, invert(total, load(cells, front & mask))


def query(state, cells, notes):
    return state[3]


SUBTRACT_ON_EVICT = Store(
    "subtract_on_evict", create, insert, evict, query, power_of_two, needs="inverse", touched=touched
)

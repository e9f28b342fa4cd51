"""FlatFIT, the flat and fast index traverser: what was combined once is remembered where it begins.

Each cell has a partial and, beside it, how far that reaches. To answer, one hops from the front to the end; on the way
back each cell that was met gets the combination from there to the end:

    before     |a  b  c  d  e |        each reaches to the next one: 5 hops
    after      |.  bcde cde de e|      a is not written, it leaves next
    evict a, insert f
               |bcde ... e  f |        2 hops: bcde, f

    order       first in, first out
    needs       an associative combine
    time        none per insert or evict; per answer 3 combines amortised where there is a query at each
                slide, n at worst
    space       n partials and 2 n numbers
    paper       Shein, Chrysanthis and Labrinidis, FlatFIT: Accelerated Incremental Sliding-Window Aggregation
                for Real-Time Analytics, SSDBM 2017
"""

from __future__ import annotations

from windrow.stores.base import Store, power_of_two
from windrow.stores.lazy import evict
from windrow.stores.operations import combine, load, put


def create(capacity, identity):
    """Mask of the ring; where the partials begin and end; the partial of nothing.

    The first half of the notes says how far each cell reaches, the second half has room for the way back.
    """
    return power_of_two(capacity) - 1, 0, 0, identity


def insert(state, cells, notes, partial):
    mask, front, end, identity = state
    put(cells, end & mask, partial)
    notes[end & mask] = end + 1
    return mask, front, end + 1, identity


def query(state, cells, notes):
    mask, front, end, identity = state
    if front == end:
        return identity
    place = notes[front & mask]
    if place == end:
        return load(cells, front & mask)
    met = mask + 1
    while notes[place & mask] != end:
        notes[met] = place & mask
        met += 1
        place = notes[place & mask]
    total = load(cells, place & mask)
    while met > mask + 1:
        met -= 1
        total = combine(load(cells, notes[met]), total)
        put(cells, notes[met], total)
        notes[notes[met]] = end
    return combine(load(cells, front & mask), total)


FLAT_FIT = Store(
    "flat_fit", create, insert, evict, query, power_of_two, notes=lambda capacity: 2 * power_of_two(capacity)
)

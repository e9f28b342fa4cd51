"""Lazy: keep the partials, and combine all of them at each query.

    ring      |a b c d e|        answer: a+b+c+d+e, anew each time

The other stores are compared with it. It is also the best where windows are of a few partials, or are seldom queried.

    order       first in, first out
    needs       an associative combine
    time        n - 1 combines per answer, none per insert or evict
    space       n partials
    paper       called Recal in Zhang, Akbarinia and Toumani, Efficient Incremental Computation of
                Aggregations over Sliding Windows, KDD 2021; the lazy merge of Scotty
"""

from __future__ import annotations

from windrow.stores.base import Store, power_of_two
from windrow.stores.operations import combine, load, put


def create(capacity, identity):
    """Mask of the ring; where the partials begin and end; the partial of nothing."""
    return power_of_two(capacity) - 1, 0, 0, identity


def insert(state, cells, notes, partial):
    mask, front, end, identity = state
    put(cells, end & mask, partial)
    return mask, front, end + 1, identity


def evict(state, cells, notes):
    mask, front, end, identity = state
    return mask, front + 1, end, identity


def query(state, cells, notes):
    mask, front, end, identity = state
    if front == end:
        return identity
    total = load(cells, front & mask)
    for i in range(front + 1, end):
        total = combine(total, load(cells, i & mask))
    return total


def touched(state, inserts, evicts):
    end = state[2]
    return [(end, end + inserts)]


LAZY = Store("lazy", create, insert, evict, query, power_of_two, touched=touched)

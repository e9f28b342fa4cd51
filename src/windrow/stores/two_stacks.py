"""Two-stacks: a queue made of two stacks, each of which knows the combination of all that it holds.

A stack knows that easily: beside each partial lies the combination up to it, and the top one tells all. New partials
are pushed onto the back stack, old ones popped from the front stack. The two grow towards each other in one array:

    back ->                   <- front
    |e  f   g  |  .  .  |a    b   c  d|        partials
    |e  ef  efg|  .  .  |abcd bcd cd d|        beside them, combinations: the window is abcd + efg

Popping from an empty front stack first moves the back stack over to it, top first, which turns the order around.

    order       first in, first out
    needs       an associative combine
    time        3 combines per partial amortised, n at worst
    space       2 n partials
    paper       known from functional programming as a queue of two lists; for windows in Tangwongsan, Hirzel and
                Schneider, In-order Sliding-Window Aggregation in Worst-Case Constant Time, VLDB Journal 2021
"""

from __future__ import annotations

from windrow.stores.base import Store
from windrow.stores.operations import combine, load, put


def create(capacity, identity):
    """Places in the array; size of the back stack; where the front stack has its top; the partial of nothing."""
    return capacity, 0, capacity, identity


def insert(state, cells, notes, partial):
    places, size, top, identity = state
    put(cells, 2 * size, partial)
    together = combine(load(cells, 2 * size - 1), partial) if size > 0 else partial
    put(cells, 2 * size + 1, together)
    return places, size + 1, top, identity


def evict(state, cells, notes):
    places, size, top, identity = state
    if top == places:
        together = identity
        while size > 0:
            size -= 1
            top -= 1
            partial = load(cells, 2 * size)
            together = combine(partial, together)
            put(cells, 2 * top, partial)
            put(cells, 2 * top + 1, together)
    return places, size, top + 1, identity


def query(state, cells, notes):
    places, size, top, identity = state
    if top == places:
        return load(cells, 2 * size - 1) if size > 0 else identity
    front = load(cells, 2 * top + 1)
    return combine(front, load(cells, 2 * size - 1)) if size > 0 else front


TWO_STACKS = Store("two_stacks", create, insert, evict, query, lambda capacity: 2 * capacity)

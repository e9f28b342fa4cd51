"""Two-stacks lite: one ring, whose front half holds combinations and whose back half holds what came.

    front                back
    |abcd bcd cd d|      |e f g|        and e+f+g as one number: a window is the first cell + that number

Evicting from an empty front turns the back around, in place: each of its cells gets the combination from there
to the end. That takes as many combines as there are partials, once for each of them.

    order       first in, first out
    needs       an associative combine
    time        3 combines per partial amortised, n at worst
    space       n + 1 partials
    paper       Tangwongsan, Hirzel and Schneider, In-order sliding-window aggregation in worst-case
                constant time, VLDB Journal 2021
"""

from __future__ import annotations

from windrow.stores.base import Store, power_of_two
from windrow.stores.operations import combine, load, put
from windrow.stores.sba import accumulate_left


def create(capacity, identity):
    """Mask of the ring; begin of the front, of the back, and the end; what the back is together."""
    return power_of_two(capacity) - 1, 0, 0, 0, identity, identity


def insert(state, cells, notes, partial):
    mask, front, back, end, total, identity = state
    put(cells, end & mask, partial)
    return mask, front, back, end + 1, combine(total, partial), identity


def evict(state, cells, notes):
    mask, front, back, end, total, identity = state
    if front == back:
        accumulate_left(cells, mask, front, end)
        back = end
        total = identity
    return mask, front + 1, back, end, total, identity


def query(state, cells, notes):
    mask, front, back, _, total, _ = state
    if front < back:
        return combine(load(cells, front & mask), total)
    return total


def touched(state, inserts, evicts):
    _, front, back, end, _, _ = state
    is_turned = evicts > back - front
    return [(back if is_turned else end, end + inserts)]


TWO_STACKS_LITE = Store("two_stacks_lite", create, insert, evict, query, power_of_two, touched=touched)

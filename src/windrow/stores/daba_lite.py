"""DABA Lite: DABA with one partial per cell, and two combinations beside the ring.

A cell keeps its own partial only until it is worked on. From then on it has the combination that reaches as far as
the arrow shows:

    front       left        right       accumulated    back         end
    |  to back  |  to right |  as they  |    to back   |  as they   |
    |           |           |  came     |              |  came      |
    |   ----------------------------------------------->            |
    |           |  -------->|           |   ----------->            |

What the parts that begin at `right` and at `back` are together is known in two numbers, `middle` and `total`. The
window is the first cell + `total`. `middle` is read only while there are cells between `left` and `right`, and
reaches to `back` all that time, so it is set once for each round.

    order       first in, first out
    needs       an associative combine
    time        at most 3 combines per insert, 2 per evict, 1 per answer; at worst as well
    space       n + 2 partials
    paper       Tangwongsan, Hirzel and Schneider, In-order Sliding-Window Aggregation in Worst-Case Constant
                Time, VLDB Journal 2021
"""

from __future__ import annotations

from windrow.stores.base import Store, power_of_two
from windrow.stores.operations import combine, load, put


def create(capacity, identity):
    """Mask of the ring; front, left, right, accumulated, back and end; middle, total and the partial of nothing."""
    return power_of_two(capacity) - 1, 0, 0, 0, 0, 0, 0, identity, identity, identity


def insert(state, cells, notes, partial):
    mask, front, left, right, accumulated, back, end, middle, total, identity = state
    put(cells, end & mask, partial)
    total = combine(total, partial)
    return step((mask, front, left, right, accumulated, back, end + 1, middle, total, identity), cells)


def evict(state, cells, notes):
    mask, front, left, right, accumulated, back, end, middle, total, identity = state
    return step((mask, front + 1, left, right, accumulated, back, end, middle, total, identity), cells)


def step(state, cells):
    """Bring the front on by one cell."""
    mask, front, left, right, accumulated, back, end, middle, total, identity = state
    if front == back:
        # At most one partial is left, and it is its own combination.
        return mask, front, end, end, end, end, end, identity, identity, identity
    if left == back:
        # All is finished: front and back become the two parts to work on.
        left = front
        right = back
        accumulated = back = end
        middle = total
        total = identity
    if left == right:
        accumulated += 1
        right += 1
    else:
        put(cells, left & mask, combine(load(cells, left & mask), middle))
        accumulated -= 1
        if accumulated + 1 < back:
            gathered = load(cells, (accumulated + 1) & mask)
            put(cells, accumulated & mask, combine(load(cells, accumulated & mask), gathered))
    return mask, front, left + 1, right, accumulated, back, end, middle, total, identity


def query(state, cells, notes):
    mask, front, _, _, _, back, _, _, total, _ = state
    if front < back:
        return combine(load(cells, front & mask), total)
    return total


def touched(state, inserts, evicts):
    """New cells, and one on either side of the front with each step, unless front and back become one."""
    _, front, left, _, accumulated, back, end, *_ = state
    steps = inserts + evicts
    if steps >= back - left:
        return [(front, end + inserts)]
    return [(left, left + steps), (accumulated - steps, accumulated + steps), (end, end + inserts)]


DABA_LITE = Store("daba_lite", create, insert, evict, query, power_of_two, touched=touched)

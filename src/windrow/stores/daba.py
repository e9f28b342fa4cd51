"""DABA, the de-amortised bankers' aggregator: two-stacks that turns the back around bit by bit.

Two-stacks waits until the front is empty and then turns all of the back at once. DABA begins as soon as front and
back are of equal size, and does a step with each insert and each evict, so that no call ever takes long. While it
is at it, the front is in four parts. Beside each partial lies a combination, which reaches as far as the arrow shows:

    front       left        right       accumulated    back         end
    |  to back  |  to right |           |    to back   |            |
    |   ----------------------------------------------->            |
    |           |  -------->|           |   ----------->            |
    |           |           |<--------  |              |<---------  |
                             from right                 from back

A step takes one cell from the part at `left` into the finished one before it, and one cell from the end of the part at
`right` into the accumulated one. When the two meet, all of the front reaches to `back`, and front and back together
become the front.

    order       first in, first out
    needs       an associative combine
    time        at most 4 combines per insert, 3 per evict, 1 per answer; at worst as well
    space       2 n partials
    paper       Tangwongsan, Hirzel and Schneider, Low-Latency Sliding-Window Aggregation in Worst-Case Constant
                Time, DEBS 2017; In-order Sliding-Window Aggregation in Worst-Case Constant Time, VLDB Journal 2021
"""

from __future__ import annotations

from windrow.stores.base import Store, power_of_two
from windrow.stores.operations import combine, load, put


def create(capacity, identity):
    """Mask of the ring; front, left, right, accumulated, back and end; the partial of nothing.

    Partials lie in even cells, and combinations in the odd one behind each.
    """
    return power_of_two(capacity) - 1, 0, 0, 0, 0, 0, 0, identity


def insert(state, cells, notes, partial):
    mask, front, left, right, accumulated, back, end, identity = state
    put(cells, 2 * (end & mask), partial)
    together = partial
    if back < end:
        together = combine(load(cells, 2 * ((end - 1) & mask) + 1), partial)
    put(cells, 2 * (end & mask) + 1, together)
    return step((mask, front, left, right, accumulated, back, end + 1, identity), cells)


def evict(state, cells, notes):
    mask, front, left, right, accumulated, back, end, identity = state
    return step((mask, front + 1, left, right, accumulated, back, end, identity), cells)


def step(state, cells):
    """Bring the front on by one cell."""
    mask, front, left, right, accumulated, back, end, identity = state
    if front == back:
        # At most one partial is left, and it is its own combination.
        return mask, front, end, end, end, end, end, identity
    if left == back:
        # All is finished: front and back become the two parts to work on.
        left = front
        right = back
        accumulated = back = end
    if left == right:
        return mask, front, left + 1, right + 1, accumulated + 1, back, end, identity
    gathered = identity
    if accumulated < back:
        gathered = load(cells, 2 * (accumulated & mask) + 1)
    last = (accumulated - 1) & mask
    first = left & mask
    rest = combine(load(cells, 2 * last + 1), gathered)
    put(cells, 2 * first + 1, combine(load(cells, 2 * first + 1), rest))
    put(cells, 2 * last + 1, combine(load(cells, 2 * last), gathered))
    return mask, front, left + 1, right, accumulated - 1, back, end, identity


def query(state, cells, notes):
    mask, front, _, _, _, back, end, identity = state
    if front == end:
        return identity
    total = load(cells, 2 * (front & mask) + 1)
    if back < end:
        total = combine(total, load(cells, 2 * ((end - 1) & mask) + 1))
    return total


DABA = Store("daba", create, insert, evict, query, lambda capacity: 2 * power_of_two(capacity))

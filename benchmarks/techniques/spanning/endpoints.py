"""An index of endpoints, read from the front: a binary heap of ticks, each with the node of its event.

    ticks    3                      the smallest tick is at 0, and that of place p is at most those of
             5 4                    places 2p + 1 and 2p + 2
             9 6 8

Endpoints come in almost any order and are read in the order of time, each once: O(log n) for either, and less to add
one that comes after most others.
"""

from __future__ import annotations

from windrow.compiling.tiers import jit


@jit
def add_endpoint(ticks, nodes, count, tick, node):
    """One more endpoint in an index of `count`."""
    at = count
    while at > 0:
        above = (at - 1) // 2
        if ticks[above] <= tick:
            break
        ticks[at] = ticks[above]
        nodes[at] = nodes[above]
        at = above
    ticks[at] = tick
    nodes[at] = node


@jit
def drop_first(ticks, nodes, count):
    """Drop the first endpoint of `count`."""
    last = count - 1
    tick, node = ticks[last], nodes[last]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        if below + 1 < last and ticks[below + 1] < ticks[below]:
            below += 1
        if tick <= ticks[below]:
            break
        ticks[at] = ticks[below]
        nodes[at] = nodes[below]
        at = below
    ticks[at] = tick
    nodes[at] = node


@jit
def enlist(starts, lasts, keys, floor, free, owner, started, ended, counts, nodes):
    """Give each event with a last instant of `floor` or later a node, and enter its endpoints; nodes[e] is -1 for others.

    free: how many nodes are free, and which. owner: the key of each node. started, ended: two indexes, ticks and
    nodes, with counts[0] and counts[1] entries. There is room for all.
    """
    keyed = keys.shape[0] > 0
    for e in range(starts.shape[0]):
        nodes[e] = -1
        if lasts[e] < floor:
            continue
        free[0] -= 1
        node = free[1 + free[0]]
        nodes[e] = node
        owner[node] = keys[e] if keyed else 0
        add_endpoint(started[0], started[1], counts[0], starts[e], node)
        add_endpoint(ended[0], ended[1], counts[1], lasts[e], node)
        counts[0] += 1
        counts[1] += 1


@jit
def sweep(begins, finishes, started, ended, counts, entered, left, upto):
    """Read both indexes along windows, which ascend: who enters before each one ends, who left before it began.

    entered, left: nodes in the order of reading. upto: for each window, how many of either there are then.
    """
    came = went = 0
    for w in range(begins.shape[0]):
        while counts[0] > 0 and started[0][0] < finishes[w]:
            entered[came] = started[1][0]
            came += 1
            drop_first(started[0], started[1], counts[0])
            counts[0] -= 1
        while counts[1] > 0 and ended[0][0] < begins[w]:
            left[went] = ended[1][0]
            went += 1
            drop_first(ended[0], ended[1], counts[1])
            counts[1] -= 1
        upto[0, w] = came
        upto[1, w] = went
    return came, went

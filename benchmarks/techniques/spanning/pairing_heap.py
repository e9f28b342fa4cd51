"""Active events ordered by what a selective function prefers: a pairing heap for each key.

    root       the event that the function selects among all that are active
    child      the first of the nodes below a node
    next       the one beside it
    before     the one beside it on the other side, or above it if there is none

An event comes in O(1) comparisons and goes, wherever it is, in O(log n) amortized ones. Events are nodes, -1 is none;
what they are compared by is their partial in `cells`.

Fredman, Sedgewick, Sleator and Tarjan, The pairing heap: a new form of self-adjusting heap, Algorithmica 1986.
"""

from __future__ import annotations

from benchmarks.techniques.partials import beats
from windrow.stores.operations import load


def meld(cells, links, a, b, work):
    """Two heaps as one, by their roots; work[0] counts comparisons."""
    if a < 0:
        return b
    if b < 0:
        return a
    child, following, before = links
    work[0] += 1
    if not beats(load(cells, a), load(cells, b)):
        a, b = b, a
    c = child[a]
    following[b] = c
    if c >= 0:
        before[c] = b
    before[b] = a
    child[a] = b
    return a


def meld_children(cells, links, node, work):
    """The heaps below a node as one: in pairs from the first on, then the pairs from the last back."""
    child, following, before = links
    c = child[node]
    child[node] = -1
    pairs = -1
    while c >= 0:
        d = following[c]
        rest = -1
        if d >= 0:
            rest = following[d]
            following[d] = -1
            before[d] = -1
        following[c] = -1
        before[c] = -1
        pair = meld(cells, links, c, d, work)
        following[pair] = pairs
        pairs = pair
        c = rest
    root = -1
    while pairs >= 0:
        rest = following[pairs]
        following[pairs] = -1
        root = meld(cells, links, root, pairs, work)
        pairs = rest
    return root


def remove(cells, links, root, node, work):
    """The heap without a node."""
    child, following, before = links
    if node == root:
        return meld_children(cells, links, node, work)
    beside, above = following[node], before[node]
    if child[above] == node:
        child[above] = beside
    else:
        following[above] = beside
    if beside >= 0:
        before[beside] = above
    following[node] = -1
    before[node] = -1
    return meld(cells, links, root, meld_children(cells, links, node, work), work)

"""A pairing heap for each partition, in arrays: rows come, and the first of them in sort order leaves.

A node is a row number; `child` and `sibling` are its links, `root` the first row of each partition, `owner` the partition
of each row that is in a heap, and -1 of others. To come
costs one comparison, to leave a logarithmic number, amortised (Fredman, Sedgewick, Sleator and Tarjan,
1986). Rows compare by the numbers `keys[row]`, from left to right, and as they came if all are equal.
"""

from __future__ import annotations

from windrow.compiling.tiers import jit
from windrow.policies.events import AFTER_INSERT, BEFORE_EVICT


@jit
def comes_first(keys, a, b):  # type: ignore[no-untyped-def]
    for c in range(keys.shape[1]):
        if keys[a, c] != keys[b, c]:
            return keys[a, c] < keys[b, c]
    return a < b


@jit
def melded(keys, child, sibling, a, b):  # type: ignore[no-untyped-def]
    """One heap of two; -1 is an empty one."""
    if a < 0:
        return b
    if b < 0:
        return a
    if comes_first(keys, b, a):
        a, b = b, a
    sibling[b] = child[a]
    child[a] = b
    return a


@jit
def without_first(keys, child, sibling, first):  # type: ignore[no-untyped-def]
    """The heap without its first row: children are melded in pairs from left to right, the pairs from right
    to left.
    """
    pairs = -1
    node = child[first]
    while node >= 0:
        other = sibling[node]
        following = -1
        sibling[node] = -1
        if other >= 0:
            following = sibling[other]
            sibling[other] = -1
        pair = melded(keys, child, sibling, node, other)
        sibling[pair] = pairs
        pairs = pair
        node = following
    heap = -1
    while pairs >= 0:
        following = sibling[pairs]
        sibling[pairs] = -1
        heap = melded(keys, child, sibling, heap, pairs)
        pairs = following
    return heap


@jit
def play(kind, row, partition, at, base, keys, child, sibling, owner, root, out, marks):  # type: ignore[no-untyped-def]
    """Rows that come and leave as the tape says; which rows leave in `out`, and where a set of them ends in
    `marks`.

    A set is what one row, or one instant, makes leave of one partition. A partition that is evicted leaves
    as a whole, and is a set if it has rows. Returns how many rows and sets there are.
    """
    count = 0
    sets = 0
    for e in range(kind.shape[0]):
        p = partition[e]
        if kind[e] == AFTER_INSERT:
            node = base + row[e]
            child[node] = -1
            sibling[node] = -1
            owner[node] = p
            root[p] = melded(keys, child, sibling, root[p], node)
            continue
        while root[p] >= 0:
            out[count] = root[p]
            count += 1
            owner[root[p]] = -1
            root[p] = without_first(keys, child, sibling, root[p])
            if kind[e] == BEFORE_EVICT:
                break
        goes_on = (
            e + 1 < kind.shape[0]
            and kind[e] == BEFORE_EVICT
            and kind[e + 1] == BEFORE_EVICT
            and partition[e + 1] == p
            and row[e + 1] == row[e]
            and at[e + 1] == at[e]
        )
        if not goes_on and count > 0 and (sets == 0 or marks[sets - 1] < count):
            marks[sets] = count
            sets += 1
    return count, sets

"""SBA, the sequential boundary aggregator: chunks, each of which is accumulated from both ends.

Partials come in chunks of a fixed length. While a chunk is filled, what it holds is one partial, `csa`
(cumulative slice aggregation). Once it is full, each of its cells gets what lies from there to the chunk's end,
`lcs` (left cumulative slices), in place of the partial that was there. Between the first chunk and the open one
may lie a whole chunk, known as one partial, `ca`.

    chunks     | a  b  c  d  | e  f  g  h  | i  j  .  .
    cells      | .  .  cd d  | .  .  .  .  | i  j
                       front | middle      | last    end
    window            |cd      ca = efgh     csa = ij|         two combines, and one more when j came

The length of a chunk sees to it that there is never more than one in between. A caller that evicts faster than windows
do, and reaches the open chunk, closes it early.

    order       first in, first out
    needs       an associative combine
    time        at most 3 combines per partial, but n / 2 more where a chunk is full; 4 amortised
    space       n + 3 partials, as lcs share the room of the partials
    paper       Zhang, Akbarinia and Toumani, Efficient incremental computation of aggregations over
                sliding windows, KDD 2021, section 4; SBA in section 5.1
"""

from __future__ import annotations

from windrow.stores.base import Store, power_of_two
from windrow.stores.chunks import chunk_of_rows
from windrow.stores.operations import combine, load, put


def create(capacity, identity, chunk=0):
    """Mask of the ring; partials in a chunk; the four places of the picture; how far `lcs` are made; ca, csa.

    A chunk of the shortest length is the default: two of them lie between no two others.
    """
    chunk = max(chunk, chunk_of_rows(capacity))
    return power_of_two(capacity) - 1, chunk, 0, 0, 0, 0, 0, identity, identity, identity


def accumulate_left(cells, mask, low, high):
    """Give each of the cells from `low` to `high` what it is together with those behind it: its `lcs`."""
    lcs = load(cells, (high - 1) & mask)
    for i in range(high - 2, low - 1, -1):
        lcs = combine(load(cells, i & mask), lcs)
        put(cells, i & mask, lcs)


def insert(state, cells, notes, partial):
    mask, chunk, front, middle, last, end, made, ca, csa, identity = state
    put(cells, end & mask, partial)
    csa = combine(csa, partial)
    end += 1
    if end - last == chunk:
        accumulate_left(cells, mask, last, end)
        made = end
        if front == middle:
            middle = end
        else:
            ca = csa
        last = end
        csa = identity
    return mask, chunk, front, middle, last, end, made, ca, csa, identity


def evict(state, cells, notes):
    mask, chunk, front, middle, last, end, made, ca, csa, identity = state
    if front == last:
        middle = last = end
        csa = identity
    front += 1
    if front == middle:
        middle = last
        ca = identity
    if made < middle:
        if front < middle:
            accumulate_left(cells, mask, front, middle)
        made = middle
    return mask, chunk, front, middle, last, end, made, ca, csa, identity


def query(state, cells, notes):
    mask, _, front, middle, last, _, _, ca, csa, _ = state
    if front == last:
        return csa
    lcs = load(cells, front & mask)
    if middle < last:
        lcs = combine(lcs, ca)
    return combine(lcs, csa)


def touched(state, inserts, evicts):
    """New cells, and those before them whose `lcs` are made: of a chunk that is filled or closed early, or is owed."""
    _, chunk, front, middle, last, end, made, *_ = state
    if evicts > last - front:
        return [(front, end + inserts)]
    ranges = [(last if end + inserts - last >= chunk else end, end + inserts)]
    if made < last and evicts >= middle - front:
        ranges.append((middle, last))
    return ranges


SBA = Store("sba", create, insert, evict, query, power_of_two, touched=touched, chunked=True)

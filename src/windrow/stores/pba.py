"""PBA, the parallel boundary aggregator: SBA whose `lcs` are left to a second thread.

`insert` does not accumulate the chunk that it has filled, but hands it to somebody else. No window begins in that
chunk before the next one is all but full, so there is time:

    first thread     | fills chunk 1    | fills chunk 2    | fills chunk 3
    second thread                       | lcs of chunk 1   | lcs of chunk 2
    windows begin                       | in chunk 0       | in chunk 1

Whether somebody is there to take it stands in the notes. If nobody is, the store does it itself when a window reaches
the chunk: an SBA, one chunk later.

    order       first in, first out
    needs       an associative combine
    time        at most 3 combines per partial on the first thread, 1 on the second
    space       n + 3 partials
    paper       Zhang, Akbarinia and Toumani, Efficient incremental computation of aggregations over
                sliding windows, KDD 2021, section 4
"""

from __future__ import annotations

from typing import Any

from windrow.stores.base import Store, power_of_two
from windrow.stores.operations import collect, combine, hand, put
from windrow.stores.sba import accumulate_left, create, query, touched

# Notes: whether somebody is there, has a chunk, and has failed; the chunk, as `accumulate_left` takes it; and the
# addresses of what the two threads wait at.
OPEN, HANDED, FAILED, MASK, LOW, HIGH, READY, DONE = range(8)


def insert(state, cells, notes, partial):
    mask, chunk, front, middle, last, end, made, ca, csa, identity = state
    put(cells, end & mask, partial)
    csa = combine(csa, partial)
    end += 1
    if end - last == chunk:
        if front == middle:
            accumulate_left(cells, mask, last, end)
            made = middle = end
        else:
            ca = csa
            if notes[OPEN] != 0:
                hand(notes, mask, middle, end)
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
        if notes[HANDED] != 0:
            collect(notes)
        elif front < middle:
            accumulate_left(cells, mask, front, middle)
        made = middle
    return mask, chunk, front, middle, last, end, made, ca, csa, identity


def chunk_in(state: tuple[Any, ...]) -> int:
    """How many partials make a chunk."""
    return int(state[1])


def until_boundary(state: tuple[Any, ...]) -> int:
    """How many partials the open chunk still takes."""
    _, chunk, _, _, last, end, *_ = state
    return chunk - (end - last)


def relieved(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """The state after somebody else has made all `lcs`."""
    *before, last, end, _, ca, csa, identity = state
    return *before, last, end, last, ca, csa, identity


PBA = Store(
    "pba",
    create,
    insert,
    evict,
    query,
    power_of_two,
    notes=lambda capacity: DONE + 1,
    touched=touched,
    chunked=True,
)

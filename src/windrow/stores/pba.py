"""PBA, the parallel boundary aggregator: SBA whose `lcs` are left to a second thread.

`insert` does not accumulate the chunk that it has filled. No window begins in that chunk before the next one is all
but full, so there is time for a second thread to do it:

    first thread     | fills chunk 1    | fills chunk 2    | fills chunk 3
    second thread                       | lcs of chunk 1   | lcs of chunk 2
    windows begin                       | in chunk 0       | in chunk 1

Who fills the store in long stretches has that done by a helper, and tells the store so (see `rolling.parallel`). What
the thread has not done the store does itself when a window reaches the chunk: an SBA, one chunk later.

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
from windrow.stores.operations import combine, put
from windrow.stores.sba import accumulate_left, create, evict, query, touched


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
        last = end
        csa = identity
    return mask, chunk, front, middle, last, end, made, ca, csa, identity


def chunk_in(state: tuple[Any, ...]) -> int:
    """How many partials make a chunk."""
    return int(state[1])


def until_boundary(state: tuple[Any, ...]) -> int:
    """How many partials the open chunk still takes."""
    _, chunk, _, _, last, end, *_ = state
    return chunk - (end - last)


def until_asked(state: tuple[Any, ...]) -> int:
    """How many partials can be evicted before the `lcs` of the next chunk are needed."""
    _, _, front, middle, *_ = state
    return middle - front - 1


def owed(state: tuple[Any, ...]) -> tuple[int, int, int] | None:
    """The chunk whose `lcs` are to be made, as `accumulate_left` takes it; None if there is none."""
    mask, _, _, middle, last, _, made, *_ = state
    return (mask, middle, last) if made < last else None


def relieved(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """The state after the second thread has made all `lcs`."""
    *before, last, end, _, ca, csa, identity = state
    return *before, last, end, last, ca, csa, identity


PBA = Store("pba", create, insert, evict, query, power_of_two, touched=touched, chunked=True)

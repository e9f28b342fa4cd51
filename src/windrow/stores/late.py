"""A late event in SBA and PBA: it belongs to a slice that has been in the store for a while.

Sums that hold the slice get one more part. Where the slice lies in a chunk whose `lcs` are made, these are the
cells from there to the left; those to the right, and all other chunks, are left alone:

    chunks     | a  b    c    d | e  f  g  h | i  j
    lcs        | .  bcd  cd   d |            |
    late c'    | .  bcdc' cdc' d |           |              two cells

Of the chunk in between, whoever answers needs `ca` alone, and gets it at once. Its cells can wait for a second
thread, as no window begins there yet: late events do not hold up those in order.

    order       by slice; among the events of a slice and behind it, as they come
    needs       an associative and commutative combine
    time        at most n / 2 combines, on the second thread if the slice lies in the chunk in between
    paper       Zhang, Akbarinia and Toumani, Efficient incremental computation of aggregations over
                sliding windows, KDD 2021, section 6 (future work)
"""

from __future__ import annotations

from typing import Any

from windrow.stores.operations import combine, load, put


def revise(state, ago, partial):
    """Add a partial to the sum that holds the slice before which `ago` others came later; cells are for `widen`."""
    mask, chunk, front, middle, last, end, made, ca, csa, identity = state
    place = end - 1 - ago
    if place >= last:
        csa = combine(csa, partial)
    elif place >= middle:
        ca = combine(ca, partial)
    return mask, chunk, front, middle, last, end, made, ca, csa, identity


def widen(cells, mask, low, place, partial):
    """Add a partial to the cells from `low` to `place`, as `reach` says."""
    for i in range(low, place + 1):
        put(cells, i & mask, combine(load(cells, i & mask), partial))


def reach(state: tuple[Any, ...], ago: int) -> tuple[int, int, int]:
    """The mask of the ring, and the cells that hold the slice: itself, or `lcs` from there to the left."""
    mask, _, front, middle, _, end, made, *_ = state
    place = end - 1 - ago
    if place >= made:
        return mask, place, place
    return mask, middle if place >= middle else front, place


def is_between(state: tuple[Any, ...], ago: int) -> bool:
    """Whether the slice lies in the chunk where no window begins yet."""
    _, _, _, middle, last, end, *_ = state
    return bool(middle <= end - 1 - ago < last)

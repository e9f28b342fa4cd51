"""Loops over a whole column for windows that end with each row, for stores whose work can be seen ahead.

Row by row, a store asks at each step whether something special is due: a chunk is full, a ring begins anew. When
that will next be so is known beforehand, and all rows up to there can be taken in one tight loop:

    rows       . . . . . . . . . . . . . . . . . . . . . . .
    SBA        |---- run -----|!|----- run -----|!|--- run --      ! a chunk is full, the first one is
                                                                      used up, or the ring begins anew

The rows in between go through the store's own functions. Arguments, results and state are those of
`loops.slide_by_one`: batches may take turns between the two, and the answers are the same to the last bit.

Places are unsigned numbers for the compiler. It then need not check at each row whether a place counts from the
end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from windrow.stores.operations import combine, evict, give, insert, invert, lift, load, put, query
from windrow.stores.sba import accumulate_left


def slide_in_chunks(inputs, rows, size, held, state, cells, notes, out):
    """For SBA and PBA, whose state this reads: rows up to a boundary are one run."""
    made = 0
    i = 0
    while i < rows:
        if held == size:
            mask, chunk, front, middle, last, end, accumulated, ca, csa, identity = state
            old = (front + 1) & mask
            new = end & mask
            run = min(rows - i, middle - front - 1, chunk - (end - last) - 1, mask + 1 - max(old, new))
            run = max(0, run)
            whole = middle < last
            for j in range(run):
                partial = lift(inputs, np.uint64(i + j))
                lcs = load(cells, np.uint64(old + j))
                put(cells, np.uint64(new + j), partial)
                csa = combine(csa, partial)
                if whole:
                    lcs = combine(lcs, ca)
                give(out, np.uint64(made + j), combine(lcs, csa), size)
            front += run
            end += run
            state = mask, chunk, front, middle, last, end, accumulated, ca, csa, identity
            i += run
            made += run
            if i == rows:
                break
            state = evict(state, cells, notes)
        else:
            held += 1
        state = insert(state, cells, notes, lift(inputs, i))
        i += 1
        if held == size:
            give(out, made, query(state, cells, notes), size)
            made += 1
    return state, held, made


def slide_and_subtract(inputs, rows, size, held, state, cells, notes, out):
    """For subtract-on-evict: rows up to the end of the ring are one run, for what comes and for what leaves."""
    made = 0
    i = 0
    while i < rows:
        if held < size:
            held += 1
            state = insert(state, cells, notes, lift(inputs, i))
            i += 1
            if held == size:
                give(out, made, query(state, cells, notes), size)
                made += 1
        else:
            mask, front, end, total = state
            old = front & mask
            new = end & mask
            run = min(rows - i, mask + 1 - max(old, new))
            for j in range(run):
                partial = lift(inputs, np.uint64(i + j))
                total = combine(invert(total, load(cells, np.uint64(old + j))), partial)
                put(cells, np.uint64(new + j), partial)
                give(out, np.uint64(made + j), total, size)
            state = mask, front + run, end + run, total
            i += run
            made += run
    return state, held, made


def slide_several(
    inputs, rows, sizes, chunk, seen, csa, identity, cells, mask, sums, wholes, turns, places, out
):
    """For windows of several `sizes`, none below `chunk`: what the open chunk is together after the last row.

    cells:    a ring for partials and their lcs; from `sums` on the csa of a run; from `wholes` on a ring of chunks
    mask:     of the ring of partials; `turns` is the one of the ring of chunks
    places:   for each size, where its answers begin in `out`
    """
    i = 0
    while i < rows:
        current = seen // chunk
        new = seen & mask
        run = min(rows - i, (current + 1) * chunk - seen, mask + 1 - new)
        for j in range(run):
            partial = lift(inputs, np.uint64(i + j))
            put(cells, np.uint64(new + j), partial)
            csa = combine(csa, partial)
            put(cells, np.uint64(sums + j), csa)
        for k in range(sizes.shape[0]):
            made = places[k]
            j = max(0, sizes[k] - 1 - seen)
            while j < run:
                start = seen + j - sizes[k] + 1
                begun = start // chunk
                if begun == current:
                    give(out, made, load(cells, sums + j), sizes[k])
                    made += 1
                    j += 1
                    continue
                old = start & mask
                alike = min(run - j, (begun + 1) * chunk - start, mask + 1 - old)
                between = identity
                for c in range(begun + 1, current):
                    between = combine(between, load(cells, wholes + (c & turns)))
                is_between = begun + 1 < current
                for t in range(alike):
                    lcs = load(cells, np.uint64(old + t))
                    if is_between:
                        lcs = combine(lcs, between)
                    total = combine(lcs, load(cells, np.uint64(sums + j + t)))
                    give(out, np.uint64(made + t), total, sizes[k])
                made += alike
                j += alike
            places[k] = made
        i += run
        seen += run
        if seen == (current + 1) * chunk:
            put(cells, wholes + (current & turns), csa)
            csa = identity
            accumulate_left(cells, mask, seen - chunk, seen)
    return csa


# By the name of a store, for windows that end with each row; other stores have `loops.slide_by_one`.
LOOPS: dict[str, Callable[..., Any]] = {
    "sba": slide_in_chunks,
    "pba": slide_in_chunks,
    "subtract_on_evict": slide_and_subtract,
}

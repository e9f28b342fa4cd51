"""The loops over partials, for any aggregate: names of `stores.operations` stand for its functions.

A *cell* is a position in the columns of a partial. `n` counts the values in each cell. `slot` maps a slice to its place
in the arena; the cells of a slice are the `keys` first ones of the `stride` that begin at `slot * stride`. Windows
are ranges `first[w] .. last[w]` of slices, in time order, and `combine` always gets the earlier partial first.

Partials of sketches are updated in place, by `take`, `begin` and `join` alone.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from windrow.engine.functions.bound_kernels import Operations, compiled_with
from windrow.stores import operations
from windrow.stores.operations import begin, combine, give, invert, join, load, put, take, take_all


@cache
def bound(loop: Any, given: Operations) -> Any:
    """A loop with the operations of an aggregate in it."""
    known = {getattr(operations, name): function for name, function in given.functions}
    return compiled_with(known, loop, given, allocates=loop is merge_tree)


def fold_runs(low, high, cell, inputs, cells, n):  # type: ignore[no-untyped-def]
    """Rows `low[r] .. high[r]` to cell `cell[r]`."""
    for r in range(low.shape[0]):
        if low[r] < high[r]:
            take_all(cells, cell[r], inputs, low[r], high[r])
            n[cell[r]] += high[r] - low[r]


def fold_cells(cell, inputs, cells, n):  # type: ignore[no-untyped-def]
    """Row `i` to cell `cell[i]`; -1 is no cell."""
    for i in range(cell.shape[0]):
        if cell[i] >= 0:
            take(cells, cell[i], inputs, i)
            n[cell[i]] += 1


def absorb_slots(into, taken, stride, keys, cells, n):  # type: ignore[no-untyped-def]
    """Join slots `taken` onto slots `into`, in the order given."""
    for r in range(into.shape[0]):
        for k in range(keys):
            i, j = into[r] * stride + k, taken[r] * stride + k
            join(cells, i, cells, j, n[j])
            n[i] += n[j]


def absorb_rows(cell, rows, rn, cells, n):  # type: ignore[no-untyped-def]
    """Join the partials `rows` onto these cells; -1 is no cell."""
    for i in range(cell.shape[0]):
        # What a partial of no value holds is nobody's business.
        if cell[i] >= 0 and rn[i] > 0:
            join(cells, cell[i], rows, i, rn[i])
            n[cell[i]] += rn[i]


def lower_all(cells, n, answers):  # type: ignore[no-untyped-def]
    """Partials to answers, the last of which says where the others are defined."""
    for i in range(n.shape[0]):
        give(answers, i, load(cells, i), n[i])


def merge_lazy(first, last, slot, stride, keys, cells, n, out, on):  # type: ignore[no-untyped-def]
    """The slices of each window, one by one."""
    for w in range(first.shape[0]):
        base = slot[first[w]] * stride
        for k in range(keys):
            begin(out, w * keys + k, cells, base + k, n[base + k])
            on[w * keys + k] = n[base + k]
        for r in range(first[w] + 1, last[w]):
            base = slot[r] * stride
            for k in range(keys):
                join(out, w * keys + k, cells, base + k, n[base + k])
                on[w * keys + k] += n[base + k]


def merge_rows(first, last, key, slot, stride, cells, n, out, on):  # type: ignore[no-untyped-def]
    """The slices first[i] .. last[i] of one key for each row i; the caller has put the identity into `out`, and zeros into `on`."""
    for i in range(first.shape[0]):
        for r in range(first[i], last[i]):
            j = slot[r] * stride + key[i]
            if n[j] > 0:
                join(out, i, cells, j, n[j])
                on[i] += n[j]


def merge_prefix(first, last, low, high, slot, stride, keys, cells, n, totals, tn, out, on):  # type: ignore[no-untyped-def]
    """Running totals of all slices. The caller has put the identity into the first `keys` of them, and zeros into `tn`."""
    for r in range(low, high):
        base = slot[r] * stride
        d = (r - low) * keys
        for k in range(keys):
            put(totals, d + keys + k, combine(load(totals, d + k), load(cells, base + k)))
            tn[d + keys + k] = tn[d + k] + n[base + k]
    for w in range(first.shape[0]):
        a = (first[w] - low) * keys
        b = (last[w] - low) * keys
        for k in range(keys):
            put(out, w * keys + k, invert(load(totals, b + k), load(totals, a + k)))
            on[w * keys + k] = tn[b + k] - tn[a + k]


def merge_tree(first, last, low, high, slot, stride, keys, cells, n, nodes, nn, out, on):  # type: ignore[no-untyped-def]
    """A tree of slices: node i of a level joins nodes 2i and 2i+1 of the level below, and level 0 is the slices."""
    offset = np.zeros(65, np.int64)
    size = high - low
    level = 0
    offset[1] = size
    for r in range(size):
        base = slot[low + r] * stride
        for k in range(keys):
            put(nodes, r * keys + k, load(cells, base + k))
            nn[r * keys + k] = n[base + k]
    while size > 1:
        for i in range(size // 2):
            left = (offset[level] + 2 * i) * keys
            d = (offset[level + 1] + i) * keys
            for k in range(keys):
                put(nodes, d + k, combine(load(nodes, left + k), load(nodes, left + keys + k)))
                nn[d + k] = nn[left + k] + nn[left + keys + k]
        size //= 2
        level += 1
        offset[level + 1] = offset[level] + size
    chosen = np.empty(128, np.int64)
    for w in range(first.shape[0]):
        a = first[w] - low
        b = last[w] - low
        count = 0
        right = 128
        level = 0
        while a < b:
            if a & 1:
                chosen[count] = offset[level] + a
                count += 1
                a += 1
            if b & 1:
                b -= 1
                right -= 1
                chosen[right] = offset[level] + b
            a >>= 1
            b >>= 1
            level += 1
        for j in range(right, 128):
            chosen[count] = chosen[j]
            count += 1
        for j in range(count):
            base = chosen[j] * keys
            for k in range(keys):
                if j == 0:
                    put(out, w * keys + k, load(nodes, base + k))
                    on[w * keys + k] = nn[base + k]
                else:
                    join(out, w * keys + k, nodes, base + k, nn[base + k])
                    on[w * keys + k] += nn[base + k]


def merge_stacks(first, last, low, high, slot, stride, keys, cells, n, sums, sn, out, on):  # type: ignore[no-untyped-def]
    """A queue of slices `start .. end`. Those before `turn` have in `sums` what they make up to there; the others are
    one total, in the last cells of `sums`."""
    start = turn = end = low
    total = (high - low) * keys
    for w in range(first.shape[0]):
        if first[w] < start or last[w] < end or first[w] >= end:
            turn = end = first[w]
        start = first[w]
        if turn == end < last[w]:
            base = slot[end] * stride
            for k in range(keys):
                put(sums, total + k, load(cells, base + k))
                sn[total + k] = n[base + k]
            end += 1
        for r in range(end, last[w]):
            base = slot[r] * stride
            for k in range(keys):
                join(sums, total + k, cells, base + k, n[base + k])
                sn[total + k] += n[base + k]
        end = max(end, last[w])
        if start > turn:
            base = slot[end - 1] * stride
            d = (end - 1 - low) * keys
            for k in range(keys):
                put(sums, d + k, load(cells, base + k))
                sn[d + k] = n[base + k]
            for r in range(end - 2, start - 1, -1):
                base = slot[r] * stride
                d = (r - low) * keys
                for k in range(keys):
                    put(sums, d + k, combine(load(cells, base + k), load(sums, d + keys + k)))
                    sn[d + k] = n[base + k] + sn[d + keys + k]
            turn = end
        a = total if start == turn else (start - low) * keys
        for k in range(keys):
            put(out, w * keys + k, load(sums, a + k))
            on[w * keys + k] = sn[a + k]
        if start < turn < end:
            for k in range(keys):
                join(out, w * keys + k, sums, total + k, sn[total + k])
                on[w * keys + k] += sn[total + k]

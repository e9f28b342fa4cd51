"""Values of given ranks in ranges whose ends never go back: rolling medians.

Rows before a turn and rows behind it (see `two_ends`) are two sorted, doubly linked lists:

    before      2 <-> 3 <-> 8            rows leave it, in order of time: unlinked
    behind      1 <-> 5 <-> 9            rows come into it: all were in it once, were unlinked backwards, and are linked again where they were
                      ^                  each list has a pointer: what is before both is less than what is behind, and as many as the rank says

A row that comes or goes moves the pointers by a step or two, so a range costs no more than its steps. The list behind becomes the list before at the
next turn, and each row is sorted once, with the others of its turn: O(log rows of a window) for each row.

Suomela, Median Filtering is Equivalent to Sorting, arXiv 1406.1717; there for windows of a fixed number of rows, here for all whose ends never go back.
"""

from __future__ import annotations

import numpy as np

from windrow.compiling.tiers import jit

# Runs of so many numbers are sorted by insertion.
FEW = 16


@jit
def sort_places(values, begin, end, order, keys, spare_order, spare_keys):  # type: ignore[no-untyped-def]
    """The places begin .. end-1 by their values, and among equal ones by place, into `order`; the others have room for as many."""
    count = end - begin
    for low in range(0, count, FEW):
        high = min(low + FEW, count)
        for i in range(low, high):
            value = values[begin + i]
            j = i
            while j > low and keys[j - 1] > value:
                keys[j] = keys[j - 1]
                order[j] = order[j - 1]
                j -= 1
            keys[j] = value
            order[j] = begin + i
    width = FEW
    while width < count:
        for low in range(0, count, 2 * width):
            middle = min(low + width, count)
            high = min(low + 2 * width, count)
            i = low
            j = middle
            k = low
            while i < middle and j < high:
                # Without a jump: which of two comes next cannot be foreseen.
                left = keys[i] <= keys[j]
                spare_keys[k] = keys[i] if left else keys[j]
                spare_order[k] = order[i] if left else order[j]
                i += left
                j += not left
                k += 1
            while i < middle:
                spare_keys[k] = keys[i]
                spare_order[k] = order[i]
                i += 1
                k += 1
            while j < high:
                spare_keys[k] = keys[j]
                spare_order[k] = order[j]
                j += 1
                k += 1
        for k in range(count):
            keys[k] = spare_keys[k]
            order[k] = spare_order[k]
        width *= 2


@jit
def longest_turn(low, high):  # type: ignore[no-untyped-def]
    """The most rows of two neighbouring turns together, for which `select_in_ranges` needs room."""
    most = 0
    i = 0
    while i < low.shape[0]:
        turn = high[i]
        j = i + 1
        while j < low.shape[0] and low[j - 1] <= low[j] < turn and high[j - 1] <= high[j]:
            j += 1
        most = max(most, high[j - 1] - low[i])
        if j < low.shape[0] and low[j] < high[j - 1] <= high[j]:
            most = max(most, high[j] - low[i])
        i = j
    return most


@jit
def select_in_ranges(values, low, high, place, below, above, room, smaller, larger):  # type: ignore[no-untyped-def]
    """The values of ranks below[p] and above[p], which is the same or the next one, of each range that has any row.

    `room` is what `longest_turn` gives.
    """
    count = low.shape[0]
    order = np.empty(room + 1, np.int64)
    keys = np.empty(room + 1, np.int64)
    spare_order = np.empty(room + 1, np.int64)
    spare_keys = np.empty(room + 1, np.int64)
    # Of both lists: values, links, and where in it a row is. The last entry is in front of the first one and behind the last one.
    a_value = np.empty(room + 2, np.int64)
    b_value = np.empty(room + 2, np.int64)
    a_next = np.empty(room + 2, np.int64)
    b_next = np.empty(room + 2, np.int64)
    a_before = np.empty(room + 2, np.int64)
    b_before = np.empty(room + 2, np.int64)
    a_rank = np.empty(room + 1, np.int64)
    b_rank = np.empty(room + 1, np.int64)
    sorted_from = 0
    sorted_to = 0
    i = 0
    while i < count:
        turn = high[i]
        start = low[i]
        if start >= turn:
            i += 1
            continue
        j = i + 1
        while j < count and low[j - 1] <= low[j] < turn and high[j - 1] <= high[j]:
            j += 1
        # Rows before the turn: those of the rows sorted last, which reach as far as here, or else sorted now.
        if not (sorted_from <= start and sorted_to == turn):
            sort_places(values, start, turn, order, keys, spare_order, spare_keys)
            sorted_from = start
            sorted_to = turn
        na = 0
        for k in range(sorted_to - sorted_from):
            row = order[k]
            if row >= start:
                a_rank[row - start] = na
                a_value[na] = keys[k]
                na += 1
        for k in range(na):
            a_next[k] = k + 1
            a_before[k] = k - 1
        a_next[na] = 0
        a_before[na] = na - 1
        a_before[0] = na
        # Rows behind it: up to where the next turn will be, if it shares rows with this one.
        stop = high[j - 1]
        if j < count and low[j] < stop <= high[j]:
            stop = high[j]
        sort_places(values, turn, stop, order, keys, spare_order, spare_keys)
        sorted_from = turn
        sorted_to = stop
        nb = stop - turn
        for k in range(nb):
            b_rank[order[k] - turn] = k
            b_value[k] = keys[k]
            b_next[k] = k + 1
            b_before[k] = k - 1
        b_next[nb] = 0
        b_before[nb] = nb - 1
        b_before[0] = nb
        for k in range(nb - 1, -1, -1):
            r = b_rank[k]
            b_next[b_before[r]] = b_next[r]
            b_before[b_next[r]] = b_before[r]
        pa = a_next[na]
        pb = nb
        before = 0
        gone = start
        come = turn
        for p in range(i, j):
            while gone < low[p]:
                r = a_rank[gone - start]
                if r < pa:
                    before -= 1
                elif r == pa:
                    pa = a_next[r]
                a_next[a_before[r]] = a_next[r]
                a_before[a_next[r]] = a_before[r]
                gone += 1
            while come < high[p]:
                r = b_rank[come - turn]
                b_next[b_before[r]] = r
                b_before[b_next[r]] = r
                if r < pb:
                    if b_next[r] != pb or pa == na or b_value[r] <= a_value[pa]:
                        before += 1
                    else:
                        pb = r
                come += 1
            rank = below[p]
            while before < rank:
                if pb == nb or (pa < na and a_value[pa] <= b_value[pb]):
                    pa = a_next[pa]
                else:
                    pb = b_next[pb]
                before += 1
            while before > rank:
                x = a_before[pa]
                y = b_before[pb]
                if y == nb or (x < na and a_value[x] >= b_value[y]):
                    pa = x
                else:
                    pb = y
                before -= 1
            first_is_a = pb == nb or (pa < na and a_value[pa] <= b_value[pb])
            least = a_value[pa] if first_is_a else b_value[pb]
            smaller[place[p]] = least
            if above[p] > rank:
                x = a_next[pa] if first_is_a else pa
                y = pb if first_is_a else b_next[pb]
                if y == nb or (x < na and a_value[x] <= b_value[y]):
                    least = a_value[x]
                else:
                    least = b_value[y]
            larger[place[p]] = least
        i = j


@jit
def count_different(codes, low, high, place, held, out):  # type: ignore[no-untyped-def]
    """How many different codes each range has; `held` counts the rows of each code in the range, and begins with zeros."""
    begin = np.int64(0)
    end = np.int64(0)
    different = 0
    for p in range(low.shape[0]):
        a, b = low[p], high[p]
        if a >= end or b < end or a < begin:
            for row in range(begin, end):
                held[codes[row]] = 0
            different = 0
            begin = a
            end = a
        for row in range(end, b):
            held[codes[row]] += 1
            different += held[codes[row]] == 1
        end = b
        for row in range(begin, a):
            held[codes[row]] -= 1
            different -= held[codes[row]] == 0
        begin = a
        out[place[p]] = different

"""Partials of ranges whose ends never go back, each from two partials: what lies before a turn, and what lies behind it.

    rows       . . . . . . . . . . . .
    ranges     |-----------|                   the turn is where the first range ends
                 |-------------|
                       |-------------|
                               ^               a range that begins here has a turn of its own
    from the turn back   <-----|
    from the turn on           |---->          two running combinations, and one combine for each range

All ranges are known, so the queue of two-stacks lite (Tangwongsan et al., VLDB Journal 2021) needs no room for what comes: its front is made
going back from the turn, only where ranges begin, and its back is one number. Each row is combined twice and each range once, however long
the ranges are and however many they are.

    order       ranges first in, first out; no order among partials is changed
    needs       an associative combine
    time        2 combines per row, 1 per range
    space       1 partial per range
"""

from __future__ import annotations

from windrow.stores.operations import combine, give, invert, lift, load, put


def answer_ranges(inputs, low, high, place, scratch, identity, out):  # type: ignore[no-untyped-def]
    """Range p is rows low[p] .. high[p] - 1, and its answer goes to place[p]; `scratch` has room for as many partials as there are ranges."""
    count = low.shape[0]
    i = 0
    while i < count:
        turn = high[i]
        if low[i] >= turn:
            give(out, place[i], identity, 0)
            i += 1
            continue
        j = i + 1
        while j < count and low[j - 1] <= low[j] < turn and high[j - 1] <= high[j]:
            j += 1
        row = turn - 1
        total = lift(inputs, row)
        for p in range(j - 1, i - 1, -1):
            while row > low[p]:
                row -= 1
                total = combine(lift(inputs, row), total)
            put(scratch, p - i, total)
        row = turn
        total = identity
        for p in range(i, j):
            while row < high[p]:
                total = combine(total, lift(inputs, row))
                row += 1
            if row > turn:
                give(out, place[p], combine(load(scratch, p - i), total), high[p] - low[p])
            else:
                give(out, place[p], load(scratch, p - i), high[p] - low[p])
        i = j


def fill_totals(inputs, totals):  # type: ignore[no-untyped-def]
    """Totals of the rows before each row, and of all; the caller has put the identity into the first one."""
    total = load(totals, 0)
    for row in range(inputs[0].shape[0]):
        total = combine(total, lift(inputs, row))
        put(totals, row + 1, total)


def answer_by_totals(totals, low, high, place, out):  # type: ignore[no-untyped-def]
    """As `answer_ranges`, of partials that can be taken out again exactly: the difference of two totals."""
    for p in range(low.shape[0]):
        give(out, place[p], invert(load(totals, high[p]), load(totals, low[p])), high[p] - low[p])

"""The loop of `loop` once more, for windows in which next to nothing can happen: no partition is evicted, no handler
waits, and only flushes or triggers are written down. Most windows of aggregates are such, and this is their speed.

    tumble    tumbling windows whose rows are folded into cells
    slide     sliding windows, count(n), count(m); in slices or not

The state is the same, and so is the outcome; both are compared with the same model. A row is taken whole or not at all.
"""

from __future__ import annotations

import numpy as np

from windrow.compiling.tiers import jit
from windrow.policies import events
from windrow.policies.events import BEFORE_FLUSH, TRIGGER
from windrow.policies.layout import DONE, FULL, LIVE, NEEDS_CELLS, NEEDS_TAPE, by, of
from windrow.policies.steps import close, exceeds, note
from windrow.policies.subwindows import create, remove


def is_plain(settings: np.ndarray) -> bool:
    """Whether a window is one of those that these loops are for."""
    recorded = int(settings[of.RECORD])
    if settings[of.STOP] or settings[of.PARTITIONS]:
        return False
    if settings[of.FOLDED]:
        return not recorded & ~events.mask_of(["before_flush"])
    by_count = settings[of.EVICTION] == settings[of.TRIGGERING] == by.COUNT and settings[of.SIZE] > 0
    return bool(settings[of.SLIDING] and by_count and not recorded & ~events.mask_of(["trigger"]))


@jit
def tumble(  # type: ignore[no-untyped-def]
    numbers, evicting, threshold, now, table, marks, oldest, position, heap, dues, free, closed, tape, s, g
):
    """Give each row the cell of its subwindow; why it returned."""
    eviction, size, clocked, record = (
        s[of.EVICTION],
        s[of.SIZE],
        s[of.CLOCKED] == 1,
        s[of.RECORD] >> BEFORE_FLUSH & 1,
    )
    added = 0
    status = DONE
    i = g[of.ROW]
    while i < numbers.shape[0]:
        p = np.uint64(numbers[i])
        cell = table[p, of.CELL] if table[p, of.FLAGS] & LIVE else np.int64(-1)
        held = table[p, of.TAIL] - table[p, of.HEAD]
        flushed = eviction == by.DELTA and cell >= 0 and exceeds(evicting[i], oldest[p], threshold)
        if cell < 0 or flushed:
            if g[of.FREE] == 0:
                status = NEEDS_CELLS
                break
            if g[of.TAPE] + 2 > tape.shape[1]:
                status = NEEDS_TAPE
                break
            if table[p, of.FLAGS] & LIVE == 0:
                create(table, heap, dues, g, s, marks, clocked, now, np.int64(p))
            if flushed:
                if record:
                    note(tape, g, BEFORE_FLUSH, i, p, cell, table[p, of.HEAD], table[p, of.TAIL], now)
                close(table, closed, g, p, True)
                held = 0
            g[of.FREE] -= 1
            cell = free[g[of.FREE]]
            table[p, of.CELL] = cell
            if eviction == by.DELTA:
                oldest[p] = evicting[i]
        elif g[of.TAPE] + 2 > tape.shape[1]:
            status = NEEDS_TAPE
            break
        position[i] = cell
        table[p, of.TAIL] += 1
        table[p, of.UPDATES] += 1
        table[p, of.UPDATED_AT] = now
        added += 1
        if eviction == by.COUNT and held + 1 >= size:
            if record:
                note(tape, g, BEFORE_FLUSH, i, p, cell, table[p, of.HEAD], table[p, of.TAIL], now)
            close(table, closed, g, p, True)
            remove(table, heap, dues, g, s, closed, clocked, np.int64(p))
        i += 1
    g[of.TOTAL] += added
    g[of.ROW] = i
    return status


@jit
def slide(numbers, now, base, table, marks, order, position, heap, dues, tape, s, g):  # type: ignore[no-untyped-def]
    """Put each row in its place; why it returned."""
    size, every, rows_of_slice = s[of.SIZE], s[of.EVERY], s[of.SLICE]
    partial, record = s[of.PARTIAL] == 1, s[of.RECORD] >> TRIGGER & 1
    room, keeps_rows = tape.shape[1], order.shape[0] > 0
    added = 0
    status = DONE
    i = g[of.ROW]
    while i < numbers.shape[0]:
        if g[of.TAPE] == room:
            status = NEEDS_TAPE
            break
        p = np.uint64(numbers[i])
        if table[p, of.FLAGS] & LIVE == 0:
            create(table, heap, dues, g, s, marks, False, now, np.int64(p))
        filled = table[p, of.FILLED]
        tail = table[p, of.TAIL]
        if filled == 0:
            if tail - table[p, of.HEAD] >= size:
                table[p, of.HEAD] += 1
                added -= 1
            if keeps_rows:
                order[np.uint64(tail)] = base + i
            position[i] = tail
            tail += 1
            table[p, of.TAIL] = tail
            added += 1
        else:
            position[i] = -tail
        if rows_of_slice > 0:
            filled = 0 if filled + 1 == rows_of_slice else filled + 1
            table[p, of.FILLED] = filled
        if filled == 0 and tail - table[p, of.HEAD] >= size:
            table[p, of.FLAGS] |= FULL
        table[p, of.UPDATES] += 1
        table[p, of.UPDATED_AT] = now
        since = table[p, of.SINCE] + 1
        if since >= every:
            since = 0
            if record and (partial or table[p, of.FLAGS] & FULL):
                note(tape, g, TRIGGER, i, p, -1, table[p, of.HEAD], tail, now)
        table[p, of.SINCE] = since
        i += 1
    g[of.TOTAL] += added
    g[of.ROW] = i
    return status

"""The loop of `loop` once more, for windows in which next to nothing can happen: no partition is evicted, no handler
waits, and only flushes or triggers are written down. Most windows of aggregates are such, and this is their speed.

    tumble    tumbling windows whose rows are folded into cells
    slide     sliding windows, count(n), count(m); in slices or not

The state is the same, and so is the outcome; both are compared with the same model. A row is taken whole or not at all.
"""

from __future__ import annotations

import numpy as np

from windrow.engine.cache import jit
from windrow.policies import events, layout
from windrow.policies.events import BEFORE_FLUSH, TRIGGER
from windrow.policies.layout import (
    CELL,
    CLOCKED,
    CLOSED,
    COUNT,
    DELTA,
    DONE,
    EVERY,
    EVICTION,
    FILLED,
    FLAGS,
    FREE,
    FULL,
    HEAD,
    LIVE,
    NEEDS_CELLS,
    NEEDS_TAPE,
    PARTIAL,
    RECORD,
    ROW,
    SINCE,
    SIZE,
    SLICE,
    TAIL,
    TAPE,
    TOTAL,
    UPDATED_AT,
    UPDATES,
)
from windrow.policies.steps import exceeds, note
from windrow.policies.subwindows import create, remove


def is_plain(settings: np.ndarray) -> bool:
    """Whether a window is one of those that these loops are for."""
    recorded = int(settings[layout.RECORD])
    if settings[layout.STOP] or settings[layout.PARTITIONS]:
        return False
    if settings[layout.FOLDED]:
        return not recorded & ~events.mask_of(["before_flush"])
    by_count = settings[layout.EVICTION] == settings[layout.TRIGGERING] == COUNT and settings[layout.SIZE] > 0
    return bool(settings[layout.SLIDING] and by_count and not recorded & ~events.mask_of(["trigger"]))


@jit
def tumble(  # type: ignore[no-untyped-def]
    numbers, evicting, threshold, now, table, marks, oldest, position, heap, dues, free, closed, tape, s, g
):
    """Give each row the cell of its subwindow; why it returned."""
    eviction, size, clocked, record = s[EVICTION], s[SIZE], s[CLOCKED] == 1, s[RECORD] >> BEFORE_FLUSH & 1
    added = 0
    status = DONE
    i = g[ROW]
    while i < numbers.shape[0]:
        p = np.uint64(numbers[i])
        cell = table[p, CELL] if table[p, FLAGS] & LIVE else np.int64(-1)
        held = table[p, TAIL] - table[p, HEAD]
        flushed = eviction == DELTA and cell >= 0 and exceeds(evicting[i], oldest[p], threshold)
        if cell < 0 or flushed:
            if g[FREE] == 0:
                status = NEEDS_CELLS
                break
            if g[TAPE] + 2 > tape.shape[1]:
                status = NEEDS_TAPE
                break
            if table[p, FLAGS] & LIVE == 0:
                create(table, heap, dues, g, s, marks, clocked, now, np.int64(p))
            if flushed:
                if record:
                    note(tape, g, BEFORE_FLUSH, i, p, cell, table[p, HEAD], table[p, TAIL], now)
                closed[g[CLOSED]] = cell
                g[CLOSED] += 1
                added -= held
                table[p, HEAD] = table[p, TAIL]
                held = 0
            g[FREE] -= 1
            cell = free[g[FREE]]
            table[p, CELL] = cell
            if eviction == DELTA:
                oldest[p] = evicting[i]
        elif g[TAPE] + 2 > tape.shape[1]:
            status = NEEDS_TAPE
            break
        position[i] = cell
        table[p, TAIL] += 1
        table[p, UPDATES] += 1
        table[p, UPDATED_AT] = now
        added += 1
        if eviction == COUNT and held + 1 >= size:
            if record:
                note(tape, g, BEFORE_FLUSH, i, p, cell, table[p, HEAD], table[p, TAIL], now)
            closed[g[CLOSED]] = cell
            g[CLOSED] += 1
            added -= held + 1
            table[p, HEAD] = table[p, TAIL]
            table[p, CELL] = -1
            remove(table, heap, dues, g, s, closed, clocked, np.int64(p))
        i += 1
    g[TOTAL] += added
    g[ROW] = i
    return status


@jit
def slide(numbers, now, base, table, marks, order, position, heap, dues, tape, s, g):  # type: ignore[no-untyped-def]
    """Put each row in its place; why it returned."""
    size, every, rows_of_slice = s[SIZE], s[EVERY], s[SLICE]
    partial, record = s[PARTIAL] == 1, s[RECORD] >> TRIGGER & 1
    room, keeps_rows = tape.shape[1], order.shape[0] > 0
    added = 0
    status = DONE
    i = g[ROW]
    while i < numbers.shape[0]:
        if g[TAPE] == room:
            status = NEEDS_TAPE
            break
        p = np.uint64(numbers[i])
        if table[p, FLAGS] & LIVE == 0:
            create(table, heap, dues, g, s, marks, False, now, np.int64(p))
        filled = table[p, FILLED]
        tail = table[p, TAIL]
        if filled == 0:
            if tail - table[p, HEAD] >= size:
                table[p, HEAD] += 1
                added -= 1
            if keeps_rows:
                order[np.uint64(tail)] = base + i
            position[i] = tail
            tail += 1
            table[p, TAIL] = tail
            added += 1
        else:
            position[i] = -tail
        if rows_of_slice > 0:
            filled = 0 if filled + 1 == rows_of_slice else filled + 1
            table[p, FILLED] = filled
        if filled == 0 and tail - table[p, HEAD] >= size:
            table[p, FLAGS] |= FULL
        table[p, UPDATES] += 1
        table[p, UPDATED_AT] = now
        since = table[p, SINCE] + 1
        if since >= every:
            since = 0
            if record and (partial or table[p, FLAGS] & FULL):
                note(tape, g, TRIGGER, i, p, -1, table[p, HEAD], tail, now)
        table[p, SINCE] = since
        i += 1
    g[TOTAL] += added
    g[ROW] = i
    return status

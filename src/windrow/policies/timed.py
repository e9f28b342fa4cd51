"""What happens in a window without a row: the clock, and punctuations. Compiled, on the same tape as rows.

    clock     (instant, phase, subwindow) in this order, from the heap of dues, up to now:
                  phase 0   a window by time is full once its subwindow is a period old
                  phase 1   rows older than the period are evicted
                  phase 2   a time trigger; the flush of a tumbling window
    punct     all subwindows are flushed, oldest first

A window that was not looked at for several periods goes through all of them in succession: each event carries
the instant at which it was due. A tumbling subwindow that stays empty for a period is discarded.
"""

from __future__ import annotations

from windrow.engine.cache import jit
from windrow.policies.events import (
    AFTER_EVICT,
    AFTER_FLUSH,
    BEFORE_EVICT,
    BEFORE_FLUSH,
    INITIAL_FULL,
    TRIGGER,
)
from windrow.policies.layout import (
    CELL,
    CLOCKED,
    DONE,
    DUE,
    DUE_PHASE,
    DUES,
    EVERY,
    FLAGS,
    FOLDED,
    FULL,
    HEAD,
    NEEDS_TAPE,
    NEXT,
    PARTIAL,
    PHASE,
    RECORD,
    ROW,
    SIZE,
    SLIDING,
    SPARE,
    STOP,
    STOPPED,
    TAIL,
    TAPE,
    TOTAL,
)
from windrow.policies.steps import close, note, row_at
from windrow.policies.subwindows import due_again, remove

# Of a loop that was left: what is still to be done to the subwindow in VICTIM.
EVICT, FLUSH = 1, 2


@jit
def advance(now, table, order, marks, heap, dues, closed, tape, s, g):  # type: ignore[no-untyped-def]
    """Do what is due up to now, from where the loop was left; why it returned.

    What was begun is finished, whatever the time.
    """
    stop = s[STOP]
    wanted = s[RECORD] | stop
    phase = g[PHASE]
    while g[DUES] > 0:
        p = dues[0]
        at = table[p, DUE]
        if at > now and phase == 0:
            break
        if g[TAPE] + SPARE > tape.shape[1]:
            g[PHASE] = phase
            return NEEDS_TAPE
        head, tail = table[p, HEAD], table[p, TAIL]
        if phase == 0 and table[p, DUE_PHASE] == 0:
            table[p, FLAGS] |= FULL
            due_again(table, dues, g, s, marks, p)
            if wanted >> INITIAL_FULL & 1:
                note(tape, g, INITIAL_FULL, -1, p, -1, head, tail, at)
                if stop >> INITIAL_FULL & 1:
                    g[PHASE] = 0
                    return STOPPED
        elif phase == 0 and table[p, DUE_PHASE] == 1:
            phase = EVICT
            if wanted >> BEFORE_EVICT & 1:
                note(tape, g, BEFORE_EVICT, -1, p, row_at(order, head), head, tail, at)
                if stop >> BEFORE_EVICT & 1:
                    g[PHASE] = phase
                    return STOPPED
        elif phase == EVICT:
            phase = 0
            table[p, HEAD] = head + 1
            g[TOTAL] -= 1
            due_again(table, dues, g, s, marks, p)
            if wanted >> AFTER_EVICT & 1:
                note(tape, g, AFTER_EVICT, -1, p, row_at(order, head), head + 1, tail, at)
                if stop >> AFTER_EVICT & 1:
                    g[PHASE] = phase
                    return STOPPED
        elif phase == FLUSH:
            phase = 0
            close(table, closed, g, p, s[FOLDED] == 1)
            table[p, NEXT] = at + s[SIZE]
            due_again(table, dues, g, s, marks, p)
            if wanted >> AFTER_FLUSH & 1:
                note(tape, g, AFTER_FLUSH, -1, p, -1, tail, tail, at)
                if stop >> AFTER_FLUSH & 1:
                    g[PHASE] = phase
                    return STOPPED
        elif s[SLIDING] == 1:
            table[p, NEXT] = at + s[EVERY]
            due_again(table, dues, g, s, marks, p)
            if (s[PARTIAL] == 1 or table[p, FLAGS] & FULL) and wanted >> TRIGGER & 1:
                note(tape, g, TRIGGER, -1, p, -1, head, tail, at)
                if stop >> TRIGGER & 1:
                    g[PHASE] = 0
                    return STOPPED
        elif head == tail:
            remove(table, heap, dues, g, s, closed, s[CLOCKED] == 1, p)
        else:
            phase = FLUSH
            if wanted >> BEFORE_FLUSH & 1:
                note(tape, g, BEFORE_FLUSH, -1, p, table[p, CELL], head, tail, at)
                if stop >> BEFORE_FLUSH & 1:
                    g[PHASE] = phase
                    return STOPPED
    g[PHASE] = 0
    return DONE


@jit
def flush_all(partitions, now, table, heap, dues, closed, tape, s, g):  # type: ignore[no-untyped-def]
    """Flush these subwindows in this order, from where the loop was left; why it returned."""
    stop = s[STOP]
    wanted = s[RECORD] | stop
    i, phase = g[ROW], g[PHASE]
    while i < partitions.shape[0]:
        p = partitions[i]
        if g[TAPE] + SPARE > tape.shape[1]:
            g[ROW], g[PHASE] = i, phase
            return NEEDS_TAPE
        if phase == 0:
            phase = 1
            if wanted >> BEFORE_FLUSH & 1:
                note(tape, g, BEFORE_FLUSH, -1, p, table[p, CELL], table[p, HEAD], table[p, TAIL], now)
                if stop >> BEFORE_FLUSH & 1:
                    g[ROW], g[PHASE] = i, phase
                    return STOPPED
        if phase == 1:
            phase = 2
            close(table, closed, g, p, s[FOLDED] == 1)
            if wanted >> AFTER_FLUSH & 1:
                note(tape, g, AFTER_FLUSH, -1, p, -1, table[p, HEAD], table[p, TAIL], now)
                if stop >> AFTER_FLUSH & 1:
                    g[ROW], g[PHASE] = i, phase
                    return STOPPED
        remove(table, heap, dues, g, s, closed, s[CLOCKED] == 1, p)
        i += 1
        phase = 0
    g[ROW], g[PHASE] = 0, 0
    return DONE

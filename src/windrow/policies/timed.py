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

from windrow.compiling.tiers import jit
from windrow.policies.events import (
    AFTER_EVICT,
    AFTER_FLUSH,
    BEFORE_EVICT,
    BEFORE_FLUSH,
    INITIAL_FULL,
    TRIGGER,
)
from windrow.policies.layout import DONE, FULL, NEEDS_TAPE, SPARE, STOPPED, of
from windrow.policies.steps import close, leave, row_at, told
from windrow.policies.subwindows import due_again, remove

# Of a loop that was left: what is still to be done to the subwindow in VICTIM.
EVICT, FLUSH = 1, 2


@jit
def advance(now, table, order, marks, heap, dues, closed, tape, s, g):  # type: ignore[no-untyped-def]
    """Do what is due up to now, from where the loop was left; why it returned.

    What was begun is finished, whatever the time.
    """
    stop = s[of.STOP]
    wanted = s[of.RECORD] | stop
    phase = g[of.PHASE]
    while g[of.DUES] > 0:
        p = dues[0]
        at = table[p, of.DUE]
        if at > now and phase == 0:
            break
        if g[of.TAPE] + SPARE > tape.shape[1]:
            g[of.PHASE] = phase
            return NEEDS_TAPE
        head, tail = table[p, of.HEAD], table[p, of.TAIL]
        if phase == 0 and table[p, of.DUE_PHASE] == 0:
            table[p, of.FLAGS] |= FULL
            due_again(table, dues, g, s, marks, p)
            if told(tape, table, g, wanted, stop, INITIAL_FULL, -1, p, -1, at):
                return leave(g, g[of.ROW], 0, STOPPED)
        elif phase == 0 and table[p, of.DUE_PHASE] == 1:
            phase = EVICT
            if told(tape, table, g, wanted, stop, BEFORE_EVICT, -1, p, row_at(order, head), at):
                return leave(g, g[of.ROW], phase, STOPPED)
        elif phase == EVICT:
            phase = 0
            table[p, of.HEAD] = head + 1
            g[of.TOTAL] -= 1
            due_again(table, dues, g, s, marks, p)
            if told(tape, table, g, wanted, stop, AFTER_EVICT, -1, p, row_at(order, head), at):
                return leave(g, g[of.ROW], phase, STOPPED)
        elif phase == FLUSH:
            phase = 0
            close(table, closed, g, p, s[of.FOLDED] == 1)
            table[p, of.NEXT] = at + s[of.SIZE]
            due_again(table, dues, g, s, marks, p)
            if told(tape, table, g, wanted, stop, AFTER_FLUSH, -1, p, -1, at):
                return leave(g, g[of.ROW], phase, STOPPED)
        elif s[of.SLIDING] == 1:
            table[p, of.NEXT] = at + s[of.EVERY]
            due_again(table, dues, g, s, marks, p)
            if (s[of.PARTIAL] == 1 or table[p, of.FLAGS] & FULL) and told(
                tape, table, g, wanted, stop, TRIGGER, -1, p, -1, at
            ):
                return leave(g, g[of.ROW], 0, STOPPED)
        elif head == tail:
            remove(table, heap, dues, g, s, closed, s[of.CLOCKED] == 1, p)
        else:
            phase = FLUSH
            if told(tape, table, g, wanted, stop, BEFORE_FLUSH, -1, p, table[p, of.CELL], at):
                return leave(g, g[of.ROW], phase, STOPPED)
    g[of.PHASE] = 0
    return DONE


@jit
def flush_all(partitions, now, table, heap, dues, closed, tape, s, g):  # type: ignore[no-untyped-def]
    """Flush these subwindows in this order, from where the loop was left; why it returned."""
    stop = s[of.STOP]
    wanted = s[of.RECORD] | stop
    i, phase = g[of.ROW], g[of.PHASE]
    while i < partitions.shape[0]:
        p = partitions[i]
        if g[of.TAPE] + SPARE > tape.shape[1]:
            g[of.ROW], g[of.PHASE] = i, phase
            return NEEDS_TAPE
        if phase == 0:
            phase = 1
            if told(tape, table, g, wanted, stop, BEFORE_FLUSH, -1, p, table[p, of.CELL], now):
                return leave(g, i, phase, STOPPED)
        if phase == 1:
            phase = 2
            close(table, closed, g, p, s[of.FOLDED] == 1)
            if told(tape, table, g, wanted, stop, AFTER_FLUSH, -1, p, -1, now):
                return leave(g, i, phase, STOPPED)
        remove(table, heap, dues, g, s, closed, s[of.CLOCKED] == 1, p)
        i += 1
        phase = 0
    g[of.ROW], g[of.PHASE] = 0, 0
    return DONE

"""The compiled loop: rows in order of arrival, subwindows of all partitions, events on a tape.

Each row goes through the same phases. Table I and Table II of the paper are the ways through them:

    age --> room for a subwindow --> .-- tumbling, delta ----> flush? ------------------------------------------.
                                     |-- tumbling, others ------------------------------------------------------|
                                     |-- sliding, delta trigger -> full? -> trigger? -> evict? -----------------|
                                     `-- sliding, others -------------------------------> evict? ---------------|
                                                                                                                v
    next row <-- flush? <-- tumbling, count --. <-- full? <-- after insert <-- before insert <-- room for a tuple
             <-- trigger? <-- sliding, count -'

The loop stops where a handler waits for an event, where the tape or the cells of a summarizer are used up, and
where a function of the user's selects partitions; it goes on from ROW and PHASE as if nothing had been.

    numbers     the partition of each row          position   out: where each row was put (-1: nowhere)
    evicting    the eviction's delta column        marks      the same for rows held, by place in `order`;
                                                              arrival times where eviction is by time
    triggering  the trigger's delta column         reference  the last value that triggered, by partition
    order       log rows held, by subwindow        oldest     the first value of a tumbling subwindow
"""

from __future__ import annotations

from windrow.compiling.tiers import jit
from windrow.policies.events import (
    AFTER_EVICT,
    AFTER_FLUSH,
    AFTER_INSERT,
    BEFORE_EVICT,
    BEFORE_FLUSH,
    BEFORE_INSERT,
    INITIAL_FULL,
    PARTITION_EVICTION,
    PARTITION_SELECTION,
    TRIGGER,
)
from windrow.policies.layout import (
    DONE,
    FULL,
    LIVE,
    NEEDS_CELLS,
    NEEDS_CHOICE,
    NEEDS_TAPE,
    REFERRED,
    SPARE,
    STOPPED,
    by,
    of,
)
from windrow.policies.steps import NOWHERE, begins_slice, close, exceeds, leave, note, row_at, told
from windrow.policies.subwindows import create, due_again, next_victim, remove, updated


@jit
def run(  # type: ignore[no-untyped-def]
    numbers,
    evicting,
    triggering,
    eviction_threshold,
    trigger_threshold,
    now,
    base,
    table,
    order,
    marks,
    reference,
    oldest,
    position,
    heap,
    dues,
    free,
    closed,
    chosen,
    tape,
    s,
    g,
):
    """Take rows in from where the loop was left; why it returned: DONE, STOPPED or one of NEEDS_..."""
    sliding, eviction, size = s[of.SLIDING] == 1, s[of.EVICTION], s[of.SIZE]
    trigger, every, partial = s[of.TRIGGERING], s[of.EVERY], s[of.PARTIAL] == 1
    partitions, limit, folded, clocked = s[of.PARTITIONS], s[of.LIMIT], s[of.FOLDED] == 1, s[of.CLOCKED] == 1
    in_slices = s[of.SLICE]
    stop = s[of.STOP]
    wanted = s[of.RECORD] | stop
    keeps = not (sliding and eviction == by.COUNT and size == 0)
    i, phase = g[of.ROW], g[of.PHASE]
    while i < numbers.shape[0]:
        p = numbers[i]
        if g[of.TAPE] + SPARE > tape.shape[1]:
            return leave(g, i, phase, NEEDS_TAPE)
        if phase == 0:  # partitions that are too old
            phase = 2
            if partitions == by.PARTITION_AGE:
                first = g[of.FIRST]
                if first >= 0 and now - table[first, of.UPDATED_AT] > limit:
                    g[of.VICTIM] = first
                    phase = 1
                    if told(tape, table, g, wanted, stop, PARTITION_EVICTION, i, first, -1, now):
                        return leave(g, i, phase, STOPPED)
        if phase == 1:
            remove(table, heap, dues, g, s, closed, clocked, g[of.VICTIM])
            phase = 0
            continue
        if phase == 2:  # room for a new subwindow
            phase = 4
            if table[p, of.FLAGS] & LIVE == 0:
                if partitions == by.PARTITION_COUNT and (
                    g[of.CHOSEN_AT] < g[of.CHOSEN] or g[of.SUBWINDOWS] >= limit
                ):
                    phase = 3
                    victim = g[of.VICTIM] = next_victim(table, heap, chosen, g, s, p)
                    if victim < 0:
                        note(tape, g, PARTITION_SELECTION, i, p, -1, 0, 0, now)
                        return leave(g, i, 2, NEEDS_CHOICE)
                    if told(tape, table, g, wanted, stop, PARTITION_EVICTION, i, victim, -1, now):
                        return leave(g, i, phase, STOPPED)
                else:
                    create(table, heap, dues, g, s, marks, clocked, now, p)
        if phase == 3:
            remove(table, heap, dues, g, s, closed, clocked, g[of.VICTIM])
            phase = 2
            continue
        if phase == 4:
            if sliding:
                phase = 5 if trigger == by.DELTA else 8
            else:
                phase = 20 if eviction == by.DELTA else 10
        if phase == 5:  # a window by delta is full when the next row does not fit
            phase = 6
            head = table[p, of.HEAD]
            partly = eviction == by.DELTA and table[p, of.FLAGS] & FULL == 0 and head < table[p, of.TAIL]
            if partly and exceeds(evicting[i], marks[head], eviction_threshold):
                table[p, of.FLAGS] |= FULL
                if told(tape, table, g, wanted, stop, INITIAL_FULL, i, p, -1, now):
                    return leave(g, i, phase, STOPPED)
        if phase == 6:  # trigger by delta, before the row changes anything
            phase = 8
            if table[p, of.FLAGS] & REFERRED == 0:
                table[p, of.FLAGS] |= REFERRED
                reference[p] = triggering[i]
            elif exceeds(triggering[i], reference[p], trigger_threshold):
                reference[p] = triggering[i]
                if (partial or table[p, of.FLAGS] & FULL) and told(
                    tape, table, g, wanted, stop, TRIGGER, i, p, -1, now
                ):
                    return leave(g, i, phase, STOPPED)
        if phase == 8:  # evict
            phase = 10
            head, tail = table[p, of.HEAD], table[p, of.TAIL]
            if eviction == by.COUNT:
                if tail - head >= size and head < tail and (in_slices == 0 or table[p, of.FILLED] == 0):
                    phase = 9
            elif (
                eviction == by.DELTA and head < tail and exceeds(evicting[i], marks[head], eviction_threshold)
            ):
                phase = 9
                if table[p, of.FLAGS] & FULL == 0:
                    table[p, of.FLAGS] |= FULL
                    if told(tape, table, g, wanted, stop, INITIAL_FULL, i, p, -1, now):
                        return leave(g, i, 8, STOPPED)
            if phase == 9 and told(
                tape, table, g, wanted, stop, BEFORE_EVICT, i, p, row_at(order, head), now
            ):
                return leave(g, i, phase, STOPPED)
        if phase == 9:
            phase = 8
            head = table[p, of.HEAD]
            table[p, of.HEAD] = head + 1
            g[of.TOTAL] -= 1
            if told(tape, table, g, wanted, stop, AFTER_EVICT, i, p, row_at(order, head), now):
                return leave(g, i, phase, STOPPED)
            continue
        if phase == 20:  # flush by delta, before the row comes in
            phase = 10
            head, tail = table[p, of.HEAD], table[p, of.TAIL]
            if head < tail and exceeds(evicting[i], oldest[p], eviction_threshold):
                phase = 21
                if told(tape, table, g, wanted, stop, BEFORE_FLUSH, i, p, table[p, of.CELL], now):
                    return leave(g, i, phase, STOPPED)
        if phase == 21:
            phase = 10 if eviction == by.DELTA else 18
            close(table, closed, g, p, folded)
            if told(tape, table, g, wanted, stop, AFTER_FLUSH, i, p, -1, now):
                return leave(g, i, phase, STOPPED)
        if phase == 10:  # room for a tuple
            phase = 12
            if (
                partitions == by.TUPLE_COUNT
                and keeps
                and (g[of.CHOSEN_AT] < g[of.CHOSEN] or g[of.TOTAL] >= limit)
            ):
                phase = 11
                victim = g[of.VICTIM] = next_victim(table, heap, chosen, g, s, p)
                if victim < 0:
                    note(tape, g, PARTITION_SELECTION, i, p, -1, 0, 0, now)
                    return leave(g, i, 10, NEEDS_CHOICE)
                if told(tape, table, g, wanted, stop, PARTITION_EVICTION, i, victim, -1, now):
                    return leave(g, i, phase, STOPPED)
        if phase == 11:
            phase = 10
            remove(table, heap, dues, g, s, closed, clocked, g[of.VICTIM])
            if g[of.VICTIM] == p:  # the row begins its subwindow anew
                create(table, heap, dues, g, s, marks, clocked, now, p)
                if sliding and trigger == by.DELTA:
                    table[p, of.FLAGS] |= REFERRED
                    reference[p] = triggering[i]
            continue
        if phase == 12:  # insert
            phase = 13
            if keeps and told(tape, table, g, wanted, stop, BEFORE_INSERT, i, p, base + i, now):
                return leave(g, i, phase, STOPPED)
        if phase == 13:
            tail = table[p, of.TAIL]
            if folded:
                cell = table[p, of.CELL]
                if cell < 0:
                    if g[of.FREE] == 0:
                        return leave(g, i, phase, NEEDS_CELLS)
                    g[of.FREE] -= 1
                    cell = free[g[of.FREE]]
                    table[p, of.CELL] = cell
                position[i] = cell
                fresh = True
            elif keeps:
                fresh = in_slices == 0 or begins_slice(table, s, now, p)
                if fresh:
                    if order.shape[0] > 0:
                        order[tail] = base + i
                    position[i] = tail
                    if sliding and eviction == by.DELTA:
                        marks[tail] = evicting[i]
                    elif sliding and eviction == by.TIME:
                        marks[tail] = now
                else:
                    position[i] = -tail
            else:
                fresh = False
                position[i] = NOWHERE
            if fresh:
                if eviction == by.DELTA and not sliding and table[p, of.HEAD] == tail:
                    oldest[p] = evicting[i]
                table[p, of.TAIL] = tail + 1
                g[of.TOTAL] += 1
                if clocked and eviction == by.TIME and table[p, of.HEAD] == tail:
                    due_again(table, dues, g, s, marks, p)
            table[p, of.SINCE] += 1
            updated(table, heap, g, s, now, p)
            phase = 14
            if keeps and told(tape, table, g, wanted, stop, AFTER_INSERT, i, p, base + i, now):
                return leave(g, i, phase, STOPPED)
        if phase == 14:  # a window by count is full with its last row
            phase = 15
            partly = sliding and eviction == by.COUNT and table[p, of.FLAGS] & FULL == 0
            whole = in_slices == 0 or table[p, of.FILLED] == 0
            if partly and whole and table[p, of.TAIL] - table[p, of.HEAD] >= size:
                table[p, of.FLAGS] |= FULL
                if told(tape, table, g, wanted, stop, INITIAL_FULL, i, p, -1, now):
                    return leave(g, i, phase, STOPPED)
        if phase == 15:  # trigger or flush by count
            phase = 16
            if sliding:
                if trigger == by.COUNT and table[p, of.SINCE] >= every:
                    table[p, of.SINCE] = 0
                    if (partial or table[p, of.FLAGS] & FULL) and told(
                        tape, table, g, wanted, stop, TRIGGER, i, p, -1, now
                    ):
                        return leave(g, i, phase, STOPPED)
            elif eviction == by.COUNT and table[p, of.TAIL] - table[p, of.HEAD] >= size:
                phase = 21
                if told(tape, table, g, wanted, stop, BEFORE_FLUSH, i, p, table[p, of.CELL], now):
                    return leave(g, i, phase, STOPPED)
                continue
        if phase == 18:
            remove(table, heap, dues, g, s, closed, clocked, p)
        i += 1
        phase = 0
    return leave(g, i, 0, DONE)

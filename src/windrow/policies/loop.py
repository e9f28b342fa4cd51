"""The compiled loop: rows in order of arrival, subwindows of all partitions, events on a tape.

Each row goes through the same phases. Table I and Table II of the paper are the ways through them:

    age --> room for a subwindow --> .-- tumbling, delta ----> flush? ------------------------------------------.
                                     |-- tumbling, others ------------------------------------------------------|
                                     |-- sliding, delta trigger -> full? -> trigger? -> evict? -----------------|
                                     `-- sliding, others -------------------------------> evict? ---------------|
                                                                                                                v
    next row <-- flush? <-- tumbling, count --. <-- full? <-- after insert <-- before insert <-- room for a tuple
             <-- trigger? <-- sliding, count -'

The loop stops where somebody waits for an event, where the tape or the cells of a summarizer are used up, and
where a function of the user's selects partitions; it goes on from ROW and PHASE as if nothing had been.

    numbers     the partition of each row          position   out: where each row was put (-1: nowhere)
    evicting    the eviction's delta column        marks      the same for rows held, by place in `order`;
                                                              arrival times where eviction is by time
    triggering  the trigger's delta column         reference  the last value that triggered, by partition
    order       log rows held, by subwindow        oldest     the first value of a tumbling subwindow
"""

from __future__ import annotations

from windrow.engine.cache import jit
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
    BY_FUNCTION,
    CELL,
    CHOSEN,
    CHOSEN_AT,
    CLOCKED,
    COUNT,
    DELTA,
    DONE,
    EVERY,
    EVICTION,
    FILLED,
    FIRST,
    FLAGS,
    FOLDED,
    FREE,
    FULL,
    HEAD,
    LIMIT,
    LIVE,
    NEEDS_CELLS,
    NEEDS_CHOICE,
    NEEDS_TAPE,
    PARTIAL,
    PARTITION_AGE,
    PARTITION_COUNT,
    PARTITIONS,
    PHASE,
    RECORD,
    REFERRED,
    ROW,
    SELECTION,
    SINCE,
    SIZE,
    SLICE,
    SLIDING,
    SPARE,
    STOP,
    STOPPED,
    SUBWINDOWS,
    TAIL,
    TAPE,
    TIME,
    TOTAL,
    TRIGGERING,
    TUPLE_COUNT,
    UPDATED_AT,
    VICTIM,
)
from windrow.policies.steps import NOWHERE, begins_slice, close, exceeds, leave, note, row_at, told
from windrow.policies.subwindows import create, due_again, least, remove, updated


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
    """Take rows in from where the loop was left; why it returned. See the module for the arrays."""
    sliding, eviction, size = s[SLIDING] == 1, s[EVICTION], s[SIZE]
    trigger, every, partial = s[TRIGGERING], s[EVERY], s[PARTIAL] == 1
    partitions, limit, folded, clocked = s[PARTITIONS], s[LIMIT], s[FOLDED] == 1, s[CLOCKED] == 1
    in_slices = s[SLICE]
    stop = s[STOP]
    wanted = s[RECORD] | stop
    keeps = not (sliding and eviction == COUNT and size == 0)
    i, phase = g[ROW], g[PHASE]
    while i < numbers.shape[0]:
        p = numbers[i]
        if g[TAPE] + SPARE > tape.shape[1]:
            return leave(g, i, phase, NEEDS_TAPE)
        if phase == 0:  # partitions that are too old
            phase = 2
            if partitions == PARTITION_AGE:
                first = g[FIRST]
                if first >= 0 and now - table[first, UPDATED_AT] > limit:
                    g[VICTIM] = first
                    phase = 1
                    if told(tape, table, g, wanted, stop, PARTITION_EVICTION, i, first, -1, now):
                        return leave(g, i, phase, STOPPED)
        if phase == 1:
            remove(table, heap, dues, g, s, closed, clocked, g[VICTIM])
            phase = 0
            continue
        if phase == 2:  # room for a new subwindow
            phase = 4
            if table[p, FLAGS] & LIVE == 0:
                if partitions == PARTITION_COUNT and (g[CHOSEN_AT] < g[CHOSEN] or g[SUBWINDOWS] >= limit):
                    phase = 3
                    if s[SELECTION] == BY_FUNCTION:
                        if g[CHOSEN_AT] == g[CHOSEN]:
                            note(tape, g, PARTITION_SELECTION, i, p, -1, 0, 0, now)
                            return leave(g, i, 2, NEEDS_CHOICE)
                        victim = chosen[g[CHOSEN_AT]]
                        g[CHOSEN_AT] += 1
                    else:
                        victim = least(table, heap, g, s, p)
                    g[VICTIM] = victim
                    if told(tape, table, g, wanted, stop, PARTITION_EVICTION, i, victim, -1, now):
                        return leave(g, i, phase, STOPPED)
                else:
                    create(table, heap, dues, g, s, marks, clocked, now, p)
        if phase == 3:
            remove(table, heap, dues, g, s, closed, clocked, g[VICTIM])
            phase = 2
            continue
        if phase == 4:
            if sliding:
                phase = 5 if trigger == DELTA else 8
            else:
                phase = 20 if eviction == DELTA else 10
        if phase == 5:  # a window by delta is full when the next row does not fit
            phase = 6
            head = table[p, HEAD]
            partly = eviction == DELTA and table[p, FLAGS] & FULL == 0 and head < table[p, TAIL]
            if partly and exceeds(evicting[i], marks[head], eviction_threshold):
                table[p, FLAGS] |= FULL
                if told(tape, table, g, wanted, stop, INITIAL_FULL, i, p, -1, now):
                    return leave(g, i, phase, STOPPED)
        if phase == 6:  # trigger by delta, before the row changes anything
            phase = 8
            if table[p, FLAGS] & REFERRED == 0:
                table[p, FLAGS] |= REFERRED
                reference[p] = triggering[i]
            elif exceeds(triggering[i], reference[p], trigger_threshold):
                reference[p] = triggering[i]
                if (partial or table[p, FLAGS] & FULL) and told(
                    tape, table, g, wanted, stop, TRIGGER, i, p, -1, now
                ):
                    return leave(g, i, phase, STOPPED)
        if phase == 8:  # evict
            phase = 10
            head, tail = table[p, HEAD], table[p, TAIL]
            if eviction == COUNT:
                if tail - head >= size and head < tail and (in_slices == 0 or table[p, FILLED] == 0):
                    phase = 9
            elif eviction == DELTA and head < tail and exceeds(evicting[i], marks[head], eviction_threshold):
                phase = 9
                if table[p, FLAGS] & FULL == 0:
                    table[p, FLAGS] |= FULL
                    if told(tape, table, g, wanted, stop, INITIAL_FULL, i, p, -1, now):
                        return leave(g, i, 8, STOPPED)
            if phase == 9 and told(
                tape, table, g, wanted, stop, BEFORE_EVICT, i, p, row_at(order, head), now
            ):
                return leave(g, i, phase, STOPPED)
        if phase == 9:
            phase = 8
            head = table[p, HEAD]
            table[p, HEAD] = head + 1
            g[TOTAL] -= 1
            if told(tape, table, g, wanted, stop, AFTER_EVICT, i, p, row_at(order, head), now):
                return leave(g, i, phase, STOPPED)
            continue
        if phase == 20:  # flush by delta, before the row comes in
            phase = 10
            head, tail = table[p, HEAD], table[p, TAIL]
            if head < tail and exceeds(evicting[i], oldest[p], eviction_threshold):
                phase = 21
                if told(tape, table, g, wanted, stop, BEFORE_FLUSH, i, p, table[p, CELL], now):
                    return leave(g, i, phase, STOPPED)
        if phase == 21:
            phase = 10
            close(table, closed, g, p, folded)
            if told(tape, table, g, wanted, stop, AFTER_FLUSH, i, p, -1, now):
                return leave(g, i, phase, STOPPED)
        if phase == 10:  # room for a tuple
            phase = 12
            if partitions == TUPLE_COUNT and keeps and (g[CHOSEN_AT] < g[CHOSEN] or g[TOTAL] >= limit):
                phase = 11
                if s[SELECTION] == BY_FUNCTION and g[SUBWINDOWS] > 1:
                    if g[CHOSEN_AT] == g[CHOSEN]:
                        note(tape, g, PARTITION_SELECTION, i, p, -1, 0, 0, now)
                        return leave(g, i, 10, NEEDS_CHOICE)
                    victim = chosen[g[CHOSEN_AT]]
                    g[CHOSEN_AT] += 1
                elif s[SELECTION] == BY_FUNCTION:
                    victim = p
                else:
                    victim = least(table, heap, g, s, p)
                g[VICTIM] = victim
                if told(tape, table, g, wanted, stop, PARTITION_EVICTION, i, victim, -1, now):
                    return leave(g, i, phase, STOPPED)
        if phase == 11:
            phase = 10
            remove(table, heap, dues, g, s, closed, clocked, g[VICTIM])
            if g[VICTIM] == p:  # the row begins its subwindow anew
                create(table, heap, dues, g, s, marks, clocked, now, p)
                if sliding and trigger == DELTA:
                    table[p, FLAGS] |= REFERRED
                    reference[p] = triggering[i]
            continue
        if phase == 12:  # insert
            phase = 13
            if keeps and told(tape, table, g, wanted, stop, BEFORE_INSERT, i, p, base + i, now):
                return leave(g, i, phase, STOPPED)
        if phase == 13:
            tail = table[p, TAIL]
            if folded:
                cell = table[p, CELL]
                if cell < 0:
                    if g[FREE] == 0:
                        return leave(g, i, phase, NEEDS_CELLS)
                    g[FREE] -= 1
                    cell = free[g[FREE]]
                    table[p, CELL] = cell
                position[i] = cell
                fresh = True
            elif keeps:
                fresh = in_slices == 0 or begins_slice(table, s, now, p)
                if fresh:
                    if order.shape[0] > 0:
                        order[tail] = base + i
                    position[i] = tail
                    if sliding and eviction == DELTA:
                        marks[tail] = evicting[i]
                    elif sliding and eviction == TIME:
                        marks[tail] = now
                else:
                    position[i] = -tail
            else:
                fresh = False
                position[i] = NOWHERE
            if fresh:
                if eviction == DELTA and not sliding and table[p, HEAD] == tail:
                    oldest[p] = evicting[i]
                table[p, TAIL] = tail + 1
                g[TOTAL] += 1
                if clocked and eviction == TIME and table[p, HEAD] == tail:
                    due_again(table, dues, g, s, marks, p)
            table[p, SINCE] += 1
            updated(table, heap, g, s, now, p)
            phase = 14
            if keeps and told(tape, table, g, wanted, stop, AFTER_INSERT, i, p, base + i, now):
                return leave(g, i, phase, STOPPED)
        if phase == 14:  # a window by count is full with its last row
            phase = 15
            partly = sliding and eviction == COUNT and table[p, FLAGS] & FULL == 0
            whole = in_slices == 0 or table[p, FILLED] == 0
            if partly and whole and table[p, TAIL] - table[p, HEAD] >= size:
                table[p, FLAGS] |= FULL
                if told(tape, table, g, wanted, stop, INITIAL_FULL, i, p, -1, now):
                    return leave(g, i, phase, STOPPED)
        if phase == 15:  # trigger or flush by count
            phase = 16
            if sliding:
                if trigger == COUNT and table[p, SINCE] >= every:
                    table[p, SINCE] = 0
                    if (partial or table[p, FLAGS] & FULL) and told(
                        tape, table, g, wanted, stop, TRIGGER, i, p, -1, now
                    ):
                        return leave(g, i, phase, STOPPED)
            elif eviction == COUNT and table[p, TAIL] - table[p, HEAD] >= size:
                phase = 17
                if told(tape, table, g, wanted, stop, BEFORE_FLUSH, i, p, table[p, CELL], now):
                    return leave(g, i, phase, STOPPED)
        if phase == 17:
            phase = 18
            close(table, closed, g, p, folded)
            if told(tape, table, g, wanted, stop, AFTER_FLUSH, i, p, -1, now):
                return leave(g, i, phase, STOPPED)
        if phase == 18:
            remove(table, heap, dues, g, s, closed, clocked, p)
        i += 1
        phase = 0
    return leave(g, i, 0, DONE)

"""Compiled steps on one subwindow: create, remove, and keep it where evictions and the clock will find it.

    list     BEFORE <-> AFTER, least recently updated (or oldest) first     partition eviction in O(1)
    heap     by (UPDATES, UPDATED)                                          least frequently updated, O(log n)
    dues     by (DUE, DUE_PHASE, CREATED)                                   what the clock does next, O(log n)

Both heaps are arrays of partition numbers; each subwindow knows its place, so that it can move.
"""

from __future__ import annotations

from windrow.engine.cache import jit
from windrow.policies.layout import (
    AFTER,
    BEFORE,
    CELL,
    CLOCKED,
    CLOSED,
    CREATED,
    CREATED_AT,
    DUE,
    DUE_PHASE,
    DUE_PLACE,
    DUES,
    EVERY,
    EVICTION,
    FILLED,
    FIRST,
    FIRST_CREATED,
    FLAGS,
    FOLDED,
    FULL,
    HEAD,
    HEAP,
    LAST,
    LEAST_FREQUENT,
    LEAST_RECENT,
    LIVE,
    NEVER,
    NEXT,
    NONE,
    PARTITIONS,
    PLACE,
    SELECTION,
    SEQUENCE,
    SINCE,
    SIZE,
    SLIDING,
    SUBWINDOWS,
    TAIL,
    TIME,
    TOTAL,
    TRIGGERING,
    UPDATED,
    UPDATED_AT,
    UPDATES,
)


@jit
def is_before(table, a, b, one, two, three):  # type: ignore[no-untyped-def]
    """Whether subwindow a comes before b by three columns."""
    if table[a, one] != table[b, one]:
        return table[a, one] < table[b, one]
    if table[a, two] != table[b, two]:
        return table[a, two] < table[b, two]
    return table[a, three] < table[b, three]


@jit
def settle(table, heap, size, p, place, one, two, three):  # type: ignore[no-untyped-def]
    """Move subwindow p, whose key has changed, to where it belongs in a heap."""
    at = table[p, place]
    while at > 0 and is_before(table, p, heap[(at - 1) // 2], one, two, three):
        above = heap[(at - 1) // 2]
        heap[at] = above
        table[above, place] = at
        at = (at - 1) // 2
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and is_before(table, heap[below + 1], heap[below], one, two, three):
            below += 1
        if not is_before(table, heap[below], p, one, two, three):
            break
        heap[at] = heap[below]
        table[heap[at], place] = at
        at = below
    heap[at] = p
    table[p, place] = at


@jit
def enter(table, heap, size, p, place, one, two, three):  # type: ignore[no-untyped-def]
    """Put subwindow p into a heap; the new size."""
    heap[size] = p
    table[p, place] = size
    settle(table, heap, size + 1, p, place, one, two, three)
    return size + 1


@jit
def leave(table, heap, size, p, place, one, two, three):  # type: ignore[no-untyped-def]
    """Take subwindow p out of a heap; the new size."""
    at = table[p, place]
    table[p, place] = -1
    last = heap[size - 1]
    if last != p:
        heap[at] = last
        table[last, place] = at
        settle(table, heap, size - 1, last, place, one, two, three)
    return size - 1


@jit
def link(table, g, p):  # type: ignore[no-untyped-def]
    """Put subwindow p at the end of the list."""
    last = g[LAST]
    table[p, BEFORE] = last
    table[p, AFTER] = -1
    if last >= 0:
        table[last, AFTER] = p
    else:
        g[FIRST] = p
    g[LAST] = p


@jit
def unlink(table, g, p):  # type: ignore[no-untyped-def]
    """Take subwindow p out of the list."""
    before, after = table[p, BEFORE], table[p, AFTER]
    if before >= 0:
        table[before, AFTER] = after
    else:
        g[FIRST] = after
    if after >= 0:
        table[after, BEFORE] = before
    else:
        g[LAST] = before


@jit
def due_again(table, dues, g, s, marks, p):  # type: ignore[no-untyped-def]
    """Find out what the clock does next to subwindow p.

    phase 0: it has been there for a whole period, and so is full; 1: its oldest row is too old; 2: trigger or flush.
    """
    due, phase = NEVER, 2
    if s[SLIDING] == 0 or s[TRIGGERING] == TIME:
        due = table[p, NEXT]
    if s[SLIDING] == 1 and s[EVICTION] == TIME:
        if table[p, HEAD] < table[p, TAIL]:
            # Rows stay as long as their age is at most the period: they go a nanosecond later.
            expiry = marks[table[p, HEAD]] + s[SIZE] + 1
            if expiry <= due:
                due, phase = expiry, 1
        if table[p, FLAGS] & FULL == 0 and table[p, CREATED_AT] + s[SIZE] <= due:
            due, phase = table[p, CREATED_AT] + s[SIZE], 0
    table[p, DUE] = due
    table[p, DUE_PHASE] = phase
    settle(table, dues, g[DUES], p, DUE_PLACE, DUE, DUE_PHASE, CREATED)


@jit
def be_found(table, heap, dues, g, s, marks, clocked, p):  # type: ignore[no-untyped-def]
    """Enter subwindow p into the list, or the heap, and among the dues."""
    if s[PARTITIONS] != NONE:
        if s[SELECTION] == LEAST_FREQUENT:
            g[HEAP] = enter(table, heap, g[HEAP], p, PLACE, UPDATES, UPDATED, UPDATED)
        elif s[SELECTION] == LEAST_RECENT or s[SELECTION] == FIRST_CREATED:
            link(table, g, p)
    if clocked:
        table[p, DUE] = NEVER
        table[p, DUE_PHASE] = 2
        g[DUES] = enter(table, dues, g[DUES], p, DUE_PLACE, DUE, DUE_PHASE, CREATED)
        due_again(table, dues, g, s, marks, p)


@jit
def create(table, heap, dues, g, s, marks, clocked, now, p):  # type: ignore[no-untyped-def]
    """A subwindow for partition p begins."""
    g[SEQUENCE] += 1
    table[p, FLAGS] = LIVE
    table[p, SINCE] = 0
    table[p, UPDATES] = 0
    table[p, CELL] = -1
    table[p, FILLED] = 0
    table[p, CREATED] = g[SEQUENCE]
    table[p, UPDATED] = g[SEQUENCE]
    table[p, CREATED_AT] = now
    table[p, UPDATED_AT] = now
    g[SUBWINDOWS] += 1
    if clocked:
        table[p, NEXT] = now + (s[EVERY] if s[SLIDING] == 1 else s[SIZE])
    be_found(table, heap, dues, g, s, marks, clocked, p)


@jit
def remove(table, heap, dues, g, s, closed, clocked, p):  # type: ignore[no-untyped-def]
    """The subwindow of partition p ends, with all that it holds."""
    g[TOTAL] -= table[p, TAIL] - table[p, HEAD]
    table[p, HEAD] = table[p, TAIL]
    table[p, FLAGS] = 0
    g[SUBWINDOWS] -= 1
    if s[FOLDED] == 1 and table[p, CELL] >= 0:
        closed[g[CLOSED]] = table[p, CELL]
        g[CLOSED] += 1
        table[p, CELL] = -1
    if s[PARTITIONS] != NONE:
        if s[SELECTION] == LEAST_FREQUENT:
            g[HEAP] = leave(table, heap, g[HEAP], p, PLACE, UPDATES, UPDATED, UPDATED)
        elif s[SELECTION] == LEAST_RECENT or s[SELECTION] == FIRST_CREATED:
            unlink(table, g, p)
    if clocked:
        g[DUES] = leave(table, dues, g[DUES], p, DUE_PLACE, DUE, DUE_PHASE, CREATED)


@jit
def updated(table, heap, g, s, now, p):  # type: ignore[no-untyped-def]
    """Partition p got a row."""
    g[SEQUENCE] += 1
    table[p, UPDATED] = g[SEQUENCE]
    table[p, UPDATES] += 1
    table[p, UPDATED_AT] = now
    if s[PARTITIONS] == NONE:
        return
    if s[SELECTION] == LEAST_FREQUENT:
        settle(table, heap, g[HEAP], p, PLACE, UPDATES, UPDATED, UPDATED)
    elif s[SELECTION] == LEAST_RECENT and g[LAST] != p:
        unlink(table, g, p)
        link(table, g, p)


@jit
def least(table, heap, g, s, spared):  # type: ignore[no-untyped-def]
    """The subwindow to evict first, other than `spared` unless that is the only one."""
    if s[SELECTION] == LEAST_FREQUENT:
        top = heap[0]
        if top != spared or g[HEAP] == 1:
            return top
        # The second in order is one of the two below the top.
        if g[HEAP] > 2 and is_before(table, heap[2], heap[1], UPDATES, UPDATED, UPDATED):
            return heap[2]
        return heap[1]
    first = g[FIRST]
    if first == spared and table[first, AFTER] >= 0:
        return table[first, AFTER]
    return first


@jit
def rejoin(order, table, heap, dues, g, s, marks):  # type: ignore[no-untyped-def]
    """Enter subwindows that have come from elsewhere into the list and the heaps, in this order."""
    for k in range(order.shape[0]):
        be_found(table, heap, dues, g, s, marks, s[CLOCKED] == 1, order[k])

"""Compiled steps on one subwindow: create, remove, and keep it where evictions and the clock will find it.

    list     BEFORE <-> AFTER, least recently updated (or oldest) first     partition eviction in O(1)
    heap     by (UPDATES, UPDATED)                                          least frequently updated, O(log n)
    dues     by (DUE, DUE_PHASE, CREATED)                                   what the clock does next, O(log n)

Both heaps are arrays of partition numbers; each subwindow knows its place, so that it can move.
"""

from __future__ import annotations

from windrow.compiling.tiers import jit
from windrow.policies.layout import FULL, LIVE, NEVER, by, of


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
    last = g[of.LAST]
    table[p, of.BEFORE] = last
    table[p, of.AFTER] = -1
    if last >= 0:
        table[last, of.AFTER] = p
    else:
        g[of.FIRST] = p
    g[of.LAST] = p


@jit
def unlink(table, g, p):  # type: ignore[no-untyped-def]
    """Take subwindow p out of the list."""
    before, after = table[p, of.BEFORE], table[p, of.AFTER]
    if before >= 0:
        table[before, of.AFTER] = after
    else:
        g[of.FIRST] = after
    if after >= 0:
        table[after, of.BEFORE] = before
    else:
        g[of.LAST] = before


@jit
def due_again(table, dues, g, s, marks, p):  # type: ignore[no-untyped-def]
    """Find out what the clock does next to subwindow p.

    phase 0: it has been there for a whole period, and so is full; 1: its oldest row is too old; 2: trigger or flush.
    """
    due, phase = NEVER, 2
    if s[of.SLIDING] == 0 or s[of.TRIGGERING] == by.TIME:
        due = table[p, of.NEXT]
    if s[of.SLIDING] == 1 and s[of.EVICTION] == by.TIME:
        if table[p, of.HEAD] < table[p, of.TAIL]:
            # Rows stay as long as their age is at most the period: they go a nanosecond later.
            expiry = marks[table[p, of.HEAD]] + s[of.SIZE] + 1
            if expiry <= due:
                due, phase = expiry, 1
        if table[p, of.FLAGS] & FULL == 0 and table[p, of.CREATED_AT] + s[of.SIZE] <= due:
            due, phase = table[p, of.CREATED_AT] + s[of.SIZE], 0
    table[p, of.DUE] = due
    table[p, of.DUE_PHASE] = phase
    settle(table, dues, g[of.DUES], p, of.DUE_PLACE, of.DUE, of.DUE_PHASE, of.CREATED)


@jit
def be_found(table, heap, dues, g, s, marks, clocked, p):  # type: ignore[no-untyped-def]
    """Enter subwindow p into the list, or the heap, and among the dues."""
    if s[of.PARTITIONS] != by.NONE:
        if s[of.SELECTION] == by.LEAST_FREQUENT:
            g[of.HEAP] = enter(table, heap, g[of.HEAP], p, of.PLACE, of.UPDATES, of.UPDATED, of.UPDATED)
        elif s[of.SELECTION] == by.LEAST_RECENT or s[of.SELECTION] == by.FIRST_CREATED:
            link(table, g, p)
    if clocked:
        table[p, of.DUE] = NEVER
        table[p, of.DUE_PHASE] = 2
        g[of.DUES] = enter(table, dues, g[of.DUES], p, of.DUE_PLACE, of.DUE, of.DUE_PHASE, of.CREATED)
        due_again(table, dues, g, s, marks, p)


@jit
def create(table, heap, dues, g, s, marks, clocked, now, p):  # type: ignore[no-untyped-def]
    """A subwindow for partition p begins."""
    g[of.SEQUENCE] += 1
    table[p, of.FLAGS] = LIVE
    table[p, of.SINCE] = 0
    table[p, of.UPDATES] = 0
    table[p, of.CELL] = -1
    table[p, of.FILLED] = 0
    table[p, of.CREATED] = g[of.SEQUENCE]
    table[p, of.UPDATED] = g[of.SEQUENCE]
    table[p, of.CREATED_AT] = now
    table[p, of.UPDATED_AT] = now
    g[of.SUBWINDOWS] += 1
    if clocked:
        table[p, of.NEXT] = now + (s[of.EVERY] if s[of.SLIDING] == 1 else s[of.SIZE])
    be_found(table, heap, dues, g, s, marks, clocked, p)


@jit
def remove(table, heap, dues, g, s, closed, clocked, p):  # type: ignore[no-untyped-def]
    """The subwindow of partition p ends, with all that it holds."""
    g[of.TOTAL] -= table[p, of.TAIL] - table[p, of.HEAD]
    table[p, of.HEAD] = table[p, of.TAIL]
    table[p, of.FLAGS] = 0
    g[of.SUBWINDOWS] -= 1
    if s[of.FOLDED] == 1 and table[p, of.CELL] >= 0:
        closed[g[of.CLOSED]] = table[p, of.CELL]
        g[of.CLOSED] += 1
        table[p, of.CELL] = -1
    if s[of.PARTITIONS] != by.NONE:
        if s[of.SELECTION] == by.LEAST_FREQUENT:
            g[of.HEAP] = leave(table, heap, g[of.HEAP], p, of.PLACE, of.UPDATES, of.UPDATED, of.UPDATED)
        elif s[of.SELECTION] == by.LEAST_RECENT or s[of.SELECTION] == by.FIRST_CREATED:
            unlink(table, g, p)
    if clocked:
        g[of.DUES] = leave(table, dues, g[of.DUES], p, of.DUE_PLACE, of.DUE, of.DUE_PHASE, of.CREATED)


@jit
def updated(table, heap, g, s, now, p):  # type: ignore[no-untyped-def]
    """Partition p got a row."""
    g[of.SEQUENCE] += 1
    table[p, of.UPDATED] = g[of.SEQUENCE]
    table[p, of.UPDATES] += 1
    table[p, of.UPDATED_AT] = now
    if s[of.PARTITIONS] == by.NONE:
        return
    if s[of.SELECTION] == by.LEAST_FREQUENT:
        settle(table, heap, g[of.HEAP], p, of.PLACE, of.UPDATES, of.UPDATED, of.UPDATED)
    elif s[of.SELECTION] == by.LEAST_RECENT and g[of.LAST] != p:
        unlink(table, g, p)
        link(table, g, p)


@jit
def least(table, heap, g, s, spared):  # type: ignore[no-untyped-def]
    """The subwindow to evict first, other than `spared` unless that is the only one."""
    if s[of.SELECTION] == by.LEAST_FREQUENT:
        top = heap[0]
        if top != spared or g[of.HEAP] == 1:
            return top
        # The second in order is one of the two below the top.
        if g[of.HEAP] > 2 and is_before(table, heap[2], heap[1], of.UPDATES, of.UPDATED, of.UPDATED):
            return heap[2]
        return heap[1]
    first = g[of.FIRST]
    if first == spared and table[first, of.AFTER] >= 0:
        return table[first, of.AFTER]
    return first


@jit
def next_victim(table, heap, chosen, g, s, p):  # type: ignore[no-untyped-def]
    """The subwindow to evict for a row of partition p; -1 if the user's function has to select some first."""
    if s[of.SELECTION] != by.FUNCTION:
        return least(table, heap, g, s, p)
    if g[of.SUBWINDOWS] == 1 and table[p, of.FLAGS] & LIVE:
        return p
    if g[of.CHOSEN_AT] == g[of.CHOSEN]:
        return -1
    g[of.CHOSEN_AT] += 1
    return chosen[g[of.CHOSEN_AT] - 1]


@jit
def rejoin(order, table, heap, dues, g, s, marks):  # type: ignore[no-untyped-def]
    """Enter subwindows that have come from elsewhere into the list and the heaps, in this order."""
    for k in range(order.shape[0]):
        be_found(table, heap, dues, g, s, marks, s[of.CLOCKED] == 1, order[k])

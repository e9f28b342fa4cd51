"""The numbers that compiled loops and Python share: the columns of a subwindow, settings and counters.

A subwindow is a row of one int64 table: whatever a loop asks about it lies in two cache lines.

    HEAD, TAIL     its content is order[HEAD:TAIL], oldest first; with a summarizer, TAIL - HEAD rows were taken
    START, END     the region of `order` that it owns
    SINCE          rows since the last trigger of count
    FLAGS          LIVE, FULL (the window was full once), REFERRED (a delta trigger has its reference)
    CREATED, UPDATED, UPDATES                sequence numbers of creation and last insertion, and how many there were
    CREATED_AT, UPDATED_AT                   the same on the clock, in nanoseconds
    BEFORE, AFTER                            neighbours in the list from which partitions are evicted
    PLACE                                    place in the heap by frequency
    CELL                                     where a summarizer folds its rows, or -1
    NEXT                                     when a time trigger, or the flush of a tumbling window, is next
    DUE, DUE_PHASE, DUE_PLACE                what the clock does next to it, and its place in the heap of these
    SHIFT                                    place in `order` + SHIFT stays the same when its region is moved
    FILLED                                   of a window in slices: rows in the last slice, or which slice that is
"""

from __future__ import annotations

HEAD, TAIL, START, END, SINCE, FLAGS = 0, 1, 2, 3, 4, 5
CREATED, UPDATED, UPDATES, CREATED_AT, UPDATED_AT = 6, 7, 8, 9, 10
BEFORE, AFTER, PLACE, CELL, NEXT = 11, 12, 13, 14, 15
DUE, DUE_PHASE, DUE_PLACE, SHIFT, FILLED = 16, 17, 18, 19, 20
WIDTH = 21

LIVE, FULL, REFERRED = 1, 2, 4

# Settings: what the spec says, and which events are wanted.
SLIDING, EVICTION, SIZE, TRIGGERING, EVERY = 0, 1, 2, 3, 4
PARTITIONS, LIMIT, SELECTION, PARTIAL, FOLDED, RECORD, STOP, CLOCKED, SLICE = 5, 6, 7, 8, 9, 10, 11, 12, 13
SETTINGS = 14

# Policies, partition evictions and selections.
NONE, COUNT, DELTA, TIME, PUNCT = 0, 1, 2, 3, 4
PARTITION_COUNT, TUPLE_COUNT, PARTITION_AGE = 1, 2, 3
LEAST_RECENT, LEAST_FREQUENT, FIRST_CREATED, BY_FUNCTION = 0, 1, 2, 3

# Counters of a window. ROW and PHASE say where a loop that was left goes on.
ROW, PHASE, TAPE, SUBWINDOWS, TOTAL, SEQUENCE, FIRST, LAST, HEAP, DUES, FREE, CLOSED = range(12)
CHOSEN, CHOSEN_AT, VICTIM, LOW = 12, 13, 14, 15
COUNTERS = 16

# Why a loop returned.
DONE, STOPPED, NEEDS_TAPE, NEEDS_CELLS, NEEDS_CHOICE = 0, 1, 2, 3, 4

# The columns of the tape.
KIND, OF_ROW, OF_PARTITION, OF_TUPLE, FROM, UPTO, AT = range(7)
TAPE_WIDTH = 7
# So many events a step can have; a loop that finds less room asks for more.
SPARE = 16

NEVER = 2**63 - 1

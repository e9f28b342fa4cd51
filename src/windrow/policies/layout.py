"""The numbers that compiled loops and Python share: the columns of a subwindow, settings and counters.

Places in these three are read as `table[p, of.HEAD]`, `s[of.SIZE]` and `g[of.ROW]`, and kinds of policies as
`s[of.EVICTION] == by.COUNT`. To compiled code they are constants.

A subwindow is a row of one int64 table. What a loop asks about for each row of data lies together, in one cache line:

    HEAD, TAIL     its content is order[HEAD:TAIL], oldest first; with a summarizer, TAIL - HEAD rows were taken
    FLAGS          LIVE, FULL (the window was full once), REFERRED (a delta trigger has its reference)
    CELL           where a summarizer folds its rows, or -1
    SINCE          rows since the last trigger of count
    FILLED         of a window in slices: rows in the last slice, or which slice that is
    UPDATES, UPDATED_AT    how many rows it got, and when it got the last one, in nanoseconds on the clock

and behind it what is needed now and then:

    START, END             the region of `order` that it owns
    CREATED, UPDATED       sequence numbers of its creation and of its last insertion; CREATED_AT on the clock
    BEFORE, AFTER, PLACE   neighbours in the list from which partitions are evicted; place in the heap by frequency
    NEXT                   when a time trigger, or the flush of a tumbling window, is next
    DUE, DUE_PHASE, DUE_PLACE    what the clock does next to it, and its place in the heap of these
    SHIFT                  place in `order` + SHIFT stays the same when its region is moved
"""

from __future__ import annotations

from collections import namedtuple

Places = namedtuple(
    "Places",
    # The columns of a subwindow.
    "HEAD TAIL FLAGS CELL SINCE FILLED UPDATES UPDATED_AT "
    "START END CREATED UPDATED CREATED_AT BEFORE AFTER PLACE NEXT DUE DUE_PHASE DUE_PLACE SHIFT "
    # Settings: what the spec says, and which events are wanted.
    "SLIDING EVICTION SIZE TRIGGERING EVERY PARTITIONS LIMIT SELECTION PARTIAL FOLDED RECORD STOP CLOCKED SLICE "
    # Counters of a window. ROW and PHASE say where a loop that was left goes on.
    "ROW PHASE TAPE SUBWINDOWS TOTAL SEQUENCE FIRST LAST HEAP DUES FREE CLOSED CHOSEN CHOSEN_AT VICTIM",
)
SETTINGS, COUNTERS = 14, 15
of = Places(*range(21), *range(SETTINGS), *range(COUNTERS))
WIDTH = 24

LIVE, FULL, REFERRED = 1, 2, 4

Policies = namedtuple(
    "Policies",
    "NONE COUNT DELTA TIME PUNCT "
    "PARTITION_COUNT TUPLE_COUNT PARTITION_AGE LEAST_RECENT LEAST_FREQUENT FIRST_CREATED FUNCTION",
)
# Policies, partition evictions, and selections.
by = Policies(*range(5), *range(1, 4), *range(4))

# Why a loop returned.
DONE, STOPPED, NEEDS_TAPE, NEEDS_CELLS, NEEDS_CHOICE = 0, 1, 2, 3, 4

# The columns of the tape.
KIND, OF_ROW, OF_PARTITION, OF_TUPLE, FROM, UPTO, AT = range(7)
TAPE_WIDTH = 7
# The most events that a step can have; a loop that finds less room returns for more.
SPARE = 16

NEVER = 2**63 - 1

"""The events of a window (Gedik, section 4.1.3), by name and by number.

    every window       before_insert, after_insert, partition_eviction, partition_selection
    tumbling windows   before_flush, after_flush
    sliding windows    before_evict, after_evict, trigger, initial_full

Compiled loops write events on a *tape*, one row of numbers for each. The number of an event is also its
place in the masks that say which events are written down and which ones somebody waits for: an event that
nobody asked for costs one comparison.
"""

from __future__ import annotations

from collections.abc import Iterable

from windrow.errors import QueryError

BEFORE_INSERT = 0
AFTER_INSERT = 1
BEFORE_FLUSH = 2
AFTER_FLUSH = 3
BEFORE_EVICT = 4
AFTER_EVICT = 5
TRIGGER = 6
INITIAL_FULL = 7
PARTITION_EVICTION = 8
PARTITION_SELECTION = 9

NAMES: tuple[str, ...] = (
    "before_insert",
    "after_insert",
    "before_flush",
    "after_flush",
    "before_evict",
    "after_evict",
    "trigger",
    "initial_full",
    "partition_eviction",
    "partition_selection",
)
TUMBLING: frozenset[str] = frozenset({"before_flush", "after_flush"})
SLIDING: frozenset[str] = frozenset({"before_evict", "after_evict", "trigger", "initial_full"})


def code_of(name: str) -> int:
    """The number of an event.

    >>> code_of("trigger")
    6
    """
    if name not in NAMES:
        raise QueryError(f"{name!r} is no event of a window; the events are {', '.join(NAMES)}")
    return NAMES.index(name)


def mask_of(names: Iterable[str]) -> int:
    """A number whose bits are the events of these names.

    >>> mask_of(["before_insert", "trigger"])
    65
    """
    mask = 0
    for name in names:
        mask |= 1 << code_of(name)
    return mask

"""The events of a window (Gedik, section 4.1.3), by name and by number.

    every window       before_insert, after_insert, partition_eviction, partition_selection
    tumbling windows   before_flush, after_flush
    sliding windows    before_evict, after_evict, trigger, initial_full

Compiled loops write events on a *tape*, one row of numbers for each. The number of an event is also its
place in the masks that say which events are written down and which ones a handler waits for: an event that
is not wanted costs one comparison.
"""

from __future__ import annotations

from collections.abc import Iterable

from windrow.errors import QueryError
from windrow.wording import near

BEFORE_INSERT, AFTER_INSERT, BEFORE_FLUSH, AFTER_FLUSH, BEFORE_EVICT, AFTER_EVICT = range(6)
TRIGGER, INITIAL_FULL, PARTITION_EVICTION, PARTITION_SELECTION = range(6, 10)

NAMES: tuple[str, ...] = (
    *("before_insert", "after_insert", "before_flush", "after_flush", "before_evict", "after_evict"),
    *("trigger", "initial_full", "partition_eviction", "partition_selection"),
)
TUMBLING: frozenset[str] = frozenset({"before_flush", "after_flush"})
SLIDING: frozenset[str] = frozenset({"before_evict", "after_evict", "trigger", "initial_full"})


def code_of(name: str) -> int:
    """The number of an event.

    >>> code_of("trigger")
    6
    """
    if name not in NAMES:
        raise QueryError(
            f"{name!r} is no event of a window{near(name, NAMES)}; the events are {', '.join(NAMES)}"
        )
    return NAMES.index(name)


def mask_of(names: Iterable[str]) -> int:
    """A number whose bits are the events of these names.

    >>> mask_of(["before_insert", "trigger"])
    65
    """
    return sum({1 << code_of(name) for name in names})

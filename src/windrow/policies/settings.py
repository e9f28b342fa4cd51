"""A spec as the numbers that compiled loops read."""

from __future__ import annotations

import numpy as np

from windrow.policies import layout
from windrow.policies.spec import (
    LEAST_FREQUENTLY_UPDATED,
    OLDEST,
    Count,
    Delta,
    Eviction,
    PartitionAge,
    PartitionCount,
    Punct,
    Sliding,
    Spec,
    Time,
    TupleCount,
    uses_clock,
)

_KINDS = {Count: layout.COUNT, Delta: layout.DELTA, Time: layout.TIME, Punct: layout.PUNCT}
_SELECTIONS = {LEAST_FREQUENTLY_UPDATED: layout.LEAST_FREQUENT, OLDEST: layout.FIRST_CREATED}


def settings_of(spec: Spec) -> np.ndarray:
    """The settings of a window; which events are wanted is not among them yet."""
    settings = np.zeros(layout.SETTINGS, np.int64)
    settings[layout.EVICTION], settings[layout.SIZE] = _policy(spec.eviction)
    if isinstance(spec, Sliding):
        settings[layout.SLIDING] = 1
        settings[layout.TRIGGERING], settings[layout.EVERY] = _policy(spec.trigger)
    evicting = spec.partition_eviction
    if isinstance(evicting, PartitionCount):
        settings[layout.PARTITIONS], settings[layout.LIMIT] = layout.PARTITION_COUNT, evicting.size
    elif isinstance(evicting, TupleCount):
        settings[layout.PARTITIONS], settings[layout.LIMIT] = layout.TUPLE_COUNT, evicting.size
    elif isinstance(evicting, PartitionAge):
        settings[layout.PARTITIONS], settings[layout.LIMIT] = layout.PARTITION_AGE, evicting.nanoseconds
    if callable(spec.selection):
        settings[layout.SELECTION] = layout.BY_FUNCTION
    else:
        settings[layout.SELECTION] = _SELECTIONS.get(spec.selection, layout.LEAST_RECENT)
    settings[layout.CLOCKED] = uses_clock(spec)
    return settings


def _policy(policy: Eviction) -> tuple[int, int]:
    """What kind it is, and its size or period; the threshold of a delta policy is in the column's own type."""
    size = 0
    if isinstance(policy, Count):
        size = policy.size
    elif isinstance(policy, Time):
        size = policy.nanoseconds
    return _KINDS[type(policy)], size

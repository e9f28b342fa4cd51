"""A spec as the numbers that compiled loops read."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.policies import layout
from windrow.policies import spec as specs

_KINDS: dict[type, int] = {
    type(None): layout.NONE,
    specs.Count: layout.COUNT,
    specs.Delta: layout.DELTA,
    specs.Time: layout.TIME,
    specs.Punct: layout.PUNCT,
    specs.PartitionCount: layout.PARTITION_COUNT,
    specs.TupleCount: layout.TUPLE_COUNT,
    specs.PartitionAge: layout.PARTITION_AGE,
}
_SELECTIONS = {specs.LEAST_FREQUENTLY_UPDATED: layout.LEAST_FREQUENT, specs.OLDEST: layout.FIRST_CREATED}


def settings_of(spec: specs.Spec) -> np.ndarray:
    """The settings of a window; which events are wanted is not among them yet."""
    settings = np.zeros(layout.SETTINGS, np.int64)
    settings[[layout.EVICTION, layout.SIZE]] = _policy(spec.eviction)
    settings[[layout.TRIGGERING, layout.EVERY]] = _policy(spec.trigger)
    settings[[layout.PARTITIONS, layout.LIMIT]] = _policy(spec.partition_eviction)
    settings[layout.SLIDING] = isinstance(spec, specs.Sliding)
    if callable(spec.selection):
        settings[layout.SELECTION] = layout.BY_FUNCTION
    else:
        settings[layout.SELECTION] = _SELECTIONS.get(spec.selection, layout.LEAST_RECENT)
    settings[layout.CLOCKED] = specs.uses_clock(spec)
    return settings


def _policy(policy: Any) -> tuple[int, int]:
    """What kind it is, and its size or period; the threshold of a delta policy is in the column's own type."""
    is_time = isinstance(policy, (specs.Time, specs.PartitionAge))
    return _KINDS[type(policy)], policy.nanoseconds if is_time else getattr(policy, "size", 0)

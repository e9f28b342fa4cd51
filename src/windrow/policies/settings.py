"""A spec as the numbers that compiled loops read."""

from __future__ import annotations

from typing import Any

import numpy as np

from windrow.policies import layout
from windrow.policies import spec as specs
from windrow.policies.layout import by, of

_KINDS: dict[type, int] = {
    type(None): by.NONE,
    specs.Count: by.COUNT,
    specs.Delta: by.DELTA,
    specs.Time: by.TIME,
    specs.Punct: by.PUNCT,
    specs.PartitionCount: by.PARTITION_COUNT,
    specs.TupleCount: by.TUPLE_COUNT,
    specs.PartitionAge: by.PARTITION_AGE,
}
_SELECTIONS = {specs.LEAST_FREQUENTLY_UPDATED: by.LEAST_FREQUENT, specs.OLDEST: by.FIRST_CREATED}


def settings_of(spec: specs.Spec) -> np.ndarray:
    """The settings of a window; which events are wanted is not among them yet."""
    settings = np.zeros(layout.SETTINGS, np.int64)
    settings[[of.EVICTION, of.SIZE]] = _policy(spec.eviction)
    settings[[of.TRIGGERING, of.EVERY]] = _policy(spec.trigger)
    settings[[of.PARTITIONS, of.LIMIT]] = _policy(spec.partition_eviction)
    settings[of.SLIDING] = isinstance(spec, specs.Sliding)
    if callable(spec.selection):
        settings[of.SELECTION] = by.FUNCTION
    else:
        settings[of.SELECTION] = _SELECTIONS.get(spec.selection, by.LEAST_RECENT)
    settings[of.CLOCKED] = specs.uses_clock(spec)
    return settings


def _policy(policy: Any) -> tuple[int, int]:
    """What kind it is, and its size or period; the threshold of a delta policy is in the column's own type."""
    is_time = isinstance(policy, (specs.Time, specs.PartitionAge))
    return _KINDS[type(policy)], policy.nanoseconds if is_time else getattr(policy, "size", 0)

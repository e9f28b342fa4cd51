"""Aggregate buckets for span events: one partial per window, and each event combined into every window it overlaps.

    event           |------------|
    buckets    [ .. partial ]
                  [ .. partial ]            four windows, four combines: nothing is shared
                     [ .. partial ]
                        [ .. partial ]

A bucket holds an event once, so that nothing is counted twice.

    order       any: an event is combined into the windows that are not released
    windows     periodic windows of time
    aggregates  those with a partial of fixed size that do not depend on the order of events
    time        one combine per event and window that it overlaps, none when a window is released
    space       one partial per open window
    paper       Suzanne, Raschia, Martinez and Tassetti, Slicing techniques for temporal aggregation in spanning
                event streams, Information and Computation 2021, section 5.3.3
"""

from __future__ import annotations

import numpy as np

from benchmarks.techniques.aggregate_buckets import Buckets
from benchmarks.techniques.spanning.base import Spanning, SpanTechnique, extent
from benchmarks.techniques.spanning.slices import add
from benchmarks.techniques.wheeled import NO_KEYS
from windrow.stores.operations import lift


def insert_into_buckets(inputs, first, last, keys, base, mask, stride, cells):
    """Combine each event into all of its windows; how many combines that took."""
    combines = 0
    keyed = keys.shape[0] > 0
    for e in range(first.shape[0]):
        if first[e] <= last[e]:
            key = keys[e] if keyed else 0
            event = lift(inputs, e)
            for k in range(first[e], last[e] + 1):
                combines += add(cells, (base + (k & mask)) * stride + key, event)
    return combines


class _SpanBuckets(Spanning, Buckets):
    def insert_spans(
        self,
        starts: np.ndarray,
        lasts: np.ndarray,
        keys: np.ndarray | None,
        inputs: tuple[tuple[np.ndarray, ...], ...],
    ) -> None:
        places = self.windows_of(starts, lasts, self._floor)
        self.make_room(*extent(places))
        run = self.partials.loop(insert_into_buckets)
        numbers = NO_KEYS if keys is None else keys
        for i, found in enumerate(places):
            ring = self.wheel.base[i], self.wheel.mask[i], self.stride
            self.combines += int(run(inputs[0], *found, numbers, *ring, self.cells))


class AggregateBuckets(SpanTechnique):
    """See the module."""

    method = _SpanBuckets

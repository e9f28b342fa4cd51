"""Tuple buckets for span events: one list of events per window, and each event in the list of every window it overlaps.

event a         |------------|
event b                |----------|
buckets    [ a          ]
              [ a  b       ]            folded when the window is released
                 [ a  b       ]
                    [ a  b       ]

order       any; lists are sorted by the starts of events at the end if an aggregate asks for order
windows     periodic windows of time
aggregates  all, also those that need the events themselves
time        one copy per event and window that it overlaps, n - 1 combines per window of n events
space       the events of each open window, each as often as there are windows that it overlaps
paper       Suzanne, Raschia, Martinez and Tassetti, Slicing techniques for temporal aggregation in spanning
            event streams, Information and Computation 2021, section 5.3.3; there, lists hold pointers to events,
            here the few columns of an event that the query reads
"""

from __future__ import annotations

import numpy as np

from benchmarks.techniques.spanning.base import Spanning, SpanTechnique, extent
from benchmarks.techniques.tuple_buckets import Lists, end_of_list
from windrow.compiling.tiers import jit


@jit
def count_into_lists(first, last, base, mask, sizes):
    """How many events each list will get."""
    for e in range(first.shape[0]):
        for k in range(first[e], last[e] + 1):
            sizes[base + (k & mask)] += 1


@jit
def copy_into_lists(source, first, last, base, mask, head, tail, length, following, free, matrix):
    """Copy each event to the end of the lists of all of its windows.

    free: how many chunks are free, and which; there are enough.
    """
    for e in range(first.shape[0]):
        for k in range(first[e], last[e] + 1):
            slot = base + (k & mask)
            to = end_of_list(slot, head, tail, length, following, free)
            for c in range(matrix.shape[0]):
                matrix[c, to] = source[c][e]
            length[slot] += 1


class _SpanLists(Spanning, Lists):
    def insert_spans(
        self,
        starts: np.ndarray,
        lasts: np.ndarray,
        keys: np.ndarray | None,
        inputs: tuple[tuple[np.ndarray, ...], ...],
    ) -> None:
        wheel = self._wheel
        places = self.windows_of(starts, lasts, self._floor)
        self.fit(*extent(places))
        sizes = np.zeros(wheel.slots, np.int64)
        for i, found in enumerate(places):
            count_into_lists(*found, wheel.base[i], wheel.mask[i], sizes)
        self.make_room_for(sizes)
        source, matrix = self._tuples.source(starts, keys, inputs[0]), self._tuples.matrix
        for i, found in enumerate(places):
            ring = wheel.base[i], wheel.mask[i]
            copy_into_lists(source, *found, *ring, *self._lists, self._following, self._free, matrix)


class TupleBuckets(SpanTechnique):
    """See the module."""

    method = _SpanLists
    keeps_tuples = True
    restores_order = True

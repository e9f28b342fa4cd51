"""SE-Slicing: slices in two parts, so that an event which lies in many of them counts once in a window.

    slices      |     |     |     |     |
    event            |--------------|              lift*: goes on, goes on, ends here
    window      |-----------------|                combine*: all that ends in its slices, and of those that go
                                                   on, what goes on beyond the last one

An event that goes on beyond a slice is in the next slice again, where it either ends or goes on: so of all parts
"goes on" only that of the window's last slice is new. Selective functions have one part, and need no care.

    order       any: slices are kept until the windows that hold them are released
    windows     periodic windows of time, cut as Pairs does
    aggregates  those with a partial of fixed size that do not depend on the order of events
    time        one combine per event and slice that it lies in; ceil(range/slide) per window, twice that where the
                slide does not divide the range
    space       two partials per slice, one for selective functions
    paper       Suzanne, Raschia, Martinez and Tassetti, Slicing techniques for temporal aggregation in spanning
                event streams, Information and Computation 2021, sections 3.2 and 5.2.1, Algorithms 1 to 4
"""

from __future__ import annotations

from benchmarks.techniques.spanning.slices import Sliced, SlicingTechnique, add, join
from windrow.stores.operations import lift, load, put


def insert_event(inputs, first, last, keys, base, mask, parts, stride, cells):
    """Algorithm 3: combine each event into all of its slices; how many combines that took."""
    combines = 0
    keyed = keys.shape[0] > 0
    for e in range(first.shape[0]):
        low, high = first[e], last[e]
        if low > high:
            continue
        key = keys[e] if keyed else 0
        event = lift(inputs, e)
        # It ends in the last of them, and goes on in the others.
        part = 0
        for f in range(high, low - 1, -1):
            combines += add(cells, ((base + (f & mask)) * parts + part) * stride + key, event)
            part = parts - 1
    return combines


def release_window(placement, first, last, final, base, mask, top, parts, stride, keys, cells, out):
    """Algorithm 4 for each window and key; how many combines that took."""
    combines = 0
    for w in range(placement.shape[0]):
        i = placement[w]
        for key in range(keys):
            found = False
            total = load(cells, key)
            for f in range(first[w], last[w]):
                cell = (base[i] + (f & mask[i])) * parts * stride + key
                found, total, joins = join(cells, cell, found, total)
                combines += joins
            if parts == 2 and final[w] < top[i]:
                cell = ((base[i] + (final[w] & mask[i])) * parts + 1) * stride + key
                found, total, joins = join(cells, cell, found, total)
                combines += joins
            if found:
                put(out, w * keys + key, total)
    return combines


class _Slicing(Sliced):
    inserting = staticmethod(insert_event)
    releasing = staticmethod(release_window)


class SeSlicing(SlicingTechnique):
    """See the module."""

    method = _Slicing

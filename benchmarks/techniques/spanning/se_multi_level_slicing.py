"""SE-ML-Slicing: slices in levels, so that a long event is inserted in few of them.

    slices       |  1  |  2  |  3  |  4  |  5  |  6  |  7  |  8  |       height 4
    level 4                                    |-----------------------| of slice 8: slices 5 to 8
    level 3            |-----------------|                               of slice 4: slices 2 to 4
    event               |---------------------------------------------|  7 slices, 2 insertions

Level k of slice i stands for the slices i-k+1 to i. An event goes into the highest level that it fills, from its end
backwards, and hops over the slices that are covered. What a window needs is then in all levels of its slices, and in
those levels of later slices that reach back into it:

    levels       4  ends here   ends here   ends here, goes on   both   both   both
                 3      :           :              :             both   both
                 2      :           :              :             both
                 1      :           :              :
    window       |-----------|-----------|--------------------|

    order       any: slices are kept until the windows that hold them are released
    windows     periodic windows of time, cut as Pairs does
    aggregates  those with a partial of fixed size that do not depend on the order of events
    time        one combine per event and `height` slices that it lies in; height * (slices + height) per window
    space       2 * height partials per slice, `height` for selective functions
    paper       Suzanne, Raschia, Martinez and Tassetti, Slicing techniques for temporal aggregation in spanning
                event streams, Information and Computation 2021, sections 4 and 5.2.2, Table 3, Algorithms 5 to 8
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from benchmarks.techniques.spanning.slices import Sliced, SlicingTechnique, add, join
from windrow.durations import DurationLike
from windrow.errors import QueryError
from windrow.options import OperatorOptions
from windrow.spec import QuerySpec
from windrow.stores.operations import lift, load, put


def insert_event(inputs, first, last, keys, base, mask, height, parts, stride, cells):
    """Algorithm 7: combine each event into as few levels as cover it; how many combines that took."""
    combines = 0
    keyed = keys.shape[0] > 0
    for e in range(first.shape[0]):
        f = last[e]
        left = f - first[e] + 1
        if left <= 0:
            continue
        key = keys[e] if keyed else 0
        event = lift(inputs, e)
        part = 0
        while left > 0:
            level = min(left, height) - 1
            cell = (((base + (f & mask)) * height + level) * parts + part) * stride + key
            combines += add(cells, cell, event)
            part = parts - 1
            f -= height
            left -= height
    return combines


def release_window(placement, first, last, final, base, mask, top, height, parts, stride, keys, cells, out):
    """Algorithm 8 for each window and key; how many combines that took."""
    combines = 0
    for w in range(placement.shape[0]):
        i = placement[w]
        for key in range(keys):
            found = False
            total = load(cells, key)
            for f in range(first[w], min(final[w] + height, top[i])):
                # What goes on beyond a slice before the last one is in a later slice again.
                taken = parts if f >= final[w] else 1
                for level in range(max(0, f - final[w]), height):
                    for part in range(taken):
                        cell = (((base[i] + (f & mask[i])) * height + level) * parts + part) * stride + key
                        found, total, joins = join(cells, cell, found, total)
                        combines += joins
            if found:
                put(out, w * keys + key, total)
    return combines


class _Levels(Sliced):
    inserting = staticmethod(insert_event)
    releasing = staticmethod(release_window)

    def __init__(
        self, query: QuerySpec, settings: OperatorOptions, schema: pa.Schema, *, height: int
    ) -> None:
        self.height = height
        self.levels = (height,)
        super().__init__(query, settings, schema)


class SeMultiLevelSlicing(SlicingTechnique):
    """See the module; `height` is how many levels a slice has. With 1 it does what `SeSlicing` does."""

    method = _Levels

    def __init__(self, query: QuerySpec, lateness: DurationLike = 0, *, height: int) -> None:
        if isinstance(height, bool) or not isinstance(height, int) or height < 1:
            raise QueryError(f"the height of slices is a whole number of levels, 1 or more, not {height!r}")
        self.height = height
        super().__init__(query, lateness)

    @property
    def options(self) -> dict[str, Any]:
        return {"height": self.height}

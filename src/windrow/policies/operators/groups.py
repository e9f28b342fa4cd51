"""Groups inside windows: which groups each window holds, and their rows as ranges.

Rows are put in the order of their groups, oldest first in each. What a window holds of a group is then a
range again:

    rows      0:x  1:y  2:x  3:x  4:y           by group    x: 0 2 3    y: 1 4
    window    |-------------|                   0 .. 2      x: 0 2      y: 1
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from windrow.compiling.tiers import jit
from windrow.engine.intake.columns import whole
from windrow.engine.intake.keys import Keys


@jit
def group_ranges(group, groups, low, high, owner, which, new_low, new_high):  # type: ignore[no-untyped-def]
    """For each window its groups in order of appearance, and how many there are in all; -1 if there is no
    room.

    group: of each row. new_low, new_high: the range among the rows of the group, counted from its first row.
    """
    rank = np.empty(group.shape[0], np.int64)
    size = np.zeros(groups, np.int64)
    for i in range(group.shape[0]):
        rank[i] = size[group[i]]
        size[group[i]] += 1
    seen = np.full(groups, -1)
    found = 0
    for w in range(low.shape[0]):
        begin = found
        for i in range(low[w], high[w]):
            g = group[i]
            place = seen[g]
            if place < begin:
                if found == owner.shape[0]:
                    return -1
                place = found
                seen[g] = found
                owner[found] = w
                which[found] = g
                new_low[found] = rank[i]
                found += 1
            new_high[place] = rank[i] + 1
    return found


def grouped(
    rows: pa.Table, by: Sequence[str], low: np.ndarray, high: np.ndarray
) -> tuple[pa.Table, np.ndarray, list[pa.Array], np.ndarray, np.ndarray]:
    """Rows by group; of each group of each window the window, the group's columns, and its range of these
    rows.
    """
    batch = whole(rows)
    keys = Keys(pa.schema([batch.schema.field(name) for name in by]))
    group = keys.numbers(batch)
    assert group is not None
    room = min(int((high - low).sum()), max(1024, 4 * len(low)))
    while True:
        found = [np.empty(room, np.int64) for _ in range(4)]
        count = group_ranges(group, keys.count, low, high, *found)
        if count >= 0:
            break
        room *= 4
    owner, which, new_low, new_high = (column[:count] for column in found)
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(keys.count))
    columns = [column.take(pa.array(which)) for column in keys.columns]
    return rows.take(pa.array(order)), owner, columns, new_low + starts[which], new_high + starts[which]

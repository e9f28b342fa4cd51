"""How many values there are in ranges of places, where some places hold nulls or slices of several rows.

place     0   1   2   3   4        own    1   0   3   1   1
rows      x   -   xxx x   x        upto   1   1   4   5   6        places 1 .. 3 have 5 - 1 + 0 = 4 values
"""

from __future__ import annotations

from windrow.engine.cache import jit
from windrow.policies.steps import NOWHERE


@jit
def count_values(position, numbers, present, low, high, counted, upto, own):  # type: ignore[no-untyped-def]
    """Count values by place: `own` ones in it, and how many came in its partition `upto` its end."""
    for i in range(low, high):
        place = position[i]
        if place == NOWHERE:
            continue
        value = 1 if present.shape[0] == 0 or present[i] else 0
        counted[numbers[i]] += value
        if place >= 0:
            own[place] = value
        else:
            place = -1 - place
            own[place] += value
        upto[place] = counted[numbers[i]]


@jit
def values_between(low, high, upto, own, out):  # type: ignore[no-untyped-def]
    """How many values there are in ranges of places."""
    for k in range(low.shape[0]):
        out[k] = 0
        if low[k] < high[k]:
            out[k] = upto[high[k] - 1] - upto[low[k]] + own[low[k]]

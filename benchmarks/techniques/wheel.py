"""Rings of numbered cells, one for each placement: where buckets and fragments of a query live.

    placement 0    .. 41 42 43 44          number k is in slot `base + (k & mask)`
    placement 1    .. 7 8                  live numbers are bottom .. top-1

A slot has a cell for each key. Numbers follow from time by arithmetic, so nothing is looked up; the price is that a
stream which leaps over a million windows makes room for all of them.
"""

from __future__ import annotations

import numpy as np

from windrow.compiling.tiers import jit
from windrow.errors import LimitError


@jit
def number_at(t, every, offset):
    """The number k for which `offset + k*every <= t < offset + (k+1)*every`."""
    k = np.int64((t - offset) // every)
    while offset + k * every > t:
        k -= 1
    while offset + (k + 1) * every <= t:
        k += 1
    return k


class Wheel:
    """See the module. `slots` are the slots of all rings together."""

    def __init__(self, placements: int) -> None:
        self.bottom = np.zeros(placements, np.int64)
        self.top = np.zeros(placements, np.int64)
        self.mask = np.full(placements, -1)
        self.base = np.zeros(placements, np.int64)
        self.slots = 0

    def fit(self, low: np.ndarray, high: np.ndarray, stride: int, most: int) -> np.ndarray | None:
        """Have room for numbers low .. high; None, or for each slot the slot that it was (-1: none)."""
        empty = self.bottom >= self.top
        bottom = np.where(empty, low, np.minimum(self.bottom, low))
        top = np.where(empty, high + 1, np.maximum(self.top, high + 1))
        need = top - bottom
        if float(need.astype(np.float64).sum()) * stride > most:
            raise LimitError(
                f"{int(need.sum()):,} windows or fragments of {stride:,} keys are more than {most:,} cells; "
                "nothing of this batch was taken"
            )
        old = self.bottom, self.top, self.mask, self.base
        self.bottom, self.top = bottom, top
        if (need <= self.mask + 1).all():
            return None
        grown = (2 ** np.ceil(np.log2(np.maximum(need, 2)))).astype(np.int64)
        size = np.where(need <= self.mask + 1, self.mask + 1, grown)
        self.mask = size - 1
        self.base = np.concatenate([[0], np.cumsum(size)[:-1]])
        self.slots = int(size.sum())
        return self._origins(*old)

    def _origins(self, bottom: np.ndarray, top: np.ndarray, mask: np.ndarray, base: np.ndarray) -> np.ndarray:
        origin = np.full(self.slots, -1)
        live = np.maximum(top - bottom, 0)
        ends = np.cumsum(live)
        which = np.repeat(np.arange(len(live)), live)
        number = np.arange(len(which)) - np.repeat(ends - live, live) + bottom[which]
        origin[self.base[which] + (number & self.mask[which])] = base[which] + (number & mask[which])
        return origin

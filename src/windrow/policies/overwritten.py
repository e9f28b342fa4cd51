"""What a batch overwrites beside `order`, kept so that the batch can be undone (`undo`).

    places     |..gone..|a b c d|e f g|x y z          rows x y z of the batch have places of their own, behind the last one
                         head            tail

Only two things before the tail change: the last place, where it is a slice that rows join; and what lies behind the middle
of the stacks, where a window has passed it (`stacks`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windrow.engine.cutting import Runs
from windrow.policies.layout import HEAD, SHIFT, TAIL

if TYPE_CHECKING:
    from windrow.policies.contents import Contents


class Overwritten:
    """What the touched partitions had before a batch, as far as the batch overwrites it."""

    def __init__(self, window: Contents, touched: np.ndarray) -> None:
        self._touched = touched
        self._head, self._tail = (window.subwindows.table[touched, column] for column in (HEAD, TAIL))
        self._kept: list[tuple[np.ndarray, dict[str, np.ndarray]]] = []
        self._keep(window, self._tail[self._head < self._tail] - 1)

    def _keep(self, window: Contents, places: np.ndarray) -> None:
        if len(places):
            self._kept.append((places, {name: array[places] for name, array in window.regions.items()}))

    def keep_overwritten(self, window: Contents, middle: np.ndarray) -> None:
        """Windows are about to be answered, from stacks with this middle."""
        table = window.subwindows.table
        low = np.maximum(middle[self._touched] - table[self._touched, SHIFT], self._head)
        passed = np.flatnonzero((table[self._touched, HEAD] > low) & (low < self._tail))
        self._keep(window, Runs(low[passed], self._tail[passed], passed).located()[0])

    def back(self, window: Contents) -> None:
        """Bring it all back; what was kept first counts."""
        for places, arrays in reversed(self._kept):
            for name, array in arrays.items():
                window.regions[name][places] = array

"""What a window holds, as arrays: the subwindows of all partitions, their rows, and where the loops stand."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from windrow.policies.log import Log, Regions
from windrow.policies.partitions import Partitions

_NO_VALUES = np.empty(0, np.int64)


@dataclass
class Rows:
    """The rows of a call: the partition of each, and the values of delta columns by role."""

    numbers: np.ndarray
    values: dict[str, np.ndarray] = field(default_factory=dict)
    # Values go back, which is wrong unless a partition is evicted in between.
    doubtful: bool = False

    @property
    def count(self) -> int:
        return len(self.numbers)

    def first(self, count: int) -> Rows:
        """The first rows only."""
        return Rows(self.numbers[:count], self.values)


NO_ROWS = Rows(np.empty(0, np.int32))


class WindowState:
    """The arrays that loops and foldings work on; `settings` and `counters` are described in `layout`.

    rows        those of the last batch
    position    where each of them was put: a place in `order`, or a cell
    regions     parallel arrays, by place
    """

    partitions: Partitions
    regions: Regions
    log: Log
    settings: np.ndarray
    counters: np.ndarray
    position: np.ndarray
    rows: Rows
    _no_marks: np.ndarray

    @property
    def order(self) -> np.ndarray:
        """Rows of the log, by subwindow; empty where no rows are kept."""
        return self.regions.arrays.get("order", _NO_VALUES)

    @property
    def marks(self) -> np.ndarray:
        """What the eviction of a sliding window compares, by place; empty where it compares nothing."""
        return self.regions.arrays.get("marks", self._no_marks)

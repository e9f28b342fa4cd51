"""The way back to before a batch, for windows in which something may fail after its rows were taken.

A function of the user's own may raise and a sum may overflow when the loop has long gone over the rows: folding comes
afterwards, over columns. Such a window saves, before each batch, what the batch can change:

    subwindows   of the partitions that it touches; of all partitions where some may be evicted
    partials     of these subwindows; of sliding ones only what is about to be overwritten (`ranges`)
    counters, and the events that the clock has written by then

Rows in the log and places behind the last one of a subwindow need no way back: they are not read. Lists and heaps are
built anew from the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windrow.policies.layout import by, of
from windrow.policies.log import count_rows
from windrow.policies.steps import NOWHERE
from windrow.policies.subwindows import rejoin

if TYPE_CHECKING:
    from windrow.policies.machine import Machine

# Arrays by partition that mean nothing between two batches.
SCRATCH = ("need", "latest eviction", "latest trigger", "seen eviction", "seen trigger")


class Undo:
    """What a window was when this was made; rows of partitions `numbers` are about to be taken."""

    def __init__(self, machine: Machine, numbers: np.ndarray) -> None:
        self._machine = machine
        self.rows = len(numbers)
        partitions = machine.partitions
        self._touched = touched = _touched(machine, numbers)
        self._table = partitions.table[touched]
        self._arrays = {name: a[touched] for name, a in partitions.arrays.items() if name not in SCRATCH}
        self._counters = machine.counters.copy()
        self._events = machine.tape[:, : machine.counters[of.TAPE]].copy()
        self._refold = None if machine.folding is None else machine.folding.saved(machine, touched)

    def back(self) -> None:
        """Make the window what it was."""
        machine, partitions = self._machine, self._machine.partitions
        partitions.table[self._touched] = self._table
        for name, array in self._arrays.items():
            partitions.arrays[name][self._touched] = array
        machine.counters[:] = self._counters
        machine.tape[:, : self._events.shape[1]] = self._events
        rejoin_all(machine)
        if self._refold is not None:
            self._refold()
        machine.position[: self.rows] = NOWHERE
        machine.forget_rows()


def _touched(machine: Machine, numbers: np.ndarray) -> np.ndarray:
    partitions = machine.partitions
    if machine.settings[of.PARTITIONS]:
        return np.arange(partitions.known)
    need = partitions.arrays["need"]
    touched = np.empty(min(len(numbers), partitions.known), np.int64)
    touched = touched[: count_rows(numbers, need, touched)]
    need[touched] = 0
    return touched


def rejoin_all(machine: Machine) -> None:
    """Build the list from which partitions are evicted and both heaps anew."""
    partitions, g = machine.partitions, machine.counters
    g[[of.FIRST, of.LAST]] = -1
    g[[of.HEAP, of.DUES]] = 0
    # The list goes by update or by creation; both are found in the table.
    moment = of.CREATED if machine.settings[of.SELECTION] == by.FIRST_CREATED else of.UPDATED
    live = partitions.live()
    order = live[np.argsort(partitions.table[live, moment], kind="stable")]
    rejoin(order, partitions.table, partitions.heap, partitions.dues, g, machine.settings, machine.marks)

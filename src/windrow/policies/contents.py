"""What a window holds, to be read by handlers, and by others under the window's lock."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate
from windrow.errors import QueryError
from windrow.policies.clock import Clock
from windrow.policies.layout import of
from windrow.policies.log import Log
from windrow.policies.machine import Machine
from windrow.policies.partitions import Partitions
from windrow.policies.spec import Spec


class Contents:
    """The part of a window that reads and changes nothing."""

    spec: Spec
    aggregates: dict[str, Aggregate]
    clock: Clock
    taken: int
    _machine: Machine
    _busy: str | None

    def __len__(self) -> int:
        """How many rows all subwindows hold."""
        return int(self._machine.counters[of.TOTAL])

    def partitions(self) -> pa.Table:
        """A row for each subwindow, oldest first: its key, its size, and when it was created and updated."""
        return self.described(self._machine.partitions.live())

    def described(self, numbers: np.ndarray) -> pa.Table:
        """As `partitions`, for these partition numbers."""
        partitions = self._machine.partitions
        table = partitions.table[numbers]
        columns = {
            "size": table[:, of.TAIL] - table[:, of.HEAD],
            "updates": table[:, of.UPDATES],
            "created": table[:, of.CREATED_AT],
            "updated": table[:, of.UPDATED_AT],
            "age": self.clock.now() - table[:, of.UPDATED_AT],
        }
        keys = dict(zip(partitions.by, partitions.columns(numbers), strict=True))
        return pa.table(keys | {name: pa.array(values) for name, values in columns.items()})

    def content(self, key: Any = None) -> pa.Table:
        """The rows of a subwindow, oldest first; no rows if there is none with this key."""
        number = self._machine.partitions.number_of(key)
        if number is None:
            return self.rows_between(0, 0)
        table = self._machine.partitions.table
        return self.rows_between(int(table[number, of.HEAD]), int(table[number, of.TAIL]))

    def rows_between(self, low: int, high: int) -> pa.Table:
        """The rows of a range of `order`."""
        if self._machine.folding is not None:
            raise QueryError("this window keeps summaries and no rows: ask for its summary")
        return self.log.take(self.order[low:high])

    def summary(self, key: Any = None) -> Any:
        """What was made of the rows of a subwindow so far: a dict of answers, or the summarizer; None without one."""
        number = self._machine.partitions.number_of(key)
        return None if number is None else self.summary_of(number)

    def summary_of(self, number: int) -> Any:
        """As `summary`, by the number of the partition."""
        folding = self._machine.folding
        if folding is None:
            raise QueryError("this window has no summarizer and no aggregates: look at its content")
        if self._busy is not None:
            self._machine.fold_so_far()
        return folding.summary(self._machine, number)

    # -- for operators that are compiled themselves ------------------------------------------------

    @property
    def log(self) -> Log:
        """The rows that windows may hold; `tape.tuple` and `order` are rows of it."""
        return self._machine.log

    @property
    def order(self) -> np.ndarray:
        """Rows of the log, by subwindow: `tape.low` and `tape.high` are a range of this."""
        return self._machine.order

    @property
    def regions(self) -> dict[str, np.ndarray]:
        """The arrays that are parallel to `order`."""
        return self._machine.regions.arrays

    @property
    def subwindows(self) -> Partitions:
        """The table of subwindows, by partition number."""
        return self._machine.partitions

    def key_of(self, number: int) -> Any:
        """The key of a partition's number: a value, a tuple of several, or None if there are no partitions."""
        return self._machine.partitions.key_of(number)

    def keys(self, numbers: np.ndarray) -> list[pa.Array]:
        """The key columns of partitions."""
        return self._machine.partitions.columns(numbers)

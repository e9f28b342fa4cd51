"""Deduplicate: a row passes if none with the same values is in its window when it comes.

    rows       1  1  2  3  1  1           sliding, count(2), count(1), by x
    given      1     2  3  1              the window remembers the last two rows, whether they passed or not

A sliding window (trigger: count(1)) is how much history is remembered; a tumbling one gives the different
rows of each window. Without `by`, rows are compared in all columns. Null is a value, as is NaN.

    input     window-bound          output    preserving: rows pass, and punctuations with them

For each value the last row that had it is known. It is still in the window if it is not older than the
window's oldest row, because a window evicts its rows in the order in which they came. So a row costs one
look, however long the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from windrow.compiling.tiers import jit
from windrow.engine.intake.columns import whole
from windrow.engine.intake.keys import Keys
from windrow.policies.clock import Clock, weakly
from windrow.policies.operators.rows import held, taken
from windrow.policies.operators.windowed import Windowed
from windrow.policies.options import column_names
from windrow.policies.partitions import grown
from windrow.policies.ports import PRESERVING, WINDOW_BOUND, Input, Model, Output, Punctuated, row_by_row
from windrow.policies.spec import Sliding, Tumbling
from windrow.schema import require_columns

# At most this many distinct values are never tidied up.
FEW = 4096


_refusal = row_by_row("each row is looked at when it comes, so the trigger is", "remembers nothing")


@jit
def mark_fresh(key, row, low, high, order, base, last, fresh):  # type: ignore[no-untyped-def]
    """Whether each row finds none with its key in its window; `last` is the last row of each key."""
    for e in range(row.shape[0]):
        i = row[e]
        k = key[i]
        fresh[i] = low[e] == high[e] or last[k] < order[low[e]]
        last[k] = base + i


@jit
def mark_first(key, keys, low, high, fresh):  # type: ignore[no-untyped-def]
    """Whether each row is the first one of its key in its range."""
    seen = np.full(keys, -1)
    for w in range(low.shape[0]):
        for i in range(low[w], high[w]):
            fresh[i] = seen[key[i]] != w
            seen[key[i]] = w


class Deduplicate(Windowed):
    """Rows without those that have a duplicate in their window.

    Parameters
    ----------
    window
        Its policies, as a value or as text.
    by
        The columns that are compared; None (default) for all.
    partition_by
        The columns whose values make a partition, where the window is partitioned; None by default.
    clock
        For policies of time; None (default) is the machine's own clock.

    Raises
    ------
    QueryError
        If the operator does not take such a window.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from windrow import policies as wp
    >>> calls = pa.table({"x": [1, 1, 2, 3, 1, 1]})
    >>> wp.Deduplicate("sliding, count(2), count(1)", "x").process(calls)[0].table["x"].to_pylist()
    [1, 2, 3, 1]
    """

    model = Model((Input("in", WINDOW_BOUND, _refusal),), (Output("out", PRESERVING, of=0),))
    _internals: ClassVar[tuple[str, ...]] = ("by", "_last", "_compared", "_keys", "_passed")

    def __init__(
        self,
        window: Tumbling | Sliding | str,
        by: str | Sequence[str] | None = None,
        *,
        partition_by: str | Sequence[str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(window, partition_by=partition_by, clock=clock)
        self.by = column_names(by, "by")
        self._last = np.empty(0, np.int64)

    def described(self) -> str:
        return repr((super().described(), self.by))

    def fitted(self, schema: pa.Schema) -> None:
        # Rows of different partitions never meet, so the partition is part of what is compared.
        self._compared = tuple(dict.fromkeys([*self.partition_by[0], *(self.by or schema.names)]))
        require_columns(schema, self._compared)
        self._keys = Keys(pa.schema([schema.field(name) for name in self._compared]))
        self._schemas[0] = schema

    def options(self, schema: pa.Schema) -> dict[str, Any]:
        return {"columns": list(self._compared)}

    def recorded(self) -> tuple[str, ...]:
        return ("before_insert",)

    def window_made(self) -> None:
        """The window was made; rows that it holds from a snapshot have been seen."""
        self.window.log.on_moved(weakly(self._moved))
        rows = held(self.window)
        if len(rows):
            numbers = self._numbers(whole(taken(self.window.log, rows)))
            # The last of equal keys is what stays.
            self._last[numbers] = rows

    def _moved(self, moved: np.ndarray) -> None:
        """Rows of the log have other numbers; values of which none is left are forgotten, once they are
        many.
        """
        known = self._last >= 0
        self._last[known] = moved[self._last[known]]
        if len(self._last) > max(FEW, 2 * int((self._last >= 0).sum())):
            alive = np.flatnonzero(self._last >= 0)
            self._keys = self._keys.kept(alive)
            self._last = self._last[alive]

    def _numbers(self, batch: pa.RecordBatch) -> np.ndarray:
        numbers = self._keys.numbers(batch)
        assert numbers is not None
        self._last = grown(self._last, self._keys.count, -1)
        return numbers

    def _process(self, stretch: Punctuated) -> list[Punctuated]:
        self._passed: list[np.ndarray] = []
        super()._process(stretch)
        mask = np.concatenate(self._passed) if self._passed else np.zeros(0, np.bool_)
        before = np.concatenate([[0], np.cumsum(mask)])
        return [Punctuated(stretch.table.filter(pa.array(mask)), before[stretch.marks])]

    def played(self, tape: Any, batch: pa.RecordBatch | None) -> None:
        if batch is None:
            return
        numbers = self._numbers(batch)
        fresh = np.ones(batch.num_rows, np.bool_)
        window = self.window
        mark_fresh(numbers, tape.row, tape.low, tape.high, window.order, window.log.base, self._last, fresh)
        self._passed.append(fresh)

    takes_whole_windows = True

    def whole_windows(self, rows: pa.Table, low: np.ndarray, high: np.ndarray) -> None:
        numbers = self._numbers(whole(rows))
        fresh = np.ones(rows.num_rows, np.bool_)
        mark_first(numbers, self._keys.count, low, high, fresh)
        self._passed.append(fresh)

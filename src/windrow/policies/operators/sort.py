"""Sort: windows in order, or a stream that is out of order by no more than a window.

    tumbling    batch         each window is emitted in order, when it is flushed
    sliding     progressive   whenever a row leaves the window, the first row in order of all that are held is emitted

A progressive sort has a window with the trigger count(1). As many rows are held as the window has, but not
the same ones: the window lets its oldest row go, and the sort the one that comes first:

    rows       3 1 2 5 4 6           sliding, count(3), count(1), by x
    given            1 2 3           5 comes to a full window: 1 leaves the sort (and 3 the window)

Equal rows stay in the order in which they came; NaN and then null come last. A partition that is evicted is
emitted in order too, and so is what is left when the stream ends, unless `partial` is False. A
punctuation stands behind each window, and in a progressive sort behind what one row has made leave. (Gedik
2013, section 6.1.3.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.base import text_type
from windrow.engine.aligned.cutting import Runs
from windrow.policies.clock import Clock
from windrow.policies.operators.groups import grouped
from windrow.policies.operators.ordering import Order, Ordering, order_by
from windrow.policies.operators.rows import contents, taken
from windrow.policies.operators.sorted_rows import SortedRows
from windrow.policies.operators.windowed import Windowed
from windrow.policies.ports import GENERATING, WINDOW_BOUND, Input, Model, Output, Punctuated, row_by_row
from windrow.policies.spec import Sliding, Tumbling
from windrow.schema import require_columns

_refusal = row_by_row("a progressive sort looks at each row, so its trigger is", "sorts nothing")


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as Arrow can sort it: dictionaries as their values."""
    return column.cast(text_type(column.type)) if pa.types.is_dictionary(column.type) else column


class Sort(Windowed):
    """Windows in order, or a stream that is out of order by no more than a window.

    Parameters
    ----------
    window
        Its policies, as a value or as text.
    by
        A column, a (column, "descending") pair, or a list of these.
    partition_by
        The columns whose values make a partition, where the window is partitioned; None by default.
    clock
        For policies of time; None (default) is the machine's own clock.
    partial
        Whether the rows that are left are emitted when the stream ends; True by default.

    Raises
    ------
    QueryError
        If the operator does not take such a window, or `by` is no order.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from windrow import policies as wp
    >>> readings = pa.table({"x": [3, 1, 2, 5, 4, 6]})
    >>> wp.Sort("sliding, count(3), count(1)", "x").process(readings)[0].table["x"].to_pylist()
    [1, 2, 3]
    >>> wp.Sort("tumbling, count(3)", ("x", "descending")).process(readings)[0].table["x"].to_pylist()
    [3, 2, 1, 6, 5, 4]
    """

    model = Model((Input("in", WINDOW_BOUND, _refusal),), (Output("out", GENERATING),))
    _internals: ClassVar[tuple[str, ...]] = ("by", "partial", "_held")

    def __init__(
        self,
        window: Tumbling | Sliding | str,
        by: str | Order | Sequence[str | Order],
        *,
        partition_by: str | Sequence[str] | None = None,
        clock: Clock | None = None,
        partial: bool = True,
    ) -> None:
        super().__init__(window, partition_by=partition_by, clock=clock)
        self.by = order_by(by)
        self.partial = partial
        self._held: SortedRows | None = None

    @property
    def progressive(self) -> bool:
        """Whether rows are emitted one by one, and not a window at a time."""
        return isinstance(self.spec, Sliding)

    def described(self) -> str:
        return repr((super().described(), self.by, self.partial))

    def fitted(self, schema: pa.Schema) -> None:
        require_columns(schema, tuple(name for name, _ in self.by))
        # Types that have no order are refused in both modes.
        ordering = Ordering(self.by, schema)
        self._held = SortedRows(schema, ordering) if self.progressive else None
        self._schemas[0] = schema

    def options(self, schema: pa.Schema) -> dict[str, Any]:
        return {"columns": []} if self.progressive else {}

    def recorded(self) -> tuple[str, ...]:
        if self.progressive:
            return ("after_insert", "before_evict", "partition_eviction")
        return ("before_flush", "partition_eviction")

    def refuse(self, batch: pa.RecordBatch) -> None:
        if self._held is not None:
            self._held.refuse(batch)

    def window_made(self) -> None:
        if self._held is not None:
            self.window.subwindows.on_renumbered(self._held.renumber)

    # -- the stream ------------------------------------------------------------------------------

    def played(self, tape: Any, batch: pa.RecordBatch | None) -> None:
        if self._held is None:
            self._sorted(tape.low, tape.high)
        else:
            self._give(self._held.played(tape, batch))

    def _sorted(self, low: np.ndarray, high: np.ndarray) -> None:
        """Emit the rows of each range of the window's `order` in order."""
        full = high > low
        positions, owner = Runs(low[full], high[full], np.arange(int(full.sum()))).located()
        if len(positions):
            self._in_order(taken(self.window.log, self.window.order[positions]), owner)

    def _in_order(self, rows: pa.Table, owner: np.ndarray) -> None:
        """Emit rows by the windows that own them, which are numbered and come one after the other, and
        in order in each.
        """
        columns = [_comparable(rows.column(name)) for name, _ in self.by]
        names = [f"c{i}" for i in range(len(columns) + 1)]
        table = pa.Table.from_arrays([pa.array(owner), *columns], names=names)
        keys = [("c0", "ascending"), *((n, d) for n, (_, d) in zip(names[1:], self.by, strict=True))]
        ends = np.searchsorted(owner, np.arange(int(owner[-1]) + 1), side="right")
        self.emit(rows.take(pc.sort_indices(table, sort_keys=keys)), marks=ends)

    takes_whole_windows = True

    def whole_windows(self, rows: pa.Table, low: np.ndarray, high: np.ndarray) -> None:
        if self.partition_by[0]:
            rows, _, _, low, high = grouped(rows, self.partition_by[0], low, high)
        positions, owner = Runs(low, high, np.arange(len(low))).located()
        self._in_order(rows.take(pa.array(positions)), owner)

    def finish(self) -> list[Punctuated]:
        if self.partial and self._schema is not None:
            with self.window.locked():
                partitions, low, high = contents(self.window)
                if self._held is None:
                    self._sorted(low, high)
                else:
                    self._give(self._held.drained(partitions))
        return self.poll()

    def _give(self, left: tuple[pa.Table, np.ndarray]) -> None:
        rows, marks = left
        if rows.num_rows:
            self.emit(rows, marks=marks)

    # -- state -----------------------------------------------------------------------------------

    def state(self) -> dict[str, bytes]:
        return {} if self._held is None else self._held.save(contents(self.window)[0])

    def load(self, parts: dict[str, bytes]) -> None:
        if self._held is not None:
            partitions, low, high = contents(self.window)
            self._held.load(parts, partitions, high - low)

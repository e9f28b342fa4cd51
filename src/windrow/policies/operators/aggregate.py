"""Aggregate: windrow's aggregates over the content of each window that is due; all 52 window configurations.

    input     window-bound: `tumbling, punct()` needs a punctuated stream
    output    generating: a punctuation behind the rows of each window

A window gives one row, or with `group_by` one for each group of its rows, in the order in which groups first
appear; an empty window gives none. Columns are those of the partition, of the group, and the aggregates.
Partitions that are evicted are forgotten: they were not due. (Gedik 2013, section 6.1.1, and Listings 2 to
6.)

What is kept: partials and no rows, if there are no groups and no aggregate that sorts; the window itself
folds its rows then (`windrow.policies.summarizers`). Else the columns that are read, and the windows of a batch share the pieces that they have in common (`range_aggregation`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate as Spec
from windrow.engine.intake.columns import whole
from windrow.errors import QueryError
from windrow.policies.clock import Clock
from windrow.policies.log import storable
from windrow.policies.operators.groups import grouped
from windrow.policies.operators.range_aggregation import RangeAggregation, pack
from windrow.policies.operators.rows import taken
from windrow.policies.operators.windowed import Windowed
from windrow.policies.options import column_names
from windrow.policies.spec import Sliding, Tumbling
from windrow.schema import require_columns


class Aggregate(Windowed):
    """Aggregates of each window that is due, or of each group in it.

    Parameters
    ----------
    window
        Its policies, as a value or as text.
    aggregates
        windrow's aggregates by the names of their columns.
    group_by
        Columns whose values make a group of rows in each window; None (default) for one row a window.
    partition_by
        The columns whose values make a partition, where the window is partitioned; None by default.
    clock
        For policies of time; None (default) is the machine's own clock.
    partial_windows
        Whether triggers before a subwindow was full for the first time count; True by default.

    Raises
    ------
    QueryError
        If there is no aggregate, or two columns of the output would have one name.

    Examples
    --------
    >>> import pyarrow as pa, windrow as wr
    >>> from windrow import policies as wp
    >>> trades = pa.table({"tid": ["x", "y", "x", "x"], "value": [1, 2, 4, 8]})
    >>> totals = wp.Aggregate("tumbling, count(4)", {"total": wr.sum("value")}, group_by="tid")
    >>> totals.process(trades)[0].table.to_pylist()
    [{'tid': 'x', 'total': 13}, {'tid': 'y', 'total': 2}]
    """

    _internals: ClassVar[tuple[str, ...]] = ("aggregates", "group_by", "_answers", "_result")

    def __init__(
        self,
        window: Tumbling | Sliding | str,
        aggregates: Mapping[str, Spec],
        *,
        group_by: str | Sequence[str] | None = None,
        partition_by: str | Sequence[str] | None = None,
        clock: Clock | None = None,
        partial_windows: bool = True,
    ) -> None:
        super().__init__(window, partition_by=partition_by, clock=clock, partial_windows=partial_windows)
        if not isinstance(aggregates, Mapping):
            raise QueryError(
                f"aggregates are given by name, as in {{'mean': mean('x')}}; not as {aggregates!r}"
            )
        self.aggregates = dict(aggregates)
        self.group_by = column_names(group_by, "group_by")
        if not self.aggregates:
            raise QueryError("Aggregate needs at least one aggregate")
        for name, aggregate in self.aggregates.items():
            if not isinstance(aggregate, Spec):
                raise QueryError(f"{name!r} needs an aggregate of windrow, as in sum('x'); not {aggregate!r}")
        names = [*self.partition_by[0], *self.group_by, *self.aggregates]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise QueryError(f"two columns of the output would be called {', '.join(map(repr, twice))}")

    def recorded(self) -> tuple[str, ...]:
        return ("before_flush",) if isinstance(self.spec, Tumbling) else ("trigger",)

    def fitted(self, schema: pa.Schema) -> None:
        require_columns(schema, (*self.partition_by[0], *self.group_by))
        self._answers = RangeAggregation(self.aggregates, schema)
        grouped_by = storable(whole(schema.empty_table()), self.group_by).schema
        fields = [*(schema.field(name) for name in self.partition_by[0]), *grouped_by]
        self._result = pa.schema([*fields, *self._answers.fields])
        self._schemas[0] = self._result

    def options(self, schema: pa.Schema) -> dict[str, Any]:
        if not self._keeps_rows:
            return {"aggregates": self.aggregates}
        return {"columns": list(dict.fromkeys([*self._answers.columns, *self.group_by]))}

    @property
    def _keeps_rows(self) -> bool:
        # To sort each window anew takes many times as long as to find a rank in pieces that are sorted once.
        return bool(self.group_by) or self._answers.sorts

    def refuse(self, batch: pa.RecordBatch) -> None:
        if self._keeps_rows:
            self._answers.refuse(batch)

    def window_made(self) -> None:
        self.window.can_take_back = self._keeps_rows and self._answers.may_fail

    def described(self) -> str:
        shown = [f"{name}={aggregate}" for name, aggregate in self.aggregates.items()]
        return repr((super().described(), shown, self.group_by))

    def played(self, tape: Any, batch: pa.RecordBatch | None) -> None:
        due = np.flatnonzero(tape.high > tape.low)
        if len(due):
            table, marks = self._from_rows(tape, due) if self._keeps_rows else self._folded(tape, due)
            self.emit(table, marks=marks)

    def _folded(self, tape: Any, due: np.ndarray) -> tuple[pa.Table, np.ndarray]:
        """A row for each window, as the window gives it."""
        table = tape.answers
        if len(due) < table.num_rows:
            table = table.take(pa.array(due))
        return table.cast(self._result), np.arange(1, len(due) + 1)

    def _from_rows(self, tape: Any, due: np.ndarray) -> tuple[pa.Table, np.ndarray]:
        """A row for each window, or for each group of each window, from the rows that the window keeps."""
        positions, low, high = pack(tape.low[due], tape.high[due])
        rows = taken(self.window.log, self.window.order[positions])
        keys = self.window.keys(tape.partition[due]) if self.partition_by[0] else []
        return self._answered(rows, low, high, keys, tape.row[due])

    def _answered(
        self,
        rows: pa.Table,
        low: np.ndarray,
        high: np.ndarray,
        keys: list[pa.Array],
        caused: np.ndarray | None = None,
    ) -> tuple[pa.Table, np.ndarray]:
        """The rows that windows give, which are ranges of rows of partitions with these keys, and their
        ends; `caused` are the rows of the batch that made them due.
        """
        windows = np.arange(len(low))
        owner = windows
        groups: list[pa.Array] = []
        if self.group_by:
            rows, owner, groups, low, high = grouped(rows, self.group_by, low, high)
            keys = [key.take(pa.array(owner)) for key in keys]
            caused = None if caused is None else caused[owner]
        answers = self._answers(rows, low, high, caused)
        table = pa.Table.from_arrays([*keys, *groups, *answers], schema=self._result)
        return table, np.searchsorted(owner, windows, side="right")

    takes_whole_windows = True

    def whole_windows(self, rows: pa.Table, low: np.ndarray, high: np.ndarray) -> None:
        keys: list[pa.Array] = []
        if self.partition_by[0]:
            rows, _, keys, low, high = grouped(rows, self.partition_by[0], low, high)
        table, marks = self._answered(rows, low, high, keys)
        self.emit(table, marks=marks)

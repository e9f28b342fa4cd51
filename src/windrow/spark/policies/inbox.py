"""Rows on their way to the windows of a bucket: they wait until the watermark has passed them.

    watermark before   |               now         |
    rows         late  | enter, in order of time   |  wait
                 ------+---------------------------+-------------> time

Windows by policy take rows in one order, for good. So a row comes to them when no earlier one is expected any
more: rows with times before the watermark enter. Those of equal times enter together: left ones before right
ones, rows before punctuations, and otherwise in the order of their arrival. A row with a time before the
watermark of the micro-batch before comes too late: others have entered that should have come after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.engine.intake.columns import ticks_of, whole
from windrow.measure import Measure, Tick
from windrow.rolling.codes import refuse_first
from windrow.spark.policies.rows import PUNCTUATION, TAG, TIME


class Judge:
    """Finds rows without a time, before they travel; where a clock tells the time, no row needs one."""

    def __init__(self, measure: Measure | None) -> None:
        self._measure = measure

    def sift(self, batch: pa.RecordBatch) -> None:
        """An error that names the first row that has no time."""
        if self._measure is None:
            return
        column = batch.column(TIME)
        _, missing = ticks_of(column, self._measure)
        problem = "the time of a row is missing, so it has no place among the others"
        refuse_first(missing, self._measure.column, column, problem)


class Inbox:
    """Rows of a bucket that wait for the watermark. `watermark` is that of the micro-batch before, in ticks; None in the beginning."""

    def __init__(self, measure: Measure, schema: pa.Schema) -> None:
        self.measure = measure
        self.watermark: Tick | None = None
        self._schema = schema
        self._waiting: list[pa.RecordBatch] = []

    def put(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows arrive; those that are late are returned."""
        late = self._before(batch, self.watermark)
        if not late.any():
            self._waiting.append(batch)
            return batch.slice(0, 0)
        self._waiting.append(batch.filter(pa.array(~late)))
        return batch.filter(pa.array(late))

    def pass_to(self, watermark: Tick) -> pa.RecordBatch:
        """The watermark has moved: the rows that enter, in order."""
        self.watermark = watermark
        rows = self.waiting()
        enters = self._before(rows, watermark)
        self._waiting = [rows.filter(pa.array(~enters))]
        return self._in_order(rows.filter(pa.array(enters)))

    def close(self) -> pa.RecordBatch:
        """No more rows will come: all that wait, in order."""
        rows, self._waiting = self.waiting(), []
        return self._in_order(rows)

    def waiting(self) -> pa.RecordBatch:
        """The rows that wait, in order of arrival."""
        return whole(pa.Table.from_batches(self._waiting, self._schema))

    @property
    def nbytes(self) -> int:
        """The size of all rows that wait."""
        return sum(batch.nbytes for batch in self._waiting)

    def _before(self, rows: pa.RecordBatch, tick: Tick | None) -> np.ndarray[Any, Any]:
        if tick is None:
            return np.zeros(rows.num_rows, np.bool_)
        return ticks_of(rows.column(TIME), self.measure)[0] < tick

    def _in_order(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        times, _ = ticks_of(rows.column(TIME), self.measure)
        if np.all(times[1:] > times[:-1]):
            return rows
        tags = np.minimum(rows.column(TAG).to_numpy(), PUNCTUATION)
        return rows.take(pa.array(np.lexsort((tags, times))))

"""Windows of time over events in order, answered by a store: slices of `every`, and `period` of them together.

    events      . ..   .  . .    .      .
    slices      |----|----|----|----|----|          cut where windows begin
    windows     |---------|                         period = 2 every
                     |---------|

Windows are those of `sliding(period, every=every)`: half-open, aligned to the epoch, and none without an event. A window
is answered when the first event behind its end has come.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from windrow.aggregates.base import Aggregate
from windrow.durations import DurationLike, parse_duration
from windrow.engine.functions.store_compatibility import chosen
from windrow.engine.intake.columns import ticks_of
from windrow.errors import QueryError
from windrow.measure import Measure
from windrow.rolling import loops
from windrow.rolling.codes import refuse_first
from windrow.rolling.held import Held, Rows
from windrow.rolling.rings import parts, saved
from windrow.schema import require_columns
from windrow.stores.base import power_of_two
from windrow.stores.chunks import chunk_of_time


class Periods:
    """The aggregate of the last `period` of time, every `every`, over events in order of the column `time`."""

    def __init__(
        self, aggregate: Aggregate, time: str, period: DurationLike, every: DurationLike, store: str
    ) -> None:
        self.columns = (time, *aggregate.columns)
        self._aggregate = aggregate
        self._time = time
        self._lengths = parse_duration(period, what="period"), parse_duration(every, what="every")
        for what, length in zip(("period", "every"), self._lengths, strict=True):
            if length.magnitude <= 0:
                raise QueryError(f"{what} must be longer than zero, not {length}")
        self._store = store
        self._held: Held | None = None
        self._slices = np.zeros(0, np.int64)
        self._marks: tuple[int, ...] | None = None
        self._latest: int | None = None

    def process(self, batch: pa.RecordBatch | None) -> pa.RecordBatch:
        """Take in events, all or none; a row with start, end and answer for each window that ended before the last."""
        if batch is None:
            return self._table(np.empty(0, np.int64), None)
        if self._held is None:
            self._begin(batch.schema)
        assert self._held is not None
        times = self._times(batch)
        rows = self._held.read(batch)
        if not rows.count:
            return self._table(np.empty(0, np.int64), None)
        marks = self._marks
        if marks is None:
            marks = ((int(times[0]) - self._period) // self._every + 1, 0, 0, 0, 0, 0, 0)
        end = marks[5]
        put_back = saved(np.split(self._slices, 2), parts(len(self._slices) // 2, [(end, end + rows.count)]))
        evicts = self._evicts(marks, times)
        try:
            with self._held.as_before_on_failure(rows.count, self._held.parts(rows.count, evicts)):
                marks, starts, answers = self._slide(self._held, rows, times, marks)
        except BaseException:
            put_back()
            raise
        self._marks, self._latest = marks, int(times[-1])
        if self._held.log is not None:
            self._held.log.forget(self._held.log.end - marks[3] - marks[6])
        return self._table(starts, answers)

    def _begin(self, schema: pa.Schema) -> None:
        require_columns(schema, self.columns)
        measure = self._measure = Measure(self._time, schema.field(self._time).type)
        if measure.floating:
            raise QueryError(
                f"{measure.describe()} has no ticks to count windows by: use a query, or a column of whole numbers"
            )
        ticks = [
            measure.ticks(length, what=what)
            for what, length in zip(("period", "every"), self._lengths, strict=True)
        ]
        self._period, self._every = map(int, ticks)
        # Slices that a window reaches into, one that is evicted only with the next window, and the open one.
        capacity = self._period // self._every + 3
        store = chosen(self._store, self._aggregate, schema, slices=capacity, row_by_row=False)
        # Events may come as fast as they are taken in, one for each slice: a combine then takes as long as a slice.
        chunk = chunk_of_time(self._period, self._every, self._every)
        self._held = Held(self._aggregate, schema, store, capacity, chunk)
        self._slices = np.zeros(2 * power_of_two(capacity), np.int64)

    def _times(self, batch: pa.RecordBatch) -> np.ndarray:
        """Times as ticks; an error for the first event that has none, or that comes after a later one."""
        column = batch.column(self._time)
        times, missing = ticks_of(column, self._measure)
        refuse_first(missing, self._time, None, "an event needs a time, and this one has none")
        margin = self._period + self._every
        outside = (times < self._measure.lowest + margin) | (times > self._measure.highest - margin)
        problem = "the edges of its windows would overflow the column's type"
        refuse_first(outside, self._time, column, problem)
        earlier = np.zeros(len(times), bool)
        earlier[1:] = times[1:] < times[:-1]
        earlier[:1] = self._latest is not None and times[:1] < self._latest
        problem = "comes after a later event, and rolling windows take events in order: use a query instead"
        refuse_first(earlier, self._time, column, problem)
        return times

    def _evicts(self, marks: tuple[int, ...], times: np.ndarray) -> int:
        """No more slices than this leave the store: those that begin before the windows of the last event."""
        front, end = marks[4:6]
        if front == end:
            return len(times)
        first = int(self._slices[front & (len(self._slices) // 2 - 1)])
        return max(0, (int(times[-1]) - self._period) // self._every + 1 - first)

    def _slide(
        self, held: Held, rows: Rows, times: np.ndarray, marks: tuple[int, ...]
    ) -> tuple[tuple[int, ...], np.ndarray, pa.Array]:
        """Run the events through the store: marks of the loop, and starts and answers of the windows that ended."""
        present = np.ones(rows.count, bool) if rows.present is None else np.array(rows.present)
        room = self._room(times, marks[0])
        starts, n, out = np.empty(room, np.int64), np.empty(room, np.int64), held.room(room)
        arguments = np.array(times), present, self._every, self._period, marks, self._slices
        kept = held.current, held.identity, held.state, held.cells, held.notes, starts, n, out
        held.state, held.current, marks, made = held.run(loops.slide_in_time, rows, *arguments, *kept)
        answers = held.answers(tuple(o[:made] for o in out), n[:made], self._where(times, starts))
        return marks, starts[:made], answers

    def _room(self, times: np.ndarray, following: int) -> int:
        """No more windows than this can end: all in the time that went by, and those that a slice has a part in."""
        by_time = (int(times[-1]) - self._period) // self._every + 1 - following
        slices = times // self._every
        by_slices = (2 + int(np.count_nonzero(np.diff(slices)))) * (self._period // self._every + 2)
        return max(0, min(by_time, by_slices + self._period // self._every + 2))

    def _where(self, times: np.ndarray, starts: np.ndarray) -> Any:
        def where(i: int) -> tuple[int, str]:
            end = int(starts[i]) + self._period
            row = max(0, int(np.searchsorted(times, end)) - 1)
            return row, f"the window [{self._measure.scalar(int(starts[i]))}, {self._measure.scalar(end)})"

        return where

    def _table(self, starts: np.ndarray, answers: pa.Array | None) -> pa.RecordBatch:
        names = ["start", "end", "answer"]
        if self._held is None:
            return pa.RecordBatch.from_arrays([pa.nulls(0)] * 3, names=names)
        edges = [self._measure.array(starts), self._measure.array(starts + self._period)]
        column = pa.nulls(0, self._held.bound.type) if answers is None else answers
        return pa.RecordBatch.from_arrays([*edges, column], names=names)

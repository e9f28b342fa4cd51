"""The first stage: events to buckets, as slices where that makes them fewer.

A partition's events are collected into batches worth a compiled call, split by bucket, and packed. Where
the algebra allows it, events are first folded into slices (a *combiner*); whether that is worth it depends on
the data, so a partition whose slices are hardly fewer than its events stops making them.

In a stream, a partition also sends a row without a payload to each bucket that it had nothing for: that is how
all buckets come to be with the first data, and are called once, and with its watermark, in each micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from windrow.engine.exchange import slices_of
from windrow.errors import DataError, UserFunctionError
from windrow.spark.payload import pack, runs
from windrow.spark.task import BUCKET, Stage, Task, Work

# `part` and `number` give the order of arrival: the partition of the source, and a count within it.
SCATTERED = "bucket int, part int, number int, payload binary"
SCHEMA = pa.schema(
    [("bucket", pa.int32()), ("part", pa.int32()), ("number", pa.int32()), ("payload", pa.binary())]
)
BATCH = 1 << 18
TRIAL = 1 << 16
# In a micro-batch, so few rows are not worth it whatever they hold.
FEW = 1 << 12
# Slices that are more than this share of their events are not worth the work to make them.
WORTH = 0.5


def scatter(task: Work, *, everywhere: bool) -> Stage:
    """The stage as a function of a partition's batches; with `everywhere`, each bucket gets a row."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        partition = _Scatter(task, part, FEW if everywhere else 0)
        yield from partition.run(batches)
        if everywhere:
            yield partition.rest()

    return stage


class _Scatter:
    """One partition."""

    def __init__(self, task: Work, part: int, few: int) -> None:
        self._task = task
        self._part = part
        self._names = np.array(task.bucket_names(), np.int32)
        self._combine = task.combine
        self._sent: list[int] = []
        self._before = 0
        self._judge = task.judge()
        self._is_strict = isinstance(task, Task) and task.settings.on_bad == "raise"
        self._few = few

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: list[pa.RecordBatch] = []
        rows, enough = 0, TRIAL if self._combine else BATCH
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            if rows >= enough:
                yield self._send(held)
                held, rows, enough = [], 0, BATCH
        if rows:
            yield self._send(held)

    def rest(self) -> pa.RecordBatch:
        """A row for each bucket that has got none."""
        left = np.setdiff1d(np.arange(self._task.buckets), self._sent)
        return self._rows(left, [None] * len(left))

    def _send(self, held: list[pa.RecordBatch]) -> pa.RecordBatch:
        """One row per bucket."""
        (whole,) = pa.Table.from_batches(held).combine_chunks().to_batches()
        batch, buckets = self._task.events(whole), whole.column(len(self._task.schema))
        combines = self._combine and whole.num_rows > self._few
        # Where a bad row is an error, who makes slices finds it.
        if (combines and self._is_strict) or (self._good(batch) and combines):
            batch, buckets = self._combined(batch, buckets)
            self._combine = batch.num_rows <= WORTH * whole.num_rows
        self._before += whole.num_rows
        return self._split(batch, buckets.to_numpy())

    def _split(self, batch: pa.RecordBatch, buckets: np.ndarray) -> pa.RecordBatch:
        order = np.argsort(buckets.astype(np.uint16), kind="stable")
        batch, buckets = batch.take(pa.array(order)), buckets[order]
        found = list(runs(buckets))
        payloads = [pack(batch.slice(low, high - low)) for low, high in found]
        return self._rows(buckets[[low for low, _ in found]], payloads)

    def _rows(self, buckets: np.ndarray, payloads: Sequence[bytes | None]) -> pa.RecordBatch:
        numbers = range(len(self._sent), len(self._sent) + len(buckets))
        self._sent += buckets.tolist()
        columns = [self._names[buckets], [self._part] * len(buckets), numbers, payloads]
        return pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)],
            schema=SCHEMA,
        )

    def _good(self, events: pa.RecordBatch) -> bool:
        """Whether there is no bad row; an error that names it, unless bad rows are diverted."""
        with self._counted():
            return self._judge.sift(events) is None

    def _combined(self, events: pa.RecordBatch, buckets: pa.Array) -> tuple[pa.RecordBatch, pa.Array]:
        """Slices, and the bucket of each; an error that names the first bad row."""
        assert isinstance(self._task, Task)
        with self._counted():
            slices = slices_of(self._task.query, events.append_column(BUCKET, buckets), along=BUCKET)
        return slices.drop_columns([BUCKET]), slices.column(BUCKET)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Errors name rows as they are counted in the partition."""
        where = f"rows are counted in partition {self._part} of the source"
        try:
            yield
        except DataError as error:
            row = None if error.row is None else self._before + error.row
            raise DataError(error.column, row, error.value, f"{error.problem} ({where})") from None
        except UserFunctionError as error:
            row = None if error.row is None else self._before + error.row
            raise UserFunctionError(error.what, row, f"{error.why} ({where})") from error.__cause__

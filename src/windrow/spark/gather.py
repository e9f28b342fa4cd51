"""The last stage of a batch job: the operator of each bucket over all of its rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from windrow.engine.bounded import BATCH, answer, column
from windrow.engine.exchange import slice_schema, slices_of
from windrow.spark.payload import unpack
from windrow.spark.results import results
from windrow.spark.task import BUCKET, Stage, Task


def gather(task: Task) -> Stage:
    """The stage behind `scatter`: packed events and slices in, results out."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = list(batches)
        if not parts:
            return
        table = pa.Table.from_batches(parts).sort_by(
            [("bucket", "ascending"), ("part", "ascending"), ("number", "ascending")]
        )
        for rows in _by_bucket(table, "bucket"):
            yield from _answer(task, [unpack(p.as_buffer()) for p in rows["payload"]])

    return stage


def gather_slices(task: Task) -> Stage:
    """The stage behind slices that the JVM made, as plain rows."""
    schema = slice_schema(task.query, task.schema)

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = list(batches)
        if not parts:
            return
        table = pa.Table.from_batches(parts).rename_columns([*schema.names, BUCKET]).sort_by(BUCKET)
        for rows in _by_bucket(table, BUCKET):
            yield from _answer_slices(task, rows.select(schema.names).cast(schema))

    return stage


def _by_bucket(table: pa.Table, name: str) -> Iterator[pa.Table]:
    buckets = column(table, name).to_numpy()
    begins = np.flatnonzero(np.diff(buckets, prepend=-1))
    for low, high in zip(begins.tolist(), [*begins[1:].tolist(), len(buckets)], strict=True):
        yield table.slice(low, high - low)


def _answer(task: Task, parts: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = slice_schema(task.query, task.schema) if task.combine else None
    slices = [part for part in parts if part.schema == schema]
    events = [part for part in parts if part.schema != schema]
    if slices:
        slices += [slices_of(task.query, part) for part in events]
        yield from _answer_slices(task, pa.Table.from_batches(slices, schema))
        return
    operator = task.operator()
    windows = answer(operator, pa.Table.from_batches(events, task.schema))
    yield from results(task, [windows], operator)


def _answer_slices(task: Task, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Slices in order of time, so that windows are given out and let go of on the way."""
    operator = task.operator()
    table = table.sort_by("#first").combine_chunks()
    firsts = column(table, "#first")
    for begin in range(0, len(table), BATCH):
        operator.take_slices(table.slice(begin, BATCH).combine_chunks().to_batches()[0])
        if begin + BATCH < len(table):
            yield from results(task, [operator.advance_to(firsts[begin + BATCH].as_py())], operator)
    yield from results(task, [operator.finish()], operator)

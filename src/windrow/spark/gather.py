"""The last stage of a batch job: the operator of each bucket over all of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from windrow.engine.bounded import BATCH, answer, column
from windrow.engine.exchange import slice_schema, slices_of
from windrow.spark.open_events import LATEST, answered, heard, latest_of, opens
from windrow.spark.payload import runs, unpack
from windrow.spark.results import results
from windrow.spark.task import BUCKET, Stage, Task


def gather(task: Task) -> Stage:
    """The stage behind `scatter`: packed events and slices in, results out."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table, parts in buckets_of(batches):
            if opens(task.query):
                operator = heard(task, parts)
                latest = table[LATEST][0].as_py() if LATEST in table.column_names else None
                yield from results(task, [answered(operator, latest)], operator)
            else:
                yield from _answer(task, parts)

    return stage


def gather_latest(task: Task) -> Stage:
    """The stage that goes before, where rows open and close events: the latest instant of each bucket."""
    # What is bad is for the other stage to say.
    task = replace(task, settings=replace(task.settings, on_bad="divert"))

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, parts in buckets_of(batches):
            yield from latest_of(heard(task, parts))

    return stage


def buckets_of(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.Table, list[pa.RecordBatch]]]:
    """What `scatter` has sent to each bucket, in order of arrival: the rows around it, and the batches that it packed."""
    parts = [part for part in batches if part.num_rows]
    if not parts:
        return
    # All payloads together may be more than one Arrow array of bytes can hold.
    payloads = [payload for part in parts for payload in part.column("payload")]
    table = pa.Table.from_batches([part.drop_columns(["payload"]) for part in parts])
    order = [(name, "ascending") for name in ("bucket", "part", "number")]
    places = pc.sort_indices(table, order).to_numpy()
    table = table.take(pa.array(places))
    for low, high in runs(column(table, "bucket").to_numpy()):
        yield table.slice(low, high - low), [unpack(payloads[i].as_buffer()) for i in places[low:high]]


def gather_slices(task: Task) -> Stage:
    """The stage behind slices that the JVM made, as plain rows."""
    schema = slice_schema(task.query, task.schema)

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = list(batches)
        if not parts:
            return
        table = pa.Table.from_batches(parts).rename_columns([*schema.names, BUCKET]).sort_by(BUCKET)
        for low, high in runs(column(table, BUCKET).to_numpy()):
            yield from _answer_slices(task, table.slice(low, high - low).select(schema.names).cast(schema))

    return stage


def _answer(task: Task, parts: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    slices = [part for part in parts if task.is_sliced(part)]
    events = [part for part in parts if not task.is_sliced(part)]
    if slices:
        slices += [slices_of(task.query, part) for part in events]
        yield from _answer_slices(task, pa.Table.from_batches(slices))
        return
    operator = task.operator()
    windows = answer(operator, pa.Table.from_batches(events, task.schema))
    yield from results(task, [windows], operator)


def _answer_slices(task: Task, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Slices in order of time, so that windows are emitted and evicted on the way."""
    operator = task.operator()
    table = table.sort_by("#first").combine_chunks()
    firsts = column(table, "#first")
    for begin in range(0, len(table), BATCH):
        operator.take_slices(table.slice(begin, BATCH).combine_chunks().to_batches()[0])
        if begin + BATCH < len(table):
            following = firsts[begin + BATCH].as_py()
            for engine in operator.engines:
                if engine.spans is not None:
                    engine.spans.reach(following)
            yield from results(task, [operator.complete_to(following)], operator)
    yield from results(task, [operator.finish()], operator)

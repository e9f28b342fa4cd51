"""From the DataFrames of an operator's inputs to the DataFrame that it emits: checks, and the stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from windrow.errors import QueryError
from windrow.measure import Measure
from windrow.options import PolicyOptions
from windrow.policies.operators import Operator
from windrow.policies.spec import PartitionAge, PartitionCount, Punct, TupleCount, uses_clock
from windrow.spark.compatibility import spark_schema
from windrow.spark.gather import buckets_of
from windrow.spark.policies.fitting import fitted, read_by
from windrow.spark.policies.rows import COPY, PUNCTUATION
from windrow.spark.policies.task import PolicyTask
from windrow.spark.results import results
from windrow.spark.schema import arrow_schema, named, require_dataframe, require_names, require_watermark
from windrow.spark.stages import bucket_of, require_streamable, scattered, streamed
from windrow.spark.task import BUCKET, Stage


def on_spark(operator: Operator, frames: Sequence[DataFrame], options: PolicyOptions) -> DataFrame:
    """The result of an operator over policy windows on Spark, as a DataFrame: the work of `Operator.on_spark`."""
    job = _Job(operator, frames, options)
    if job.streaming:
        return streamed(job.rows, job.task, metrics=options.metrics, counted=("events", "late"))
    return scattered(job.rows, job.task).mapInArrow(gather(job.task), spark_schema(job.task.result))


def gather(task: PolicyTask) -> Stage:
    """The last stage of a batch job: the operator of each bucket over all of its rows."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, parts in buckets_of(batches):
            runner = task.operator()
            yield from results(task, runner.answer(parts), runner)

    return stage


class _Job:
    """An operator and its DataFrames. Everything that can be wrong before a row was seen is refused here."""

    def __init__(self, operator: Operator, frames: Sequence[DataFrame], options: PolicyOptions) -> None:
        self._operator, self._frames, self._options = operator, frames, options
        self._check_inputs()
        windows = [window for window in operator.windows if window is not None]
        # Such partitions make room for each other: they have to be in one place.
        together = (PartitionCount, TupleCount)
        spread = all(w.partitioned and not isinstance(w.partition_eviction, together) for w in windows)
        clocked = any(uses_clock(w) or isinstance(w.partition_eviction, PartitionAge) for w in windows)
        self.times = self._times(clocked)
        self._check_streams()
        buckets = options.buckets_of(keyed=spread)
        self.task = self._task(buckets)
        self.rows = self._rows(buckets)

    @property
    def streaming(self) -> bool:
        return self._frames[0].isStreaming

    # -- checks ----------------------------------------------------------------------------------

    def _check_inputs(self) -> None:
        operator, frames = self._operator, self._frames
        name = type(operator).__name__
        if not all(operator.windows):
            raise QueryError(f"{name} has no window: a DataFrame has methods of its own for that")
        if len(frames) != len(operator.windows):
            inputs = f"{len(operator.windows)} input{'s' * (len(operator.windows) > 1)}"
            came = f"{len(frames)} DataFrame{'s' * (len(frames) != 1)}"
            raise QueryError(f"{name} has {inputs}, and {came} came")
        if len(operator.model.outputs) != 1:
            raise QueryError(
                f"{name} has {len(operator.model.outputs)} outputs, and one DataFrame comes out: "
                'say unmatched="together"'
            )
        for df in frames:
            require_dataframe(df)
        if len({df.isStreaming for df in frames}) > 1:
            raise QueryError("all inputs are streams, or none is: Spark does not put others together")
        punctuated = any(isinstance(w.eviction, Punct) for w in operator.windows if w is not None)
        column = self._options.punctuation
        if punctuated and column is None:
            raise QueryError(
                f"the window '{operator.windows[0]}' ends with punctuations: name the boolean column "
                "that is true in rows that are punctuations (punctuation=..)"
            )
        if not punctuated and column is not None:
            raise QueryError(f"no window of {name} ends with punctuations, and {column!r} marks some")
        for df in frames if column is not None else ():
            assert column is not None
            require_names(df, [column])
            kind = df.schema[column].dataType.simpleString()
            if kind != "boolean":
                raise QueryError(f"column {column!r} marks punctuations, so it is boolean, and not {kind}")

    def _times(self, clocked: bool) -> tuple[str, ...]:
        """The column of each input by which its rows are ordered; none where a clock drives the windows."""
        time, operator = self._options.time, self._operator
        if clocked:
            shown = ", ".join(f"'{window}'" for window in operator.windows)
            if time is not None:
                raise QueryError(
                    f"the time of day drives {shown}, and rows enter as they come: leave out time={time!r}"
                )
            if not self.streaming:
                raise QueryError(
                    f"the time of day drives {shown}: that needs a stream, and a batch has no time"
                )
            return ()
        if time is None:
            raise QueryError(
                "name the column by which rows come in order (time=..): a DataFrame has no order"
            )
        times = (time,) * len(self._frames) if isinstance(time, str) else tuple(time)
        if len(times) != len(self._frames):
            raise QueryError(
                f"one time column for all inputs, or one for each of {len(self._frames)}, not {time!r}"
            )
        for df, name in zip(self._frames, times, strict=True):
            require_names(df, [name])
        return times

    def _check_streams(self) -> None:
        if not self.streaming:
            return
        for df in self._frames:
            require_streamable(df)
        for df, time in zip(self._frames, self.times, strict=False):
            column, without = self._options.watermark or time, "no row would ever come to a window"
            require_watermark(df, column, time, without=without, late="rows")

    # -- the task --------------------------------------------------------------------------------

    def _task(self, buckets: int) -> PolicyTask:
        self._names = [self._travelling(df) for df in self._frames]
        schemas = [
            arrow_schema(df.schema, names) for df, names in zip(self._frames, self._names, strict=True)
        ]
        side_rows = self._options.side_rows
        return fitted(self._operator, schemas, self._measure(), side_rows=side_rows, buckets=buckets)

    def _travelling(self, df: DataFrame) -> list[str]:
        read = read_by(self._operator)
        require_names(df, read or [])
        if read is None or self._options.side_rows:
            return df.columns
        # Rows without any column could not be counted.
        return read or df.columns[:1]

    def _measure(self) -> Measure | None:
        measures = [
            Measure(name, arrow_schema(df.schema, [name]).field(0).type)
            for df, name in zip(self._frames, self.times, strict=False)
        ]
        if len({measure.type for measure in measures}) > 1:
            shown = " and ".join(measure.describe() for measure in measures)
            raise QueryError(f"times of different types have no common order: {shown}")
        return measures[0] if measures else None

    # -- rows ------------------------------------------------------------------------------------

    def _rows(self, buckets: int) -> DataFrame:
        """The rows of all inputs, tagged, with their buckets."""
        parts = [self._tagged(place, buckets) for place in range(len(self._frames))]
        rows = parts[0]
        for part in parts[1:]:
            rows = rows.unionAll(part)
        return rows

    def _tagged(self, place: int, buckets: int) -> DataFrame:
        df, punctuation = self._frames[place], self._options.punctuation
        bucket: Column = bucket_of(self._operator.partition_by[place], buckets)
        tag = sf.lit(place)
        if punctuation is not None:
            ends = sf.coalesce(named(punctuation), sf.lit(False))
            if buckets > 1:  # a punctuation is for all partitions
                everywhere = sf.sequence(sf.lit(0), sf.lit(buckets - 1))
                df = df.select(
                    "*", sf.explode(sf.when(ends, everywhere).otherwise(sf.array(bucket))).alias(BUCKET)
                )
                bucket = named(BUCKET)
            tag = sf.when(ends, sf.when(bucket == 0, PUNCTUATION).otherwise(COPY)).otherwise(tag)
        time = [named(self.times[place])] if self.times else []
        columns = [
            [named(name) for name in names] if i == place else _nulls(frame, names)
            for i, (frame, names) in enumerate(zip(self._frames, self._names, strict=True))
        ]
        return df.select(*time, tag.cast("byte"), *(column for side in columns for column in side), bucket)


def _nulls(df: DataFrame, names: list[str]) -> list[Column]:
    return [sf.lit(None).cast(df.schema[name].dataType) for name in names]

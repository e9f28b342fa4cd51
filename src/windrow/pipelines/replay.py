"""A recorded file as a stream: `spark.readStream.format("windrow_replay")`, for demos, tests and benchmarks.

    event time     1    2    3    4    5    6    7         the file
    arrival        1    3    4    2    6    7    5         disorder 0.3, delay "3 seconds": some come later
                   |---------|---------|---------          rate: rows per second

Without `disorder` rows come as the file has them. With it they come in order of the column `time`, but for a share
`disorder` of them, each of which comes up to `delay` after its time. Which ones, and how late, depends on `seed` alone:
an offset is a number of rows, so a stream that is restarted gets the same rows in the same order, and goes on at the
same rate. Times without a zone are taken as UTC, because Spark has no watermark for others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from windrow.durations import parse_duration
from windrow.errors import DataError, QueryError, StateError, WindrowError
from windrow.measure import Measure
from windrow.schema import no_such_column
from windrow.spark.compatibility import spark_schema
from windrow.wording import choices

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ModuleNotFoundError:
    raise WindrowError(
        f"windrow_replay needs Spark 4.2 or newer, and PySpark is {pyspark.__version__} here: install one of these"
    ) from None

NAME = "windrow_replay"
# How often a stream that ends with the file looks whether a row is due, in seconds.
GLANCE = 0.02


@dataclass(frozen=True)
class Recording:
    """A file, and in which order its rows arrive."""

    path: str
    disorder: float = 0.0
    delay: str = "0 seconds"
    time: str | None = None
    seed: int = 0
    rate: float | None = None
    max_rows: int | None = None
    partitions: int = 2

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Recording:
        """What the options of a stream say; Spark hands them over as texts, in lower case."""
        found: dict[str, Any] = {}
        for name, value in options.items():
            if name not in _KINDS:
                raise QueryError(f"{NAME} has no option {name!r}{choices(name, _KINDS)}")
            try:
                found[name] = _KINDS[name](value)
            except ValueError:
                raise QueryError(f"option {name!r} of {NAME} must be a number, not {value!r}") from None
        if "path" not in options:
            raise QueryError(f'{NAME} needs a file: .load("events.parquet")')
        made = cls(**found)
        made._check()
        return made

    def _check(self) -> None:
        if not 0 <= self.disorder <= 1:
            raise QueryError(f"disorder is a share of the rows, from 0 to 1, not {self.disorder}")
        if self.disorder and self.time is None:
            raise QueryError("disorder needs the time column: option time")
        if self.rate is not None and not self.rate > 0:
            raise QueryError(f"rate is a number of rows per second above zero, not {self.rate}")
        for name in ("max_rows", "partitions"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise QueryError(f"{name} must be at least 1, not {number}")
        if parse_duration(self.delay, what="delay").magnitude < 0:
            raise QueryError(f"delay must not be negative, but is {self.delay!r}")
        if not Path(self.path).is_file():
            raise QueryError(f"there is no file {self.path!r} to be replayed")

    @property
    def stamp(self) -> tuple[int, int]:
        """Tells a file from what it was before."""
        status = Path(self.path).stat()
        return status.st_mtime_ns, status.st_size

    @property
    def schema(self) -> pa.Schema:
        if _is_csv(self.path):
            return _part(self.path, self.stamp, 0).schema
        return _zoned(pq.read_schema(self.path))

    def part_rows(self) -> np.ndarray:
        """Rows of each part that is read at once: of a Parquet file, its row groups."""
        if _is_csv(self.path):
            return np.array([len(_part(self.path, self.stamp, 0))])
        meta = pq.read_metadata(self.path)
        return np.array([meta.row_group(i).num_rows for i in range(meta.num_row_groups)], np.int64)

    def arrivals(self) -> np.ndarray | None:
        """Rows of the file in order of arrival; None where that is their own order."""
        if not self.disorder or self.time is None:
            return None
        if self.time not in self.schema.names:
            raise QueryError(f"{self.path}: {no_such_column(self.time, self.schema.names)}")
        if _is_csv(self.path):
            column = _part(self.path, self.stamp, 0)[self.time]
        else:
            column = _zoned_table(pq.read_table(self.path, columns=[self.time]))[self.time]
        if column.null_count:
            row = pc.index(pc.is_null(column), True).as_py()
            raise DataError(self.time, row, None, "without a time it cannot be said when a row arrives")
        measure = Measure(self.time, column.type)
        times = column.to_numpy()
        times = times.astype(np.int64) if not measure.floating else times
        delay = measure.ticks(parse_duration(self.delay, what="delay"), what="delay")
        luck = np.random.Generator(np.random.PCG64(self.seed))
        late = luck.random(len(times)) < self.disorder
        return np.argsort(times + late * luck.random(len(times)) * delay, kind="stable")

    def read(self, rows: range | np.ndarray) -> pa.Table:
        """These rows of the file."""
        ends = np.cumsum(self.part_rows())
        starts = np.concatenate([[0], ends[:-1]])
        places = np.arange(rows.start, rows.stop) if isinstance(rows, range) else rows
        needed = np.unique(np.searchsorted(ends, places, side="right"))
        table = pa.concat_tables([_part(self.path, self.stamp, int(part)) for part in needed])
        sizes = (ends - starts)[needed]
        # Where each part that was read begins, in the file and in the table.
        shift = starts[needed] - np.concatenate([[0], np.cumsum(sizes)[:-1]])
        within = np.searchsorted(ends[needed], places, side="right")
        return table.take(pa.array(places - shift[within]))


# Options come as texts: what each is to become is the type of its field.
_READ: dict[str, Any] = {"str": str, "int": int, "float": float}
_KINDS = {field.name: _READ[str(field.type).partition(" ")[0]] for field in fields(Recording)}


@lru_cache(maxsize=4)
def _part(path: str, stamp: tuple[int, int], number: int) -> pa.Table:
    """A part of a file; a worker that reads more of it need not open it again."""
    if _is_csv(path):
        return _zoned_table(pyarrow.csv.read_csv(path))
    return _zoned_table(pq.ParquetFile(path).read_row_group(number))


def _is_csv(path: str) -> bool:
    return path.lower().removesuffix(".gz").endswith(".csv")


def _zoned(schema: pa.Schema) -> pa.Schema:
    """Timestamps as Spark has them: microseconds, UTC."""
    moment = pa.timestamp("us", "UTC")
    return pa.schema([pa.field(f.name, moment if pa.types.is_timestamp(f.type) else f.type) for f in schema])


def _zoned_table(table: pa.Table) -> pa.Table:
    return table.cast(_zoned(table.schema))


@dataclass
class _Rows(InputPartition):
    """Rows for one task."""

    rows: range | np.ndarray


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Says which rows are due, and reads them."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._total = int(recording.part_rows().sum())
        self._order: np.ndarray | None = None
        self._began: tuple[float, int] | None = None
        self._ends_with_the_file = False

    def initialOffset(self) -> dict[str, int]:
        return {"row": 0, "of": self._total}

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._recording.max_rows
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._ends_with_the_file = True

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        if start["of"] != self._total:
            raise StateError(
                f"{self._recording.path} had {start['of']:,} rows when the stream began and has {self._total:,} now: "
                "start with a new checkpoint"
            )
        first = start["row"]
        if self._began is None:
            self._began = time.monotonic(), first
        due = self._due()
        # To say that nothing is due would end such a stream.
        while self._ends_with_the_file and due <= first < self._total:
            time.sleep(GLANCE)
            due = self._due()
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._total
        return {"row": max(first, min(due, first + most)), "of": self._total}

    def _due(self) -> int:
        """How many rows the stream has emitted by now if it keeps to its rate."""
        if self._recording.rate is None or self._began is None:
            return self._total
        moment, row = self._began
        return min(self._total, row + int((time.monotonic() - moment) * self._recording.rate))

    def reportLatestOffset(self) -> dict[str, int]:
        return {"row": self._due(), "of": self._total}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        if self._order is None:
            self._order = self._recording.arrivals()
        low, high = start["row"], end["row"]
        count = min(self._recording.partitions, high - low)
        cuts = [low + (high - low) * i // count for i in range(count + 1)] if count else []
        ranges = [range(one, other) for one, other in pairwise(cuts)]
        return [_Rows(r if self._order is None else self._order[r.start : r.stop]) for r in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Rows)
        yield from self._recording.read(partition.rows).combine_chunks().to_batches()


class Replay(DataSource):
    """The data source that Spark registers for replays."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return spark_schema(Recording.of(self.options).schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _Reader(Recording.of(self.options))


def register(spark: SparkSession) -> None:
    """Let a session read `windrow_replay`.

    >>> def flights(spark):
    ...     register(spark)
    ...     options = {"time": "scheduled", "rate": 1000, "disorder": 0.1, "delay": "5 minutes"}
    ...     return spark.readStream.format("windrow_replay").options(**options).load("flights.parquet")
    """
    spark.dataSource.register(Replay)

"""What a micro-batch costs, and where its time goes.

Spark tells how long its parts of a micro-batch took. What happens in the Python workers of windrow's stateful stage is told by clocks
around what `Processor` calls there; each task writes its own down in a folder.

    one micro-batch     offsets | plan | write-ahead log | stages | commit
    in the stages       a stage that scatters rows; a task for each partition of the state, with a worker each
    in such a worker    init, and for each bucket: read state, process and advance, write state, timers, results
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from statistics import mean, median
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import Row

from benchmarks.spark.data import SCHEMA, Source
from windrow.spark import stages
from windrow.spark.processor import Processor
from windrow.spark.task import Work

# The parts of a micro-batch as Spark has them, in milliseconds, and what they are called in the table.
PARTS = {
    "triggerExecution": "all",
    "latestOffset": "offsets",
    "queryPlanning": "plan",
    "walCommit": "log",
    "addBatch": "stages",
    "commitOffsets": "commit",
}
OF_STATE = {"allUpdatesTimeMs": "state tasks", "commitTimeMs": "state commit"}
# The first micro-batches start workers and warm up the JVM.
WARM = 4


class Nothing(StatefulProcessor):
    """A stateful stage in Python that does nothing: what any of them costs."""

    def init(self, handle: Any) -> None:
        self._state = handle.getValueState("state", "n long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        return iter([Row(n=sum(1 for _ in rows))])

    def close(self) -> None:
        """Nothing is held open."""


def nothing(events: Any) -> Any:
    """As windrow's stages go: rows are counted by bucket in Python, and each bucket is one call."""
    bucket = sf.pmod(sf.hash("k"), sf.lit(16)).cast("int")
    counts = events.select(bucket.alias("bucket"), "ts", "x").mapInArrow(_counted, "bucket int, n long")
    return counts.groupBy("bucket").transformWithState(Nothing(), "n long", "Append", "EventTime")


def _counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    total = np.zeros(16, np.int64)
    for batch in batches:
        total += np.bincount(batch.column(0).to_numpy(), minlength=16)
    (found,) = total.nonzero()
    yield pa.record_batch({"bucket": pa.array(found.astype(np.int32)), "n": pa.array(total[found])})


class Clocks:
    """Milliseconds and calls by what was done."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)

    def around(self, function: Callable[..., Any], what: str) -> Callable[..., Any]:
        @wraps(function)
        def timed(*args: Any, **more: Any) -> Any:
            begin = time.perf_counter()
            try:
                return function(*args, **more)
            finally:
                self.spent[what] += 1000 * (time.perf_counter() - begin)
                self.calls[what] += 1

        return timed


class Watched:
    """A variable of Spark's state, or its timers, with clocks around its calls."""

    def __init__(self, of: Any, clocks: Clocks) -> None:
        self._of, self._clocks = of, clocks

    def __getattr__(self, name: str) -> Any:
        what = "read state" if name.startswith("get") else "timers" if "Timer" in name else "write state"
        return self._clocks.around(getattr(self._of, name), what)


class WatchedProcessor(Processor):
    """The processor of windrow with clocks; each task writes what they say to a file in the folder."""

    def __init__(self, task: Work, folder: Path) -> None:
        super().__init__(task)
        self._folder = folder

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._clocks, self._begin = Clocks(), time.perf_counter()

    def init(self, handle: Any) -> None:
        self._clocks.around(super().init, "init")(handle)
        self._handle = Watched(handle, self._clocks)
        self._head, self._base, self._log = (
            Watched(variable, self._clocks) for variable in (self._head, self._base, self._log)
        )

    def _step(self, *args: Any, **more: Any) -> Iterator[Row]:
        if self._stage is None:
            from windrow.spark.task import Task

            apply = getattr(Task.apply, "__wrapped__", Task.apply)
            Task.apply = self._clocks.around(apply, "process and advance")  # type: ignore[method-assign]
        return self._clocks.around(super()._step, "calls")(*args, **more)  # type: ignore[no-any-return]

    def close(self) -> None:
        if self._clocks.calls["calls"]:
            self._clocks.spent["task"] = 1000 * (time.perf_counter() - self._begin)
            said = {"spent": self._clocks.spent, "calls": self._clocks.calls}
            (self._folder / f"{os.getpid()}-{time.time_ns()}").write_text(json.dumps(said))


def watched(build: Callable[[Any], Any], folder: Path) -> Callable[[Any], Any]:
    """The same stream with clocks in its workers, which need not have this module."""
    folder.mkdir()
    cloudpickle.register_pickle_by_value(sys.modules[__name__])

    def with_clocks(events: Any) -> Any:
        with patch.object(stages, "Processor", lambda task: WatchedProcessor(task, folder)):
            return build(events)

    return with_clocks


def in_workers(folder: Path) -> dict[str, tuple[float, float]]:
    """Milliseconds and calls of a task, by what it does: means over all but the first tasks."""
    files = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    said = [json.loads(path.read_text()) for path in files[2 * WARM :]]
    names = dict.fromkeys(name for each in said for name in each["spent"])
    return {
        name: (mean(s["spent"].get(name, 0) for s in said), mean(s["calls"].get(name, 0) for s in said))
        for name in names
    }


def micro_batches(
    spark: Any, source: Source, build: Callable[[Any], Any], checkpoint: Path
) -> dict[str, float]:
    """Medians over the micro-batches of a stream, a file each, in milliseconds."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    events = reader.parquet(str(source.folder)).withWatermark("ts", "0 seconds")
    writer = build(events).writeStream.format("noop").outputMode("append")
    running = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    running.awaitTermination()
    reports = [report for report in running.recentProgress if report["numInputRows"]][WARM:]
    found = {name: median(r["durationMs"].get(part, 0) for r in reports) for part, name in PARTS.items()}
    for part, name in OF_STATE.items():
        found[name] = median(sum(o[part] for o in r["stateOperators"]) for r in reports)
    return found

"""A Spark of two cores, and a clock around its jobs.

A stream is timed by Spark itself: the durations that it reports for its micro-batches. The first one is left out,
because it starts Python workers and warms up the JVM; that holds for both sides.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.spark.data import SCHEMA, Source

STATE = "spark.sql.streaming.stateStore."
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "6g",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    STATE + "providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    STATE + "rocksdb.changelogCheckpointing.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

Build = Callable[[Any], Any]


def session(folder: Path, *, cores: int = 2, settings: Mapping[str, str] | None = None) -> Any:
    """A new Spark; the one before must have been stopped."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers run what we run
    builder = SparkSession.builder.master(f"local[{cores}]").appName("benchmarks")
    for name, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(name, value)
    return builder.config("spark.local.dir", str(folder)).getOrCreate()


@dataclass(frozen=True)
class Run:
    """Rows per second, and the state: bytes written per micro-batch, bytes held in the end."""

    rate: float
    written: float
    held: float


def stream(spark: Any, source: Source, build: Build, checkpoint: Path) -> Run:
    """Run a streaming query over the whole source, a file per micro-batch, to a sink that drops everything."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    events = reader.parquet(str(source.folder)).withWatermark("ts", "0 seconds")
    writer = build(events).writeStream.format("noop").outputMode("append")
    running = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    running.awaitTermination()
    progress = [p for p in running.recentProgress if p["numInputRows"]]
    timed = progress[1:] or progress
    seconds = sum(p["durationMs"]["triggerExecution"] for p in timed) / 1000
    sizes = [file.stat().st_size for file in (checkpoint / "state").rglob("*") if file.is_file()]
    held = sum(
        operator["customMetrics"].get("rocksdbSstFileSize", 0) for operator in progress[-1]["stateOperators"]
    )
    held += sum(operator["memoryUsedBytes"] for operator in progress[-1]["stateOperators"])
    return Run(
        sum(p["numInputRows"] for p in timed) / seconds, sum(sizes) / len(running.recentProgress), held
    )


def batch(spark: Any, source: Source, build: Build, *, repeats: int) -> float:
    """Rows per second of a batch job; the best of some runs."""
    events = spark.read.schema(SCHEMA).parquet(str(source.folder))
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        build(events).write.format("noop").mode("overwrite").save()
        best = min(best, time.perf_counter() - begin)
    return source.events / best

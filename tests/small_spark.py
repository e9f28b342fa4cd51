"""The Spark of the tests: small, without web pages, and quick to start.

    python tests/small_spark.py        makes the archive of Spark's classes, as `make test` does once

With the archive a JVM starts in half the time. One that has another version, or other classes on its path, starts
without it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import windrow as wr

ARCHIVE = Path(sys.prefix) / "spark.jsa"
# Jobs are short: code that is compiled very well costs more than it saves.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable"


def java_options() -> str:
    """For every JVM that runs Spark."""
    return f"{QUICK} -XX:SharedArchiveFile={ARCHIVE}" if ARCHIVE.exists() else QUICK


def settings(folder: Path) -> dict[str, str]:
    """Of a session; what Spark keeps goes to the folder."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": java_options(),
        # Workers find `functions`, `specimens` and `tests.referee`, as the tests do.
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(map(str, Path(__file__).parents[:2])),
        "spark.local.dir": str(folder),
        # On a machine that is busy with other tests, workers may be slow to start.
        "spark.python.authenticate.socketTimeout": "600s",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }


def start(settings: dict[str, str]) -> Any:
    """A local session with one core."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").appName("windrow")
    for name, value in settings.items():
        builder = builder.config(name, value)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    return builder.getOrCreate()


def work(spark: Any, folder: Path) -> None:
    """A batch and a stream, so that most classes that tests need are loaded."""
    moments = pa.array(range(0, 100_000_000, 1_000_000), pa.timestamp("us", "UTC"))
    (folder / "events").mkdir()
    pq.write_table(pa.table({"ts": moments, "x": range(100)}), folder / "events" / "0.parquet")
    windows = {"time": wr.tumbling("10 seconds"), "rows": wr.tumbling(rows=7)}
    query = wr.query(time="ts", windows=windows, aggregates={"n": wr.count(), "total": wr.sum("x")})
    events = spark.read.parquet(str(folder / "events"))
    events.transform(query.on_spark).write.parquet(str(folder / "batch"))
    stream = spark.readStream.schema(events.schema).parquet(str(folder / "events"))
    writer = stream.withWatermark("ts", "1 second").transform(query.on_spark).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    writer.start(str(folder / "stream")).awaitTermination()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        options = {"spark.driver.extraJavaOptions": f"{QUICK} -XX:ArchiveClassesAtExit={ARCHIVE}"}
        spark = start({**settings(Path(folder)), **options})
        work(spark, Path(folder))
        java = spark.sparkContext._gateway.proc
        spark.stop()
        java.stdin.close()  # then it ends, and writes the archive
        java.wait()


if __name__ == "__main__":
    main()

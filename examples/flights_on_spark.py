"""The flights demo as a Spark streaming job: the same query, the same answer.

The flights of 2013 are written to a folder of Parquet files in the order in which they left the ground: up
to a day after they were scheduled, so that event times are out of order as they are in life. Spark
reads the folder as a stream, file by file; the watermark allows for a day of delay. In the end its windows are compared with
those of the embedded engine, row by row.

    python examples/flights_on_spark.py [--limit N]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from flights import DELAYS, load, positive
    from pyspark.sql import SparkSession
except ModuleNotFoundError as missing:
    sys.exit(
        f"The demo needs the package {missing.name!r}: run `make demo-spark`, or pip install '.[demo,spark]'."
    )

FILES = 24
PATIENCE = 24 * 60  # minutes; the longest delay of the year is 1,301
ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
ORDER = [("window", "ascending"), ("origin", "ascending"), ("start", "ascending")]


def main() -> int:
    parser = argparse.ArgumentParser(description="The flights demo as a Spark streaming job.")
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N flights of the year")
    flights = load(parser.parse_args().limit)
    with tempfile.TemporaryDirectory() as folder:
        replay(flights, Path(folder, "flights"))
        spark = session(folder)
        try:
            began = time.perf_counter()
            found = stream(spark, Path(folder))
            seconds = time.perf_counter() - began
        finally:
            spark.stop()
    embedded = closed(DELAYS.run(flights), flights)
    same = comparable(found).equals(comparable(embedded))
    print(f"{len(flights):,} flights in {FILES} micro-batches, {len(found):,} windows, {seconds:.0f} s")
    print(f"equal to the embedded engine's answer: {'yes, row by row' if same else 'NO'}")
    return 0 if same else 1


def replay(flights: pa.Table, folder: Path) -> None:
    """Files in the order of departure; a cancelled flight is known when it should have left."""
    delay = pc.cast(pc.fill_null(flights["delay"], 0), pa.int64())
    left = pc.add(pc.cast(flights["scheduled"], pa.int64()), pc.multiply(delay, 60))
    arrived = flights.take(pc.sort_indices(left))
    folder.mkdir()
    size = -(-len(arrived) // FILES)
    for number in range(FILES):
        path = folder / f"{number:02}.parquet"
        pq.write_table(arrived.slice(number * size, size), path)
        os.utime(path, (number, number))  # Spark reads files in the order of their times


def session(folder: str) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers run what we run
    builder = SparkSession.builder.master("local[2]").appName("flights")
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": folder,
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.stateStore.providerClass": ROCKS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def stream(spark: SparkSession, folder: Path) -> pa.Table:
    """All windows that the stream gives out."""
    source = spark.readStream.schema("scheduled timestamp, origin string, delay long")
    flights = source.option("maxFilesPerTrigger", 1).parquet(str(folder / "flights"))
    windows = flights.withWatermark("scheduled", f"{PATIENCE} minutes").transform(DELAYS.on_spark)
    writer = windows.writeStream.format("parquet").option("path", str(folder / "windows"))
    running = (
        writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    )
    running.awaitTermination()
    return spark.read.parquet(str(folder / "windows")).toArrow()


def closed(windows: pa.Table, flights: pa.Table) -> pa.Table:
    """Windows that end at or before the watermark that the last flight leaves behind."""
    last = pc.cast(pc.max(flights["scheduled"]), pa.int64()).as_py()
    ends = pc.cast(windows["end"], pa.int64())
    return windows.filter(pc.less_equal(ends, last - 60 * PATIENCE))


def comparable(windows: pa.Table) -> pa.Table:
    """Both in one order and in the same types: Spark counts microseconds, and labels them with its own zone."""
    kinds: dict[str, Any] = {
        "window": pa.string(),
        "start": pa.timestamp("us", "UTC"),
        "end": pa.timestamp("us", "UTC"),
    }
    fields = [pa.field(f.name, kinds.get(f.name, f.type)) for f in windows.schema]
    return windows.cast(pa.schema(fields)).sort_by(ORDER).combine_chunks()


if __name__ == "__main__":
    sys.exit(main())

"""The pipeline that is measured: `python -m benchmarks.pipelines.job windrow|spark SERVERS SOURCE TARGET FOLDER`.

Sum and count over 60 seconds every 10 seconds, per key, by windrow or by Spark's own window. It runs until its input ends,
and then prints the progress of each micro-batch that had events, as JSON: when it began, and how many.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import functions as sf

import windrow as wr
from benchmarks.spark.session import session
from windrow.pipelines.jars import spark_jars
from windrow.pipelines.kafka import read_kafka, to_kafka

ALL_PROGRESS = "spark.sql.streaming.numRecentProgressUpdates"
QUERY = wr.query(
    time="ts",
    key="k",
    windows={"w": wr.sliding("60 seconds", every="10 seconds")},
    aggregates={"n": wr.count(), "total": wr.sum("x")},
)


def windrows(events: Any) -> Any:
    return to_kafka(QUERY.on_spark(events, buckets=2), QUERY, topic="ignored").select("key", "value")


def sparks(events: Any) -> Any:
    grouped = events.groupBy("k", sf.window("ts", "60 seconds", "10 seconds").alias("w"))
    rows = grouped.agg(sf.count("*").alias("n"), sf.sum("x").alias("total"))
    rows = rows.select("k", sf.lit("w").alias("window"), "w.start", "w.end", "n", "total")
    key = sf.to_json(sf.struct("k", "window", "start", "end"))
    return rows.select(key.alias("key"), sf.to_json(sf.struct("*")).alias("value"))


def main(engine: str, servers: str, source: str, target: str, folder: Path) -> None:
    spark = session(folder / "local", settings={"spark.jars": spark_jars(), ALL_PROGRESS: "100000"})
    events = read_kafka(spark, servers=servers, topic=source, schema="ts timestamp, k int, x long")
    build = {"windrow": windrows, "spark": sparks}[engine]
    writer = build(events.withWatermark("ts", "1 second")).writeStream.format("kafka")
    writer = writer.option("kafka.bootstrap.servers", servers).option("topic", target)
    running = writer.option("checkpointLocation", str(folder / "checkpoint")).outputMode("append").start()
    print("started", flush=True)
    sys.stdin.read()
    batches = [(p.timestamp, p.numInputRows) for p in running.recentProgress if p.numInputRows]
    running.stop()
    print(json.dumps(batches))


if __name__ == "__main__":
    main(*sys.argv[1:5], folder=Path(sys.argv[5]))

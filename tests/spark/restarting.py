"""A streaming job that can be killed and started again: several queries in one stream, each with its own state.

    python restarting.py FOLDER SETTINGS

It ends when all that the source holds is answered. `SETTINGS` is JSON, for the session's builder.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from streams import NIGHTLY, WATERMARK, Step, by_time, source

import windrow as wr
from windrow.query import Query

AGGREGATES = {"n": wr.count(), "total": wr.sum("x"), "high": wr.max("x")}


@dataclass(frozen=True)
class Job:
    """A query and its options."""

    windows: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def query(self) -> Query:
        return wr.query(time="ts", key="key", windows=self.windows, aggregates=AGGREGATES)

    def on_spark(self, events: Any, *, metrics: str) -> Any:
        if self.options.get("path") == "pushdown":
            return self.query.on_spark(by_time(events, "ts"), **self.options)
        return self.query.on_spark(events, watermark=WATERMARK, buckets=4, metrics=metrics, **self.options)


SESSION, COUNT = wr.session("400 milliseconds"), wr.tumbling(rows=7)
JOBS = {
    "combined": Job(
        {"short": wr.tumbling("1 second"), "long": wr.sliding("20 seconds", every="4 seconds")},
        {"lateness": "2 seconds"},
    ),
    "changelog": Job({"s": SESSION, "c": COUNT}, {"mode": "update", "lateness": "9 seconds"}),
}
if NIGHTLY:
    JOBS["sessions"] = Job({"s": SESSION, "w": wr.tumbling("5 seconds")})
    JOBS["pushed"] = Job({"w": wr.tumbling("5 seconds")}, {"path": "pushdown"})
    JOBS["order"] = Job({"c": COUNT, "d": wr.slide_by_rows("6 seconds", every_rows=5)})


def steps(count: int) -> list[Step]:
    """Micro-batches of 4 seconds each, with disorder and late events; the last watermark ends all windows."""
    luck = random.Random(7)
    made = []
    for number in range(count):
        begin = 10_000_000 + number * 4_000_000
        moments = luck.sample(range(begin - 6_000_000, begin + 4_000_000), 90)
        columns = {
            "ts": pa.array(moments, pa.timestamp("us", "UTC")),
            "key": pa.array([luck.choice("abcde") for _ in moments]),
            "x": pa.array([luck.randrange(100) for _ in moments]),
        }
        made.append(Step(pa.table(columns), watermark=begin // 1_000 + 1_500))
    return [*made, Step(made[0].events.slice(0, 0), watermark=10**9)]


def start(spark: Any, folder: Path) -> Any:
    """The job at work, with its checkpoint and its sink in the folder."""
    from pyspark.sql import functions as sf

    events = source(spark, folder / "source")
    results = [
        job.on_spark(events, metrics=name).withColumn("job", sf.lit(name)) for name, job in JOBS.items()
    ]
    result = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), results)
    writer = result.writeStream.format("parquet").option("path", str(folder / "output"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.outputMode("append").trigger(availableNow=True).start()


def main(folder: Path, settings: dict[str, str]) -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("restarting")
    for name, value in settings.items():
        builder = builder.config(name, value)
    start(builder.getOrCreate(), folder).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))

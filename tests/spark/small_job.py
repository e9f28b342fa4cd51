"""A small job for a server of Spark Connect: a client cannot share a process with the Spark of the other tests.

    python small_job.py FOLDER ADDRESS

Each part writes its result into the folder, where the test compares it with the embedded answer; a part that
Spark refuses writes what Spark said.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from streams import Step, expected, run_stream

import windrow as wr
from windrow import policies as wp
from windrow.pipelines.spec import ParquetSink, Pipeline, PostgresSink, ReplaySource, Watermark
from windrow.query import Query

AGGREGATES = {"n": wr.count(), "total": wr.sum("x"), "high": wr.max("x")}


def query_of(windows: dict[str, Any]) -> Query:
    return wr.query(time="ts", key="key", windows=windows, aggregates=AGGREGATES)


BY_TIME = query_of({"w": wr.sliding("6 seconds", every="2 seconds"), "s": wr.session("700 milliseconds")})
BY_ORDER = query_of({"c": wr.tumbling(rows=7)})
MIXED = query_of({"w": wr.sliding("6 seconds", every="2 seconds"), "c": wr.tumbling(rows=7)})
QUERIES = {
    # What was sent in an archive is compiled anew in each process.
    "sent": wr.query(
        time="ts",
        key="key",
        windows={"w": wr.sliding("6 seconds", every="2 seconds")},
        aggregates={"n": wr.count()},
    ),
    "pushdown": BY_TIME,
    "combined": BY_TIME,
    "general": BY_ORDER,
    "stream": MIXED,
    "pipeline": BY_TIME,
}


def events() -> pa.Table:
    """Half a minute of events of five keys, in disorder, each with a time of its own."""
    luck = random.Random(3)
    return pa.table(
        {
            "ts": pa.array(luck.sample(range(1_000, 30_000_000), 400), pa.timestamp("us", "UTC")),
            "key": pa.array([luck.choice("abcde") for _ in range(400)]),
            "x": pa.array([luck.randrange(100) for _ in range(400)]),
        }
    )


def frame(spark: Any) -> Any:
    return spark.createDataFrame(events().to_pylist(), "ts timestamp, key string, x long").repartition(2)


def batch(name: str, path: str) -> Callable[[Any, Path], pa.Table]:
    return lambda spark, folder: QUERIES[name].on_spark(frame(spark), path=path).toArrow()


def steps() -> list[Step]:
    """The same events as micro-batches; all windows that time ends have ended behind them."""
    table = events().sort_by("ts")
    made = [Step(table.slice(begin, 200), watermark=1) for begin in (0, 200)]
    return [*made, Step(table.slice(0, 0), watermark=10**9)]


def stream(spark: Any, folder: Path) -> pa.Table:
    return run_stream(spark, folder / "stream", QUERIES["stream"], steps())


def answer(name: str) -> pa.Table:
    """What a part must give."""
    query = QUERIES[name]
    return expected(query, steps()).table if name == "stream" else query.run(events())


def join() -> wp.Join:
    window = "sliding, count(9), count(1), partitioned"
    return wp.Join(window, window, on="x", how="full", partition_by="key")


def joined(spark: Any, folder: Path) -> pa.Table:
    """An operator over policy windows: events below 50 with themselves and the others."""
    rows = frame(spark)
    return join().on_spark(rows.filter("x < 50"), rows, time="ts", buckets=2).toArrow()


def pipeline(sink: Callable[[str], Any]) -> Callable[[Any, Path], pa.Table]:
    """The same events, recorded in order and with one behind that ends all windows, as a pipeline from a replay to a sink."""

    def run(spark: Any, folder: Path) -> pa.Table:
        from windrow.pipelines.run import start

        home = folder / sink.__name__
        home.mkdir()
        last = pa.table({"ts": pa.array([10**9], pa.timestamp("us", "UTC")), "key": ["z"], "x": [0]})
        pq.write_table(pa.concat_tables([events().sort_by("ts"), last]), home / "events.parquet")
        asked = Pipeline(
            source=ReplaySource(str(home / "events.parquet"), max_rows=250),
            watermark=Watermark("1 second"),
            query=QUERIES["pipeline"],
            options={"buckets": 2},
            sink=sink(str(home / "windows")),
            checkpoint=str(home / "checkpoint"),
            trigger="available_now",
        )
        start(spark, asked).awaitTermination()
        return spark.read.parquet(str(home / "windows")).where("key <> 'z'").toArrow()

    return run


def in_a_table(folder: str) -> PostgresSink:
    """No server is asked before the stream is refused."""
    return PostgresSink(dsn="host=nowhere", table="windows")


def explained(spark: Any, folder: Path) -> pa.Table:
    return pa.table({"text": [BY_TIME.explain(engine="spark", df=frame(spark))]})


def send(spark: Any, folder: Path) -> None:
    spark.addArtifacts(str(folder / "windrow.zip"), pyfile=True)


def install(spark: Any, folder: Path) -> None:
    (folder / "site" / "windrow").symlink_to(Path(wr.__file__).parent)


# Two sessions: what is sent belongs to one.
SESSIONS: list[dict[str, Callable[[Any, Path], pa.Table | None]]] = [
    {
        "missing": batch("sent", "general"),
        "send": send,
        "sent": batch("sent", "general"),
    },
    {
        "install": install,
        "pushdown": batch("pushdown", "pushdown"),
        "combined": batch("combined", "general"),
        "general": batch("general", "auto"),
        "stream": stream,
        "joined": joined,
        "pipeline": pipeline(ParquetSink),
        "upserted": pipeline(in_a_table),
        "explained": explained,
    },
]


def main(folder: Path, address: str) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    for parts in SESSIONS:
        spark = SparkSession.builder.remote(address).create()
        for name, part in parts.items():
            try:
                table = part(spark, folder)
            except PySparkException as problem:
                table = pa.table({"error": [str(problem)]})
            if table is not None:
                pq.write_table(table, folder / f"{name}.parquet")
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

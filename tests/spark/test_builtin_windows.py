"""Our windows and Spark's own, `window`, `session_window` and `window_time`, over the same DataFrame."""

from __future__ import annotations

import os
import random
from collections import Counter
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf

import windrow as wr
from windrow.query import Query

SECOND = 1_000_000
AGGREGATES = {"n": wr.count(), "total": wr.sum("x"), "low": wr.min("x"), "mean": wr.mean("x")}
STATIC = {
    "tumbling": wr.tumbling("20 seconds", offset="3 seconds"),
    "sliding": wr.sliding("25 seconds", every="10 seconds", offset="4 seconds"),
    "session": wr.session("5 seconds"),
}
Rows = Counter[tuple[Any, ...]]


def drawn(seed: int, first: int, last: int, *, size: int = 400, missing: bool = True) -> pa.Table:
    """Rows between two seconds, many exactly an edge or a gap apart; some without a time, a key or a value."""
    luck = random.Random(seed)
    times = [luck.randrange(first, last) * SECOND + luck.choice([0, 0, 0, -1, 1]) for _ in range(size)]
    columns = {
        "ts": pa.array(
            [None if missing and luck.random() < 0.05 else t for t in times], pa.timestamp("us", "UTC")
        ),
        "key": pa.array([luck.choice(["anna", "bert", "", None]) for _ in range(size)], pa.string()),
        "gap": pa.array([luck.choice([1, 2, 5, 9]) * SECOND for _ in range(size)], pa.int64()),
        "x": pa.array([luck.choice([None, -(2**40), *range(50)]) for _ in range(size)], pa.int64()),
    }
    return pa.table(columns)


def edges(name: str, start: Any, end: Any) -> list[Any]:
    """What both sides select first: the name of the window, the key, and its edges in microseconds."""
    return [sf.lit(name), sf.col("key"), sf.unix_micros(start), sf.unix_micros(end)]


def sparks(df: Any, name: str, window: Any) -> Any:
    """Spark's answer, with the time that it gives a window of its own."""
    made = [sf.count("*").alias("n"), *(f("x").alias(a) for a, f in (("total", sf.sum), ("low", sf.min)))]
    grouped = df.groupBy("key", window.alias("w")).agg(*made, sf.avg("x").alias("mean"))
    return grouped.select(*edges(name, "w.start", "w.end"), sf.unix_micros(sf.window_time("w")), *AGGREGATES)


def ours(result: Any) -> Any:
    """Our answer in the same columns: the time of a window is the last instant before its end."""
    start, end = sf.col("start"), sf.col("end")
    return result.select(
        sf.col("window"),
        "key",
        sf.unix_micros(start),
        sf.unix_micros(end),
        sf.unix_micros(end) - 1,
        *AGGREGATES,
    )


def collected(df: Any) -> Rows:
    return Counter(tuple(row) for row in df.collect())


def query(windows: dict[str, Any]) -> Query:
    return wr.query(time="ts", key="key", windows=windows, aggregates=AGGREGATES)


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    """Events of some minutes before and after 1970."""
    return spark.createDataFrame(drawn(1, -300, 300)).repartition(3).cache()


@pytest.fixture(scope="module")
def static(frame: Any) -> Rows:
    """Spark's answer to the windows whose lengths are fixed."""
    tumbling = sf.window("ts", "20 seconds", startTime="3 seconds")
    sliding = sf.window("ts", "25 seconds", "10 seconds", "4 seconds")
    asked = sparks(frame, "tumbling", tumbling).union(sparks(frame, "sliding", sliding))
    return collected(asked.union(sparks(frame, "session", sf.session_window("ts", "5 seconds"))))


def test_windows_made_of_slices_of_the_jvm_are_sparks(frame: Any, static: Rows) -> None:
    with_times = frame.where(sf.col("ts").isNotNull())
    assert collected(ours(query(STATIC).on_spark(with_times, path="pushdown"))) == static


def test_windows_of_the_general_path_are_sparks(frame: Any, static: Rows) -> None:
    result = query(STATIC).on_spark(frame, path="general", on_bad="divert")
    assert collected(ours(result)) == static


def test_sessions_with_a_gap_from_a_column_are_sparks(frame: Any) -> None:
    gap = sf.concat((sf.col("gap") / SECOND).cast("int").cast("string"), sf.lit(" seconds"))
    wanted = collected(sparks(frame, "session", sf.session_window("ts", gap)))
    result = query({"session": wr.session("gap")}).on_spark(frame, path="general", on_bad="divert")
    assert collected(ours(result)) == wanted


def streamed(spark: Any, folder: Path, seed: int, *, behind: int, delay: str) -> Any:
    """Files as a stream, one after the other; of each, rows may be so many seconds older than the file before."""
    luck = random.Random(seed)
    first = behind
    for i in range(5):
        last = first + luck.randrange(20, 60)
        rows = drawn(seed + i, first - behind, last, size=luck.randrange(20, 120), missing=False)
        pq.write_table(rows, folder / f"{i}.parquet")
        os.utime(folder / f"{i}.parquet", (i, i))
        first = last
    schema = spark.read.parquet(str(folder)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    return reader.withWatermark("ts", delay)


def given_out(**results: Any) -> dict[str, Rows]:
    """What streams in append mode give out until their source has no more files; they run as one."""
    named = [df.select(sf.lit(name).alias("whose"), "*") for name, df in results.items()]
    together = reduce(lambda one, other: one.union(other), named)
    name = "given_out_" + "_".join(results)
    writer = together.writeStream.format("memory").queryName(name).outputMode("append")
    writer.trigger(availableNow=True).start().awaitTermination()
    rows = together.sparkSession.table(name).collect()
    return {whose: Counter(tuple(row)[1:] for row in rows if row.whose == whose) for whose in results}


def test_a_stream_gives_out_the_windows_that_spark_gives_out(spark: Any, tmp_path: Path) -> None:
    """Late rows included: Spark judges a row once for each window, and so do we, by the same watermark."""
    stream = streamed(spark, tmp_path, 3, behind=150, delay="10 seconds")
    windows = {name: STATIC[name] for name in ("tumbling", "sliding")}
    got = given_out(
        tumbling=sparks(stream, "tumbling", sf.window("ts", "20 seconds", startTime="3 seconds")),
        sliding=sparks(stream, "sliding", sf.window("ts", "25 seconds", "10 seconds", "4 seconds")),
        ours=ours(query(windows).on_spark(stream)),
        pushed=ours(query({"tumbling": STATIC["tumbling"]}).on_spark(stream, path="pushdown")),
    )
    assert got["ours"] == got["tumbling"] + got["sliding"]
    assert got["pushed"] == got["tumbling"]
    whole = collected(ours(query(windows).on_spark(spark.read.parquet(str(tmp_path)))))
    assert sum((got["ours"] - whole).values()) > 20, "hardly a row was late"


def test_a_stream_gives_out_the_sessions_that_spark_gives_out(spark: Any, tmp_path: Path) -> None:
    """Rows come out of order, but none late: late ones Spark drops even where their session is still open.

    No session ends at a watermark: to Spark it would be over, to us a row at its very end could still prolong it.
    """
    stream = streamed(spark, tmp_path, 4, behind=8, delay="10500 milliseconds")
    got = given_out(
        sparks=sparks(stream, "session", sf.session_window("ts", "5 seconds")),
        ours=ours(query({"session": STATIC["session"]}).on_spark(stream)),
    )
    assert got["ours"] == got["sparks"]
    assert got["ours"]

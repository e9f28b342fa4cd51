"""What must work on each version of Spark that windrow supports; `make test-versions` runs it on all of them.

    python on_spark.py FOLDER SESSION FIRST      one run of the job, with a session that is classic or connect

The job answers queries over a batch, and streams whose checkpoints are in the folder. It runs twice, in processes of
their own, and the second run finds more files and goes on from the checkpoints of the first.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import windrow as wr
from windrow import policies as wp

SECOND = 1_000_000
AGGREGATES = {"n": wr.count(), "total": wr.sum("x"), "high": wr.max("x")}
BY_TIME = {"w": wr.sliding("6 seconds", every="2 seconds"), "s": wr.session("700 milliseconds")}
MIXED = {**BY_TIME, "c": wr.tumbling(rows=7)}
SCHEMA = "ts timestamp, key string, x long, local timestamp_ntz"
# By this key, in the last file, all windows of time have ended.
LAST = "z"


def query(windows: dict[str, Any]) -> Any:
    return wr.query(time="ts", key="key", windows=windows, aggregates=AGGREGATES)


def unique() -> wp.Operator:
    return wp.Deduplicate("sliding, count(5), count(1), partitioned", "x", partition_by="key")


def counts() -> wp.Operator:
    return wp.Aggregate("tumbling, count(4), partitioned", {"n": wr.count()}, partition_by="key")


def events() -> pa.Table:
    """Two minutes of events of five keys, in order of time, and one long after them."""
    luck = np.random.default_rng(3)
    moments = np.sort(luck.choice(np.arange(1, 120 * SECOND, 1_000), 600, replace=False))
    moments = np.append(moments, 10_000 * SECOND)
    return pa.table(
        {
            "ts": pa.array(moments, pa.timestamp("us", "UTC")),
            "key": pa.array([*luck.choice(list("abcde"), 600), LAST]),
            "x": pa.array(luck.integers(0, 100, 601)),
            "local": pa.array(moments, pa.timestamp("us")),
        }
    )


def write_files(folder: Path, *, first: bool) -> None:
    """The files that a run finds new: two of three in the first run."""
    table = events()
    for number, begin in [(0, 0), (1, 200)] if first else [(2, 400)]:
        part = table.slice(begin, 200) if number < 2 else table.slice(begin)
        (folder / "events").mkdir(exist_ok=True)
        pq.write_table(part, folder / "events" / f"{number}.parquet")


# -- the job --------------------------------------------------------------------------------------


def served_at() -> int:
    """The port of the Connect server in this process."""
    from pyspark.sql import SparkSession

    server = "org.apache.spark.sql.connect.service.SparkConnectService$"
    return getattr(getattr(SparkSession._instantiatedSession._jvm, server), "MODULE$").localPort()


def session(kind: str) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    if kind == "connect":
        from pyspark.sql.connect.client import DefaultChannelBuilder

        # PySpark looks for a server of its own at 15002, unless it tests itself: then it asks, as is done here.
        DefaultChannelBuilder.default_port = staticmethod(served_at)
        builder = builder.remote("local[2]")
    else:
        builder = builder.master("local[2]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",  # a free one: servers of several environments may run at once
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def stream(spark: Any, folder: Path) -> Any:
    """All files that are there, one in each micro-batch."""
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder / "events")).withWatermark("ts", "1 second")


def batches(spark: Any, folder: Path) -> dict[str, Any]:
    rows = spark.createDataFrame(events().to_pylist(), SCHEMA).repartition(2)
    ends = wr.query(
        time="local", windows={"w": wr.tumbling("5 seconds")}, aggregates={"last": wr.max("local")}
    )
    return {
        "pushdown": query(BY_TIME).on_spark(rows, path="pushdown"),
        "combined": query(BY_TIME).on_spark(rows, path="general"),
        "general": query(MIXED).on_spark(rows),
        "without zone": ends.on_spark(rows),
        "unique": unique().on_spark(rows, time="ts", buckets=2),
    }


def streams(spark: Any, folder: Path) -> dict[str, Any]:
    rows = stream(spark, folder)
    once = rows.dropDuplicatesWithinWatermark(["ts", "key"])
    return {
        "stream": query(MIXED).on_spark(rows, buckets=2, mode="update"),
        "pushed stream": query({"w": wr.tumbling("2 seconds")}).on_spark(once, path="pushdown"),
        "unique stream": unique().on_spark(once, time="ts", buckets=2),
    }


def chained(spark: Any, folder: Path) -> list[str]:
    """What is said of two operators in one stream."""
    marked = unique().on_spark(stream(spark, folder), time="ts").withWatermark("ts", "1 second")
    windows = query(BY_TIME).on_spark(stream(spark, folder)).selectExpr("end + interval 1 day as e", "n as x")
    pushed = query({"w": wr.tumbling("2 seconds")}).on_spark(stream(spark, folder), path="pushdown")
    again = wr.query(time="e", windows=BY_TIME, aggregates=AGGREGATES)
    attempts: list[Callable[[], Any]] = [
        lambda: counts().on_spark(marked, time="ts", metrics="second"),
        lambda: query(BY_TIME).on_spark(marked, metrics="second"),
        lambda: again.on_spark(windows.withWatermark("e", "1 second"), metrics="second"),
        lambda: counts().on_spark(pushed.withWatermark("end", "1 second"), time="end"),
    ]
    said = []
    for attempt in attempts:
        try:
            attempt()
            said.append("it was not refused")
        except wr.QueryError as error:
            said.append(str(error))
    return said


def run(folder: Path, kind: str, *, first: bool) -> None:
    spark = session(kind)
    if first:
        for name, result in batches(spark, folder).items():
            pq.write_table(result.toArrow(), folder / f"{name}.parquet")
        pq.write_table(pa.table({"said": chained(spark, folder)}), folder / "chained.parquet")
    # One after the other: Spark gives the process that each of them starts ten seconds to come up.
    for name, result in streams(spark, folder).items():
        writer = result.writeStream.format("parquet").option("path", str(folder / name))
        writer = writer.option("checkpointLocation", str(folder / "checkpoints" / name)).outputMode("append")
        writer.trigger(availableNow=True).start().awaitTermination()
        # What the sink has committed; Spark leaves out files of attempts that failed.
        pq.write_table(spark.read.parquet(str(folder / name)).toArrow(), folder / f"{name}.parquet")
    spark.stop()


# -- what comes out -------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["classic", "connect"])
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """The results of both runs, by part."""
    folder = tmp_path_factory.mktemp(request.param)
    for first in (True, False):
        write_files(folder, first=first)
        command = [sys.executable, __file__, str(folder), request.param, str(first)]
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        for _ in range(3):
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False
            )
            # On a busy machine, ten seconds may be too few; what was done by then is in the checkpoints.
            if "Python worker failed to connect back" not in done.stderr or not done.returncode:
                break
        said = [line for line in done.stderr.splitlines() if not line.lstrip().startswith("at ")]
        assert done.returncode == 0, "\n".join(said[-80:])
    return {path.stem: pq.read_table(path) for path in folder.glob("*.parquet")}


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows in an order of their own; Spark labels instants with a zone of its own, and knows no dictionaries."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        columns[name] = column.to_pylist()
    return sorted(zip(*columns.values(), strict=True), key=repr)


def ended(table: pa.Table) -> pa.Table:
    """Without what is of the last event alone: in a stream, its windows do not end."""
    return table.filter(pc.not_equal(table["key"], LAST))


@pytest.mark.parametrize("part", ["pushdown", "combined", "general"])
def test_a_batch_gives_the_embedded_answer(results: dict[str, pa.Table], part: str) -> None:
    assert rows(results[part]) == rows(query(MIXED if part == "general" else BY_TIME).run(events()))


def test_times_without_a_zone_stay_without_one(results: dict[str, pa.Table]) -> None:
    types = {results["without zone"].schema.field(name).type for name in ("start", "end", "last")}
    assert types == {pa.timestamp("us")}


def test_a_stream_that_was_restarted_ends_with_the_embedded_answer(results: dict[str, pa.Table]) -> None:
    state: dict[Any, Any] = {}
    for change in sorted(ended(results["stream"]).to_pylist(), key=lambda row: row["revision"]):
        place = change["key"], change["window"], change["start"], change["end"]
        state[place] = None if change["op"] == "delete" else (change["n"], change["total"], change["high"])
    expected = {
        (row["key"], row["window"], row["start"], row["end"]): (row["n"], row["total"], row["high"])
        for row in ended(query(MIXED).run(events())).to_pylist()
        # A window of 7 rows that has got fewer still waits for them.
        if row["window"] != "c" or row["n"] == 7
    }
    assert {place: values for place, values in state.items() if values} == expected


def test_a_stream_in_sparks_own_state_gives_the_embedded_answer(results: dict[str, pa.Table]) -> None:
    expected = query({"w": wr.tumbling("2 seconds")}).run(events())
    assert rows(ended(results["pushed stream"])) == rows(ended(expected))


@pytest.mark.parametrize("part", ["unique", "unique stream"])
def test_an_operator_over_policy_windows_gives_the_embedded_answer(
    results: dict[str, pa.Table], part: str
) -> None:
    expected = unique().process(events())[0].table
    names = expected.column_names
    assert rows(ended(results[part].select(names))) == rows(ended(expected))


def test_two_operators_in_one_stream_are_refused(results: dict[str, pa.Table]) -> None:
    for said in results["chained"]["said"].to_pylist():
        assert said.startswith("this stream has been through a query or an operator of windrow already")


def test_pipelines_are_there_and_a_recording_is_refused_where_spark_cannot_replay_it() -> None:
    import pyspark

    from windrow.pipelines import kafka, listener, run, upsert

    assert all((kafka.read_kafka, listener.ProgressListener, run.start, upsert.upsert))
    if pyspark.__version__.startswith("4.1."):
        with pytest.raises(wr.WindrowError, match=r"windrow_replay needs Spark 4\.2 or newer"):
            importlib.import_module("windrow.pipelines.replay")
    else:
        assert importlib.import_module("windrow.pipelines.replay").NAME == "windrow_replay"


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2], first=sys.argv[3] == "True")

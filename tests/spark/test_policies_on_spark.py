"""Operators over policy windows on Spark give what embedded ones do that get rows in order of time."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from patience import PATIENCE
from policy_cases import CASES, SCHEMA, STREAMED, answered, is_punctuated, rows
from streams import REAL, WATERMARK, Step, by_time, source, stream_of, write_step

import windrow as wr
from windrow import policies as wp
from windrow.errors import QueryError

BUCKETS = 2


def on_spark(operator: wp.Operator, events: Any, **options: Any) -> Any:
    """An operator on rows of both sides, as a join has them, or of all."""
    options = {"time": "ts", "buckets": BUCKETS, **options}
    if is_punctuated(operator):
        options["punctuation"] = "end"
    if isinstance(operator, wp.Join):
        return operator.on_spark(*(events.filter(events.lane == side) for side in (0, 1)), **options)
    return events.transform(operator.on_spark, **options)


def by_key(table: pa.Table, operator: wp.Operator) -> dict[Any, list[str]]:
    """Rows of each partition, in the order in which they came; zones of instants are labels."""
    table = table.cast(
        pa.schema(
            [f.with_type(pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in table.schema]
        )
    )
    found: dict[Any, list[str]] = {}
    for row in table.to_pylist():
        # A row of an outer join may have the key on one side only.
        names = [name for name in ("k", "k_right") if name in row] if operator.partition_by[0] else []
        key = next((row[name] for name in names if row[name] is not None), None)
        found.setdefault(key, []).append(repr(row))
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_batch_job_gives_what_the_embedded_operator_does(spark: Any, name: str) -> None:
    table = rows(300, seed=5)
    got = on_spark(CASES[name](), spark.createDataFrame(table)).toArrow()
    want = answered(CASES[name](), table, finish=True)
    assert got.column_names == want.column_names
    assert by_key(got, CASES[name]()) == by_key(want, CASES[name]())


# -- streams ---------------------------------------------------------------------------------------

HALVES = [
    [Step(rows(60, seed=1, begin=1_000, span=2_000), 1_800), Step(rows(60, seed=2, begin=2_000), 4_000)],
    [Step(rows(80, seed=3, begin=2_500, span=5_000), 7_000)],
]


def judged(halves: Sequence[Sequence[Step]]) -> tuple[pa.Table, pa.Table]:
    """The rows that come to windows, and those that are late; behind each half comes a micro-batch without rows."""
    taken, late = [], []
    holds = before = 0
    for half in halves:
        for step in [*half, Step(SCHEMA.empty_table(), 0)]:
            too_late = step.events["ts"].cast(pa.int64()).to_numpy() < before * 1_000
            late.append(step.events.filter(pa.array(too_late)))
            taken.append(step.events.filter(pa.array(~too_late)))
            before, holds = holds, max(holds, step.watermark)
        before = holds
    everything = pa.concat_tables(taken)
    entered = everything["ts"].cast(pa.int64()).to_numpy() < holds * 1_000
    return everything.filter(pa.array(entered)), pa.concat_tables(late)


def start(spark: Any, folder: Path, into: list[pa.Table]) -> Any:
    """All operators in one stream; what each micro-batch gives out, in order."""
    from pyspark.sql import functions as sf

    events = source(spark, folder / "source").drop(REAL)
    results = [
        on_spark(CASES[name](), events, watermark=WATERMARK, metrics=name, side_rows=True)
        .withColumn("side_row", sf.col("side_row.ts"))
        .withColumn("job", sf.lit(name))
        for name in STREAMED
    ]
    result = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), results)
    writer = result.writeStream.foreachBatch(lambda df, _: into.append(df.toArrow()))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(availableNow=True).start()


def test_a_stream_that_is_started_again_gives_what_embedded_operators_do(spark: Any, tmp_path: Path) -> None:
    given: list[pa.Table] = []
    observed: dict[str, int] = dict.fromkeys(STREAMED, 0)
    for half, steps in enumerate(HALVES):
        for number, step in enumerate(steps):
            write_step(tmp_path / "source", 10 * half + number, step)
        running = start(spark, tmp_path, given)
        running.awaitTermination()
        for progress in running.recentProgress:
            for name, counts in progress["observedMetrics"].items():
                observed[name] += counts["late"]
    entered, late = judged(HALVES)
    everything = pa.concat_tables(given)
    assert observed == dict.fromkeys(STREAMED, len(late))
    for name in STREAMED:
        got = everything.filter(pc.equal(everything["job"], name))
        want = answered(CASES[name](), entered, finish=False)
        windows = got.filter(pc.is_null(got["side"])).select(want.column_names)
        assert by_key(windows, CASES[name]()) == by_key(want, CASES[name]())
        assert (got["side"].to_pylist()).count("late") == len(late) > 0


def test_timers_end_windows_where_no_more_rows_come(spark: Any, tmp_path: Path) -> None:
    write_step(tmp_path / "source", 0, Step(rows(30, seed=6), 1))
    operator = wp.Aggregate(
        "tumbling, time(300 milliseconds), partitioned", {"n": wr.count()}, partition_by="k"
    )
    result = source(spark, tmp_path / "source").transform(operator.on_spark, buckets=BUCKETS)
    given: list[pa.Table] = []
    done = threading.Event()

    def take(df: Any, _: int) -> None:
        given.append(df.toArrow())
        if sum(map(len, given)) == 5:
            done.set()

    writer = result.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
    running = writer.start()
    try:
        assert done.wait(PATIENCE), running.exception()
    finally:
        running.stop()
    counts = {row["k"]: row["n"] for table in given for row in table.to_pylist()}
    want = rows(30, seed=6).group_by("k").aggregate([("k", "count")])
    assert counts == dict(zip(want["k"].to_pylist(), want["k_count"].to_pylist(), strict=True))


# -- what is refused -------------------------------------------------------------------------------

COUNT = {"n": wr.count()}
REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "no time": (
        lambda df: wp.Aggregate("tumbling, count(4)", COUNT).on_spark(df),
        "name the column by which rows come in order",
    ),
    "a time that is not there": (
        lambda df: wp.Aggregate("tumbling, count(4)", COUNT).on_spark(df, time="when"),
        "when",
    ),
    "one input too many": (
        lambda df: wp.Aggregate("tumbling, count(4)", COUNT).on_spark(df, df, time="ts"),
        "Aggregate has 1 input, and 2 DataFrames came",
    ),
    "one input too few": (lambda df: CASES["join"]().on_spark(df, time="ts"), "Join has 2 inputs, and 1"),
    "no window": (
        lambda df: wp.Filter(pc.field("x") < 3).on_spark(df, time="ts"),
        "Filter has no window",
    ),
    "two outputs": (
        lambda df: wp.Join(*["sliding, count(4), count(1)"] * 2, how="left", unmatched="apart").on_spark(
            df, df, time="ts"
        ),
        'say unmatched="together"',
    ),
    "no punctuations": (
        lambda df: wp.Aggregate("tumbling, punct()", COUNT).on_spark(df, time="ts"),
        "ends with punctuations: name the boolean column",
    ),
    "punctuations that are numbers": (
        lambda df: wp.Aggregate("tumbling, punct()", COUNT).on_spark(df, time="ts", punctuation="x"),
        "column 'x' marks punctuations, so it is boolean, and not bigint",
    ),
    "punctuations for nobody": (
        lambda df: wp.Aggregate("tumbling, count(4)", COUNT).on_spark(df, time="ts", punctuation="end"),
        "no window of Aggregate ends with punctuations",
    ),
    "a clock in a batch": (
        lambda df: wp.Aggregate("tumbling, time(4)", COUNT).on_spark(df),
        "that needs a stream",
    ),
    "a clock and a time": (
        lambda df: wp.Aggregate("tumbling, time(4)", COUNT).on_spark(df, time="ts"),
        "leave out time='ts'",
    ),
    "times of two types": (
        lambda df: CASES["join"]().on_spark(df, df, time=["ts", "id"]),
        "times of different types have no common order",
    ),
    "no buckets": (
        lambda df: wp.Aggregate("tumbling, count(4)", COUNT).on_spark(df, time="ts", buckets=0),
        "buckets must be a number",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_before_there_are_rows(spark: Any, what: str) -> None:
    attempt, said = REFUSED[what]
    with pytest.raises(QueryError, match=re.escape(said)):
        attempt(spark.createDataFrame(rows(3, seed=1)))


def test_a_stream_needs_a_watermark(spark: Any, tmp_path: Path) -> None:
    stream = stream_of(spark, tmp_path, [Step(rows(3, seed=1), 1)])
    operator = wp.Aggregate("tumbling, count(4)", COUNT)
    with pytest.raises(QueryError, match="say watermark='watermark' if both tell the same time"):
        operator.on_spark(stream, time="ts")
    with pytest.raises(QueryError, match="a stream needs a watermark"):
        operator.on_spark(spark.readStream.format("rate").load(), time="timestamp")
    with pytest.raises(QueryError, match="all inputs are streams, or none is"):
        CASES["join"]().on_spark(stream, spark.createDataFrame(rows(3, seed=1)), time="ts")


def numbers(spark: Any) -> Any:
    """A stream of its own, with the columns of the others."""
    columns = ["timestamp as ts", "'a' as k", "value as x", "value as id", "value as lane", "false as end"]
    return spark.readStream.format("rate").load().selectExpr(*columns).withWatermark("ts", "1 second")


CHAINS: dict[str, Callable[[Any], Any]] = {
    "an operator": lambda df: wp.Aggregate("tumbling, count(4)", COUNT).on_spark(
        df, time="ts", metrics="second"
    ),
    "a query": lambda df: BY_SECOND.on_spark(df, metrics="second"),
    "a pushed-down query": lambda df: BY_SECOND.on_spark(df, path="pushdown"),
    "another input": lambda df: CASES["join"]().on_spark(numbers(df.sparkSession), df, time="ts"),
}
BY_SECOND = wr.query(time="ts", windows={"w": wr.tumbling("1 second")}, aggregates=COUNT)


@pytest.mark.parametrize("second", CHAINS)
def test_a_second_operator_in_a_stream_is_refused(spark: Any, tmp_path: Path, second: str) -> None:
    """Whatever was done to the rows in between: two watermarks in a row stand still, and nothing would come out."""
    stream = stream_of(spark, tmp_path, [Step(rows(3, seed=1), 1)])
    first = CASES["deduplicate"]().on_spark(stream, time="ts", watermark=WATERMARK)
    changed = first.selectExpr(
        "ts + interval 1 second as ts", "upper(k) as k", "x", "id", "lane", "end"
    ).where("x > 0")
    with pytest.raises(QueryError, match="this stream has been through a query or an operator of windrow"):
        CHAINS[second](changed.withWatermark("ts", "1 second"))


@pytest.mark.parametrize("sums", [0, 30])
@pytest.mark.parametrize("path", ["general", "pushdown"])
def test_an_operator_behind_a_query_of_a_stream_is_refused(
    spark: Any, tmp_path: Path, path: str, sums: int
) -> None:
    """Also behind one of many columns, of which Spark's plans leave out most."""
    stream = by_time(stream_of(spark, tmp_path, [Step(rows(3, seed=1), 1)]), "ts")
    stream = stream.selectExpr("*", *[f"x + {i} as x{i}" for i in range(sums)])
    query = wr.query(
        time="ts",
        windows={"w": wr.tumbling("1 second")},
        aggregates=COUNT | {f"sum {i}": wr.sum(f"x{i}") for i in range(sums)},
    )
    windows = query.on_spark(stream, path=path).withWatermark("end", "1 second")
    with pytest.raises(QueryError, match="this stream has been through a query or an operator of windrow"):
        wp.Aggregate("tumbling, count(4)", COUNT).on_spark(windows, time="end", metrics="second")


def test_what_a_batch_has_answered_may_meet_a_stream(spark: Any, tmp_path: Path) -> None:
    """Such a table has no watermark, and keeps none from moving."""
    known = BY_SECOND.on_spark(spark.createDataFrame(rows(3, seed=1))).selectExpr("start as ts", "n")
    stream = by_time(stream_of(spark, tmp_path, [Step(rows(3, seed=1), 1)]), "ts").join(known, "ts", "left")
    assert BY_SECOND.on_spark(by_time(stream, "ts"), metrics="second").isStreaming

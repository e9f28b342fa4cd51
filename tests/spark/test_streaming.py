"""Random streams with disorder and late events, cut into micro-batches, against the referee.

Several queries over one source run as one stream, each with its own operators and its own metrics: a stream is
slow to start.
"""

from __future__ import annotations

from contextlib import redirect_stdout
from functools import reduce
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as sf
from specimens import SEQUENCES
from streams import (
    NIGHTLY,
    WATERMARK,
    Step,
    apart,
    by_time,
    drained,
    expected,
    like,
    plain_rows,
    run_stream,
    source,
    stream_of,
    write_step,
)

import windrow as wr
from tests.referee import assert_same
from windrow.query import Query
from windrow.spark.buckets import PARTITIONS, names
from windrow.spark.scatter import FEW

MOMENT = pa.timestamp("us", "UTC")
# Later than every end of a window.
FAR = 10_000
AGGREGATES = {
    "n": wr.count(),
    "total": wr.sum("x"),
    "mean": wr.mean("f"),
    "high": wr.max("f"),
}
AGGREGATES_OF_X = {"n": wr.count(), "total": wr.sum("x")}
ORDERED = AGGREGATES | {"letters": wr.concat("s"), "middle": wr.median("x")}
# Windows, the type of the time column, and what is asked of them.
GROUPS: dict[str, tuple[dict[str, wr.Window], pa.DataType, dict[str, wr.Aggregate]]] = {
    "context free": (
        {
            "tumbling": wr.tumbling("9 milliseconds", offset="2 milliseconds"),
            "sliding": wr.sliding("25 milliseconds", every="10 milliseconds"),
            "cumulate": wr.cumulate("40 milliseconds", step="20 milliseconds"),
        },
        MOMENT,
        AGGREGATES,
    ),
    "sessions": (
        {
            "short": wr.session("2 milliseconds"),
            "long": wr.session("7 milliseconds"),
            "tumbling": wr.tumbling("20 milliseconds"),
        },
        MOMENT,
        AGGREGATES,
    ),
    "order based": (
        {
            name: SEQUENCES[name]
            for name in (
                "count sliding",
                "on a column",
                "marks",
                "threshold",
                "latest",
                "deterministic",
                "nondeterministic",
                "slide by rows",
            )
        },
        pa.int64(),
        ORDERED,
    ),
    "mixed": (
        {
            "time": wr.sliding(30, every=20),
            "session": wr.session("gap"),
            "rows": wr.tumbling(rows=4),
            "landmark": wr.landmark(since=50, every=40),
            "moves": wr.delta("level", by=1),
            "snapshot": wr.snapshot(),
            "band": wr.band(60, length=90),
        },
        pa.int64(),
        ORDERED,
    ),
}
# Each group of windows meets both modes, with a lateness and without; all meet all if WINDROW_NIGHTLY is 1.
PAIRS = ([("append", 0), ("update", 30)], [("append", 30), ("update", 0)])


def variants(group: str) -> list[tuple[str, int]]:
    """Modes and latenesses that run side by side."""
    if NIGHTLY:
        return [*PAIRS[0], *PAIRS[1]]
    return PAIRS[list(GROUPS).index(group) % 2]


def drawn(seed: int, time: pa.DataType, *, size: int = 150, batches: int = 3, delay: int = 15) -> list[Step]:
    """Events of some keys, most of them nearly in order, some far behind; a last step only moves the watermark."""
    luck = np.random.default_rng(seed)
    ticks = np.sort(luck.integers(20, 300, size)) + luck.integers(-delay, delay, size)
    behind = luck.random(size) < 0.35
    ticks = np.maximum(np.where(behind, ticks - luck.integers(60, 300, size), ticks), 1)
    scaled = ticks * 1000 if pa.types.is_temporal(time) else ticks

    def some(values: list[Any], type_: pa.DataType) -> pa.Array:
        return pa.array([values[i] for i in luck.integers(0, len(values), size)], type_)

    table = pa.table(
        {
            "time": pa.array(scaled, pa.int64()).cast(time),
            "k": some(["a", "b", "c", "", None], pa.string()),
            "x": some([-5, 0, 1, 7, None], pa.int64()),
            "f": some([0.1, -2.5, 1e16, 3.0, None], pa.float64()),
            "s": some(["p", "q", "ä", None], pa.string()),
            "gap": some([2, 5, 11], pa.int64()),
            "v": some([-2, -1, 0, 1, 2], pa.int64()),
            "mark": some([True, False, False, None], pa.bool_()),
            "level": some([-3.0, 0.5, 1.0, 3.0, None], pa.float64()),
            "km": pa.array(ticks // 3),
        }
    )
    cuts = [0, *(i * size // batches + int(luck.integers(-9, 9)) for i in range(1, batches)), size]
    steps = []
    for low, high in pairwise(cuts):
        steps.append(Step(table.slice(low, high - low), int(ticks[:high].max()) - delay))
    return [*steps, Step(table.slice(0, 0), FAR)]


def lateness_of(lateness: int, time: pa.DataType) -> Any:
    return f"{lateness} milliseconds" if pa.types.is_temporal(time) else lateness


@pytest.mark.parametrize("group", GROUPS)
def test_streams_agree_with_the_referee(spark: Any, tmp_path: Path, group: str) -> None:
    windows, time, aggregates = GROUPS[group]
    steps = drawn(sorted(GROUPS).index(group), time, size=200)
    query = wr.query(time="time", key="k", windows=windows, aggregates=aggregates)
    df = stream_of(spark, tmp_path, steps)
    results, wanted = [], {}
    for mode, lateness in variants(group):
        name = f"{mode} {lateness}"
        options = {"mode": mode, "lateness": lateness_of(lateness, time)}
        result = query.on_spark(df, watermark=WATERMARK, metrics=name, buckets=3, **options)
        results.append(result.select(sf.lit(name).alias("variant"), "*"))
        wanted[name] = expected(query, steps, **options)
    together = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), results)
    got, progress = drained(together, tmp_path)
    for name, output in wanted.items():
        mine = got.filter(pc.equal(got["variant"], name)).select(output.table.column_names)
        assert_same(output.answers, like(output.table, mine), note=name)
        late = output.late.num_rows
        assert counted(progress, name) == (sum(len(s.events) for s in steps) - late, late, 0)
    assert all(output.late.num_rows > 3 for output in wanted.values())


def test_micro_batches_of_many_rows_are_slices_when_they_are_shuffled(spark: Any, tmp_path: Path) -> None:
    steps = drawn(11, pa.int64(), size=4 * FEW)
    assert min(len(step.events) for step in steps[:-1]) > FEW
    windows = {"w": wr.tumbling(20), "s": wr.sliding(30, every=10)}
    query = wr.query(time="time", key="k", windows=windows, aggregates=AGGREGATES_OF_X)
    result = query.on_spark(stream_of(spark, tmp_path, steps), watermark=WATERMARK, lateness=10)
    got, progress = drained(result, tmp_path)
    wanted = expected(query, steps, lateness=10)
    assert_same(wanted.answers, like(wanted.table, got))
    late = wanted.late.num_rows
    assert counted(progress, "windrow") == (4 * FEW - late, late, 0)
    # In the log of the only bucket are slices, which are hundreds of times fewer than events.
    state = spark.read.format("statestore").option("stateVarName", "head").load(str(tmp_path / "checkpoint"))
    (head,) = state.select("value.log_bytes", "value.base_bytes").collect()
    assert 0 < head.log_bytes < 8 * FEW


def counted(progress: list[Any], metrics: str) -> tuple[int, ...]:
    """Events that were taken in, late rows and bad rows, summed over all micro-batches."""
    found = [report.observedMetrics[metrics] for report in progress if metrics in report.observedMetrics]
    return tuple(sum(row[name] or 0 for row in found) for name in ("events", "late", "bad"))


def test_late_and_bad_rows_come_out_as_they_were(spark: Any, tmp_path: Path) -> None:
    steps = drawn(9, pa.int64())
    bad = steps[1].events.slice(0, 2)
    bad = bad.set_column(0, "time", pa.nulls(2, pa.int64()))
    steps[1] = Step(pa.concat_tables([steps[1].events, bad]), steps[1].watermark)
    query = wr.query(time="time", key="k", windows={"w": wr.tumbling(20)}, aggregates=AGGREGATES)
    wanted = expected(query, steps, on_bad="divert")
    df = stream_of(spark, tmp_path, steps)
    result = query.on_spark(df, watermark=WATERMARK, on_bad="divert", side_rows=True)
    got, progress = drained(result, tmp_path)
    windows, late, bad = apart(got)
    assert_same(wanted.answers, like(wanted.table, windows))
    names = wanted.late.column_names
    assert plain_rows(late.select(names)) == plain_rows(wanted.late)
    assert plain_rows(bad.select(names)) == plain_rows(wanted.bad.select(names))
    assert all("an event needs a time" in reason for reason in bad["bad_reason"].to_pylist())
    assert late.num_rows > 3
    events = sum(len(step.events) for step in steps)
    assert counted(progress, "windrow") == (events - late.num_rows - 2, late.num_rows, 2)


def test_a_late_row_is_late_also_if_it_is_the_first_of_its_bucket(spark: Any, tmp_path: Path) -> None:
    """Of two partitions, one is empty in the first micro-batch; each key has a bucket of its own."""
    times = {"a": 100, "b": 150, "c": 20, "d": 160}
    steps = [
        Step(pa.table({"time": [time], "k": [key]}), watermark)
        for (key, time), watermark in zip(times.items(), (95, 145, 155, FAR), strict=True)
    ]
    query = wr.query(time="time", key="k", windows={"w": wr.tumbling(20)}, aggregates={"n": wr.count()})
    df = stream_of(spark, tmp_path, steps).repartition(2)
    got, progress = drained(query.on_spark(df, watermark=WATERMARK, buckets=16), tmp_path)
    wanted = expected(query, steps)
    assert_same(wanted.answers, like(wanted.table, got))
    assert wanted.late["k"].to_pylist() == ["c"]
    assert counted(progress, "windrow") == (3, 1, 0)


def test_a_stream_has_a_bucket_in_each_partition_and_is_refused_with_another_number(
    spark: Any, tmp_path: Path
) -> None:
    """Spark itself goes on with the partitions of the checkpoint, whatever the session says."""
    steps = drawn(3, pa.int64())
    query = wr.query(time="time", key="k", windows={"w": wr.tumbling(20)}, aggregates=AGGREGATES)
    known = spark.conf.get(PARTITIONS)
    try:
        spark.conf.set(PARTITIONS, 3)
        got, _ = drained(query.on_spark(stream_of(spark, tmp_path, steps), watermark=WATERMARK), tmp_path)
        checkpoint = str(tmp_path / "checkpoint")
        state = spark.read.format("statestore").option("stateVarName", "head").load(checkpoint)
        heads = state.select("partition_id", "key.bucket", "value.plan").collect()
        spark.conf.set(PARTITIONS, 5)
        write_step(tmp_path / "source", len(steps), steps[0])
        again = query.on_spark(source(spark, tmp_path / "source"), watermark=WATERMARK).writeStream.format(
            "noop"
        )
        with pytest.raises(StreamingQueryException, match=r"3 buckets by partition.*partitions\" to 3"):
            again.option("checkpointLocation", checkpoint).trigger(
                availableNow=True
            ).start().awaitTermination()
    finally:
        spark.conf.set(PARTITIONS, known)
    wanted = expected(query, steps)
    assert_same(wanted.answers, like(wanted.table, got))
    assert sorted((head.partition_id, head.bucket) for head in heads) == list(enumerate(names(3)))
    assert {head.plan.partition(" ")[2] for head in heads} == {"3"}


def test_windows_in_sparks_own_state_agree_with_the_referee(spark: Any, tmp_path: Path) -> None:
    steps = drawn(6, MOMENT)
    windows = {"w": wr.tumbling("9 milliseconds", offset="2 milliseconds")}
    aggregates = {"mean": wr.mean("x"), "high": wr.max("f"), "low": wr.min("x"), "letters": wr.count("s")}
    steps_of_40 = {"c": wr.cumulate("40 milliseconds", step="20 milliseconds")}
    sliding = {"s": wr.sliding("15 milliseconds", every="10 milliseconds")}
    keyed = wr.query(time="time", key=["k", "mark"], windows=windows, aggregates=aggregates)
    queries: dict[str, tuple[Query, dict[str, Any]]] = {
        "keyed": (keyed, {}),
        "not keyed": (wr.query(time="time", windows=windows, aggregates=AGGREGATES_OF_X), {}),
        "late": (keyed, {"lateness": "20 milliseconds"}),
        "steps": (
            wr.query(time="time", key="k", windows=steps_of_40, aggregates=aggregates),
            {"lateness": "5 milliseconds"},
        ),
        "sliding": (wr.query(time="time", key="k", windows=sliding, aggregates=aggregates), {}),
    }
    df = by_time(stream_of(spark, tmp_path, steps), "time")
    results = [
        query.on_spark(df, path="pushdown", **options).select(sf.lit(name).alias("variant"), "*")
        for name, (query, options) in queries.items()
    ]
    together = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), results)
    got, _ = drained(together, tmp_path)
    for name, (query, options) in queries.items():
        wanted = expected(query, steps, **options)
        mine = got.filter(pc.equal(got["variant"], name)).select(wanted.table.column_names)
        assert_same(wanted.answers, like(wanted.table, mine), note=name)
        assert wanted.late.num_rows > 3
    with redirect_stdout(StringIO()) as plan:
        results[0].explain()
    assert "StateStoreSave" in plan.getvalue()
    assert not [word for word in ("Python", "Arrow") if word in plan.getvalue()]


def test_windows_that_end_by_1970_are_open_to_sparks_own_state_until_there_is_a_watermark(
    spark: Any, tmp_path: Path
) -> None:
    def events(*ticks: int) -> pa.Table:
        return pa.table({"time": pa.array([tick * 1000 for tick in ticks], MOMENT), "x": [*ticks]})

    first, second = Step(events(-60, -45, -41, -20, -1, 0), 0), Step(events(-44, -20, 7), 1)
    steps = [first, second, Step(events(-43, 8), 40), Step(events(-42, -3, 12, 50), 60), Step(events(), FAR)]
    query = wr.query(time="time", windows={"w": wr.tumbling("20 milliseconds")}, aggregates=AGGREGATES_OF_X)
    df = by_time(stream_of(spark, tmp_path, steps), "time")
    late = {"lateness": "2 milliseconds"}
    got, _ = drained(query.on_spark(df, path="pushdown", **late), tmp_path)
    wanted = expected(query, steps, **late)
    assert_same(wanted.answers, like(wanted.table, got))
    assert wanted.late["x"].to_pylist() == [-42]


def test_a_stream_without_events_gives_nothing(spark: Any, tmp_path: Path) -> None:
    empty = drawn(1, pa.int64())[-1].events
    query = wr.query(time="time", key="k", windows={"rows": wr.tumbling(rows=4)}, aggregates=AGGREGATES)
    got = run_stream(spark, tmp_path, query, [Step(empty, 10), Step(empty, FAR)], mode="update")
    assert got.num_rows == 0
    assert got.column_names == ["k", "window", "start", "end", *AGGREGATES, "op", "revision"]

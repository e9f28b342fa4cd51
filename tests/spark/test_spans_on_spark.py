"""Events that last, on Spark: batch and streaming give the answers of the referee, and refuse what it refuses.

Several queries over one source run as one stream, each with its own operators and its own metrics: a stream is
slow to start.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf
from stores import Store
from streams import WATERMARK, Step, apart, drained, expected, like, plain_rows, stream_of, write_step

import windrow as wr
from tests.referee import answers, assert_same
from windrow.options import OperatorOptions
from windrow.query import Query
from windrow.spark import state
from windrow.spark.micro_batch import MicroBatch
from windrow.spark.open_events import in_order
from windrow.spark.payload import pack
from windrow.spark.state import Worker
from windrow.spark.task import Task

# Later than every end of a window.
FAR = 10_000
UTC = pa.timestamp("us", "UTC")
WHOLE = wr.span("since", "until")
OPEN = wr.span("since", "until", id="who")
WINDOWS: dict[str, wr.Window] = {
    "tumbling": wr.tumbling(20),
    "sliding": wr.sliding(50, every=20),
    "apart": wr.sliding(7, every=30),
}
PARTS = {"n": wr.count(), "total": wr.sum("x"), "mean": wr.mean("f")}
AGGREGATES = PARTS | {"high": wr.max("f"), "first": wr.first("x"), "middle": wr.median("x")}


def query(time: wr.Span, **parts: Any) -> Query:
    return wr.query(**{"time": time, "key": "k", "windows": WINDOWS, "aggregates": AGGREGATES, **parts})


QUERIES = {
    "whole": query(WHOLE),
    "shares": query(wr.span("since", "until", contributes="prorated"), aggregates=PARTS),
    "sessions": query(WHOLE, windows={"s": wr.session(3), "w": wr.tumbling(20)}),
    "starts": query(
        wr.span("since", "until", contributes="start"), windows={"w": WINDOWS["sliding"], "s": wr.session(3)}
    ),
    "ends": query(wr.span("since", "until", contributes="end"), windows={"c": wr.tumbling(rows=4)}),
}


def drawn(seed: int, *, size: int = 120, delay: int = 15) -> pa.Table:
    """Events about in the order of their ends, some far behind; most are short, some cross many windows."""
    luck = np.random.default_rng(seed)
    ends = np.sort(luck.integers(40, 300, size)) + luck.integers(-delay, delay, size)
    ends = np.where(luck.random(size) < 0.3, ends - luck.integers(60, 250, size), ends)
    ends = np.maximum(ends, 2)
    lengths = np.where(luck.random(size) < 0.7, luck.integers(1, 9, size), luck.integers(20, 120, size))

    def some(values: list[Any], type_: pa.DataType) -> pa.Array:
        return pa.array([values[i] for i in luck.integers(0, len(values), size)], type_)

    return pa.table(
        {
            "since": np.maximum(ends - lengths, 1),
            "until": ends,
            "k": some(["a", "b", "c", "", None], pa.string()),
            "x": some([-5, 0, 1, 7, None], pa.int64()),
            "f": some([0.1, -2.5, 1e16, 3.0, None], pa.float64()),
        }
    )


def in_steps(table: pa.Table, *, batches: int = 3, delay: int = 15) -> list[Step]:
    """The rows as micro-batches, with watermarks that some ends are behind; a last step only moves the watermark."""
    known = pc.max_element_wise(table["since"], table["until"]).to_numpy()
    cuts = [i * len(table) // batches for i in range(batches + 1)]
    steps = [Step(table.slice(a, b - a), int(known[:b].max()) - delay) for a, b in pairwise(cuts)]
    return [*steps, Step(table.slice(0, 0), FAR)]


def in_moments(table: pa.Table) -> pa.Table:
    """The same rows, where a tick is a millisecond."""
    for place, name in enumerate(("since", "until")):
        table = table.set_column(place, name, pc.multiply(table[name], 1_000).cast(UTC))
    return table


def in_two_rows(table: pa.Table) -> pa.Table:
    """Two of three events as a row that opens them and, for most, a row that closes them. Some end late."""
    arriving = []
    for number, row in enumerate(table.to_pylist()):
        row["who"] = number
        heard = row["until"] + (70 if number % 11 == 1 else 0)
        if number % 3 == 0:
            arriving.append((heard, row))
            continue
        arriving.append((row["since"], {**row, "until": None}))
        if number % 7:
            arriving.append((heard, {**row, "since": None, "x": None, "f": None}))
    arriving.sort(key=lambda pair: pair[0])
    schema = table.schema.append(pa.field("who", pa.int64()))
    return pa.Table.from_pylist([row for _, row in arriving], schema)


# -- batch -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUERIES)
def test_a_batch_agrees_with_the_referee(spark: Any, name: str) -> None:
    table = drawn(1)
    wanted = answers(QUERIES[name], table)
    got = QUERIES[name].on_spark(spark.createDataFrame(table), buckets=3).toArrow()
    assert_same(wanted, like(wanted.table(), got))


def test_times_of_a_batch_may_be_timestamps_and_rows_in_any_partition(spark: Any) -> None:
    table = drawn(2)
    moments = [pc.multiply(table[name], 1_000_000).cast(UTC) for name in ("since", "until")]
    table = table.set_column(0, "since", moments[0]).set_column(1, "until", moments[1])
    asked = query(
        WHOLE,
        windows={"w": wr.sliding("50 seconds", every="20 seconds"), "day": wr.calendar("1 day", tz="UTC")},
        aggregates=PARTS | {"high": wr.max("f")},
    )
    wanted = answers(asked, table)
    got = asked.on_spark(spark.createDataFrame(table).repartition(3, "x"), buckets=2).toArrow()
    assert_same(wanted, like(wanted.table(), got))


def test_what_is_open_in_the_end_of_a_batch_lasts_up_to_the_latest_of_all_keys(spark: Any) -> None:
    table = in_two_rows(drawn(3))
    asked = query(OPEN)
    wanted = answers(asked, table)
    # Rows that open and rows that close come from different partitions.
    df = spark.createDataFrame(table).repartitionByRange(3, sf.col("since").desc())
    assert_same(wanted, like(wanted.table(), asked.on_spark(df, buckets=4).toArrow()))
    assert_same(wanted, like(wanted.table(), asked.on_spark(df, buckets=1).toArrow()))


TAKEN_OUT = {"n": wr.count(), "total": wr.sum("x"), "mean": wr.mean("x"), "texts": wr.count("f")}


@pytest.mark.parametrize("path", ["pushdown", "general"])
def test_a_batch_of_slices_agrees_with_the_referee(spark: Any, path: str) -> None:
    table = pa.concat_tables([drawn(seed) for seed in (7, 8)])
    windows = {"w": wr.sliding(17, every=5), "c": wr.cumulate(40, step=20, offset=3)}
    asked = query(WHOLE, windows=windows, aggregates=TAKEN_OUT)
    wanted = answers(asked, table)
    df = spark.createDataFrame(table).repartition(2, "x")
    assert_same(wanted, like(wanted.table(), asked.on_spark(df, buckets=2, path=path).toArrow()))
    alone = wr.query(time=WHOLE, windows={"w": wr.tumbling("9 milliseconds")}, aggregates=TAKEN_OUT)
    moments = in_moments(table)
    wanted = answers(alone, moments)
    got = alone.on_spark(spark.createDataFrame(moments), path=path).toArrow()
    assert_same(wanted, like(wanted.table(), got))


@pytest.mark.parametrize(
    ("until", "problem"),
    [
        (4, r"value 4: the event ends before it starts \('since'\)"),
        (5, r"value 5: the event ends where it starts"),
        (90, r"value 90: the event lasts longer than 60"),
        (None, r"value None: an event needs an end"),
    ],
)
def test_what_the_jvm_cannot_cut_is_an_error(spark: Any, until: int | None, problem: str) -> None:
    table = pa.table({"since": [1, 5], "until": pa.array([2, until], pa.int64())})
    asked = wr.query(
        time=wr.span("since", "until", longest=60),
        windows={"w": wr.tumbling(9)},
        aggregates={"n": wr.count()},
    )
    with pytest.raises(PySparkException, match="column 'until', " + problem):
        asked.on_spark(spark.createDataFrame(table), path="pushdown").collect()


@pytest.mark.parametrize("on_zero", ["raise", "point"])
def test_rows_that_open_and_close_are_put_in_order_of_time(on_zero: Any) -> None:
    columns = {"since": [5, None, 2, None, None], "until": [None, 9, None, 5, None], "who": [1, 1, 1, 1, 1]}
    table = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    asked = query(wr.span("since", "until", id="who", on_zero=on_zero), key=[], aggregates={"n": wr.count()})
    moments = [row["since"] or -(row["until"] or 0) for row in in_order(asked, table).to_pylist()]
    assert moments == ([2, -5, 5, -9, 0] if on_zero == "raise" else [2, 5, -5, -9, 0])


# -- streams ---------------------------------------------------------------------------------------

MODES: dict[str, dict[str, Any]] = {
    "append": {},
    "late": {"lateness": 20},
    "changes": {"mode": "update", "lateness": 20},
}


def variants(steps: Sequence[Step], queries: dict[str, tuple[Query, str]]) -> dict[str, Any]:
    """What the referee gives for each query, with its options."""
    return {name: expected(asked, steps, **MODES[mode]) for name, (asked, mode) in queries.items()}


def together(df: Any, queries: dict[str, tuple[Query, str]], **options: Any) -> Any:
    """All queries as one stream."""
    results = [
        asked.on_spark(df, metrics=name, buckets=3, **MODES[mode], **options).select(
            sf.lit(name).alias("variant"), "*"
        )
        for name, (asked, mode) in queries.items()
    ]
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), results)


def compare(got: pa.Table, wanted: dict[str, Any]) -> None:
    for name, output in wanted.items():
        mine = got.filter(pc.equal(got["variant"], name)).select(output.table.column_names)
        assert_same(output.answers, like(output.table, mine), note=name)


def counted(progress: list[Any], metrics: str) -> tuple[int, ...]:
    """Events that were taken in, late rows and bad rows, summed over all micro-batches."""
    found = [report.observedMetrics[metrics] for report in progress if metrics in report.observedMetrics]
    return tuple(sum(row[name] or 0 for row in found) for name in ("events", "late", "bad"))


def test_streams_agree_with_the_referee(spark: Any, tmp_path: Path) -> None:
    steps = in_steps(drawn(4))
    postponed = wr.span("since", "until", contributes="prorated", release=12)
    queries = {
        "whole": (QUERIES["whole"], "late"),
        "sessions": (QUERIES["sessions"], "changes"),
        "postponed shares": (query(postponed, aggregates=PARTS), "append"),
    }
    wanted = variants(steps, queries)
    got, progress = drained(
        together(stream_of(spark, tmp_path, steps), queries, watermark=WATERMARK), tmp_path
    )
    compare(got, wanted)
    for name, output in wanted.items():
        late = output.late.num_rows
        assert counted(progress, name) == (sum(len(s.events) for s in steps) - late, late, 0), name
    assert all(output.late.num_rows > 3 for output in wanted.values())


def test_the_watermark_is_on_the_end_and_a_job_goes_on_with_what_is_open(spark: Any, tmp_path: Path) -> None:
    """A job that is started twice; rows that open an event have no end, and do not move the watermark."""
    table = in_two_rows(drawn(5, size=60))
    last = pa.Table.from_pylist([{"since": FAR - 1, "until": FAR, "k": "a"}], table.schema)
    rows = [table.slice(0, 40), table.slice(40, 30), table.slice(70), last]
    source, output = tmp_path / "source", tmp_path / "output"
    asked = query(OPEN, windows={"w": wr.sliding("50 milliseconds", every="20 milliseconds")})
    for part in (range(2), range(2, 4)):
        for number in part:
            write_step(source, number, Step(in_moments(rows[number]), 0))
        schema = spark.read.parquet(str(source)).schema
        events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(source))
        df = events.withWatermark("until", "0 seconds").filter("is_real")
        writer = asked.on_spark(df, buckets=2).writeStream.format("parquet").option("path", str(output))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
    steps = [Step(in_moments(part), pc.max(part["until"]).as_py()) for part in rows]
    # Before a job ends, a micro-batch without rows gives out what the watermark has completed.
    steps.insert(2, Step(steps[0].events.slice(0, 0), 0))
    wanted = expected(asked, steps)
    assert_same(wanted.answers, like(wanted.table, spark.read.parquet(str(output)).toArrow()))


def test_late_and_bad_rows_come_out_as_they_were(spark: Any, tmp_path: Path) -> None:
    steps = in_steps(drawn(6))
    ends = [50, None, 7]
    bad = pa.Table.from_pylist(
        [{"since": 60, "until": end, "k": "a"} for end in ends], steps[1].events.schema
    )
    steps[1] = Step(pa.concat_tables([steps[1].events, bad]), steps[1].watermark)
    options: dict[str, Any] = {"on_bad": "divert"}
    wanted = expected(QUERIES["whole"], steps, **options)
    df = stream_of(spark, tmp_path, steps)
    result = QUERIES["whole"].on_spark(df, watermark=WATERMARK, side_rows=True, buckets=3, **options)
    got, progress = drained(result, tmp_path)
    windows, late, bad = apart(got)
    assert_same(wanted.answers, like(wanted.table, windows))
    names = wanted.late.column_names
    assert plain_rows(late.select(names)) == plain_rows(wanted.late)
    assert plain_rows(bad.select(names)) == plain_rows(wanted.bad.select(names))
    reasons = sorted(bad["bad_reason"].to_pylist())
    assert [reason.split(",")[0] for reason in reasons] == [
        "column 'until': an event needs an end",
        "column 'until': the event ends before it starts ('since')",
        "column 'until': the event ends before it starts ('since')",
    ]
    events = sum(len(step.events) for step in steps)
    assert late.num_rows > 3
    assert counted(progress, "windrow") == (events - late.num_rows - 3, late.num_rows, 3)


@pytest.mark.parametrize("seed", range(4))
def test_open_events_outlive_the_worker_that_took_them_in(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """After each micro-batch the state is a snapshot, or a log, and the next worker knows nothing."""
    monkeypatch.setattr(state, "LIGHT", 0 if seed % 2 else 1 << 20)
    steps = in_steps(in_two_rows(drawn(seed).set_column(2, "k", pa.array(["a"] * 120))), batches=6)
    schema = steps[0].events.schema
    settings = OperatorOptions(mode="append" if seed < 2 else "update", on_bad="divert", max_slices=1_000_000)
    task = Task(query(OPEN), settings, schema, schema, combine=False, side_rows=False, buckets=1)
    operator, store = task.operator(), Store()
    for step in steps:
        parts = step.events.combine_chunks().to_batches()
        batch = MicroBatch(step.watermark, [pack(part) for part in parts if part.num_rows])
        monkeypatch.setattr(state, "WORKER", Worker())
        wanted, (other, given) = task.apply(operator, batch), store.step(task, batch)
        for want, got in zip(wanted, given, strict=True):
            assert_same(want, got)
        assert other.counters == operator.counters
    assert operator.counters.late > 0


# -- what is refused -------------------------------------------------------------------------------


def test_an_event_that_ends_before_it_starts_is_named(spark: Any) -> None:
    table = pa.table({"since": [1, 5, 7], "until": [2, 4, 8], "k": ["a", "b", "c"]})
    asked = query(WHOLE, aggregates={"high": wr.max("k")})
    message = r"DataError: column 'until', row 1, value 4: the event ends before it starts \('since'\) "
    with pytest.raises(
        PySparkException, match=message + r"\(rows are counted in partition 0 of the source\)"
    ):
        asked.on_spark(spark.createDataFrame(table)).collect()


def test_a_row_that_closes_nothing_is_named(spark: Any) -> None:
    columns = {"since": [1, None, 3], "until": [None, 4, None], "who": [1, 2, 3], "k": ["a"] * 3}
    df = spark.createDataFrame(pa.table(columns))
    message = r"DataError: column 'who', row 2, value 2: closes nothing.*\(rows are counted in their bucket, in order of time\)"
    with pytest.raises(PySparkException, match=message):
        query(OPEN, aggregates={"n": wr.count()}).on_spark(df).collect()


def test_a_row_that_closes_nothing_is_named_in_a_stream() -> None:
    columns = {"since": [1, None], "until": [None, 4], "k": ["a"] * 2, "who": [1, 2]}
    rows = pa.record_batch({name: pa.array(c) for name, c in columns.items()})
    settings = OperatorOptions(max_slices=1_000_000)
    asked = query(OPEN, aggregates={"n": wr.count()})
    task = Task(asked, settings, rows.schema, rows.schema, combine=False, side_rows=False, buckets=1)
    message = r"column 'who', row 1, value 2: closes nothing.*\(rows are counted in what one partition of the source"
    with pytest.raises(wr.DataError, match=message):
        task.apply(task.operator(), MicroBatch(0, [pack(rows)]))


def test_what_cannot_be_kept_is_refused_before_anything_starts(spark: Any) -> None:
    frame = spark.createDataFrame(
        [], "since timestamp, until timestamp, k string, x long, f double, day date, who long"
    )
    stream = spark.readStream.format("rate").load()
    stream = stream.selectExpr("timestamp since", "timestamp until", "'' k")
    windows = {"w": wr.tumbling("1 minute")}
    asked = query(WHOLE, windows=windows, aggregates={"n": wr.count()})
    for refused, why in (
        (query(WHOLE, windows=windows, aggregates=PARTS), "'mean' .* cannot take events"),
        (query(OPEN, windows=windows, aggregates={"n": wr.count()}), "may open or close"),
    ):
        with pytest.raises(wr.QueryError, match="cannot be pushed down: .*" + why):
            refused.on_spark(frame, path="pushdown")
    assert "on Spark, batch: pushed down" in asked.explain(engine="spark", df=frame)
    with pytest.raises(wr.QueryError, match=r"'since' is timestamp.*, but 'day' is date"):
        query(wr.span("since", "day"), windows=windows, aggregates={"n": wr.count()}).on_spark(frame)
    with pytest.raises(wr.QueryError, match=r'needs a watermark.*df.withWatermark\("until", "10 seconds"\)'):
        asked.on_spark(stream)
    with pytest.raises(wr.QueryError, match="the watermark is on column 'since', and the time is 'until'"):
        asked.on_spark(stream.withWatermark("since", "1 second"))
    learning = query(
        wr.span("since", "until", release=wr.learned(0.9)), windows=windows, aggregates={"n": wr.count()}
    )
    ended = stream.withWatermark("until", "1 second")
    with pytest.raises(wr.QueryError, match=r"each of several buckets would learn .* buckets=1"):
        learning.on_spark(ended)
    assert learning.on_spark(ended, buckets=1).isStreaming
    assert asked.on_spark(ended).isStreaming
    with pytest.raises(wr.QueryError, match=r"cannot be pushed down: events of .* end in another slice"):
        asked.on_spark(ended, path="pushdown")
    assert "is late depends on its end" in asked.explain(engine="spark", df=ended)

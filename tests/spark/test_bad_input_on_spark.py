"""Everything that can be wrong on Spark is an error that says what and where, as early as it can be known."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from streams import NIGHTLY, WATERMARK, Step, by_time, drained, run_stream, source, stream_of, write_step

import windrow as wr
from windrow import policies as wp
from windrow.pipelines.failures import plainly
from windrow.query import Query

UTC = pa.timestamp("us", "UTC")
BY_TIME: dict[str, Any] = {"w": wr.tumbling("1 minute")}
BY_ORDER: dict[str, Any] = {"c": wr.tumbling(rows=3)}
COLUMNS = (
    "ts timestamp, text string, x long, pairs map<string, int>, list array<int>, both struct<a: int>, "
    "months interval year to month"
)


def query(**parts: Any) -> Query:
    """A count per minute, unless said otherwise."""
    return wr.query(**{"time": "ts", "windows": BY_TIME, "aggregates": {"n": wr.count()}, **parts})


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    return spark.createDataFrame([], COLUMNS)


@pytest.fixture(scope="module")
def stream(spark: Any) -> Any:
    """A stream that nobody starts, with two times in it, and no watermark."""
    return (
        spark.readStream.format("rate")
        .load()
        .selectExpr("timestamp as ts", "timestamp as other", "value as x")
    )


# -- before anything starts ------------------------------------------------------------------------

KEY = "column '{}' of type .* cannot be a key"
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "time is a text": ({"time": "text"}, {}, "column 'text' of type string cannot be a time"),
    "key is a map": ({"key": "pairs"}, {}, KEY.format("pairs")),
    "key is an array": ({"key": "list"}, {}, KEY.format("list")),
    "key is a struct": ({"key": ["x", "both"]}, {}, KEY.format("both")),
    "key has no type in Arrow": ({"key": "months"}, {}, "column 'months' of type interval year to month"),
    "time is unknown": ({"time": "when"}, {}, "there is no column 'when'; the columns are 'ts', 'text'"),
    "key is unknown": ({"key": "who"}, {}, "there is no column 'who'"),
    "value is unknown": ({"aggregates": {"a": wr.sum("y")}}, {}, "there is no column 'y'"),
    "value is a text": ({"aggregates": {"a": wr.sum("text")}}, {}, r"sum\(text\) needs a numeric column"),
    "mode": ({}, {"mode": "complete"}, "mode must be one of append, update, not 'complete'"),
    "path": ({}, {"path": "fast"}, "path must be one of auto, pushdown, general, not 'fast'"),
    "path that cannot be gone": (
        {"windows": BY_ORDER},
        {"path": "pushdown"},
        "this query cannot be pushed down: window 'c'",
    ),
    "on_bad": ({}, {"on_bad": "skip"}, "on_bad must be raise or divert, not 'skip'"),
    "lateness": ({}, {"lateness": "-1 second"}, "lateness must not be negative"),
    "max_slices": ({}, {"max_slices": 0}, "max_slices must be at least 1, not 0"),
    **{
        f"buckets={wrong!r}": (
            {},
            {"buckets": wrong},
            f"buckets must be a number from 1 to 32,768, not {wrong!r}",
        )
        for wrong in (0, -1, 1.5, "8", True, 32_769)
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_meant_is_refused_before_anything_starts(frame: Any, name: str) -> None:
    parts, options, message = REFUSED[name]
    with pytest.raises(wr.QueryError, match=message):
        query(**parts).on_spark(frame, **options)


def test_a_dataframe_is_not_for_the_embedded_engine(frame: Any) -> None:
    said = r"this is a Spark DataFrame: query.on_spark\(df\) answers the query on Spark"
    with pytest.raises(wr.QueryError, match=said):
        query().run(frame)
    with pytest.raises(wr.QueryError, match=said):
        query().operator().process(frame)


@pytest.mark.parametrize("other", [pa.table({"ts": [1]}), None, "events"], ids=["table", "None", "text"])
def test_what_is_no_dataframe_is_not_for_spark(other: Any) -> None:
    said = f"on_spark takes a DataFrame of Spark, not an object of type {type(other).__name__}"
    with pytest.raises(wr.QueryError, match=said):
        query().on_spark(other)
    with pytest.raises(wr.QueryError, match=said):
        wp.Deduplicate("sliding, count(3), count(1)", "ts").on_spark(other, time="ts")


def test_a_stream_needs_a_watermark(stream: Any) -> None:
    with pytest.raises(wr.QueryError, match=r'needs a watermark.*df.withWatermark\("ts", "10 seconds"\)'):
        query().on_spark(stream)


def test_a_watermark_on_another_column_must_be_named(stream: Any) -> None:
    other = stream.withWatermark("other", "1 second")
    with pytest.raises(wr.QueryError, match=r"watermark is on column 'other', .* say watermark='other'"):
        query().on_spark(other)
    assert query().on_spark(other, watermark="other").isStreaming


NOT_PUSHED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "sliding": (
        {"windows": {"w": wr.sliding("1 hour", every="1 second")}},
        {},
        "an event is in up to 3,600 windows",
    ),
    "session": (
        {"windows": {"s": wr.session("1 minute")}},
        {},
        "Spark drops each late event, and window 's'",
    ),
    "aggregate": ({"aggregates": {"a": wr.median("x")}}, {}, "'a' .* keeps single values"),
    "mode": ({}, {"mode": "update"}, "a changelog needs"),
    "key": ({"key": "ts"}, {}, "late by key column 'ts'"),
    "max_ahead": ({}, {"max_ahead": "1 hour"}, "max_ahead is judged event by event"),
    "side_rows": ({}, {"side_rows": True}, "bad rows are wanted as rows"),
    "watermark": ({"time": "other"}, {"watermark": "ts"}, "the watermark is on column 'ts'"),
}


@pytest.mark.parametrize("name", NOT_PUSHED)
def test_a_stream_that_cannot_be_pushed_down_is_refused(stream: Any, name: str) -> None:
    parts, options, message = NOT_PUSHED[name]
    with pytest.raises(wr.QueryError, match="cannot be pushed down: .*" + message):
        query(**parts).on_spark(stream.withWatermark("ts", "1 second"), path="pushdown", **options)


def test_a_stream_needs_the_rocksdb_state_store(spark: Any, stream: Any) -> None:
    name = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(name)
    spark.conf.set(name, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(wr.QueryError, match=r"needs the RocksDB state store: spark.conf.set\("):
            query().on_spark(stream.withWatermark("ts", "1 second"))
    finally:
        spark.conf.set(name, before)


def test_the_engine_of_an_explanation_must_be_known_and_fit(frame: Any) -> None:
    with pytest.raises(wr.QueryError, match="engine must be embedded or spark, not 'flink'"):
        query().explain(engine="flink")
    with pytest.raises(wr.QueryError, match="engine="):
        query().explain(engine="spark")
    with pytest.raises(wr.QueryError, match="engine="):
        query().explain(df=frame)


# -- rows ------------------------------------------------------------------------------------------


def refuses_three() -> wr.Aggregate:
    """Made here and not at the top: what is inside a function is sent to workers by value."""

    def lift(x):  # type: ignore[no-untyped-def]
        if x == 3:
            raise ValueError("three is too many")
        return x

    return wr.aggregate(lift=lift, combine=lambda a, b: a + b, identity=0, name="mine")


def stumbles_at_three() -> wr.Window:
    def step(seen, x):  # type: ignore[no-untyped-def]
        if x == 3:
            raise ValueError("three is too many")
        return seen + 1, 1, 1 if seen else 0

    return wr.deterministic(step, state=0)


def batch(spark: Any, folder: Path, asked: Query, table: pa.Table, **options: Any) -> None:
    df = spark.createDataFrame(table.to_pylist(), "ts timestamp, x long")
    asked.on_spark(df, **options).collect()


def streamed(spark: Any, folder: Path, asked: Query, table: pa.Table) -> None:
    run_stream(spark, folder, asked, [Step(table, 5), Step(table.slice(0, 0), 10**9)])


WAYS: list[Callable[..., None]] = [batch, streamed] if NIGHTLY else [batch]
GOOD = pa.table({"ts": pa.array([50, 40, 30, 20, 10], UTC), "x": [1, 2, 3, 4, 5]})
PARTITION = r"\(rows are counted in partition 0 of the source\)"


def test_a_lift_that_raises_is_named_with_row_and_value(spark: Any, tmp_path: Path) -> None:
    asked = query(aggregates={"a": refuses_three()})
    message = r"UserFunctionError: lift function 'lift' of 'mine' raised ValueError at row 2 \(3\): three is too many "
    with pytest.raises(PySparkException, match=message + PARTITION):
        batch(spark, tmp_path, asked, GOOD)


def test_a_lift_that_raises_in_a_stream_of_few_rows_is_named_with_its_value(
    spark: Any, tmp_path: Path
) -> None:
    asked = query(aggregates={"a": refuses_three()})
    message = (
        r"UserFunctionError: lift function 'lift' of 'mine' raised ValueError.* \(3\): three is too many"
    )
    with pytest.raises(PySparkException, match=message):
        streamed(spark, tmp_path, asked, GOOD)


def total() -> wr.Aggregate:
    return wr.aggregate(lift=lambda x: x, combine=lambda a, b: a + b, identity=0, name="total")


def test_integers_of_a_users_aggregate_are_integers_and_an_overflow_is_named(
    spark: Any, tmp_path: Path
) -> None:
    asked = query(aggregates={"a": total()})
    rows = GOOD.set_column(1, "x", pa.array([2**60, 0, 1, 0, 0]))
    found = asked.on_spark(spark.createDataFrame(rows.to_pylist(), "ts timestamp, x long"))
    assert found.schema["a"].dataType.typeName() == "long"
    assert sum(row["a"] for row in found.collect()) == 2**60 + 1
    message = r"combine function '<lambda>' of 'total' raised OverflowError.* does not fit in 64 bits"
    with pytest.raises(PySparkException, match=message):
        batch(spark, tmp_path, asked, GOOD.set_column(1, "x", pa.array([2**62] * 5)))


@pytest.mark.parametrize("way", WAYS)
def test_a_lift_that_raises_behind_the_shuffle_is_named_with_its_value(
    spark: Any, tmp_path: Path, way: Any
) -> None:
    asked = query(windows=BY_ORDER, aggregates={"a": refuses_three()})
    message = r"UserFunctionError: lift function 'lift' of 'mine' raised ValueError \(3\): three is too many"
    with pytest.raises(PySparkException, match=message):
        way(spark, tmp_path, asked, GOOD)


def test_a_window_function_that_raises_is_named_with_time_and_values(spark: Any, tmp_path: Path) -> None:
    asked = query(windows={"own": stumbles_at_three()})
    message = r"step 'step' of window 'own' raised ValueError at time .*0\.000030.* \(state=2, x=3\): three is too many"
    with pytest.raises(PySparkException, match=message):
        batch(spark, tmp_path, asked, GOOD)


NO_TIME = pa.table({"ts": pa.array([50, 40, None, 20], UTC), "x": [1, 2, 3, 4]})
NAMED = "DataError: column 'ts', row 2, value None: an event needs a time, and this one has none " + PARTITION


@pytest.mark.parametrize("windows", [BY_TIME, BY_ORDER], ids=["combined", "as they are"])
def test_a_row_without_a_time_is_named(spark: Any, tmp_path: Path, windows: dict[str, Any]) -> None:
    with pytest.raises(PySparkException, match=NAMED):
        batch(spark, tmp_path, query(windows=windows), NO_TIME, path="general")


def test_a_row_without_a_time_is_named_in_a_stream(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match=NAMED):
        streamed(spark, tmp_path, query(), NO_TIME)


def pushed_stream(spark: Any, folder: Path, asked: Query, table: pa.Table, **options: Any) -> None:
    drained(asked.on_spark(by_time(stream_of(spark, folder, [Step(table, 5)]), "ts"), **options), folder)


@pytest.mark.parametrize("way", [batch, pushed_stream])
def test_a_row_without_a_time_is_an_error_where_the_jvm_makes_slices(
    spark: Any, tmp_path: Path, way: Any
) -> None:
    with pytest.raises(PySparkException, match="column 'ts', value None: an event needs a time"):
        way(spark, tmp_path, query(), NO_TIME, path="pushdown")


# -- sinks and checkpoints -------------------------------------------------------------------------

STEPS = [
    Step(
        pa.table({"ts": pa.array([10, 20, 70_000_000], UTC), "key": ["a", "b", "a"], "x": [1, 2, 3]}), 1_000
    ),
    Step(pa.table({"ts": pa.array([80_000_000], UTC), "key": ["c"], "x": [4]}), 10**9),
]
KEYED = query(key="key", aggregates={"total": wr.sum("x")})


def finish(result: Any, folder: Path, *, sink: str = "noop", mode: str = "append") -> None:
    writer = result.writeStream.format(sink).outputMode(mode).queryName(f"bad_{mode}")
    running = (
        writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    )
    try:
        running.awaitTermination()
    finally:
        running.stop()


def events(spark: Any, folder: Path, steps: list[Step]) -> Any:
    for number, step in enumerate(steps):
        write_step(folder / "source", number, step)
    return source(spark, folder / "source")


def test_output_mode_complete_is_refused_at_the_start(spark: Any, tmp_path: Path) -> None:
    result = KEYED.on_spark(events(spark, tmp_path, STEPS), watermark=WATERMARK)
    with pytest.raises(AnalysisException, match="output mode: complete"):
        finish(result, tmp_path, mode="complete")


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_a_push_down_is_refused_in_a_mode_in_which_spark_gives_out_windows_that_are_not_final(
    spark: Any, tmp_path: Path, mode: str
) -> None:
    result = KEYED.on_spark(by_time(events(spark, tmp_path, STEPS), "ts"))
    with pytest.raises(
        AnalysisException, match=r'outputMode\("append"\) alone. For another mode say path="general"'
    ):
        finish(result, tmp_path, mode=mode)


def test_output_mode_update_gives_the_same_rows_on_the_general_path(spark: Any, tmp_path: Path) -> None:
    result = KEYED.on_spark(by_time(events(spark, tmp_path, STEPS), "ts"), path="general")
    finish(result, tmp_path, sink="memory", mode="update")
    rows = spark.table("bad_update").select("key", "total").collect()
    assert sorted(map(tuple, rows)) == [("a", 1), ("a", 3), ("b", 2), ("c", 4)]


@pytest.fixture(scope="module")
def begun(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoint of a stream after its first micro-batch."""
    folder = tmp_path_factory.mktemp("begun")
    finish(KEYED.on_spark(events(spark, folder, STEPS[:1]), watermark=WATERMARK, buckets=4), folder)
    return folder


CHANGED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "windows": (
        lambda df: query(
            key="key", windows={"w": wr.tumbling("2 minutes")}, aggregates=KEYED.aggregates
        ).on_spark(df, watermark=WATERMARK, buckets=4),
        "the state cannot go on with this query: window 'w' was tumbling 1 minute, is tumbling 2 minutes",
    ),
    "buckets": (
        lambda df: KEYED.on_spark(df, watermark=WATERMARK, buckets=8),
        "the checkpoint has 4 buckets, and this stream would have 8: say buckets=4",
    ),
    "type of a column": (
        lambda df: KEYED.on_spark(df.withColumn("x", df["x"].cast("int")), watermark=WATERMARK, buckets=4),
        "the state cannot go on: column 'x' was int64, is int32",
    ),
}
if not NIGHTLY:  # what else can change is told by the state alone, see `test_change`
    CHANGED = {"windows": CHANGED["windows"]}


@pytest.mark.parametrize("what", CHANGED)
def test_a_query_that_cannot_go_on_from_a_checkpoint_is_refused_with_the_difference(
    spark: Any, begun: Path, tmp_path: Path, what: str
) -> None:
    folder, (changed, said) = tmp_path / "again", CHANGED[what]
    shutil.copytree(begun, folder)
    with pytest.raises(StreamingQueryException) as problem:
        finish(changed(events(spark, folder, STEPS)), folder)
    assert f"StateError: {said}" in str(problem.value)


@pytest.mark.parametrize("change", ["window", "lateness"])
def test_sparks_own_state_of_another_query_is_refused(spark: Any, tmp_path: Path, change: str) -> None:
    first = by_time(events(spark, tmp_path, STEPS[:1]), "ts")
    finish(KEYED.on_spark(first, path="pushdown"), tmp_path)
    again = by_time(events(spark, tmp_path, STEPS), "ts")
    other = query(key="key", windows={"w": wr.tumbling("2 minutes")}, aggregates=KEYED.aggregates)
    result = {
        "window": lambda: other.on_spark(again, path="pushdown"),
        "lateness": lambda: KEYED.on_spark(again, path="pushdown", lateness="1 second"),
    }[change]()
    with pytest.raises(PySparkException, match="the checkpoint belongs to another query"):
        finish(result, tmp_path)


def test_a_stream_that_began_on_the_general_path_is_refused_when_it_is_pushed_down(
    spark: Any, begun: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "again"
    shutil.copytree(begun, folder)
    df = by_time(events(spark, folder, STEPS), "ts")
    with pytest.raises(StreamingQueryException) as problem:
        finish(KEYED.on_spark(df), folder)
    assert "start it with path='general'" in str(plainly(problem.value, checkpoint="state"))


def test_a_new_column_that_the_query_does_not_read_is_no_change(
    spark: Any, begun: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "again"
    shutil.copytree(begun, folder)
    df = events(spark, folder, STEPS).selectExpr("*", "x + 1 as y")
    finish(KEYED.on_spark(df, watermark=WATERMARK, buckets=4), folder)
    assert (folder / "checkpoint" / "commits" / "2").exists()

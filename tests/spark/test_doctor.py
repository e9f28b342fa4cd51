"""`windrow doctor`: what it says of checkpoints that streams have written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import test_golden_checkpoints as golden
from restarting import steps
from streams import write_step

import windrow as wr
from windrow.cli.doctor import DAMAGED, WAITS
from windrow.errors import QueryError
from windrow.spark import state
from windrow.spark.checkpoint import Checkpoint, SavedBucket, Stateful
from windrow.spark.doctor import Diagnosis, _state, examine

STEPS = steps(4)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    golden.placed("state-format-2", tmp_path)
    return tmp_path / "checkpoint"


def test_of_a_sound_one_it_says_how_far_it_is_and_which_windows_are_open(
    spark: Any, checkpoint: Path
) -> None:
    found = examine(spark, checkpoint)
    assert found.waits == found.damaged == []
    said = str(found)
    assert "the last one that finished is 2 (planned at " in said
    assert "the watermark is 1970-01-01 00:00:15 UTC" in said
    assert "state 0: format 2, 2 buckets in 1 partitions" in said
    assert "5 keys" in said
    # What would be given out behind the second step, if the stream ended there.
    operator = golden.QUERY.operator(lateness="5 seconds")
    for step in golden.STEPS[: golden.BEGUN]:
        operator.process(step.events)
    held = operator.finish()["window"].to_pylist()
    for name in golden.QUERY.windows:
        assert f"window {name!r}: " in said
        assert (
            0
            < int(said.split(f"window {name!r}: ")[1].split(" open")[0].replace(",", ""))
            <= held.count(name)
        )
    assert "it comes when the watermark has moved on by 0:00:0" in said


def test_of_one_that_was_killed_it_says_which_micro_batch_is_run_again(spark: Any, checkpoint: Path) -> None:
    (checkpoint / "commits" / "2").unlink()
    found = examine(spark, checkpoint)
    assert found.damaged == []
    assert found.waits[0].startswith("micro-batch 2 (planned at ")
    assert "has not finished" in found.waits[0]
    for path in (checkpoint / "commits").iterdir():
        path.unlink()
    assert examine(spark, checkpoint).waits == [
        "no micro-batch has finished; the first one is planned, and is run when the stream starts"
    ]


def test_of_a_silent_source_it_says_since_when(spark: Any, tmp_path: Path) -> None:
    schema = "ts timestamp, key string, x long"
    for number, step in enumerate(STEPS[:4]):
        write_step(tmp_path / "loud", number, step)
    write_step(tmp_path / "silent", 0, STEPS[0])
    streams = [
        spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(tmp_path / name))
        .filter("ts is not null")
        .withWatermark("ts", "0 seconds")
        for name in ("loud", "silent")
    ]
    query = wr.query(
        time="ts", key="key", windows={"w": wr.tumbling("3 seconds")}, aggregates={"n": wr.count()}
    )
    result = query.on_spark(streams[0].unionByName(streams[1]), buckets=2)
    writer = result.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "state"))
    writer.trigger(availableNow=True).start().awaitTermination()
    found = examine(spark, tmp_path / "state")
    assert found.damaged == []
    first, *others = found.waits
    assert first.startswith("the watermark has stood still since micro-batch 1 (planned at ")
    assert [wait[: len("source 1")] for wait in others] == ["source 1"], found.waits
    assert others[0].startswith("source 1 has brought nothing since micro-batch 0 (planned at ")


def test_of_state_of_another_version_it_says_which(
    spark: Any, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "FORMAT", 3)
    assert examine(spark, checkpoint).damaged == [
        "state 0: the checkpoint's state has format 2; this windrow reads format 3"
    ]


def test_of_a_damaged_one_it_names_the_file(spark: Any, checkpoint: Path) -> None:
    (file,) = (checkpoint / "state" / "0" / "0").glob("3.zip")
    file.write_bytes(file.read_bytes()[:100])
    (problem,) = examine(spark, checkpoint).damaged
    assert problem.startswith("state 0 cannot be read: ")
    offsets = checkpoint / "offsets" / "1"
    offsets.write_text("v1\n{")
    (problem,) = examine(spark, checkpoint).damaged
    assert problem.startswith(f"{offsets} is damaged: ")


def test_a_folder_that_is_no_checkpoint_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="is not the checkpoint of a stream"):
        examine(spark, tmp_path)
    with pytest.raises(QueryError, match="there is no folder"):
        examine(spark, tmp_path / "none")


def test_what_is_damaged_comes_last() -> None:
    assert str(Diagnosis(["a"], ["b"], ["c"])) == "a\nwaits: b\ndamaged: c"
    assert len({0, DAMAGED, WAITS, 2}) == 4


def told(query: wr.Query, *, by: wr.Query | None = None, **options: Any) -> Diagnosis:
    """What is said of a state of one bucket, in which two events are."""
    operator = query.operator(**options)
    operator.process(pa.table({"ts": [1, 2], "te": [3, 4], "x": [2**62, 1]}))
    snapshot = operator.snapshot()
    packed = len(snapshot).to_bytes(8, "little") + pa.compress(snapshot, codec="lz4", asbytes=True)
    bucket, found = SavedBucket(0), Diagnosis()
    bucket.head.value = (state.FORMAT, "plan 1", "stream", 1, "t", 1, "t", len(packed), 1, 0, 0)
    bucket.base.values[(0,)] = (packed,)
    known = Checkpoint(Path(), {}, {}, ())
    _state(known, Stateful(0, "ours", 1, True), [bucket], 5, by, found)
    return found


COUNT = {"n": wr.count()}
PLAIN = wr.query(time="ts", windows={"w": wr.tumbling(10)}, aggregates=COUNT)
SESSIONS = wr.query(time="ts", windows={"a": wr.session(2), "b": wr.session(5)}, aggregates=COUNT)
SPANS = wr.query(time=wr.span("ts", "te"), windows={"w": wr.tumbling(10)}, aggregates=COUNT)
OWN = wr.query(time="ts", windows={"w": wr.threshold(lambda x: x > 0)}, aggregates=COUNT)
SQUARES = wr.query(
    time="ts",
    windows={"w": wr.tumbling(10)},
    aggregates={"s": wr.sum("x")},
    select={"square": wr.expr("s * s")},
)


@pytest.mark.parametrize(
    ("query", "by", "options"),
    [
        (PLAIN, None, {"mode": "update", "emit": wr.each_batch()}),
        (PLAIN, None, {"mode": "update", "emit": wr.when("n > 1")}),
        (SQUARES, None, {}),
        (SQUARES, SQUARES, {}),
        (SPANS, SPANS, {}),
        (OWN, OWN, {}),
    ],
)
def test_whatever_a_stream_gives_out_and_when_its_open_windows_are_counted(
    query: wr.Query, by: wr.Query | None, options: dict[str, Any]
) -> None:
    found = told(query, by=by, **options)
    assert found.damaged == found.untold == found.waits == []
    assert "window 'w': 1 open" in str(found)


@pytest.mark.parametrize(
    ("query", "by", "options", "said"),
    [
        (OWN, None, {}, "the state needs functions that are not in it"),
        (SPANS, None, {}, "the time was [ts, te), is [ts, te) with other options"),
        (PLAIN, SPANS, {}, "the time was ts, is [ts, te)"),
        (SPANS, SPANS, {"mode": "update"}, "which windows are open: the mode was update"),
        (SESSIONS, None, {"mode": "update"}, "which windows are open: the mode was update"),
        (PLAIN, None, {"emit": wr.each_batch(discarding=True)}, "which windows are open: its rows add up"),
        (PLAIN, None, {"mode": "update", "emit": wr.when(lambda n: n > 1)}, "rows came early when"),
    ],
)
def test_what_the_state_does_not_tell_is_no_damage(
    query: wr.Query, by: wr.Query | None, options: dict[str, Any], said: str
) -> None:
    found = told(query, by=by, **options)
    assert found.damaged == []
    (untold,) = found.untold
    assert said in untold
    assert f"cannot be told: {untold}" in str(found)

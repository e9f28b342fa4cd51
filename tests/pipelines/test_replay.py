"""Recorded files as streams: which rows come when, and the same ones again after a restart."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from windrow.errors import DataError, QueryError, StateError, WindrowError
from windrow.pipelines import replay
from windrow.pipelines.replay import Recording, Replay, register

ROWS = 200


def recorded(path: Path, *, seed: int = 0) -> pa.Table:
    """A file with its times out of order, in several row groups of unequal size."""
    luck = random.Random(seed)
    times = luck.sample(range(10**9), ROWS)
    table = pa.table({"ts": pa.array(times, pa.timestamp("us")), "number": range(ROWS)})
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
        return table
    with pq.ParquetWriter(path, table.schema) as writer:
        for low, high in ((0, 70), (70, 71), (71, 180), (180, ROWS)):
            writer.write_table(table.slice(low, high - low))
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


@pytest.fixture(scope="module", params=["parquet", "csv"])
def file(request: pytest.FixtureRequest, folder: Path) -> Path:
    path = folder / f"events.{request.param}"
    recorded(path)
    return path


def options(path: Path, **given: Any) -> dict[str, str]:
    return {"path": str(path), **{name: str(value) for name, value in given.items()}}


def reader_of(path: Path, **given: Any) -> Any:
    source = Replay(options(path, **given))
    return source.streamReader(source.schema())


def rows_between(reader: Any, start: dict[str, int], end: dict[str, int]) -> list[int]:
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return [number for batch in batches for number in batch.column("number").to_pylist()]


def everything(reader: Any) -> list[int]:
    start = reader.initialOffset()
    return rows_between(reader, start, reader.latestOffset(start, ReadAllAvailable()))


def test_without_disorder_rows_come_as_the_file_has_them(file: Path) -> None:
    assert everything(reader_of(file)) == list(range(ROWS))


@given(
    share=st.floats(0.01, 1),
    delay=st.integers(0, 2_000),
    seed=st.integers(0, 99),
    cuts=st.sets(st.integers(0, ROWS)),
)
def test_rows_come_by_time_but_for_a_share_that_comes_up_to_the_delay_later(
    folder: Path, share: float, delay: int, seed: int, cuts: set[int]
) -> None:
    path = folder / "drawn.parquet"
    times = recorded(path)["ts"].cast(pa.int64()).to_pylist()
    given = {"time": "ts", "disorder": share, "delay": f"{delay} seconds", "seed": seed, "partitions": 3}
    reader = reader_of(path, **given)
    offsets = [{"row": row, "of": ROWS} for row in sorted({0, ROWS, *cuts})]
    # However the stream is cut, and by whoever it is asked, the rows are the same.
    came = [row for i in range(1, len(offsets)) for row in rows_between(reader, offsets[i - 1], offsets[i])]
    assert came == everything(reader_of(path, **given))
    assert sorted(came) == list(range(ROWS))
    newest = -1
    behind = 0
    for row in came:
        behind += times[row] < newest
        assert newest - times[row] <= delay * 1_000_000
        newest = max(newest, times[row])
    # A row that is overtaken was among those that come later.
    assert behind <= (np.random.Generator(np.random.PCG64(seed)).random(ROWS) < share).sum()


def test_a_rate_lets_so_many_rows_come_per_second_also_after_a_restart(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(replay.time, "monotonic", lambda: clock[0])
    begin, every = {"row": 0, "of": ROWS}, ReadAllAvailable()
    reader = reader_of(file, rate=10)
    assert reader.latestOffset(begin, every) == begin
    clock[0] += 2.55
    assert reader.latestOffset(begin, every)["row"] == 25
    assert reader.latestOffset(begin, ReadMaxRows(7))["row"] == 7
    assert reader.reportLatestOffset()["row"] == 25
    again, clock[0] = reader_of(file, rate=10), 5000.0
    assert again.latestOffset({"row": 7, "of": ROWS}, every)["row"] == 7
    clock[0] += 1
    assert again.latestOffset({"row": 7, "of": ROWS}, every)["row"] == 17
    clock[0] += 1e6
    assert again.latestOffset({"row": 7, "of": ROWS}, every)["row"] == ROWS


def test_a_stream_that_is_to_end_with_the_file_waits_for_rows_that_are_not_due(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(replay.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(replay.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    reader = reader_of(file, rate=10)
    reader.prepareForTriggerAvailableNow()
    row, asked = 0, 0
    while row < ROWS:
        row, asked = reader.latestOffset({"row": row, "of": ROWS}, ReadAllAvailable())["row"], asked + 1
    assert asked == ROWS
    assert clock[0] == pytest.approx(ROWS / 10, abs=0.1)


def test_a_file_that_has_changed_is_not_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    recorded(path)
    with pytest.raises(StateError, match="had 150 rows when the stream began and has 200 now"):
        reader_of(path).latestOffset({"row": 100, "of": 150}, ReadAllAvailable())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"speed": 3},
            "windrow_replay has no option 'speed'; did you mean 'seed'? Choose from path, disorder, delay",
        ),
        ({"rate": "fast"}, "option 'rate' of windrow_replay must be a number, not 'fast'"),
        ({"rate": 0}, "rate is a number of rows per second above zero"),
        ({"disorder": 0.1}, "disorder needs the time column"),
        ({"disorder": 2, "time": "ts"}, "disorder is a share of the rows, from 0 to 1"),
        ({"disorder": 0.5, "time": "at"}, "there is no column 'at'; the columns are 'ts', 'number'"),
        ({"disorder": 0.5, "time": "ts", "delay": "-1 second"}, "delay must not be negative"),
        ({"partitions": 0}, "partitions must be at least 1"),
        ({"max_rows": 0}, "max_rows must be at least 1"),
    ],
)
def test_options_that_mean_nothing_are_refused(file: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(QueryError) as caught:
        everything(reader_of(file, **given))
    assert said in str(caught.value)


def test_a_file_that_is_not_there_or_has_rows_without_a_time_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="there is no file"):
        Recording.of(options(tmp_path / "nothing.parquet"))
    with pytest.raises(QueryError, match="needs a file"):
        Recording.of({})
    pq.write_table(pa.table({"ts": pa.array([1, None], pa.timestamp("s"))}), tmp_path / "holes.parquet")
    with pytest.raises(DataError, match="column 'ts', row 1"):
        everything(reader_of(tmp_path / "holes.parquet", time="ts", disorder=0.5))
    assert issubclass(DataError, WindrowError)


def test_a_stream_on_spark_that_is_restarted_gets_each_row_once_in_the_same_order(
    spark: Any, tmp_path: Path
) -> None:
    path = tmp_path / "events.parquet"
    recorded(path)
    given = {"time": "ts", "disorder": 0.4, "delay": "3 minutes", "seed": 5}
    register(spark)
    batches: dict[int, list[int]] = {}
    broken: list[int] = []

    def keep(batch: Any, number: int) -> None:
        batches[number] = [row.number for row in batch.collect()]
        if number == 1 and not broken:
            broken.append(number)
            raise RuntimeError("it breaks here once")

    def started() -> Any:
        stream = spark.readStream.format("windrow_replay").options(**given, max_rows=60).load(str(path))
        writer = stream.writeStream.foreachBatch(keep).option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        return writer.trigger(availableNow=True).start()

    with pytest.raises(Exception, match="it breaks here once"):
        started().awaitTermination()
    first = batches[1]
    started().awaitTermination()
    assert batches[1] == first
    came = [row for _, rows in sorted(batches.items()) for row in rows]
    assert [len(rows) for rows in batches.values()] == [60, 60, 60, 20]
    assert came == everything(reader_of(path, **given))

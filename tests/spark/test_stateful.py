"""A bucket called micro-batch by micro-batch: what it counts as late, when it wants to be woken, what it writes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from stores import Store, Timers

import windrow as wr
from windrow.options import OperatorOptions
from windrow.spark import state
from windrow.spark.payload import pack
from windrow.spark.scatter import scatter
from windrow.spark.state import Worker
from windrow.spark.stateful import Stateful
from windrow.spark.task import BUCKET, Task

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.string())])
QUERY = wr.query(time="ts", key="k", windows={"w": wr.tumbling(10)}, aggregates={"n": wr.count()})
TASK = Task(
    QUERY,
    OperatorOptions(max_slices=1_000),
    SCHEMA,
    QUERY.run(SCHEMA.empty_table()).schema,
    combine=False,
    side_rows=False,
    buckets=4,
)


class Called:
    """Bucket 3, with its timers and its state."""

    def __init__(self) -> None:
        self.timers, self.store = Timers(), Store()
        self._stage = Stateful(TASK, self.timers, self.store.head, self.store.base, self.store.log)

    def rows(self, watermark: int, *times: int) -> list[Any]:
        """A call with rows of these times, or with word that there are none."""
        table = pa.record_batch([list(times), ["a"] * len(times)], schema=SCHEMA)
        return self._stage.step(3, watermark, [pack(table)] if times else [], by_timer=False)

    def timer(self, watermark: int) -> list[Any]:
        """A call by a timer that has fired."""
        (moment,) = self.timers.set
        assert moment <= watermark
        given = self._stage.step(3, watermark, [], by_timer=True)
        self.timers.set.remove(moment)
        return given


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "WORKER", Worker())


@pytest.fixture
def bucket() -> Called:
    return Called()


def counts(given: list[Any]) -> tuple[int, ...]:
    return given[0][:3] if given else (0, 0, 0)


def test_rows_are_judged_by_the_watermark_before_them(bucket: Called) -> None:
    assert counts(bucket.rows(0, 5)) == (1, 0, 0)
    assert counts(bucket.rows(20, 7, 15)) == (2, 0, 0)
    assert counts(bucket.rows(30, 7, 15, 25)) == (1, 2, 0)


@pytest.mark.parametrize("called", ["rows", "timer"])
def test_the_first_rows_of_a_bucket_are_judged_as_those_of_others(bucket: Called, called: str) -> None:
    bucket.rows(0)
    getattr(bucket, called)(20)
    assert counts(bucket.rows(30, 7, 25)) == (1, 1, 0)


def test_a_bucket_wants_to_be_woken_with_the_next_move_of_the_watermark(bucket: Called) -> None:
    for call, watermark in (
        (bucket.rows, 0),
        (bucket.rows, 20),
        (bucket.timer, 30),
        (bucket.timer, 31),
        (bucket.rows, 31),
    ):
        call(watermark)
        assert bucket.timers.set == {watermark + 1}


def test_nothing_is_written_if_nothing_has_changed(bucket: Called) -> None:
    bucket.rows(20, 25)
    before = bucket.store.saved()
    assert bucket.rows(20) == []
    assert vars(bucket.store.head) == vars(before.head)
    assert vars(bucket.store.log) == vars(before.log)


@pytest.mark.parametrize(("buckets", "sent"), [([], []), ([2, 0, 2], [0, 2])], ids=["empty", "with rows"])
def test_a_partition_sends_each_bucket_something(buckets: list[int], sent: list[int]) -> None:
    columns = [pa.array([1] * len(buckets)), pa.array(["a"] * len(buckets)), pa.array(buckets, pa.int32())]
    rows = pa.record_batch(columns, names=[*SCHEMA.names, BUCKET])
    (given,) = (
        pa.Table.from_batches(scatter(TASK, everywhere=True)(iter([rows]))).combine_chunks().to_batches()
    )
    filled = [b for b, p in zip(given["bucket"].to_pylist(), given["payload"], strict=True) if p.is_valid]
    assert filled == sent
    assert sorted(given["bucket"].to_pylist()) == [0, 1, 2, 3]
    assert given["number"].to_pylist() == [0, 1, 2, 3]

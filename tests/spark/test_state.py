"""The state of a bucket: copies that workers keep, the log, the base, and what damage to them gives."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from stores import Store

import windrow as wr
from tests.referee import assert_same
from windrow.engine.exchange import slices_of
from windrow.options import OperatorOptions
from windrow.query import Query
from windrow.spark import state
from windrow.spark.micro_batch import MicroBatch
from windrow.spark.payload import pack
from windrow.spark.state import Worker
from windrow.spark.task import Task

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("key", pa.string()), ("x", pa.int64())])
AGGREGATES = {"n": wr.count(), "total": wr.sum("x"), "high": wr.max("x")}
WINDOWS: dict[str, dict[str, Any]] = {
    "aligned": {"short": wr.tumbling("3 seconds"), "long": wr.sliding("20 seconds", every="4 seconds")},
    "sessions": {"s": wr.session("900 milliseconds"), "w": wr.tumbling("5 seconds")},
    "order-based": {"c": wr.tumbling(rows=7), "d": wr.slide_by_rows("6 seconds", every_rows=5)},
}


def task_of(
    windows: dict[str, Any], *, mode: str = "append", buckets: int = 16, on_bad: str = "raise"
) -> Task:
    query = wr.query(time="ts", key="key", windows=windows, aggregates=AGGREGATES)
    settings = OperatorOptions(mode=mode, lateness="1 second", on_bad=on_bad, max_slices=1_000_000)
    return Task(query, settings, SCHEMA, SCHEMA, combine=False, side_rows=False, buckets=buckets)


def micro_batches(query: Query, count: int, *, as_slices: bool = False) -> list[MicroBatch]:
    """Seeded ones of 2 seconds each, with disorder and late events; the watermark comes one behind."""
    luck = random.Random(11)
    made = []
    for number in range(count):
        times = [
            max(1, number * 2_000_000 + luck.randrange(-6_500_000, 2_000_000))
            for _ in range(luck.randrange(25))
        ]
        columns = [times, [luck.choice("abc") for _ in times], [luck.randrange(100) for _ in times]]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
        rows = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        if as_slices:
            rows = slices_of(query, rows)
        made.append(MicroBatch(max(0, number * 2_000 - 2_000), [pack(rows)] if times else []))
    return made


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """A worker that has seen nothing yet."""
    fresh = Worker()
    monkeypatch.setattr(state, "WORKER", fresh)
    return fresh


@pytest.fixture
def task() -> Task:
    return task_of(WINDOWS["aligned"])


@pytest.fixture
def batches(task: Task) -> list[MicroBatch]:
    return micro_batches(task.query, 6)


def unbroken(task: Task, batches: list[MicroBatch]) -> Iterator[list[pa.Table]]:
    """What one operator gives out that lives through all micro-batches."""
    operator = task.operator()
    for batch in batches:
        yield task.apply(operator, batch)


def assert_given(expected: list[pa.Table], given: list[pa.Table]) -> None:
    assert len(expected) == len(given)
    for want, got in zip(expected, given, strict=True):
        assert_same(want, got)


# -- copies ----------------------------------------------------------------------------------------


def test_a_copy_that_is_up_to_date_is_used(task: Task, batches: list[MicroBatch]) -> None:
    store = Store()
    operators = [store.step(task, batch)[0] for batch in batches]
    assert all(operator is operators[0] for operator in operators)
    assert store.base.reads == store.log.reads == 0


def test_a_copy_that_is_behind_goes_forward_by_the_log(
    monkeypatch: pytest.MonkeyPatch, worker: Worker, task: Task, batches: list[MicroBatch]
) -> None:
    store, expected = Store(), list(unbroken(task, batches))
    first = store.step(task, batches[0])[0]
    monkeypatch.setattr(state, "WORKER", Worker())
    for batch in batches[1:4]:
        store.step(task, batch)
    monkeypatch.setattr(state, "WORKER", worker)
    operator, given = store.step(task, batches[4])
    assert operator is first
    assert_given(expected[4], given)
    assert operator.late().num_rows == operator.bad().num_rows == 0


def test_a_copy_whose_attempt_failed_is_not_used(task: Task, batches: list[MicroBatch]) -> None:
    store, expected = Store(), list(unbroken(task, batches))
    for batch in batches[:3]:
        store.step(task, batch)
    before = store.saved()
    failed = store.step(task, batches[3])[0]
    operator, given = before.step(task, batches[3])
    assert operator is not failed
    assert_given(expected[3], given)


@pytest.mark.parametrize("light", [state.LIGHT, 0], ids=["log", "base"])
@pytest.mark.parametrize("further", [0, 1, 2])
def test_a_copy_of_a_failed_attempt_is_not_taken_for_the_version_that_another_worker_made(
    monkeypatch: pytest.MonkeyPatch, task: Task, batches: list[MicroBatch], further: int, light: int
) -> None:
    monkeypatch.setattr(state, "LIGHT", light)
    failed, other = Worker(), Worker()
    store, expected = Store(), list(unbroken(task, batches))
    for batch in batches[:2]:
        store.step(task, batch)
    monkeypatch.setattr(state, "WORKER", failed)
    store.saved().step(task, batches[5])
    monkeypatch.setattr(state, "WORKER", other)
    for batch in batches[2 : 3 + further]:
        store.step(task, batch)
    monkeypatch.setattr(state, "WORKER", failed)
    assert_given(expected[3 + further], store.step(task, batches[3 + further])[1])


def test_a_call_that_fails_leaves_no_copy_behind(
    task: Task, batches: list[MicroBatch], worker: Worker
) -> None:
    store, expected = Store(), list(unbroken(task, batches))
    store.step(task, batches[0])
    bucket = store.bucket(task)
    task.apply(bucket.operator, batches[5])  # and then something happens before it is written
    assert worker.take(store.bucket(task).head.stream, 3) is None  # type: ignore[union-attr]
    assert_given(expected[1], store.step(task, batches[1])[1])


def test_a_worker_keeps_the_copies_that_it_used_last(
    monkeypatch: pytest.MonkeyPatch, task: Task, batches: list[MicroBatch], worker: Worker
) -> None:
    store = Store()
    operator = store.step(task, batches[0])[0]
    monkeypatch.setattr(state, "KEPT", 2 * operator.metrics().bytes)
    for bucket in range(3):
        worker.keep("stream", bucket, state.Copy(1, "token", operator))
    assert [worker.take("stream", bucket) is not None for bucket in range(3)] == [False, True, True]


# -- log and base ----------------------------------------------------------------------------------


def test_a_log_that_outgrows_the_base_is_replaced_by_a_new_base(
    monkeypatch: pytest.MonkeyPatch, task: Task
) -> None:
    monkeypatch.setattr(state, "LIGHT", 4_000)
    monkeypatch.setattr(state, "CHUNK", 500)
    store, bases, longest = Store(), set(), 0
    for batch in micro_batches(task.query, 40):
        store.step(task, batch)
        head = store.bucket(task).head
        assert head is not None
        bases.add(head.base_version)
        longest = max(longest, head.version - head.base_version)
        assert set(store.log.values) == {(v,) for v in range(head.base_version + 1, head.version + 1)}
        assert set(store.base.values) == {(i,) for i in range(head.chunks)}
        assert sum(len(data) for _, data in store.log.values.values()) == head.log_bytes
        assert sum(len(chunk[0]) for chunk in store.base.values.values()) == head.base_bytes
        assert head.log_bytes <= max(state.LIGHT, head.base_bytes)
    assert len(bases) > 3
    assert longest > 1


@pytest.mark.parametrize("light", [state.LIGHT, 3_000, 0])
@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("kind", [*WINDOWS, "aligned, as slices"])
def test_restored_state_goes_on_as_if_nothing_had_happened(
    monkeypatch: pytest.MonkeyPatch, kind: str, mode: str, light: int
) -> None:
    monkeypatch.setattr(state, "LIGHT", light)
    monkeypatch.setattr(state, "CHUNK", 1_000)
    task = task_of(WINDOWS[kind.split(",")[0]], mode=mode)
    batches = micro_batches(task.query, 14, as_slices="slices" in kind)
    store = Store()
    for expected, batch in zip(unbroken(task, batches), batches, strict=True):
        monkeypatch.setattr(state, "WORKER", Worker())  # each micro-batch meets a worker that has nothing
        assert_given(expected, store.step(task, batch)[1])


@pytest.mark.parametrize("light", [state.LIGHT, 0], ids=["log", "base"])
@pytest.mark.parametrize("is_same_worker", [True, False])
def test_what_becomes_of_bad_rows_can_change_on_the_same_state(
    monkeypatch: pytest.MonkeyPatch, batches: list[MicroBatch], is_same_worker: bool, light: int
) -> None:
    """Those that were diverted stay so, also where the log has them; each further one is treated as asked."""
    monkeypatch.setattr(state, "LIGHT", light)
    raising, diverting = (task_of(WINDOWS["aligned"], on_bad=choice) for choice in ("raise", "divert"))
    row = pa.RecordBatch.from_pylist([{"ts": None, "key": "a", "x": 1}], SCHEMA)
    bad = MicroBatch(batches[1].watermark, [*batches[1].payloads, pack(row)])
    expected = list(unbroken(raising, batches))
    store, given = Store(), []
    for task, batch in [
        (raising, batches[0]),
        (diverting, bad),
        (raising, batches[2]),
        (diverting, batches[3]),
    ]:
        if not is_same_worker:
            monkeypatch.setattr(state, "WORKER", Worker())
        operator, found = store.step(task, batch)
        given.append(found)
        assert operator.settings.on_bad == task.settings.on_bad
    for want, got in zip(expected, given, strict=False):
        assert_given(want, got)
    assert operator.counters.bad == 1
    with pytest.raises(wr.DataError, match="column 'ts'"):
        store.step(raising, bad)


# -- damage ----------------------------------------------------------------------------------------


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, task: Task) -> Store:
    """A base of several chunks, and a log behind it; no worker has a copy."""
    monkeypatch.setattr(state, "LIGHT", 3_500)
    monkeypatch.setattr(state, "CHUNK", 500)
    store = Store()
    for batch in micro_batches(task.query, 7):
        store.step(task, batch)
    head = store.bucket(task).head
    assert head is not None
    assert head.chunks > 1
    assert head.version > head.base_version + 1
    monkeypatch.setattr(state, "WORKER", Worker())
    return store


def test_a_missing_chunk_is_an_error(written: Store, task: Task) -> None:
    written.base.removeKey((1,))
    with pytest.raises(wr.StateError, match="snapshot of bucket 3 lacks a part"):
        _ = written.bucket(task).operator


def test_a_missing_entry_of_the_log_is_an_error(written: Store, task: Task) -> None:
    written.log.removeKey((7,))
    with pytest.raises(wr.StateError, match="log lacks version 7 of bucket 3"):
        _ = written.bucket(task).operator


def test_a_damaged_chunk_is_an_error(written: Store, task: Task) -> None:
    (chunk,) = written.base.getValue((1,))
    written.base.updateValue((1,), (bytes(len(chunk)),))
    with pytest.raises(wr.StateError, match="snapshot of bucket 3 is damaged"):
        _ = written.bucket(task).operator


def test_a_damaged_entry_of_the_log_is_an_error(written: Store, task: Task) -> None:
    token, data = written.log.getValue((7,))
    written.log.updateValue((7,), (token, data[:100]))
    with pytest.raises(wr.StateError, match="log of bucket 3 is damaged in version 7"):
        _ = written.bucket(task).operator


def test_another_format_is_an_error(written: Store, task: Task) -> None:
    written.head.update((1, *written.head.get()[1:]))
    with pytest.raises(wr.StateError, match="has format 1; this windrow reads format 2"):
        written.bucket(task)

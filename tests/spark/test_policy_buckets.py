"""Operators over policy windows in a bucket, with workers that come and go: what they give is the embedded answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from policy_cases import AGGREGATES, CASES, SCHEMA, answered, is_punctuated, join, rows
from stores import Store, Timers

import windrow as wr
from windrow import policies as wp
from windrow.errors import DataError, StateError
from windrow.measure import Measure
from windrow.spark import state
from windrow.spark.payload import pack, unpack
from windrow.spark.policies.bucket_runner import BucketRunner
from windrow.spark.policies.fitting import fitted
from windrow.spark.policies.rows import COPY, PUNCTUATION, TAG, TIME
from windrow.spark.policies.task import PolicyTask
from windrow.spark.state import Worker
from windrow.spark.stateful import Stateful

TIMES = Measure("ts", SCHEMA.field("ts").type)


class Called:
    """A bucket as Spark calls it; what it gave out, and what it counted."""

    def __init__(self, task: PolicyTask) -> None:
        self.task = task
        self.timers, self.store = Timers(), Store()
        self.given: list[pa.Table] = []
        self.counts = np.zeros(3, np.int64)

    def micro_batch(self, instant: int, *batches: pa.RecordBatch) -> None:
        """Rows if there are some, and then timers: in the order of Spark's calls."""
        if batches:
            self._take(instant, [pack(batch) for batch in batches], by_timer=False)
        for moment in sorted(self.timers.set):
            if moment <= instant:
                self._take(instant, [], by_timer=True)
                self.timers.set.remove(moment)

    def _take(self, instant: int, payloads: list[bytes], *, by_timer: bool) -> None:
        stage = Stateful(self.task, self.timers, self.store.head, self.store.base, self.store.log)
        for *counts, payload, _ in stage.step(3, instant, payloads, by_timer=by_timer):
            self.counts += counts
            if payload is not None:
                self.given.append(pa.Table.from_batches([unpack(payload)]))

    @property
    def output(self) -> pa.Table:
        return pa.concat_tables([self.task.result.empty_table(), *self.given])


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(state, "WORKER", Worker())
    # Bases are written often, so that snapshots are restored.
    monkeypatch.setattr(state, "LONG", 2)
    return


def task_of(operator: wp.Operator, **options: Any) -> PolicyTask:
    inputs = [SCHEMA] * len(operator.windows)
    return fitted(operator, inputs, TIMES, **options)


def travelling(task: PolicyTask, table: pa.Table) -> pa.RecordBatch:
    """Rows as `scatter` sends them: tagged, those of each side in columns of their own."""
    side = table["lane"].to_numpy() if len(task.ports) > 1 else np.zeros(len(table), np.int64)
    tags = side.copy()
    if "punct()" in task.described:
        tags[table["end"].to_numpy()] = PUNCTUATION
    columns: list[Any] = [table["ts"]] if task.measure is not None else []
    columns.append(pa.array(tags.astype(np.int8)))
    for place in range(len(task.ports)):
        away = pa.array(side != place)
        columns += [
            pa.compute.if_else(away, pa.scalar(None, c.type), c.combine_chunks()) for c in table.columns
        ]
    arrays = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=task.schema)


@pytest.mark.parametrize("name", CASES)
def test_a_bucket_gives_what_the_embedded_operator_does_in_order_of_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    luck = random.Random(name)
    called = Called(task_of(CASES[name]()))
    taken: list[pa.Table] = []
    before = now = late = 0
    for number in range(12):
        # Rows of the last micro-batch are as old as those of the first.
        count = luck.choice([0, 5, 60]) if 0 < number < 11 else 60
        begin = 700 * (number % 11)
        table = rows(count, seed=luck.randrange(10**6), begin=begin, span=3_000)
        if luck.random() < 0.3:
            monkeypatch.setattr(state, "WORKER", Worker())
        too_late = table["ts"].cast(pa.int64()).to_numpy() < before * 1_000
        late += int(too_late.sum())
        taken.append(table.filter(pa.array(~too_late)))
        called.micro_batch(now, *([travelling(called.task, table)] if len(table) else []))
        before = now
        now += luck.choice([0, 1_500, 3_000])
    called.micro_batch(now)
    everything = pa.concat_tables(taken)
    entered = everything.filter(pa.array(everything["ts"].cast(pa.int64()).to_numpy() < now * 1_000))
    want = answered(CASES[name](), entered, finish=False)
    assert late
    assert len(want)
    assert called.output.to_pylist() == want.to_pylist()
    events = len(everything) - (int(np.sum(everything["end"])) if is_punctuated(CASES[name]()) else 0)
    assert called.counts.tolist() == [events, late, 0]


@pytest.mark.parametrize("name", CASES)
def test_bounded_data_is_answered_to_the_end(name: str) -> None:
    table = rows(200, seed=4)
    task = task_of(CASES[name]())
    given = BucketRunner(task).answer(
        [travelling(task, table.slice(0, 90)), travelling(task, table.slice(90))]
    )
    want = answered(CASES[name](), table, finish=True)
    assert pa.concat_tables(given).to_pylist() == want.to_pylist()


TIMED = {
    "aggregate": lambda clock=None: wp.Aggregate(
        "sliding, time(3 seconds), time(1 second), partitioned", AGGREGATES, partition_by="k", clock=clock
    ),
    "tumbling": lambda clock=None: wp.Aggregate("tumbling, time(2 seconds)", AGGREGATES, clock=clock),
    "age": lambda clock=None: wp.Sort(
        "tumbling, count(9), partitioned, partitionAge(1 second)", "x", partition_by="k", clock=clock
    ),
    "sort": lambda clock=None: wp.Sort("sliding, time(2 seconds), count(1)", "x", clock=clock),
    "deduplicate": lambda clock=None: wp.Deduplicate(
        "sliding, time(2 seconds), count(1), partitioned", "x", partition_by="k", clock=clock
    ),
    "join": lambda clock=None: wp.Join(
        "sliding, time(2 seconds), count(1)",
        "sliding, count(3), count(1)",
        on="x",
        how="left",
        clock=clock,
    ),
}


@pytest.mark.parametrize("name", TIMED)
def test_timers_do_what_a_clock_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make: Any = TIMED[name]
    clock = wp.VirtualClock()
    embedded = make(clock)
    task = fitted(make(), [SCHEMA] * len(embedded.windows), None)
    called, luck, given = Called(task), random.Random(name), []
    for port in range(len(embedded.windows)):
        embedded.process(SCHEMA.empty_table(), port)
    now = 1_000
    for number in range(14):
        table = rows(luck.choice([0, 1, 20]), seed=number)
        if luck.random() < 0.4:
            monkeypatch.setattr(state, "WORKER", Worker())
        called.micro_batch(now, *([travelling(task, table)] if len(table) else []))
        clock.advance_to(now * 1_000_000)
        given.append(embedded.poll()[0].table)
        for i in range(len(table)) if isinstance(embedded, wp.Join) else []:
            given.append(embedded.process(table.slice(i, 1), table["lane"][i].as_py())[0].table)
        if len(table) and not isinstance(embedded, wp.Join):
            given.append(embedded.process(table)[0].table)
        now += luck.choice([1, 400, 2_500])
    want = [row for table in given for row in table.to_pylist()]
    assert want
    assert called.output.to_pylist() == want


def test_a_bucket_is_woken_when_something_is_due_and_not_before() -> None:
    called = Called(fitted(wp.Aggregate("tumbling, time(2 seconds)", {"n": wr.count()}), [SCHEMA], None))
    called.micro_batch(1_000, travelling(called.task, rows(3, seed=1)))
    assert called.timers.set == {3_000}
    called.micro_batch(2_999)
    assert called.output.num_rows == 0
    called.micro_batch(3_007)
    assert called.output.to_pylist() == [{"n": 3}]
    assert called.timers.set == {5_000}
    # An empty subwindow is discarded, and then nothing is due.
    called.micro_batch(5_000)
    assert called.timers.set == set()


def test_a_punctuation_in_another_bucket_ends_windows_and_is_not_counted() -> None:
    operator = wp.Aggregate("tumbling, punct()", {"n": wr.count()})
    called = Called(task_of(operator, side_rows=True))
    table = rows(6, seed=2).sort_by("ts").set_column(5, "end", pa.array([False] * 5 + [True]))
    batch = travelling(called.task, table)
    tags = batch.column(TAG).to_numpy().copy()
    tags[5] = COPY
    batch = batch.set_column(batch.schema.get_field_index(TAG), TAG, pa.array(tags))
    called.micro_batch(0, batch)
    called.micro_batch(10**7)
    assert called.output["n"].to_pylist() == [5]
    called.micro_batch(10**7, batch)
    assert called.counts.tolist() == [5, 5, 0]
    assert called.output["side"].to_pylist() == [None] + ["late"] * 5


def test_late_rows_are_given_as_they_came() -> None:
    operator = join("sliding, count(5), count(1)", "sliding, count(5), count(1)")()
    called = Called(task_of(operator, side_rows=True))
    table = rows(4, seed=9)
    for _ in range(2):
        called.micro_batch(10**7, travelling(called.task, table))
    late = called.output.filter(pa.compute.equal(called.output["side"], "late"))
    sides = late["side_row"].to_pylist()
    for row, side in zip(table.to_pylist(), sides, strict=True):
        suffix = "_right" if row["lane"] else ""
        assert {name: side[name + suffix] for name in SCHEMA.names} == row
    assert set(late["side_reason"].to_pylist()) == {called.task.why_late}


def test_a_row_without_a_time_is_refused_before_it_travels() -> None:
    task = task_of(CASES["sort"]())
    batch = travelling(task, rows(4, seed=9))
    times = pa.array([1, 2, None, 4], pa.timestamp("us", "UTC"))
    batch = batch.set_column(batch.schema.get_field_index(TIME), TIME, times)
    with pytest.raises(DataError, match="column 'ts', row 2, value None: the time of a row is missing"):
        task.judge().sift(batch)


def test_a_delta_column_that_goes_back_is_named_with_its_row() -> None:
    task = task_of(wp.Aggregate("tumbling, delta(id, 3)", {"n": wr.count()}))
    table = rows(3, seed=1).set_column(3, "id", pa.array([1, 2, 1]))
    table = table.set_column(0, "ts", pa.array([1, 2, 3], SCHEMA.field("ts").type))
    with pytest.raises(DataError, match=r"column 'id', row 2.*in the order in which they come to the window"):
        BucketRunner(task).answer([travelling(task, table)])


@pytest.mark.parametrize("what", ["operator", "waiting", "about"])
def test_a_snapshot_that_lacks_a_part_is_refused(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from windrow.spark.policies import bucket_runner

    task = task_of(CASES["sort"]())
    whole = bucket_runner.framed
    monkeypatch.setattr(
        bucket_runner,
        "framed",
        lambda told, parts: whole(told, {n: p for n, p in parts.items() if n != what}),
    )
    with pytest.raises(StateError, match=f"lacks a part, or has a wrong one: '{what}'"):
        task.restored(task.operator().snapshot())


def test_what_an_operator_does_is_what_its_checkpoint_belongs_to() -> None:
    def told(match: Any = None, window: str = "sliding, count(9), count(1)", **options: Any) -> str:
        return task_of(wp.Join(window, window, on="x", match=match), **options).identity()

    def above(n: int) -> Any:
        return lambda left, right: left["x"].to_numpy() > n

    all_different = [
        told(),
        told(above(1)),
        told(above(2)),
        told(window="sliding, count(8), count(1)"),
        told(buckets=2),
        told(side_rows=True),
    ]
    assert len(set(all_different)) == len(all_different)
    assert told(above(1)) == all_different[1]


class Forgetful(wp.Windowed):
    """Counts rows, in an attribute that is in no snapshot."""

    count = 0

    def result_schema(self, *inputs: pa.Schema) -> pa.Schema:
        return pa.schema([("count", pa.int64())])

    def trigger(self, event: wp.Event) -> None:
        self.count += 1
        self.emit({"count": [self.count]})


def test_an_operator_whose_state_would_be_lost_has_no_snapshot_in_a_bucket() -> None:
    task = task_of(Forgetful("sliding, count(2), count(1)"))
    driven = task.operator()
    driven.answer([travelling(task, rows(3, seed=1))])
    with pytest.raises(StateError, match=r"the attribute 'count' of Forgetful has changed .* would lose it"):
        driven.snapshot()


@pytest.mark.parametrize("long", [0, 10**9])
def test_fields_of_an_operator_of_ones_own_come_back_with_its_bucket(
    long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From snapshots alone, and from the log alone; no worker lives longer than a micro-batch."""
    monkeypatch.setattr(state, "LONG", long)
    called = Called(task_of(CASES["own"]()))
    tables = [rows(20, seed=number, begin=1_000 * number, span=1_000) for number in range(6)]
    for number, table in enumerate(tables):
        called.micro_batch(1_000 * number, travelling(called.task, table))
        monkeypatch.setattr(state, "WORKER", Worker())
    called.micro_batch(10**6)
    want = answered(CASES["own"](), pa.concat_tables(tables), finish=False)
    assert called.output.to_pylist() == want.to_pylist()

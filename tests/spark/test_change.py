"""A stream that is started again with another query: what stays goes on, what is new is answered from what is there, and
what goes leaves.

The referee is the embedded operator of each bucket, which is restored with the other query at the same place;
`engine/test_change` and `conformance/test_interleavings` say that it is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from restarting import steps
from stores import Store, Timers
from streams import NIGHTLY, WATERMARK, Step, apart, like, plain_rows, source, write_step

import windrow as wr
from tests.referee import assert_same
from windrow.engine.exchange import slices_of
from windrow.engine.operator import Operator
from windrow.engine.snapshot.description import described
from windrow.errors import StateError
from windrow.options import OperatorOptions
from windrow.query import Query
from windrow.spark import state
from windrow.spark.micro_batch import MicroBatch
from windrow.spark.payload import pack
from windrow.spark.stages import bucket_of
from windrow.spark.state import Worker
from windrow.spark.stateful import Stateful
from windrow.spark.task import Task

BUCKETS = 2
COUNT = {"n": wr.count()}


@dataclass(frozen=True)
class Form:
    """A query as it is at one time, and its options."""

    windows: dict[str, Any]
    aggregates: dict[str, Any] = field(default_factory=lambda: dict(COUNT))
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def query(self) -> Query:
        return wr.query(time="ts", key="key", windows=self.windows, aggregates=self.aggregates)

    @property
    def operators(self) -> dict[str, Any]:
        """The options without those of Spark."""
        return {name: value for name, value in self.options.items() if name != "side_rows"}


@dataclass(frozen=True)
class Change:
    """Two forms of a query."""

    before: Form
    after: Form


SHORT, LONG = wr.tumbling("3 seconds"), wr.sliding("20 seconds", every="4 seconds")
SESSION, ROWS = wr.session("700 milliseconds"), wr.tumbling(rows=7)
TOTAL, HIGH = {"total": wr.sum("x")}, {"high": wr.max("x")}
CHANGES = {
    "windows of time": Change(
        Form({"short": SHORT, "long": LONG}, COUNT | HIGH),
        Form({"long": LONG, "new": wr.tumbling("6 seconds")}, TOTAL | COUNT, {"lateness": "3 seconds"}),
    ),
    "sessions": Change(
        Form({"s": SESSION, "short": SHORT}, COUNT | TOTAL, {"lateness": "5 seconds"}),
        Form({"s": SESSION, "wide": wr.session("2 seconds")}, COUNT | HIGH, {"lateness": "1 second"}),
    ),
    "windows of rows": Change(
        Form({"rows": ROWS, "s": SESSION}, COUNT | TOTAL),
        Form(
            {"rows": ROWS, "last": wr.slide_by_rows("6 seconds", every_rows=5), "long": LONG}, COUNT | TOTAL
        ),
    ),
    "a changelog begins": Change(
        Form({"short": SHORT, "rows": ROWS}, options={"lateness": "6 seconds"}),
        Form({"short": SHORT, "rows": ROWS}, COUNT | TOTAL, {"lateness": "6 seconds", "mode": "update"}),
    ),
    "a changelog ends": Change(
        Form({"short": SHORT, "s": SESSION}, options={"lateness": "6 seconds", "mode": "update"}),
        Form({"short": SHORT, "s": SESSION, "new": LONG}, options={"lateness": "6 seconds"}),
    ),
}


# On Spark alone: what is set aside is asked for later on.
ASIDE = Change(
    Form({"short": SHORT, "rows": ROWS}),
    Form({"short": SHORT, "rows": ROWS}, options={"on_bad": "divert", "side_rows": True, "mode": "update"}),
)


def moment(watermark: int) -> Any:
    return pa.array([watermark], pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))[0]


def embedded(change: Change, *parts: list[Step]) -> Iterator[tuple[list[pa.Table], Operator]]:
    """What an operator emits, and the operator with its late rows, if it is driven as Spark drives those of a stream; in
    the second part it is restored as the other form of the query."""
    schema = parts[0][0].events.schema
    empty, holds = schema.empty_table(), 0
    operator = change.before.query.operator(**change.before.operators)
    operator.process(empty)
    for number, part in enumerate(parts):
        if number:
            settings = OperatorOptions(**change.after.operators)
            operator = change.after.query.restore(operator.snapshot(), schema=schema, **vars(settings))
        emitted = []
        for step in [*part, Step(empty, 0)]:
            operator.process(step.events)
            emitted.append(operator.advance(moment(holds)) if holds else operator.process(empty))
            holds = max(holds, step.watermark)
        yield emitted, operator


# -- a bucket ------------------------------------------------------------------------------------------


SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("key", pa.string()), ("x", pa.int64())])


def task_of(form: Form, *, schema: pa.Schema = SCHEMA, **more: Any) -> Task:
    settings = OperatorOptions(**form.options)
    return replace(Task(form.query, settings, schema, schema, False, False, BUCKETS), **more)


def of_bucket(*parts: list[Step]) -> Iterator[list[MicroBatch]]:
    """The micro-batches of each of these parts of a stream, with one that has no rows behind them."""
    holds = 0
    for part in parts:
        made = []
        for step in [*part, Step(part[0].events.slice(0, 0), 0)]:
            batches = step.events.combine_chunks().to_batches()
            made.append(MicroBatch(holds, [pack(batch) for batch in batches if batch.num_rows]))
            holds = max(holds, step.watermark)
        yield made


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that has seen nothing yet."""
    monkeypatch.setattr(state, "WORKER", Worker())


STEPS = steps(6)
FORM = Form({"w": SHORT, "rows": ROWS}, COUNT | {"p90": wr.quantile("x", 0.9)})


def begun(form: Form = FORM) -> Store:
    store, (batches,) = Store(), of_bucket(STEPS[:2])
    for batch in batches:
        store.step(task_of(form), batch)
    return store


@pytest.mark.parametrize("is_same_worker", [True, False], ids=["same worker", "other worker"])
@pytest.mark.parametrize("light", [state.LIGHT, 0], ids=["log", "base"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_bucket_goes_on_as_the_embedded_operator_that_changes_there(
    monkeypatch: pytest.MonkeyPatch, name: str, light: int, is_same_worker: bool
) -> None:
    monkeypatch.setattr(state, "LIGHT", light)
    change = CHANGES[name]
    parts = STEPS[:3], STEPS[3:]
    store = Store()
    for form, (wanted, _), batches in zip(
        (change.before, change.after), embedded(change, *parts), of_bucket(*parts), strict=True
    ):
        for want, batch in zip(wanted, batches, strict=True):
            if not is_same_worker:
                monkeypatch.setattr(state, "WORKER", Worker())
            _, given = store.step(task_of(form), batch)
            assert sum(map(len, given)) == len(want)
            for table in given:
                assert_same(want, table)


def test_events_that_come_as_slices_are_answered_as_events_are_through_several_changes() -> None:
    """Slices of wider windows meet narrower ones that are there: what comes back is complete only behind them."""
    forms = [
        Form({"short": SHORT, "wide": wr.tumbling("6 seconds")}, COUNT | TOTAL),
        Form({"wide": wr.tumbling("6 seconds")}, COUNT | TOTAL, {"lateness": "2 seconds"}),
        Form({"short": SHORT, "wide": wr.tumbling("6 seconds")}, TOTAL | HIGH, {"lateness": "2 seconds"}),
    ]
    emitted: dict[bool, list[list[str]]] = {False: [], True: []}
    for as_slices, rows in emitted.items():
        store, holds = Store(), 0
        for form, step in zip([*forms, *forms[2:] * 4], STEPS, strict=False):
            (events,) = step.events.combine_chunks().to_batches() or [None]
            if events is None:
                continue
            payload = slices_of(form.query, events) if as_slices else events
            _, given = store.step(task_of(form), MicroBatch(holds, [pack(payload)]))
            rows.append([row for table in given for row in plain_rows(table)])
            holds = step.watermark
    for by_event, by_slice in zip(emitted[False], emitted[True], strict=True):
        assert set(by_slice) <= set(by_event)
    assert emitted[True][-1] == emitted[False][-1] != []


def test_what_is_gone_leaves_the_state_with_the_first_micro_batch() -> None:
    big = Form({"w": LONG, "rows": ROWS}, COUNT | {"all": wr.collect("x"), "p": wr.quantile("x", 0.5)})
    small, store = Form({"w": LONG}), begun(big)
    before = store.bucket(task_of(big)).operator.snapshot()
    operator, _ = store.step(task_of(small), MicroBatch(0))
    assert operator.query == small.query
    assert len(operator.snapshot()) < len(before) / 2
    head = store.bucket(task_of(small)).head
    assert head is not None
    assert head.base_version == head.version
    assert set(store.base.values) == {(i,) for i in range(head.chunks)}
    assert store.log.values == {}
    assert list(described(operator)["windows"]) == ["w"]


def test_a_bucket_without_rows_changes_too_though_the_watermark_stands_still() -> None:
    other = Form({"w": SHORT}, FORM.aggregates)
    store, timers = begun(), Timers()
    stage = Stateful(task_of(other), timers, store.head, store.base, store.log)
    head = store.bucket(task_of(FORM)).head
    assert head is not None
    timers.set.add(head.timer)
    stage.step(3, head.timer - 1, [], by_timer=False)
    assert stage.step(3, head.timer - 1, [], by_timer=False) == []
    assert not store.bucket(task_of(other)).is_changed
    assert timers.set == {head.timer}


def test_all_buckets_say_from_when_on_what_is_new_is_complete_in_the_same_micro_batches() -> None:
    store, timers = begun(), Timers()
    other = task_of(replace(FORM, aggregates=FORM.aggregates | TOTAL))
    stage = Stateful(other, timers, store.head, store.base, store.log)
    watermark = store.head.get()[-1] - 1
    timers.set.add(watermark + 1)
    ((*counts, _, starts),) = stage.step(3, watermark, [], by_timer=False)
    known = store.bucket(other).operator.complete_from()
    assert counts == [0, 0, 0]
    assert starts == known
    assert known.keys() == {"aggregate total"}
    rows = pack(STEPS[2].events.to_batches()[0])
    assert [given[4] for given in stage.step(3, watermark, [rows], by_timer=False)] == [None]
    first, *others = stage.step(3, watermark + 3_000, [], by_timer=False)
    assert first[4] == known
    assert [given[:3] for given in others] == [(0, 0, 0)] * len(others)


def test_a_new_aggregate_reads_a_column_that_rows_did_not_have() -> None:
    narrow = pa.schema([SCHEMA.field("ts"), SCHEMA.field("key")])
    before, after = Form({"w": LONG}), Form({"w": LONG}, COUNT | TOTAL)
    store, rows = Store(), [step.events for step in STEPS]
    for batch in (rows[0].select(["ts", "key"]), rows[1].select(["ts", "key"])):
        store.step(task_of(before, schema=narrow), MicroBatch(0, [pack(batch.to_batches()[0])]))
    operator, _ = store.step(task_of(after), MicroBatch(0, [pack(rows[2].to_batches()[0])]))
    assert operator.complete_from().keys() == {"aggregate total"}
    found = operator.finish().to_pylist()
    since = operator.complete_from()["aggregate total"]
    assert {row["total"] is None for row in found if row["start"] < since} == {True}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            task_of(replace(FORM, aggregates=COUNT | {"p90": wr.quantile("x", 0.95)})),
            r"aggregate 'p90' was quantile\(x, 0\.9\), is quantile\(x, 0\.95\)",
        ),
        (
            task_of(replace(FORM, windows={"w": wr.tumbling("4 seconds"), "rows": wr.tumbling(rows=8)})),
            "window 'w' was tumbling 3 seconds, is tumbling 4 seconds; window 'rows' was tumbling 7 rows, is tumbling 8 rows",
        ),
        (
            task_of(FORM, query=replace(FORM.query, key=("x",))),
            "the key was 'key', is 'x'",
        ),
        (
            task_of(FORM, query=replace(FORM.query, key=()), buckets=1),
            "the key was 'key', is nothing",
        ),
        (
            task_of(FORM, query=replace(FORM.query, time="since")),
            "the time was ts, is since",
        ),
        (
            task_of(FORM, schema=SCHEMA.set(2, pa.field("x", pa.float64()))),
            "column 'x' was int64, is double",
        ),
        (
            task_of(FORM, schema=SCHEMA.set(0, pa.field("ts", pa.timestamp("ms", "UTC")))),
            r"column 'ts' was timestamp\[us, tz=UTC\], is timestamp\[ms, tz=UTC\]",
        ),
        (
            task_of(FORM, buckets=8),
            "the checkpoint has 2 buckets, and this stream would have 8: say buckets=2",
        ),
        (
            task_of(FORM, by_partition=True),
            "the checkpoint has 2 buckets, and this stream would have 2 by partition: say buckets=2",
        ),
    ],
    ids=[
        "aggregate",
        "windows",
        "key",
        "no key",
        "time",
        "type",
        "type of the time",
        "buckets",
        "partitions",
    ],
)
def test_what_cannot_go_on_is_refused_with_the_difference(other: Task, said: str) -> None:
    store = begun()
    before = store.saved()
    with pytest.raises(StateError, match=said):
        store.step(other, MicroBatch(60_000))
    assert vars(store.head) == vars(before.head)
    store.step(task_of(FORM), MicroBatch(60_000))


def test_state_that_does_not_say_of_which_query_it_is_goes_on_with_that_query_only() -> None:
    store = begun()
    plan, *_ = store.head.get()[1].partition(" ")
    by_name = dict(zip(state.Head.__dataclass_fields__, store.head.get(), strict=True))
    operator = store.bucket(task_of(FORM)).operator
    earlier = Store()
    earlier.head.update(
        tuple({**by_name, "plan": plan, "base_version": by_name["version"] - 1, "chunks": 0}.values())
    )
    earlier.log.updateValue((by_name["version"],), (by_name["token"], MicroBatch(0).to_bytes()))
    other = Form({"w": SHORT}, FORM.aggregates)
    with pytest.raises(StateError, match=r"does not say which\. Start once with the query as it was"):
        earlier.bucket(task_of(other))
    assert operator.query == FORM.query
    earlier.step(task_of(FORM), MicroBatch(60_000))
    earlier.step(task_of(other), MicroBatch(61_000))


# -- a stream ------------------------------------------------------------------------------------------

STREAMED = CHANGES if NIGHTLY else {"windows of time": CHANGES["windows of time"]}


def run(
    spark: Any, folder: Path, forms: dict[str, Form], steps: list[Step]
) -> tuple[dict[str, pa.Table], dict[str, dict[str, Any]]]:
    """What a stream gives out that answers all of these at once, from its checkpoint on until it has read these steps; and
    what it said last of what is complete from when on."""
    from pyspark.sql import functions as sf

    begun = len(list((folder / "source").glob("*.parquet")))
    for number, step in enumerate(steps, start=begun):
        write_step(folder / "source", number, step)
    events, kept = source(spark, folder / "source"), []
    results = [
        form.query.on_spark(
            events, watermark=WATERMARK, buckets=BUCKETS, metrics=name, **form.options
        ).withColumn("job", sf.lit(name))
        for name, form in forms.items()
    ]
    result = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), results)
    writer = result.writeStream.foreachBatch(lambda batch, _: kept.append(batch.toArrow()))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    running = writer.trigger(availableNow=True).start()
    running.awaitTermination()
    found, report = pa.concat_tables(kept), running.recentProgress[-1].observedMetrics
    starts = {name: report[name].complete_from for name in forms}
    return {name: found.filter(pc.field("job") == name) for name in forms}, starts


def by_bucket(spark: Any, steps: list[Step]) -> list[list[Step]]:
    """The steps as each bucket sees them."""
    frame = spark.createDataFrame([(key,) for key in "abcde"], "key string")
    numbers = dict(frame.select("key", bucket_of(("key",), BUCKETS)).collect())
    assert set(numbers.values()) == set(range(BUCKETS))
    keys = [[key for key, bucket in numbers.items() if bucket == number] for number in range(BUCKETS)]
    return [
        [replace(s, events=s.events.filter(pc.is_in(s.events["key"], pa.array(k)))) for s in steps]
        for k in keys
    ]


def test_a_stream_goes_on_as_the_embedded_operators_that_change_there(spark: Any, tmp_path: Path) -> None:
    changes, parts = {**STREAMED, "aside": ASIDE}, (STEPS[:2], STEPS[2:])
    forms = [
        {name: getattr(change, when) for name, change in changes.items()} for when in ("before", "after")
    ]
    given, starts = zip(
        *(run(spark, tmp_path, *each) for each in zip(forms, parts, strict=True)), strict=True
    )
    apiece = list(zip(*(by_bucket(spark, part) for part in parts), strict=True))
    for name, change in changes.items():
        wanted = [
            [
                (emitted, operator.late(), operator.complete_from())
                for emitted, operator in embedded(change, *of_one)
            ]
            for of_one in apiece
        ]
        for part, outputs in enumerate(zip(*wanted, strict=True)):
            windows = pa.concat_tables(table for emitted, *_ in outputs for table in emitted)
            got = given[part][name]
            if "side_rows" in forms[part][name].options:
                got, late, bad = apart(got)
                missed = pa.concat_tables(rows for _, rows, _ in outputs)
                assert plain_rows(late.select(missed.column_names)) == plain_rows(missed) != []
                assert bad.num_rows == 0
            known = {what for *_, found in outputs for what in found}
            latest = {what: max(found[what] for *_, found in outputs if what in found) for what in known}
            said = {
                what: datetime.fromisoformat(text).replace(tzinfo=UTC)
                for what, text in starts[part][name].items()
            }
            assert said == latest
            assert windows.num_rows
            assert plain_rows(like(windows, got.select(windows.column_names))) == plain_rows(windows), name

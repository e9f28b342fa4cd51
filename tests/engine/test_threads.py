"""The answer over bounded data does not depend on the number of threads, and errors do not either."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

import windrow as wr
from tests.referee import answers, assert_same
from tests.referee.strategies import SIGNALS, kinds_of_windows, mixed_queries, queries, streams
from windrow.compiling.compiler import InterpretedWarning
from windrow.engine import bounded, threads
from windrow.engine.operator import Operator
from windrow.errors import DataError, QueryError, UserFunctionError

FLOATS = {"x": "float", "s": "string"}
SEVERAL = (2, 3, 4)


@contextmanager
def small_parts(*, batch: int = 4) -> Iterator[list[bool]]:
    """Have a few rows divided as many would be; in the list, whether each table was."""
    divided: list[bool] = []
    in_parts = threads.in_parts

    def noted(*arguments: Any) -> Any:
        rows = in_parts(*arguments)
        divided.append(rows is not None)
        return rows

    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"ENOUGH": 2, "FIXED": 4, "WARM_UP": 9, "AFTER": 1 / 2, "LARGEST": 9}.items():
            patch.setattr(threads, name, value)
        patch.setattr(bounded, "BATCH", batch)
        patch.setattr(bounded, "in_parts", noted)
        yield divided


def bits(table: pa.Table) -> list[str]:
    """The rows in an order of their own, with each float as its bits."""

    def told(value: Any) -> Any:
        if isinstance(value, float):
            return "nan" if value != value else struct.pack("d", value).hex()
        if isinstance(value, list | tuple):
            return [told(each) for each in value]
        return {k: told(v) for k, v in value.items()} if isinstance(value, dict) else value

    ticks = pa.table({f"{i}": _plain(column) for i, column in enumerate(table.columns)})
    return sorted(repr([told(value) for value in row.values()]) for row in ticks.to_pylist())


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as numbers: some are outside of Python's calendar."""
    wide = pa.types.is_timestamp(column.type)
    return column.cast(pa.int64()) if wide else column


def assert_no_difference(query: wr.Query, table: pa.Table, **options: Any) -> None:
    expected = bits(query.run(table, threads=1, **options))
    for count in SEVERAL:
        assert bits(query.run(table, threads=count, **options)) == expected, f"{count} threads"


@st.composite
def cases(draw: Any, *, mixed: bool, columns: Any = FLOATS) -> tuple[pa.Table, wr.Query]:
    time = draw(st.sampled_from([pa.int64(), pa.timestamp("ms", "UTC"), pa.float64()]))
    key = draw(st.sampled_from([[], ["int"], ["string"], ["float", "bool"], ["decimal", "int"]]))
    ordered = draw(st.booleans())
    if mixed:
        table = draw(
            streams(time=time, key=key, columns={**columns, **SIGNALS}, max_size=40, ordered=ordered)
        )
        return table, draw(mixed_queries(time=time, key=key, columns=columns))
    days = draw(st.booleans())
    table = draw(streams(time=time, key=key, columns=columns, max_size=40, ordered=ordered, days=days))
    return table, draw(queries(time=time, key=key, columns=columns, days=days))


@examples(100)
@given(cases(mixed=False))
def test_windows_of_time_have_the_same_bits_with_any_number_of_threads(case):
    with small_parts():
        assert_no_difference(case[1], case[0])


@examples(60)
@given(cases(mixed=True), st.sampled_from([4, 16]))
def test_all_windows_have_the_same_bits_with_any_number_of_threads(case, batch):
    with small_parts(batch=batch):
        assert_no_difference(case[1], case[0])


@pytest.mark.parametrize("kind", [*kinds_of_windows(pa.int64()), "time"])
@pytest.mark.parametrize("key", [[], ["int"]])
@examples(15)
@given(st.data())
def test_each_kind_of_window_alone_is_answered_as_the_referee_does(kind, key, data):
    time = pa.int64()
    windows = {"time": queries(time=time).map(lambda q: q.windows["w0"]), **kinds_of_windows(time)}
    table = data.draw(streams(time=time, key=key, columns={"x": "int", **SIGNALS}, max_size=40))
    aggregates = {"n": wr.count(), "total": wr.sum("x"), "last": wr.last("x"), "middle": wr.median("x")}
    named = [f"key{i}" for i in range(len(key))]
    query = wr.query(time="time", key=named, windows={"w": data.draw(windows[kind])}, aggregates=aggregates)
    with small_parts():
        assert_same(answers(query, table), query.run(table, threads=3))
        assert_no_difference(query, table)


TICKS = np.sort(np.random.default_rng(5).integers(0, 4_000, 500))
EVENTS = pa.table(
    {
        "ts": TICKS,
        "key": [None if i % 11 == 0 else f"key {i % 7}" for i in range(500)],
        "x": np.random.default_rng(6).normal(size=500),
        "i": np.arange(500) % 97,
    }
)
INEXACT = {"total": wr.sum("x"), "spread": wr.variance("x")}
EXACT = {"total": wr.sum("i"), "high": wr.max("x"), "middle": wr.median("x")}


@pytest.mark.parametrize(
    ("windows", "key", "aggregates", "one", "two"),
    [
        ([wr.tumbling(100)], ["key"], INEXACT, False, True),
        ([wr.tumbling(100)], [], INEXACT, False, True),
        ([wr.sliding(100, every=30)], ["key"], EXACT, False, True),
        # Parts that depend on the table alone, so that floats are merged alike.
        ([wr.sliding(100, every=30)], ["key"], INEXACT, True, True),
        ([wr.session(40)], ["key"], INEXACT, False, True),
        ([wr.session(20)], [], INEXACT, False, True),
        ([wr.session(10_000)], [], EXACT, False, False),  # all is one session
        ([wr.tumbling(rows=6)], ["key"], INEXACT, False, True),
        ([wr.tumbling(rows=6)], [], INEXACT, False, True),
        ([wr.tumbling(rows=6), wr.tumbling(rows=9)], [], EXACT, False, True),
        ([wr.sliding(rows=6, every_rows=2)], [], EXACT, False, False),
        ([wr.sliding(rows=6, every_rows=2)], ["key"], EXACT, False, True),
        ([wr.sliding(rows=6, every_rows=2)], ["key"], INEXACT, False, False),
        ([wr.session(40), wr.tumbling(100)], ["key"], EXACT, False, True),
    ],
)
def test_what_is_divided_and_that_the_bits_agree(windows, key, aggregates, one, two):
    named = {f"w{i}": window for i, window in enumerate(windows)}
    query = wr.query(time="ts", key=key, windows=named, aggregates=aggregates)
    with small_parts(batch=32) as divided:
        query.run(EVENTS, threads=1)
        query.run(EVENTS, threads=2)
        assert divided == [one, two]
        assert_no_difference(query, EVENTS)
        assert_same(answers(query, EVENTS), query.run(EVENTS, threads=3))


def test_events_that_last_are_divided_by_key():
    ends = pa.array(TICKS + 1 + np.arange(500) % 40)
    query = wr.query(
        time=wr.span("ts", "until"),
        key="key",
        windows={"w": wr.sliding(100, every=30), "s": wr.session(5)},
        aggregates=EXACT,
    )
    with small_parts(batch=32) as divided:
        assert_no_difference(query, EVENTS.append_column("until", ends))
    assert divided == [False, *(True for _ in SEVERAL)]


def test_a_table_out_of_order_is_divided_once_it_is_sorted():
    shuffled = EVENTS.take(pa.array(np.random.default_rng(7).permutation(len(EVENTS))))
    query = wr.query(time="ts", key="key", windows={"w": wr.session(40)}, aggregates=EXACT)
    with small_parts(batch=32) as divided:
        assert_no_difference(query, shuffled)
    assert divided == [False, *(True for _ in SEVERAL)]


@pytest.mark.parametrize("window", [wr.tumbling(100), wr.session(20), wr.tumbling(rows=6)])
def test_each_row_is_told_of_once_as_it_is_taken_in(window):
    query = wr.query(time="ts", key="key", windows={"w": window}, aggregates=EXACT)
    told: list[int] = []
    with small_parts(batch=32) as divided:
        bounded.run(query, EVENTS, on_bad="raise", threads=2, advance=told.append)
    assert divided == [True]
    assert sum(told) == len(EVENTS)


def test_rows_come_in_the_same_order_each_time():
    query = wr.query(time="ts", key="key", windows={"w": wr.session(40)}, aggregates=EXACT)
    with small_parts(batch=32):
        first = query.run(EVENTS, threads=3)
        assert all(query.run(EVENTS, threads=3).equals(first) for _ in range(5))


def test_few_rows_are_left_to_one_thread(monkeypatch):
    query = wr.query(time="ts", key="key", windows={"w": wr.tumbling(9)}, aggregates={"n": wr.count()})
    asked: list[int] = []
    together = threads.together
    monkeypatch.setattr(
        threads, "together", lambda tasks, count: asked.append(count) or together(tasks, count)
    )
    assert len(EVENTS) < threads.ENOUGH
    query.run(EVENTS, threads=8)
    assert asked == [1]  # who looks whether they are in order


@pytest.mark.parametrize(
    ("windows", "after", "by_key"),
    [
        ([wr.session(20)], 1 / 2, False),
        ([wr.session(20), wr.session(3)], 1 / 2, False),
        ([wr.session(20)], 0, True),  # nobody waits for them to end
        ([wr.session(200)], 1 / 2, True),  # all of a key are one session
        ([wr.session(20), wr.tumbling(100)], 1 / 2, True),
        ([wr.tumbling(rows=6)], 1 / 2, True),
    ],
)
def test_sessions_of_many_keys_are_divided_by_time_where_they_end_soon(monkeypatch, windows, after, by_key):
    ways: list[bool] = []
    in_buckets = threads._by_key
    monkeypatch.setattr(threads, "_by_key", lambda *given: ways.append(True) or in_buckets(*given))
    named = {f"w{i}": window for i, window in enumerate(windows)}
    query = wr.query(time="ts", key="key", windows=named, aggregates=EXACT)
    with small_parts(batch=32) as divided:
        monkeypatch.setattr(threads, "AFTER", after)
        assert bits(query.run(EVENTS, threads=2)) == bits(query.run(EVENTS, threads=1))
    assert divided == [True, False]
    assert bool(ways) is by_key


def test_a_key_with_most_of_the_events_is_left_to_one_thread():
    key = pa.array(["hot"] * 450 + ["cold"] * 50)
    query = wr.query(time="ts", key="key", windows={"w": wr.tumbling(rows=6)}, aggregates=EXACT)
    with small_parts() as divided, pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "LARGEST", 0.75)
        assert_no_difference(query, EVENTS.set_column(1, "key", key))
    assert not any(divided)


# -- errors --------------------------------------------------------------------------------------


def reciprocal(x):  # type: ignore[no-untyped-def]
    return 1 / x


def add(a, b):  # type: ignore[no-untyped-def]
    return a + b


def times_many(x):  # type: ignore[no-untyped-def]
    return x * 2**60


OWN = wr.aggregate(columns="i", lift=reciprocal, combine=add, identity=0.0, name="reciprocals")
WIDE = wr.aggregate(columns="i", lift=times_many, combine=add, identity=0, name="wide")
QUERIES = {
    "by time": wr.tumbling(100),
    "by key": wr.session(40),
    "by count": wr.tumbling(rows=6),
    "with fixed parts": wr.sliding(100, every=30),
}


def failure(query: wr.Query, table: pa.Table, count: int) -> tuple[Any, ...]:
    with pytest.raises((DataError, UserFunctionError)) as caught:
        query.run(table, threads=count)
    return type(caught.value), str(caught.value), caught.value.row, type(caught.value.__cause__)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("own", [OWN, WIDE])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_function_that_fails_is_told_of_as_with_one_thread(name, own, shuffled):
    table = EVENTS.filter(pa.array(np.arange(len(EVENTS)) > 90)) if own is OWN else EVENTS
    if shuffled:
        table = table.take(pa.array(np.random.default_rng(8).permutation(len(table))))
    key = [] if name == "by count" else ["key"]
    query = wr.query(time="ts", key=key, windows={"w": QUERIES[name]}, aggregates={"own": own})
    with small_parts(batch=32) as divided:
        one = failure(query, table, 1)
        assert all(failure(query, table, count) == one for count in SEVERAL)
    assert not any(divided)


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("on_bad", ["raise", "divert"])
def test_bad_rows_are_told_of_or_left_out_as_with_one_thread(name, on_bad):
    large = np.where(np.isin(np.arange(500), [300, 301, 450]), 2**64 - 1, EVENTS["i"]).astype(np.uint64)
    table = EVENTS.set_column(3, "i", pa.array(large))
    key = [] if name == "by count" else ["key"]
    query = wr.query(time="ts", key=key, windows={"w": QUERIES[name]}, aggregates={"total": wr.sum("i")})
    with small_parts(batch=32):
        if on_bad == "divert":
            assert_no_difference(query, table, on_bad=on_bad)
            return
        one = failure(query, table, 1)
        assert one[2] == 300
        assert all(failure(query, table, count) == one for count in SEVERAL)


@pytest.mark.parametrize("aggregates", [EXACT, INEXACT])
def test_an_order_that_is_promised_and_broken_is_found_by_any_number_of_threads(aggregates):
    query = wr.query(
        time="ts", key="key", windows={"w": wr.sliding(100, every=30)}, aggregates=aggregates, ordered=True
    )
    times = EVENTS["ts"].to_numpy().copy()
    times[250] = 0
    table = EVENTS.set_column(0, "ts", pa.array(times))
    with small_parts(batch=32) as divided:
        one = failure(query, table, 1)
        assert one[2] == 250
        assert all(failure(query, table, count) == one for count in SEVERAL)
        assert_no_difference(query, table, on_bad="divert")
        assert not any(divided)
        assert_no_difference(query, EVENTS)
        assert any(divided)


def test_functions_that_run_as_plain_python_give_the_same_answer():
    class Odd:
        def __index__(self) -> int:
            return 2

    odd = Odd()

    def lift(x):  # type: ignore[no-untyped-def]
        return x * odd.__index__()

    own = wr.aggregate(columns="i", lift=lift, combine=add, identity=0, name="doubled")
    query = wr.query(time="ts", key="key", windows={"w": wr.session(40)}, aggregates={"own": own})
    with small_parts(batch=32) as divided:
        with pytest.warns(InterpretedWarning, match="lift"):
            found = query.run(EVENTS, threads=2)
        assert divided == [True]
        assert bits(found) == bits(query.run(EVENTS, threads=1))


@pytest.mark.parametrize("by_the_caller", [True, False])
def test_an_interrupt_stops_all_threads(by_the_caller):
    query = wr.query(time="ts", key="key", windows={"w": wr.session(40)}, aggregates=EXACT)
    under_way: set[int] = set()
    taken: list[int] = []
    take_events = Operator.take_events

    def interrupted(self: Operator, events: Any) -> None:
        under_way.add(threading.get_ident())
        take_events(self, events)
        taken.append(len(events))
        if (threading.current_thread() is threading.main_thread()) is by_the_caller:
            raise KeyboardInterrupt
        under_way.discard(threading.get_ident())

    with small_parts(batch=8), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Operator, "take_events", interrupted)
        with pytest.raises(KeyboardInterrupt):
            query.run(EVENTS, threads=2)
        assert len(under_way) == 1
        assert len(taken) < 2 * len(EVENTS) // 8


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", True])
def test_a_number_of_threads_that_is_none_is_refused(wrong):
    query = wr.query(time="ts", windows={"w": wr.tumbling(9)}, aggregates={"n": wr.count()})
    with pytest.raises(QueryError, match="threads must be a number from 1 on"):
        query.run(EVENTS, threads=wrong)


def test_all_processors_are_used_unless_told_otherwise():
    query = wr.query(time="ts", windows={"w": wr.tumbling(100)}, aggregates={"n": wr.count()})
    with small_parts() as divided:
        assert bits(query.run(EVENTS)) == bits(query.run(EVENTS, threads=1))
    assert divided == [len(os.sched_getaffinity(0)) > 1, False]

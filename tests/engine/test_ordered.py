"""The engine for windows that depend on order: its parts beside naive ones, and calls that fail."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.referee import check_steps
from windrow.engine.ordered.columns import EventColumns
from windrow.engine.ordered.timers import Timers
from windrow.engine.ordered.waiting import Chunk, Waiting
from windrow.engine.sequence.queues import KeyQueues

KEYS = 4
MODES = ("append", "update")
INTEGERS = np.dtype(np.int64)
some_keys = st.lists(st.integers(0, KEYS - 1), unique=True, min_size=1).map(sorted)


def contents(queues):
    key, (column,), _ = queues.all()
    return [column[key == k].tolist() for k in range(KEYS)]


@given(data=st.data())
def test_queues_hold_what_lists_do_and_go_back_to_marks(data):
    queues, naive, following = KeyQueues(1, 1, INTEGERS), [[] for _ in range(KEYS)], 0
    queues.grow(KEYS)
    for _ in range(data.draw(st.integers(0, 30))):
        keys = np.array(data.draw(some_keys))
        before, mark = [list(q) for q in naive], queues.mark(keys)
        for _ in range(data.draw(st.integers(1, 3))):
            counts = np.array([data.draw(st.integers(0, 40)) for _ in keys])
            if data.draw(st.booleans()):
                rows = np.arange(following, following + counts.sum())
                queues.push(keys, counts, rows[None], rows[None])
                following += len(rows)
                for k, part in zip(keys, np.split(rows, np.cumsum(counts)[:-1]), strict=True):
                    naive[k] += part.tolist()
            elif data.draw(st.booleans()):
                counts = np.minimum(counts, queues.counts(keys))
                queues.pop(keys, counts)
                for k, count in zip(keys, counts, strict=True):
                    del naive[k][:count]
            else:
                queues.clear(keys)
                for k in keys:
                    naive[k] = []
        assert contents(queues) == naive
        if data.draw(st.booleans()):
            queues.restore(mark)
            naive = before
        else:
            queues.settle()
        assert contents(queues) == naive
        assert len(queues) == sum(map(len, naive))


def test_columns_of_queues_do_not_grow_with_what_has_passed_through_them():
    queues, keys, ten = KeyQueues(1, 1, INTEGERS), np.arange(KEYS), np.full(KEYS, 10)
    queues.grow(KEYS)
    for _ in range(1_000):
        rows = np.zeros((1, 10 * KEYS), np.int64)
        queues.push(keys, ten, rows, rows)
        queues.pop(keys, ten)
        queues.settle()
    assert queues.nbytes < 30_000


@given(data=st.data())
def test_timers_give_each_key_once_its_time_has_come(data):
    timers, naive, point = Timers(INTEGERS), {}, 0
    timers.grow(KEYS)
    for _ in range(data.draw(st.integers(0, 30))):
        keys = data.draw(st.lists(st.integers(0, KEYS - 1), max_size=6))
        times = [point + data.draw(st.integers(1, 20)) for _ in keys]
        timers.arm(np.array(keys, np.int64), np.array(times, np.int64))
        for key, time in zip(keys, times, strict=True):
            naive[key] = min(time, naive.get(key, time))
        point += data.draw(st.integers(0, 10))
        due = sorted(key for key, time in naive.items() if time <= point)
        assert sorted(timers.due(point).tolist()) == due
        for key in due:
            del naive[key]


def columns_of(kinds):
    query = wr.query(time="t", windows={"w": wr.tumbling(rows=1)}, aggregates={"n": wr.count()})
    operator = query.operator()
    operator.prepare(pa.schema([("t", pa.int64())]))
    return EventColumns(operator.engines[0].binding, [("w", kinds)])


@given(data=st.data())
def test_events_are_released_in_order_of_time_and_arrival(data):
    waiting, timers, naive = Waiting(INTEGERS, columns_of("if")), Timers(INTEGERS), []
    frontier = arrival = 0
    waiting.grow(KEYS)
    timers.grow(KEYS)
    for _ in range(data.draw(st.integers(1, 10))):
        for _ in range(data.draw(st.integers(0, 3))):
            times = np.array(
                data.draw(st.lists(st.integers(frontier, frontier + 20), min_size=1, max_size=15))
            )
            keys = np.array([data.draw(st.integers(0, KEYS - 1)) for _ in times])
            numbers = np.arange(arrival, arrival + len(times))
            edges = (times.min(), times.max(), bool((np.diff(times) >= 0).all()))
            waiting.inbox.append(Chunk([numbers, numbers / 2], times, arrival, keys, *edges))
            naive += zip(keys.tolist(), times.tolist(), range(arrival, arrival + len(times)), strict=True)
            arrival += len(times)
        frontier += data.draw(st.integers(0, 12))
        parts = waiting.in_bulk(frontier, KEYS) if data.draw(st.booleans()) else None
        if parts is None:
            waiting.distribute([timers], KEYS)
            due = np.sort(timers.due(frontier))
            part = waiting.release(due, waiting.passed, frontier, timers)
            parts = [] if part is None else [part]
            for part in parts:
                waiting.forget(part)
        else:
            for part in parts:
                waiting.skip(part)
        found = [
            row
            for part in parts
            for row in zip(
                np.repeat(part.keys, part.counts).tolist(),
                part.times.tolist(),
                part.columns[0].tolist(),
                strict=True,
            )
        ]
        assert all((part.columns[1] == part.arrivals / 2).all() for part in parts)
        assert found == sorted(event for event in naive if event[1] <= frontier)
        naive = [event for event in naive if event[1] > frontier]
        assert len(waiting) == len(naive)


def events(times, keys, values):
    return pa.table({"ts": times, "k": keys, "v": values})


def cautious(seen, v):
    if v < 0:
        raise ValueError("less than nothing")
    return seen + 1, 1 if seen % 3 == 0 else 0, 1 if seen % 3 == 2 else 0


@pytest.mark.parametrize("mode", MODES)
def test_a_step_that_fails_leaves_all_keys_as_they_were(mode):
    windows = {"own": wr.deterministic(cautious, state=0), "rows": wr.sliding(rows=3, every_rows=1)}
    windows |= {"back": wr.slide_by_rows(5, every_rows=2), "latest": wr.latest(rows=2, every=4)}
    aggregates = {"n": wr.count(), "total": wr.sum("v"), "all": wr.collect("v"), "middle": wr.median("v")}
    query = wr.query(time="ts", key="k", windows=windows, aggregates=aggregates)
    operator = query.operator(mode=mode, lateness=6)
    operator.process(events([*range(20)], [*"abcab"] * 4, [*range(20)]))
    operator.advance(17)
    # A late event makes its key stale, a new key comes, and the last event of `c` cannot be taken.
    operator.process(events([13, 22, 24, 26, 28], ["a", "b", "d", "a", "c"], [1, 2, 3, 4, -1]))
    before = operator.snapshot()
    again = query.restore(before)
    for watermark in (21, 23):
        assert operator.advance(watermark).num_rows == again.advance(watermark).num_rows
    before = operator.snapshot()
    for _ in range(2):
        with pytest.raises(wr.UserFunctionError, match="less than nothing"):
            operator.advance(40)
        assert operator.snapshot() == before
    operator.process(events([25, 23], ["a", "d"], [7, 8]))
    operator.remove_window("own")
    restored = operator.query.restore(operator.snapshot())
    assert operator.advance(40).num_rows > 4
    restored.advance(40)
    assert operator.snapshot() == restored.snapshot()


def test_a_window_that_ends_with_the_stream_may_have_the_identity_of_one_that_was_given_out():
    windows = {"rows": wr.sliding(rows=2, every_rows=1)}
    query = wr.query(time="ts", windows=windows, aggregates={"n": wr.count()})
    steps = [("process", pa.table({"ts": [5, 5, 5]})), ("advance", 9)]
    check_steps(query, steps, mode="update", lateness=20)


def test_long_windows_do_not_keep_the_slices_of_short_ones():
    windows = {"long": wr.tumbling(rows=100_000), "short": wr.tumbling(rows=3)}
    query = wr.query(time="ts", key="k", windows=windows, aggregates={"n": wr.count()})
    operator = query.operator()
    for i in range(200):
        operator.process(events(range(50 * i, 50 * i + 50), [i % 2 for i in range(50)], [1] * 50))
        operator.advance(50 * i + 49)
    assert operator.metrics().live_slices < 600


@pytest.mark.parametrize(
    "window",
    [
        wr.tumbling(5, on="km"),
        wr.sliding(5, every=2, on="km"),
        wr.deterministic(lambda s, km: (s, 1, 0), state=0),
    ],
    ids=["tumbling", "sliding", "deterministic"],
)
def test_events_that_waited_before_a_window_was_added_may_lack_what_it_reads_in_snapshots_too(window):
    query = wr.query(time="t", windows={"r": wr.tumbling(rows=2)}, aggregates={"n": wr.count()})
    operator = query.operator()
    operator.process(pa.table({"t": [1, 2, 3], "km": [1, 2, 3]}))
    operator.add_window("x", window)
    later = wr.query(time="t", windows={"r": wr.tumbling(rows=2), "x": window}, aggregates={"n": wr.count()})
    restored = later.restore(operator.snapshot())
    for each in (operator, restored):
        each.process(pa.table({"t": [4, 5], "km": [4, 9]}))
    assert restored.finish().equals(operator.finish())

"""Policies of time: on a virtual clock, on a real one, and with two threads at once."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest
from patience import PATIENCE
from policies.support import HeldUpClock

from windrow import policies as wp

ROW = pa.table({"x": [1]})


def trace(window, clock):
    """Have events written down as (name, second, ids)."""
    told = []

    def listen(event):
        told.append((event.kind, event.at / 1e9, event.content["x"].to_pylist()))

    for name in window.events - {
        "before_insert",
        "after_insert",
        "partition_eviction",
        "partition_selection",
    }:
        window.on(name, listen)
    return told


def test_a_tumbling_window_is_flushed_every_period_from_its_creation_and_discarded_when_empty():
    clock = wp.VirtualClock()
    window = wp.TumblingWindow("tumbling, time(10)", ROW.schema, clock=clock)
    told = trace(window, clock)
    clock.advance(3)
    window.insert(ROW)
    clock.advance(15)
    window.insert(pa.table({"x": [2]}))
    clock.advance(20)
    window.insert(pa.table({"x": [3]}))
    clock.advance(11)
    flushes = [(at, ids) for name, at, ids in told if name == "before_flush"]
    assert flushes == [(13.0, [1]), (23.0, [2]), (48.0, [3])]


def test_rows_leave_when_they_are_older_than_the_period_and_before_a_trigger_of_the_same_instant():
    clock = wp.VirtualClock()
    window = wp.SlidingWindow("sliding, time(2), time(1)", ROW.schema, clock=clock)
    told = trace(window, clock)
    window.insert(ROW)
    clock.advance(1)
    window.insert(pa.table({"x": [2]}))
    clock.advance(3)
    assert told == [
        ("trigger", 1.0, [1]),
        ("initial_full", 2.0, [1, 2]),
        ("trigger", 2.0, [1, 2]),
        ("before_evict", 2.000000001, [1, 2]),
        ("after_evict", 2.000000001, [2]),
        ("trigger", 3.0, [2]),
        ("before_evict", 3.000000001, [2]),
        ("after_evict", 3.000000001, []),
        ("trigger", 4.0, []),
    ]


def test_a_window_that_was_held_up_is_triggered_in_succession():
    clock = HeldUpClock()
    window = wp.SlidingWindow("sliding, count(5), time(1)", ROW.schema, clock=clock)
    window.record("trigger")
    window.insert(ROW)
    clock.skip_to(4_500_000_000)
    tape = window.insert(pa.table({"x": [2]}))
    assert (tape.at / 1e9).tolist() == [1, 2, 3, 4]
    assert [tape.content(k)["x"].to_pylist() for k in range(4)] == [[1]] * 4


def test_triggers_wait_until_the_window_has_been_full_if_partial_windows_are_not_processed():
    clock = wp.VirtualClock()
    window = wp.SlidingWindow("sliding, time(3), time(1)", ROW.schema, clock=clock, partial_windows=False)
    told = trace(window, clock)
    window.insert(ROW)
    clock.advance(4)
    assert [(name, at) for name, at, _ in told if name in ("trigger", "initial_full")] == [
        ("initial_full", 3.0),
        ("trigger", 3.0),
        ("trigger", 4.0),
    ]


def failing():
    """A window with a row in it, whose handler raises, and its clock."""

    def fail(event):
        raise OSError("disk full")

    clock = HeldUpClock()
    window = wp.TumblingWindow("tumbling, time(1)", ROW.schema, clock=clock)
    window.on_before_flush(fail)
    window.insert(ROW)
    return window, clock


def test_what_a_handler_raises_on_the_clock_goes_to_the_next_caller():
    window, clock = failing()
    clock.advance(2)
    with pytest.raises(OSError, match="disk full") as raised:
        window.insert(ROW)
    assert "is finished" in raised.value.__notes__[0]
    assert len(window) == 0
    window.insert(ROW)
    assert len(window) == 1


def test_a_handler_that_raises_before_rows_are_taken_says_so():
    window, clock = failing()
    clock.skip_to(1_500_000_000)
    with pytest.raises(OSError, match="disk full") as raised:
        window.insert(ROW)
    assert "none of 1 rows was taken" in raised.value.__notes__[0]
    assert (len(window), window.taken) == (0, 1)


def test_a_closed_window_is_off_its_clock():
    clock = wp.VirtualClock()
    window = wp.TumblingWindow("tumbling, time(1)", ROW.schema, clock=clock)
    window.insert(ROW)
    window.close()
    clock.advance(5)
    assert len(window) == 1


def test_a_window_without_a_policy_of_time_has_no_timer():
    clock = wp.VirtualClock()
    window = wp.SlidingWindow("sliding, count(2), count(1)", ROW.schema, clock=clock)
    window.insert(ROW)
    assert not clock._calls
    with window.locked():
        assert window.content()["x"].to_pylist() == [1]


def test_a_real_clock_flushes_and_evicts_by_itself():
    flushed, emptied = threading.Event(), threading.Event()
    tumbling = wp.TumblingWindow("tumbling, time(0.02)", ROW.schema)
    tumbling.on_before_flush(lambda event: flushed.set())
    sliding = wp.SlidingWindow("sliding, time(0.02), count(1)", ROW.schema)
    sliding.on_after_evict(lambda event: emptied.set())
    tumbling.insert(ROW)
    sliding.insert(ROW)
    assert flushed.wait(PATIENCE)
    assert emptied.wait(PATIENCE)
    with tumbling.locked():
        assert len(tumbling) == 0
    tumbling.close()
    sliding.close()


def test_two_threads_and_a_timer_lose_no_row_and_see_none_twice():
    """Each row is flushed exactly once; the content is looked at under the lock meanwhile."""
    schema = pa.schema([("k", pa.int64()), ("id", pa.int64())])
    window = wp.TumblingWindow("tumbling, time(0.002), partitioned", schema, partition_by="k")
    flushed, rows, begun = [], 400, threading.Barrier(3)
    window.on_before_flush(lambda event: flushed.extend(event.content["id"].to_pylist()))

    def insert(thread):
        begun.wait()
        for i in range(rows):
            window.insert(pa.table({"k": [i % 3], "id": [thread * rows + i]}, schema))

    threads = [threading.Thread(target=insert, args=(t,)) for t in (0, 1)]
    for thread in threads:
        thread.start()
    begun.wait()
    while any(thread.is_alive() for thread in threads):
        with window.locked():
            held = sum(window.content(key).num_rows for key in window.partitions()["k"].to_pylist())
            assert held == len(window)
    for thread in threads:
        thread.join()
    with window.locked():
        window.close()
        kept = [i for k in window.partitions()["k"].to_pylist() for i in window.content(k)["id"].to_pylist()]
    assert sorted(flushed + kept) == list(range(2 * rows))

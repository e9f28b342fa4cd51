"""Several threads on one window, and the threads of clocks: who waits for whom, and when they end."""

from __future__ import annotations

import subprocess
import sys
import threading

import pyarrow as pa
import pytest

import windrow as wr
from windrow import policies as wp
from windrow.errors import QueryError

ROW = pa.table({"x": [1]})
HOUR = "tumbling, time(1 hour)"
# Nothing here takes long; a test that hangs ends.
PATIENCE = 60


def clocks():
    return [thread for thread in threading.enumerate() if thread.name == "windrow clock"]


def ended(threads):
    for thread in threads:
        thread.join(PATIENCE)
    return not any(thread.is_alive() for thread in threads)


def at_once(function, count=4):
    """Call a function with 0, 1, .. in as many threads, which begin together; what any of them raised."""
    begun, raised = threading.Barrier(count), []

    def run(number):
        begun.wait(PATIENCE)
        try:
            function(number)
        except Exception as problem:  # whatever it is, the test shows it
            raised.append(problem)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    assert ended(threads)
    return raised


@pytest.mark.parametrize("window", ["tumbling, count(3)", "sliding, count(3), count(1)"])
def test_four_threads_on_one_window_wait_for_each_other(window):
    kind = wp.TumblingWindow if window.startswith("tumbling") else wp.SlidingWindow
    made, seen = kind(window, ROW.schema), []
    made.on_after_insert(lambda event: seen.append(event.tuple["x"][0].as_py()))

    def insert(thread):
        for i in range(50):
            made.insert(pa.table({"x": [100 * thread + i, 100 * thread + 50 + i]}))

    assert at_once(insert) == []
    assert sorted(seen) == list(range(400))
    assert made.taken == 400


class Watched:
    """A lock that tells when another thread than its maker's wants it."""

    def __init__(self, lock):
        self._lock, self._mine, self.wanted = lock, threading.get_ident(), threading.Event()

    def __enter__(self):
        if threading.get_ident() != self._mine:
            self.wanted.set()
        self._lock.acquire()

    def __exit__(self, *problem):
        self._lock.release()


def test_a_call_waits_for_a_handler_in_another_thread_and_is_refused_in_its_own():
    window, refused, raised = wp.TumblingWindow("tumbling, count(9)", ROW.schema), [], []
    window._lock = watched = Watched(window._lock)

    def insert():
        try:
            window.insert(pa.table({"x": [2]}))
        except QueryError as problem:
            raised.append(problem)

    other = threading.Thread(target=insert)

    def handler(event):
        if event.row == 0 and not watched.wanted.is_set():
            other.start()
            assert watched.wanted.wait(PATIENCE)
            with pytest.raises(QueryError, match="insert was called by a handler of this window") as problem:
                window.insert(ROW)
            refused.append(problem)

    window.on_after_insert(handler)
    window.insert(ROW)
    assert ended([other])
    assert (len(refused), raised) == (1, [])
    assert window.content()["x"].to_pylist() == [1, 2]


def test_four_threads_may_bring_the_first_rows_of_an_operator():
    total = wp.Aggregate("tumbling, count(400)", {"total": wr.sum("x")})
    given = []

    def process(thread):
        for _ in range(100):
            given.extend(total.process(ROW)[0].table.to_pylist())

    assert at_once(process) == []
    assert given == [{"total": 400}]


def test_four_threads_each_get_their_own_rows_back():
    unique, given = wp.Deduplicate("sliding, count(100), count(1)", "x"), {}

    def process(thread):
        given[thread] = unique.process(pa.table({"x": [thread, 9, thread]}))[0].table["x"].to_pylist()

    assert at_once(process) == []
    assert sum(9 in rows for rows in given.values()) == 1
    assert all(rows[0] == thread and set(rows) <= {thread, 9} for thread, rows in given.items())


OPERATORS = {
    "aggregate": lambda: wp.Aggregate(HOUR, {"n": wr.count()}),
    "kept": lambda: wp.Aggregate(HOUR, {"n": wr.median("x")}),
    "sort": lambda: wp.Sort("sliding, time(1 hour), count(1)", "x"),
    "deduplicate": lambda: wp.Deduplicate("sliding, time(1 hour), count(1)", "x"),
    "join": lambda: wp.Join(*["sliding, time(1 hour), count(1)"] * 2, on="x"),
}


def running(name):
    """An operator with a row, and the threads of its clocks."""
    before, operator = clocks(), OPERATORS[name]()
    for port in range(len(operator.model.inputs)):
        operator.process(ROW, port)
    return operator, [thread for thread in clocks() if thread not in before]


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_that_is_dropped_ends_its_threads(name):
    operators, threads = zip(*(running(name) for _ in range(3)), strict=True)
    assert all(threads)
    del operators
    assert ended([thread for some in threads for thread in some])


def test_an_operator_that_is_closed_ends_its_thread():
    operator, threads = running("aggregate")
    operator.close()
    assert ended(threads)
    assert operator.process(ROW)[0].table.num_rows == 0
    assert len(operator.window) == 2


def test_a_flow_that_is_closed_ends_the_threads_of_its_operators():
    before, flow = clocks(), wp.Flow()
    rows = flow.source("rows")
    for name in ("aggregate", "sort"):
        flow.add(name, OPERATORS[name](), rows)
    flow.process("rows", ROW)
    threads = [thread for thread in clocks() if thread not in before]
    assert len(threads) == 2
    flow.close()
    assert ended(threads)


def test_a_window_that_is_dropped_is_off_its_clock():
    clock = wp.VirtualClock()
    window = wp.TumblingWindow(HOUR, ROW.schema, clock=clock)
    window.insert(ROW)
    assert not clock._calls[0].cancelled
    del window
    assert clock._calls[0].cancelled
    clock.advance("2 hours")


def test_a_clock_whose_calls_are_over_ends_its_thread_and_begins_another():
    clock = wp.RealClock()
    for _ in range(2):
        called = threading.Event()
        call = clock.call_at(clock.now() + 3600 * 10**9, called.set)
        thread = clock._thread
        clock.call_at(clock.now(), called.set)
        assert called.wait(PATIENCE)
        call.cancel()
        assert ended([thread])
        assert clock._thread is None


def test_a_program_with_running_clocks_comes_to_an_end():
    program = """
import pyarrow as pa, windrow as wr
from windrow import policies as wp
kept = [wp.Aggregate("tumbling, time(0.001)", {"n": wr.count()}) for _ in range(5)]
for operator in kept:
    operator.process(pa.table({"x": [1]}))
kept[0].me = kept
print("done")
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=5 * PATIENCE, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")

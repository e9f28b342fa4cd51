"""PBA on two threads, and SBA over whole columns: the same answers, however rows come, and whatever fails."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from functions import DIGITS
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENCE
from profiles import NIGHTLY

import windrow as wr
from windrow.engine.functions.bound_kernels import giving_answers, operations_of
from windrow.rolling import Rolling, answering, held, parallel

# One that selects, one with an inverse, one that depends on order, one with arrays; at night two of several numbers.
AGGREGATES = {
    "max": wr.max("x"),
    "sum": wr.sum("x"),
    "user": DIGITS,
    "sketch": wr.histogram("x", low=0, high=10, bins=5),
}
if NIGHTLY:
    AGGREGATES |= {"mean": wr.mean("x"), "first": wr.first("x")}


@pytest.fixture(autouse=True, scope="module")
def _two_threads_for_little_work():
    """Columns of a test are short: let them be shared, and answers be made in the loop, nevertheless."""
    patch = pytest.MonkeyPatch()
    patch.setattr(held, "LEAST_FOR_TWO_THREADS", 4)
    patch.setattr(parallel, "LEAST_ROWS", 60)
    patch.setattr(answering, "LEAST_ANSWERS", 40)
    yield
    patch.undo()


def answers(aggregate, column, *, size, store, cuts=(), every=1):
    window = Rolling(aggregate, rows=size, every=every, store=store)
    parts = np.split(column, sorted(cuts))
    return [a for part in parts for a in window.process(pa.table({"x": part})).to_pylist()]


COLUMNS = st.integers(0, 2**32 - 1).map(lambda seed: np.random.default_rng(seed).integers(0, 9, 200))
CUTS = st.lists(st.integers(0, 200), max_size=6)


@pytest.mark.parametrize("name", AGGREGATES)
@given(column=COLUMNS, size=st.integers(1, 70), cuts=CUTS)
def test_sba_and_pba_agree_with_lazy(name, column, size, cuts):
    aggregate = AGGREGATES[name]
    wanted = answers(aggregate, column, size=size, store="lazy")
    for store in ("sba", "pba"):
        assert answers(aggregate, column, size=size, store=store, cuts=cuts) == wanted


@given(column=COLUMNS, size=st.integers(1, 90), every=st.integers(2, 9), cuts=CUTS)
def test_they_agree_for_longer_slides(column, size, every, cuts):
    wanted = answers(wr.max("x"), column, size=size, every=every, store="lazy")
    for store in ("sba", "pba"):
        assert answers(wr.max("x"), column, size=size, every=every, store=store, cuts=cuts) == wanted


@given(column=COLUMNS, period=st.integers(1, 120), every=st.integers(1, 9), cuts=CUTS)
def test_they_agree_for_windows_of_time(column, period, every, cuts):
    def found(store):
        window = Rolling(wr.sum("x"), time="t", period=period, every=every, store=store)
        times = np.cumsum(column % 4)
        parts = [np.split(c, sorted(cuts)) for c in (times, column)]
        tables = [pa.table({"t": t, "x": x}) for t, x in zip(*parts, strict=True)]
        return [row for table in tables for row in window.process(table).to_pylist()]

    wanted = found("lazy")
    for store in ("sba", "pba"):
        assert found(store) == wanted


@given(column=COLUMNS, size=st.integers(1, 70), cuts=CUTS)
def test_subtracting_in_one_loop_agrees_with_lazy(column, size, cuts):
    wanted = answers(wr.sum("x"), column, size=size, store="lazy")
    assert answers(wr.sum("x"), column, size=size, store="subtract_on_evict", cuts=cuts) == wanted


@pytest.mark.parametrize("store", ["subtract_on_evict", "pba"])
def test_a_sum_that_does_not_fit_is_named_and_leaves_all_as_it_was(store):
    column = np.arange(200)
    column[150] = 2**63 - 1
    window = Rolling(wr.sum("x"), rows=20, store=store)
    window.process(pa.table({"x": np.arange(20)}))
    with pytest.raises(wr.DataError, match=r"row 150, .* the 20 rows that end with row 150 overflows int64"):
        window.process(pa.table({"x": column}))
    found = window.process(pa.table({"x": np.arange(20, 220)})).to_pylist()
    assert found == [sum(range(i + 1, i + 21)) for i in range(200)]


@given(column=COLUMNS, size=st.integers(1, 70), cuts=CUTS)
def test_float_sums_have_the_same_bits_however_rows_come_and_on_any_number_of_threads(column, size, cuts):
    floats = column * 0.1 + 1e15 * (column == 3)
    wanted = answers(wr.sum("x"), floats, size=size, store="sba")
    for store in ("sba", "pba"):
        assert answers(wr.sum("x"), floats, size=size, store=store, cuts=cuts) == wanted


@given(column=COLUMNS, size=st.integers(1, 70), cuts=CUTS)
def test_nan_is_the_greatest_and_leaves_with_its_window(column, size, cuts):
    floats = np.where(column == 8, np.nan, column - 4.0)
    for store in ("sba", "pba"):
        for aggregate, of in ((wr.max("x"), np.max), (wr.min("x"), np.fmin.reduce)):
            found = answers(aggregate, floats, size=size, store=store, cuts=cuts)
            windows = np.lib.stride_tricks.sliding_window_view(floats, size)
            np.testing.assert_array_equal(found, [of(w) for w in windows])


def test_nulls_and_whole_columns_take_turns():
    column = [None if i % 17 == 5 and 80 < i < 120 else i % 11 for i in range(240)]
    for store in ("sba", "pba", "lazy"):
        window = Rolling(wr.max("x"), rows=30, store=store)
        parts = [column[:70], column[70:130], column[130:]]
        found = [a for part in parts for a in window.process(pa.table({"x": part})).to_pylist()]
        assert found == [max(v for v in column[i : i + 30] if v is not None) for i in range(211)]


def test_new_strings_may_come_while_lcs_are_made():
    words = [f"{(i * 7919) % 1009:04}" for i in range(300)]
    for cuts in (range(10, 300, 10), [150]):
        window = Rolling(wr.min("x"), rows=50, store="pba")
        parts = [words[a:b] for a, b in zip([0, *cuts], [*cuts, 300], strict=True)]
        found = [a for part in parts for a in window.process(pa.table({"x": part})).to_pylist()]
        assert found == [min(words[i : i + 50]) for i in range(251)]


def test_a_loop_that_gives_answers_is_compiled_once_for_all_windows():
    bounds = [wr.max("x").bind((pa.int64(),)) for _ in range(2)]
    first, second = (giving_answers(operations_of(bound), bound) for bound in bounds)
    assert first is second


# -- what fails on the second thread ------------------------------------------------------------------


def _combine(a, b):
    if a[0] == 1 and a[1] == 13 and b[0] > 1:
        raise ValueError("thirteen comes before others")
    return a[0] + b[0], max(a[1], b[1])


# Accumulating from the left, nothing stands before many others alone: only `lcs` fails.
SUPERSTITIOUS = wr.aggregate(
    lift=lambda x: (1, x), combine=_combine, lower=lambda a: a[1], identity=(0, 0), name="superstitious"
)


class Recorder:
    """A pool of threads that knows what it was given."""

    def __init__(self, pool):
        self._pool = pool
        self.begun = []

    def submit(self, *work):
        self.begun.append(self._pool.submit(*work))
        return self.begun[-1]


@pytest.fixture
def problems(monkeypatch):
    """What was raised on a second thread, of either kind, when a call has failed."""
    recorder, found = Recorder(parallel.helpers()), []
    monkeypatch.setattr(parallel, "helpers", lambda: recorder)
    collected, forget = parallel.Helper.collected, parallel.Helper.forget

    def collecting(helper, state):
        try:
            return collected(helper, state)
        except Exception as problem:
            found.append(problem)
            raise

    def forgetting(helper):
        forget(helper)
        found.extend(begun.exception() for begun in recorder.begun)
        recorder.begun.clear()

    monkeypatch.setattr(parallel.Helper, "collected", collecting)
    monkeypatch.setattr(parallel.Helper, "forget", forgetting)
    return found


@pytest.mark.parametrize("length", [30, 150], ids=["beside", "both"])
def test_a_failure_on_the_second_thread_is_raised_and_leaves_all_as_it_was(length, problems):
    good = np.arange(600) % 7
    bad = good[:length].copy()
    bad[length - 25] = 13
    window, other = (Rolling(SUPERSTITIOUS, rows=40, store="pba") for _ in range(2))
    for part in (good[:45], good[45:61]):
        assert window.process(pa.table({"x": part})) == other.process(pa.table({"x": part}))
    for _ in range(2):
        problems.clear()
        with pytest.raises(wr.UserFunctionError, match="thirteen"):
            window.process(pa.table({"x": bad}))
        assert any(problems)
    for part in (good[61:90], good[90:300], good[300:]):
        assert window.process(pa.table({"x": part})) == other.process(pa.table({"x": part}))


def test_interpreted_functions_do_without_a_second_thread_as_python_runs_one_at_a_time():
    seen = set()

    def combine(a, b):
        seen.add(threading.get_ident())
        return max(a, b)

    largest = wr.aggregate(lift=lambda x: x, combine=combine, lower=lambda a: a, identity=0, name="largest")
    column = np.arange(300) * 7 % 101
    with pytest.warns(UserWarning, match="plain Python"):
        found = answers(largest, column, size=40, store="pba", cuts=range(20, 300, 20))
    assert found == answers(wr.max("x"), column, size=40, store="lazy")
    assert len(seen) == 1


def test_what_fails_on_the_second_thread_of_a_built_in_aggregate_is_raised_as_it_is(monkeypatch):
    def no_memory(*_):
        raise MemoryError("no room for lcs")

    window = Rolling(wr.max("x"), rows=40, store="pba")
    window.process(pa.table({"x": np.arange(5)}))
    monkeypatch.setattr(window._held._helper, "_accumulate", no_memory)
    parts = [pa.table({"x": part}) for part in np.array_split(np.arange(5, 100), 10)]
    with pytest.raises(MemoryError, match="no room for lcs"):
        list(map(window.process, parts))
    with pytest.raises(wr.StateError, match="neither old nor new"):
        window.process(pa.table({"x": np.arange(5)}))


def test_what_no_helper_has_begun_the_caller_does_itself(monkeypatch):
    class Busy:
        submit = staticmethod(lambda *work: None)

    monkeypatch.setattr(parallel, "helpers", Busy)
    column = np.arange(300) * 7 % 101
    found = answers(wr.max("x"), column, size=40, store="pba", cuts=range(20, 300, 20))
    assert found == answers(wr.max("x"), column, size=40, store="lazy")


def test_without_room_for_another_thread_the_store_does_all_itself(monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    column = np.arange(300) * 7 % 101
    found = answers(wr.max("x"), column, size=40, store="pba", cuts=range(20, 50, 20))
    assert found == answers(wr.max("x"), column, size=40, store="lazy")


def test_an_interrupted_call_leaves_a_second_thread_that_can_go_on(monkeypatch):
    column = np.arange(400) * 7 % 101
    window, other = (Rolling(wr.max("x"), rows=40, store=store) for store in ("pba", "lazy"))
    monkeypatch.setattr(held, "ROWS_PER_COPY", 0)  # as if each call were long
    for part in np.array_split(column[:200], 20):
        assert window.process(pa.table({"x": part})) == other.process(pa.table({"x": part}))
    with monkeypatch.context() as patch:
        patch.setattr(held.Held, "answers", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            window.process(pa.table({"x": column[200:235]}))
    for part in np.array_split(column[200:], 20):
        assert window.process(pa.table({"x": part})) == other.process(pa.table({"x": part}))


def _interrupted(*_):
    raise KeyboardInterrupt


# -- threads and processes --------------------------------------------------------------------------


def test_several_windows_at_once_do_not_disturb_each_other():
    columns = [np.random.default_rng(seed).integers(0, 1000, 2000) for seed in range(6)]

    def work(column):
        return answers(wr.max("x"), column, size=90, store="pba", cuts=range(50, 2000, 50))

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(work, columns))
    assert found == [answers(wr.max("x"), c, size=90, store="lazy") for c in columns]


def test_windows_have_no_threads_but_the_helpers_of_the_process():
    before = set(threading.enumerate())
    for _ in range(20):
        answers(wr.max("x"), np.arange(300), size=40, store="pba", cuts=range(20, 300, 20))
    assert set(threading.enumerate()) - before <= parallel.helpers()._threads


def test_a_process_ends_while_a_second_thread_waits_for_work():
    program = (
        "import numpy as np, pyarrow as pa, windrow as wr\n"
        "from windrow.rolling import Rolling, held, parallel\n"
        "held.LEAST_FOR_TWO_THREADS = 4\n"
        "window = Rolling(wr.max('x'), rows=40, store='pba')\n"
        "for part in np.array_split(np.arange(200), 10):\n"
        "    window.process(pa.table({'x': part}))\n"
        "assert window._held._helper is not None and parallel.helpers()._threads\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_that_is_a_daemon_goes_on_with_a_thread_of_its_own():
    column = np.arange(400) * 7 % 101
    wanted = answers(wr.max("x"), column, size=40, store="lazy")
    window = Rolling(wr.max("x"), rows=40, store="pba")
    # With the 84th row a chunk is full, and the second thread has work when the process is copied.
    begin = window.process(pa.table({"x": column[:84]})).to_pylist()

    def go_on():
        end = [
            a for p in np.array_split(column[84:], 30) for a in window.process(pa.table({"x": p})).to_pylist()
        ]
        assert begin + end == wanted

    child = multiprocessing.get_context("fork").Process(target=go_on, daemon=True)
    child.start()
    child.join(PATIENCE)
    assert child.exitcode == 0
    go_on_here = window.process(pa.table({"x": column[84:]})).to_pylist()
    assert begin + go_on_here == wanted

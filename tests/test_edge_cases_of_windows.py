"""Windows at the ends of number ranges, on inexact floats, and after an advance that failed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import windrow as wr
from tests.referee import answers, assert_same
from windrow.aggregates.quantile import Quantile

FAR = 8_000_000_000_000_000_000


def query(window, **aggregates):
    return wr.query(time="t", windows={"w": window}, aggregates=aggregates or {"n": wr.count()})


def rows(table):
    return sorted((r["start"], r["end"], r["n"]) for r in table.to_pylist())


@pytest.mark.parametrize("key", [(), "k"])
def test_events_at_both_ends_of_time_are_two_sessions(key):
    table = pa.table({"t": [-FAR, FAR], "k": [1, 1]})
    q = wr.query(time="t", key=key, windows={"w": wr.session(2)}, aggregates={"n": wr.count()})
    assert rows(q.run(table)) == [(-FAR, -FAR + 2, 1), (FAR, FAR + 2, 1)]


@pytest.mark.parametrize("gap", [2.48, 0.1, 0.3, 1e-3])
def test_sessions_of_inexact_gaps_agree_with_the_oracle(gap):
    random = np.random.default_rng(1)
    times = np.round(np.cumsum(random.choice([gap, gap / 2, gap * 1.01], 200)), 6) - 2.02
    table = pa.table({"t": times})
    q = query(wr.session(gap))
    assert_same(answers(q, table), q.run(table))


@pytest.mark.parametrize(("since", "every"), [(100.1, 0.3), (0.7, 0.1), (-3.3, 1.1), (1e6 + 0.1, 0.7)])
def test_landmark_steps_are_cut_where_they_end(since, every):
    edges = since + np.arange(30) * every
    table = pa.table({"t": np.concatenate([edges, np.nextafter(edges, -np.inf)[1:], edges + every / 3])})
    q = query(wr.landmark(since=since, every=every))
    assert_same(answers(q, table), q.run(table))


def test_a_session_may_not_end_at_the_last_tick():
    table = pa.table({"t": [0], "g": [2**63 - 1]})
    with pytest.raises(wr.DataError, match="column 'g', row 0, value 9223372036854775807"):
        query(wr.session("g")).run(table)
    assert rows(query(wr.session("g")).run(pa.table({"t": [0], "g": [2**63 - 4]}))) == [(0, 2**63 - 4, 1)]


def test_many_sessions_take_their_gap_from_a_column():
    windows = {f"w{i}": wr.session("g") for i in range(40)}
    q = wr.query(time="t", windows=windows, aggregates={"n": wr.count()})
    assert q.run(pa.table({"t": [1], "g": [1]}))["end"].to_pylist() == [2] * 40


def test_times_too_far_for_close_looks_are_bad():
    with pytest.raises(wr.DataError, match="column 't', row 1"):
        query(wr.latest(rows=2, every=1e-3)).run(pa.table({"t": [1.0, 1e16, 1e300]}))


def test_windows_that_advance_with_the_time_column_are_exact():
    second = 1_000_000_000
    times = pa.array([1_700_000_000 * second - 1, 1_700_000_000 * second], pa.timestamp("ns"))
    result = query(wr.tumbling(second, on="t")).run(pa.table({"t": times}))
    assert result["n"].to_pylist() == [1, 1]


@pytest.mark.parametrize("aggregate", [wr.collect("x"), wr.median("x")], ids=str)
def test_events_kept_for_a_window_that_never_ends_are_limited(aggregate):
    operator = query(wr.threshold(where="m"), a=aggregate).operator(max_slices=1000)

    def feed(first, count):
        times = np.arange(first, first + count)
        operator.process(pa.table({"t": times, "x": times, "m": [True] * count}))
        operator.advance(first + count - 1)

    for i in range(10):
        feed(100 * i, 100)
    if isinstance(aggregate, Quantile):
        feed(1000, 1)  # how many of these values are different is known only afterwards
    with pytest.raises(wr.LimitError, match="1,001 values of x would be kept one by one"):
        feed(1001, 1)


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("step", ["advance", "finish"])
def test_a_failed_advance_leaves_the_operator_as_it_was(mode, step):
    big = 2**62
    q = query(wr.tumbling(rows=2), total=wr.sum("x"), letters=wr.concat("s"))
    operator = q.operator(mode=mode)
    operator.process(pa.table({"t": [1, 2, 8], "x": [big, big, 1], "s": ["a", "b", "e"]}))
    before = operator.snapshot()
    with pytest.raises(wr.DataError, match="overflows int64"):
        operator.advance(5) if step == "advance" else operator.finish()
    assert operator.snapshot() == before
    operator.process(pa.table({"t": [0, 9], "x": [1, 2], "s": ["z", "f"]}))
    operator.remove_aggregate("total")
    result = operator.finish().to_pylist()
    assert sorted((r["start"], r["end"], r["letters"]) for r in result) == [
        (0, 2, "za"),
        (2, 9, "be"),
        (9, 10, "f"),
    ]


def test_an_operator_can_be_restored_before_its_first_event():
    q = query(wr.tumbling(rows=2))
    operator = q.operator()
    operator.process(pa.table({"t": pa.array([], pa.int64())}))
    restored = q.restore(operator.snapshot())
    restored.process(pa.table({"t": [1, 2]}))
    assert rows(restored.finish()) == [(1, 3, 2)]


@pytest.mark.parametrize("mode", ["append", "update"])
def test_windows_of_other_kinds_can_come_and_go(mode):
    operator = query(wr.tumbling(10)).operator(mode=mode, lateness=5)
    operator.process(pa.table({"t": [1, 2, 12]}))
    assert operator.add_window("s", wr.session(3)) == 16
    assert operator.add_window("r", wr.tumbling(rows=2)) == 13
    operator = operator.query.restore(operator.snapshot())
    operator.process(pa.table({"t": [13, 20, 21, 30]}))
    results = [operator.advance(40)]
    operator.remove_window("w")
    operator = operator.query.restore(operator.snapshot())
    results.append(operator.finish())
    found = sorted((r["window"], r["start"], r["end"], r["n"]) for t in results for r in t.to_pylist())
    assert found == [
        ("r", 13, 21, 2),
        ("r", 21, 31, 2),
        ("s", 20, 24, 2),
        ("s", 30, 33, 1),
        ("w", 0, 10, 2),
        ("w", 10, 20, 2),
        ("w", 20, 30, 2),
        *([("w", 30, 40, 1)] if mode == "update" else []),
    ]


def test_the_last_window_that_needs_order_can_be_removed():
    windows = {"w": wr.tumbling(10), "r": wr.tumbling(rows=2), "s": wr.session(3)}
    operator = wr.query(time="t", windows=windows, aggregates={"n": wr.count(), "x": wr.sum("x")}).operator()
    operator.process(pa.table({"t": [1, 2, 12], "x": [1, 2, 3]}))
    operator.remove_window("r")
    operator = operator.query.restore(operator.snapshot())
    operator.remove_window("s")
    operator.add_aggregate("all", wr.collect("x"))
    operator = operator.query.restore(operator.snapshot())
    operator.process(pa.table({"t": [11, 21], "x": [4, 5]}))
    found = {(r["start"], r["n"], r["x"], tuple(r["all"] or ())) for r in operator.finish().to_pylist()}
    assert found == {(0, 2, 3, ()), (10, 2, 7, ()), (20, 1, 5, (5,))}

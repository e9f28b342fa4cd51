"""States of discretizers: damaged ones are refused, extreme times and many keys are borne."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest
from sequences import Engine, discretized, schema_of, twin_of

import windrow as wr
from windrow.engine.sequence import Run, discretizer_for
from windrow.measure import Measure

INTEGERS = Measure("t", pa.int64())
FLOATS = Measure("t", pa.float64())
LOW, HIGH = -(2**63), 2**63 - 1


def counting(state, x):
    return state + 1, 1 if state % 3 == 0 else 0, 1 if state % 3 == 2 else 0


WINDOWS = {
    "rows": wr.sliding(rows=5, every_rows=2),
    "punctuated": wr.punctuated("m"),
    "threshold": wr.threshold("m", at_least=2),
    "delta": wr.delta("x", by=1, moves=2),
    "advancing": wr.sliding(4, every=2, on="x"),
    "slide by rows": wr.slide_by_rows(4, every_rows=2),
    "latest": wr.latest(rows=3, every=4),
    "deterministic": wr.deterministic(counting, state=0),
    "nondeterministic": wr.nondeterministic(
        evict=lambda rows: 1 if rows > 3 else 0, trigger=lambda m: m, update=lambda state: state + 1
    ),
}
EVENTS = [(i % 2, i, i % 4, i % 3 == 0) for i in range(20)]


def schema(measure=INTEGERS):
    return schema_of({"x": pa.int64(), "m": pa.bool_()}, measure)


def started(case, measure=INTEGERS):
    engine = Engine(WINDOWS[case], measure, schema(measure), 2)
    engine.release(EVENTS, 19)
    return engine


def damaged(arrays):
    """Every way to break one array, one by one."""
    for name, array in arrays.items():
        rest = {k: v for k, v in arrays.items() if k != name}
        yield f"{name} missing", rest
        yield (
            f"{name} longer",
            rest | {name: np.append(array, array[:1] if len(array) else array.dtype.type(0))},
        )
        yield f"{name} of another type", rest | {name: array.astype(np.float32)}
        yield f"{name} of two dimensions", rest | {name: array.reshape(-1, 1)}
        if len(array):
            yield f"{name} shorter", rest | {name: array[:-1]}
        if not name.startswith(
            ("state", "anchor", "oldest", "following", "bound", "last", "due", "open_time")
        ):
            for wrong in (-1, 10**6):
                if array.dtype == np.uint8:
                    wrong = 7
                broken = array.copy()
                broken[-1:] = wrong
                if len(array):
                    yield f"{name} = {wrong}", rest | {name: broken}
        if array.dtype == np.float64 and name.startswith(("last", "due", "open_time")) and len(array):
            broken = array.copy()
            broken[0] = np.nan
            yield f"{name} not a number", rest | {name: broken}


def refuses(engine, arrays):
    try:
        engine.discretizer.load(arrays, 2, engine.seen)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("measure", [INTEGERS, FLOATS], ids=["integers", "floats"])
@pytest.mark.parametrize("case", WINDOWS)
def test_a_damaged_state_is_refused_and_changes_nothing(case, measure):
    engine = started(case, measure)
    saved = engine.discretizer.save()
    for what, arrays in damaged(saved):
        assert refuses(engine, arrays), what
    kept = engine.discretizer.save()
    assert all(np.array_equal(saved[name], kept[name]) for name in saved)


@pytest.mark.parametrize("case", WINDOWS)
def test_queues_out_of_order_are_refused(case):
    engine = started(case)
    saved = engine.discretizer.save()
    if len(saved.get("open_key", ())) < 2:
        return
    with pytest.raises(ValueError, match=r"sorted|order"):
        engine.discretizer.load(
            {k: v[::-1].copy() if k.startswith("open") else v for k, v in saved.items()}, 2, engine.seen
        )


@pytest.mark.parametrize("case", WINDOWS)
def test_memory_is_counted(case):
    engine = started(case)
    assert engine.discretizer.nbytes >= sum(a.nbytes for a in engine.discretizer.save().values())


@pytest.mark.parametrize("case", WINDOWS)
def test_a_run_without_events_does_nothing(case):
    engine = started(case)
    saved = engine.discretizer.save()
    nothing = np.empty(0, np.int64)
    empty = pa.RecordBatch.from_pylist([], schema=schema())
    inputs = engine.discretizer.inputs(empty, nothing)
    run = Run(inputs, nothing, nothing, np.zeros(1, np.int64), nothing, engine.tail_times(None))
    assert len(engine.discretizer.release(run)) == 0
    kept = engine.discretizer.save()
    assert all(np.array_equal(saved[name], kept[name]) for name in saved)


@pytest.mark.parametrize("case", WINDOWS)
def test_times_at_the_ends_of_the_range_are_borne(case):
    times = [LOW + 1, LOW + 2, -1, 0, 1, HIGH - 2, HIGH - 1, HIGH]
    events = [(0, t, i % 3, i % 2 == 0) for i, t in enumerate(times)]
    once = discretized(WINDOWS[case], INTEGERS, schema(), events)
    assert discretized(WINDOWS[case], INTEGERS, schema(), events, range(len(events))) == once
    assert all(start <= finish for *_, start, finish in once)


@pytest.mark.parametrize("values", [[LOW, HIGH, LOW, LOW, HIGH], [LOW, LOW + 1, -1, 0, 1, HIGH - 1, HIGH]])
def test_values_at_the_ends_of_the_range_are_borne(values):
    events = [(0, t, x, True) for t, x in enumerate(values)]
    found = discretized(wr.delta("x", by=HIGH), INTEGERS, schema(), events)
    begins = [0]
    for i, x in enumerate(values):
        if abs(x - values[begins[-1]]) > HIGH:
            begins.append(i)
    assert [w[1] for w in found] == begins
    for length, every, offset in ((2**62, 2**62, 0), (2**62, 2**62, 2**62 - 1), (1000, 1000, 7), (7, 3, -1)):
        window = wr.sliding(length, every=every, on="x", offset=offset)
        found = discretized(window, INTEGERS, schema(), events, range(len(events)))
        highest = np.maximum.accumulate(np.array(values, object))
        wanted = set()
        for m in set(highest.tolist()):
            k = (m - offset) // every
            while offset + k * every + length > m:
                held = [
                    i for i, h in enumerate(highest) if offset + k * every <= h < offset + k * every + length
                ]
                wanted.add((held[0], held[-1] + 1, k))
                k -= 1
        assert [w[1:3] for w in found] == sorted((b, e) for b, e, _ in wanted)


def test_long_windows_of_time_do_not_overflow():
    events = [(0, t, 0, i != 3) for i, t in enumerate([LOW + 1, 0, HIGH - 1, HIGH])]
    found = discretized(wr.threshold("m", at_least=HIGH), INTEGERS, schema(), events)
    assert found == [(0, 0, 3, LOW + 1, HIGH)]
    found = discretized(wr.slide_by_rows(HIGH, every_rows=3), INTEGERS, schema(), events)
    assert [w[1:3] for w in found] == [(1, 3)]


def test_looks_and_tails_pass_with_time_alone():
    engine = Engine(WINDOWS["latest"], INTEGERS, schema(), 2)
    engine.release([(0, 1, 0, True)], 1)
    assert engine.discretizer.tail(engine.seen).tolist() == [0, 0]
    engine.expire(3)
    assert engine.found == []
    engine.expire(4)
    assert engine.found == [(0, 0, 1, 1, 4)]
    engine.expire(400)
    assert len(engine.found) == 1
    engine = Engine(WINDOWS["slide by rows"], INTEGERS, schema(), 2)
    engine.release([(0, 1, 0, True), (0, 2, 0, True)], 2)
    assert engine.found == []
    assert engine.discretizer.tail(engine.seen).tolist() == [0, 0]
    engine.expire(3)
    assert engine.found == [(0, 0, 2, -1, 3)]
    engine.expire(6)
    assert engine.discretizer.tail(engine.seen).tolist() == [2, 0]


def test_too_many_count_windows_meet_a_limit():
    engine = Engine(wr.sliding(rows=10_000_000, every_rows=1), INTEGERS, schema(), 12)
    engine.seen[:] = 999_990
    keys = np.arange(12)
    for key in keys:
        engine.discretizer.state["seen"][key] = 999_990
    engine.discretizer.open = 12 * 999_990 - 1_999_990
    run = Run(
        [], np.ones(120, np.int64), keys, np.arange(13) * 10, engine.seen[keys], engine.tail_times(None)
    )
    with pytest.raises(wr.LimitError, match="10,000,000"):
        engine.discretizer.release(run)
    assert engine.discretizer.state["seen"].tolist() == [999_990] * 12


@pytest.mark.parametrize("case", WINDOWS)
def test_a_small_run_costs_little_however_many_keys_there_are(case):
    keys = 100_000
    times = np.zeros(keys, np.int64)
    arrays = [pa.array(times), pa.array(np.arange(keys) % 3), pa.array(np.arange(keys) % 2 == 0)]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema())
    one = discretizer_for(WINDOWS[case], INTEGERS, schema())
    one.grow(keys)
    seen = np.zeros(keys, np.int64)

    def tail_times(which, ranks):
        return np.zeros(len(which), np.int64)

    inputs = one.inputs(batch, times)
    one.release(Run(inputs, times, np.arange(keys), np.arange(keys + 1), seen, tail_times))
    seen += 1
    few = np.arange(0, keys, keys // 10)
    small = Run([x[:10] for x in inputs], times[:10] + 1, few, np.arange(11), seen[few], tail_times)
    twin_of(one).release(small)
    begun = time.thread_time()  # a busy machine does not add to it
    one.release(small)
    one.expire(1, seen)
    assert time.thread_time() - begun < 0.25

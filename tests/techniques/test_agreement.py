"""Every technique against the engine: the same events, the same watermarks, the same windows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from techniques.support import ANY_ORDER, IN_ORDER, KEEPING, agree, periodic, sessions, several

import windrow as wr
from benchmarks import techniques
from tests.referee.strategies import schedules, streams

COLUMNS = {"x": "int", "s": "string", "y": "float"}
KEYS = st.sampled_from([[], ["int"], ["string", "bool"]])
LATENESS = st.sampled_from([0, 3, 12])
FOLDED = {
    "n": wr.count(),
    "strings": wr.count("s"),
    "total": wr.sum("x"),
    "top": wr.max("s"),
    "first": wr.first("s"),
}
KEPT = {
    "total": wr.sum("x"),
    "median": wr.median("y"),
    "quantile": wr.quantile("s", 0.3, interpolation="lower"),
    "different": wr.distinct("s"),
    "often": wr.top_k("s", 2),
    "list": wr.collect("x"),
    "text": wr.concat("s", separator=","),
}


def asked(data, aggregates, *, ordered, time=None, windows=None, columns=COLUMNS):
    """A query over a stream, with the steps of one run."""
    time = time or data.draw(st.sampled_from([pa.int64(), pa.timestamp("us"), pa.date32()]))
    key = data.draw(KEYS)
    table = data.draw(streams(time=time, key=key, columns=columns, ordered=ordered))
    query = wr.query(
        time="time",
        key=[f"key{i}" for i in range(len(key))],
        windows=data.draw(several(periodic()) if windows is None else windows),
        aggregates=aggregates,
    )
    return query, data.draw(schedules(table, behind=8))


@pytest.mark.parametrize("technique", ANY_ORDER)
@given(data=st.data())
def test_a_technique_agrees_with_the_engine_out_of_order(technique, data):
    query, steps = asked(data, FOLDED, ordered=False)
    agree(technique, query, steps, data.draw(LATENESS))


@pytest.mark.parametrize("technique", [*IN_ORDER, *ANY_ORDER])
@given(data=st.data())
def test_a_technique_agrees_with_the_engine_in_order(technique, data):
    query, steps = asked(data, FOLDED, ordered=True)
    agree(technique, query, steps, data.draw(LATENESS))


@pytest.mark.parametrize("technique", KEEPING)
@given(data=st.data())
def test_a_technique_that_keeps_tuples_answers_quantiles_and_lists(technique, data):
    query, steps = asked(data, KEPT, ordered=False)
    agree(technique, query, steps, data.draw(LATENESS))


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("technique", ANY_ORDER)
@given(data=st.data())
def test_a_technique_agrees_with_the_engine_on_sessions(technique, ordered, data):
    query, steps = asked(data, FOLDED, ordered=ordered, windows=several(sessions()))
    agree(technique, query, steps, data.draw(LATENESS))


@pytest.mark.parametrize("technique", ANY_ORDER)
@given(data=st.data())
def test_a_technique_agrees_with_the_engine_on_sessions_beside_periodic_windows(technique, data):
    query, steps = asked(data, FOLDED, ordered=False, windows=several(sessions() | periodic()))
    agree(technique, query, steps, data.draw(LATENESS))


@pytest.mark.parametrize("key", [(), ("key0",)])
@pytest.mark.parametrize("technique", ANY_ORDER)
def test_an_event_in_the_midst_of_an_open_session_may_be_late_for_it_and_count_in_a_longer_one(
    technique, key
):
    # At 6 the short session 1 .. 5 is open, but events at 2 and 3 would be sessions that are over.
    first = pa.table({"time": [1, 3, 5, 3], "key0": [0, 0, 0, 1], "x": [1, 2, 4, 8]})
    second = pa.table({"time": [2, 3, 3, 6, -9], "key0": [0, 0, 1, 0, 0], "x": [16, 32, 64, 128, 256]})
    windows = {"short": wr.session(2), "long": wr.session(9), "time": wr.tumbling(4)}
    query = wr.query(time="time", key=key, windows=windows, aggregates={"total": wr.sum("x")})
    steps = [("process", first), ("advance", 6), ("process", second)]
    agree(technique, query, steps)
    ours = technique(query)
    ours.process(first)
    ours.advance(6)
    ours.process(second)
    totals = {
        (row["window"], row["start"]): row["total"]
        for row in ours.finish().to_pylist()
        if not row.get("key0")
    }
    others = 0 if key else 8 + 64
    assert totals["short", 1] == 1 + 2 + 4 + 128 + (0 if key else 8)
    assert totals["long", 1] == 1 + 2 + 4 + 16 + 32 + 128 + others
    assert ours.late()["time"].to_pylist() == [-9]


@pytest.mark.parametrize("technique", KEEPING)
@given(data=st.data())
def test_a_technique_that_keeps_tuples_answers_quantiles_and_lists_of_sessions(technique, data):
    query, steps = asked(data, KEPT, ordered=False, windows=several(sessions() | periodic()))
    agree(technique, query, steps, data.draw(LATENESS))


@pytest.mark.parametrize("technique", ANY_ORDER)
@given(data=st.data())
def test_sessions_may_be_on_a_float_measure(technique, data):
    windows = several(sessions(0.25) | periodic(0.25))
    query, steps = asked(data, {"n": wr.count()}, ordered=False, time=pa.float64(), windows=windows)
    agree(technique, query, steps, data.draw(LATENESS))


@pytest.mark.parametrize("technique", [t for t in (*ANY_ORDER, *IN_ORDER) if t is not techniques.Panes])
@given(data=st.data())
def test_a_measure_may_be_a_float(technique, data):
    ordered = technique in IN_ORDER
    query, steps = asked(
        data, {"n": wr.count()}, ordered=ordered, time=pa.float64(), windows=several(periodic(0.25))
    )
    agree(technique, query, steps, data.draw(LATENESS))


@pytest.mark.parametrize(
    "technique",
    [techniques.TupleBuffer, techniques.BaseIntervals, techniques.AggregateBuckets, techniques.Cutty],
)
@given(data=st.data())
def test_a_partial_may_be_a_sketch(technique, data):
    sketches = {"different": wr.approx_distinct("x", precision=4)}
    query, steps = asked(data, sketches, ordered=technique in IN_ORDER)
    agree(technique, query, steps, data.draw(LATENESS))


@pytest.mark.parametrize(
    "technique", [techniques.TupleBuckets, techniques.ReactiveAggregator, techniques.Cutty]
)
def test_an_aggregate_of_the_user_may_depend_on_order(technique):
    # Functions t -> a t + b, one after another.
    follow = wr.aggregate(
        lift=lambda x: (x + 2, x),
        combine=lambda a, b: (a[0] * b[0] % 10_007, (a[1] * b[0] + b[1]) % 10_007),
        lower=lambda a: float(a[0] * 100_000 + a[1]),
        identity=(1, 0),
        commutative=False,
    )
    query = wr.query(time="time", windows={"w": wr.sliding(9, every=2)}, aggregates={"a": follow})
    times = [1, 2, 3, 5, 8, 9, 13, 14, 21] if technique in IN_ORDER else [3, 1, 2, 9, 5, 8, 14, 13, 21]
    table = pa.table({"time": times, "x": list(range(1, 10))})
    steps = [("process", table.slice(0, 3)), ("advance", 2), ("process", table.slice(3)), ("advance", 20)]
    agree(technique, query, steps, lateness=5)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("technique", [*ANY_ORDER, *IN_ORDER])
def test_a_long_stream_of_many_windows_and_keys_agrees(technique):
    count = 20_000
    times = [i // 7 + (0 if technique in IN_ORDER or i % 5 else -(i % 31)) for i in range(count)]
    columns = {
        "time": times,
        "key0": [i * i % 13 for i in range(count)],
        "x": [i % 101 for i in range(count)],
    }
    table = pa.table(columns)
    windows = {f"w{i}": wr.sliding(3 * i + 7, every=2 * i + 3, offset=i) for i in range(12)}
    if technique in ANY_ORDER:
        windows |= {"short": wr.session(1), "long": wr.session(9)}
    for key in ((), ("key0",)):
        query = wr.query(time="time", key=key, windows=windows, aggregates={"total": wr.sum("x")})
        steps = []
        for begin in range(0, count, 3_000):
            steps += [("process", table.slice(begin, 3_000)), ("advance", max(times[: begin + 3_000]) - 3)]
        agree(technique, query, steps, lateness=20)

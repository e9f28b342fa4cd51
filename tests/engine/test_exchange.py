"""Slices made before the operator: `take_slices(slices_of(batch))` is as good as `process(batch)`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from specimens import ALTERNATING

import windrow as wr
from tests.referee import assert_same
from tests.referee.strategies import in_ticks, length, punctual, schedules, streams
from windrow.engine.exchange import obstacle, slice_schema, slices_of

COLUMNS = {
    "i": "int",
    "d": "decimal",
    "f": "float",
    "m": "mild",
    "s": "string",
    "b": "bool",
    "at": "time",
    "x": "int",
}
AVERAGE = wr.aggregate(
    lift=lambda x: (x, 1.0),
    combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    lower=lambda a: a[0] / a[1],
    identity=(0, 0.0),
    name="average",
)
AGGREGATES = {
    "n": wr.count(),
    "texts": wr.count("s"),
    "sum": wr.sum("i"),
    "sum of decimals": wr.sum("d"),
    "sum of floats": wr.sum("f"),
    "mean": wr.mean("d"),
    "lowest": wr.min("f"),
    "highest": wr.max("d"),
    "latest": wr.max("at"),
    "any": wr.max("b"),
    "how often": wr.min_count("f"),
    "average": AVERAGE,
}
TUMBLING = {"w": wr.tumbling(5)}
# windows, the type of the time column, whether events should spread over weeks
ALIGNED = {
    "tumbling": ({"w": wr.tumbling(7, offset=2)}, pa.int64(), False),
    "sliding": ({"w": wr.sliding(11, every=4)}, pa.timestamp("us"), False),
    "several": (
        {"a": wr.sliding(9, every=3), "b": wr.tumbling(5), "c": wr.band(0, length=9)},
        pa.int32(),
        False,
    ),
    "cumulate": ({"w": wr.cumulate(12, step=3)}, pa.timestamp("ms", "UTC"), False),
    "of floats": ({"w": wr.sliding(2.0, every=0.75)}, pa.float64(), False),
    "calendar": ({"w": wr.calendar("1 day", tz="Europe/Berlin")}, pa.timestamp("s", "UTC"), True),
}
GAPPY = {
    "band": ({"w": wr.band(-20, length=45)}, pa.int64(), False),
    "sliding with gaps": ({"w": wr.sliding(3, every=8)}, pa.date32(), False),
}
SESSIONS = {
    "session": ({"w": wr.session(4)}, pa.int64(), False),
    "two gaps": ({"short": wr.session(2), "long": wr.session(9)}, pa.timestamp("us"), False),
    "with a sliding window": ({"w": wr.session(3), "by": wr.sliding(10, every=5)}, pa.int64(), False),
    "of floats": ({"w": wr.session(0.5), "by": wr.tumbling(1.5)}, pa.float64(), False),
}
KEYS = [[], ["int"], ["string", "float"]]


def asked(windows, aggregates, *, keys=()):
    named = [f"key{i}" for i in range(len(keys))]
    return wr.query(time="time", key=named, windows=windows, aggregates=aggregates)


def give(operator, batch):
    """Events as slices, in one batch each."""
    operator.prepare(batch.schema)
    for part in batch.combine_chunks().to_batches():
        operator.take_slices(slices_of(operator.query, part))


def tick(watermark):
    return pa.scalar(watermark, pa.int64()) if isinstance(watermark, int) else watermark


def compare(query, steps, *, left_out=(), **options):
    """Both ways, step by step; then the counters, but for those that are left out."""
    one, other = query.operator(**options), query.operator(**options)
    for step, argument in steps:
        if step == "process":
            one.process(argument)
            give(other, argument)
        else:
            assert_same(one.advance(tick(argument)), other.advance(tick(argument)), ulps=64)
    assert_same(one.finish(), other.finish(), ulps=64)
    counted = [{k: v for k, v in vars(o.counters).items() if k not in left_out} for o in (one, other)]
    assert counted[0] == counted[1]
    if not left_out:
        assert one.highest_time == other.highest_time


def drawn(data, case, keys, *, most=4):
    windows, time, days = case
    table = data.draw(streams(time=time, key=keys, columns=COLUMNS, days=days))
    names = data.draw(st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, max_size=most, unique=True))
    query = asked(windows, {name: AGGREGATES[name] for name in names}, keys=keys)
    return table, in_ticks(query, time)


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("name", ALIGNED)
@examples(8)
@given(data=st.data())
def test_windows_of_time_answer_the_same(name, mode, data):
    table, query = drawn(data, ALIGNED[name], data.draw(st.sampled_from(KEYS)))
    steps = data.draw(schedules(table))
    lateness = length(data.draw(st.sampled_from([0, 5])), ALIGNED[name][1])
    compare(query, steps, mode=mode, lateness=lateness)


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("name", GAPPY)
@examples(8)
@given(data=st.data())
def test_events_in_no_window_do_not_travel(name, mode, data):
    table, query = drawn(data, GAPPY[name], data.draw(st.sampled_from(KEYS)))
    lateness = length(3, GAPPY[name][1])
    compare(query, data.draw(schedules(table)), mode=mode, lateness=lateness, left_out=("events", "arrivals"))


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("name", SESSIONS)
@examples(8)
@given(data=st.data())
def test_sessions_answer_the_same_where_no_event_is_late(name, mode, data):
    table, query = drawn(data, SESSIONS[name], data.draw(st.sampled_from(KEYS)))
    lateness = data.draw(st.sampled_from([0, 4]))
    steps = punctual(data.draw(schedules(table)), lateness)
    compare(query, steps, mode=mode, lateness=length(lateness, SESSIONS[name][1]))


@examples(10)
@given(data=st.data())
def test_variances_answer_the_same(data):
    windows = data.draw(st.sampled_from([{"w": wr.sliding(9, every=2)}, {"w": wr.session(3)}]))
    table = data.draw(streams(time=pa.int64(), key=["int"], columns={"x": "small"}))
    aggregates = {"v": wr.variance("x"), "s": wr.stddev("x", ddof=0), "m": wr.weighted_mean("x", weight="x")}
    query = asked(windows, aggregates, keys=["int"])
    expected, operator = query.run(table), query.operator()
    operator.prepare(table.schema)
    for begin in range(0, table.num_rows, 7):
        give(operator, table.slice(begin, 7))
    found = operator.finish()
    order = [("key0", "ascending"), ("start", "ascending"), ("end", "ascending")]
    for name in aggregates:
        pair = [t.sort_by(order)[name].to_numpy() for t in (expected, found)]
        np.testing.assert_allclose(*pair, rtol=1e-9, atol=1e-9)


#   time     0   1   2   3   4   5   6   7   8   9
#   events   x x         x       x       x
#            |------- [0, 5) --|------ [5, 10) -----|
def test_a_slice_batch_has_a_row_for_each_slice_and_key():
    table = pa.table({"time": [3, 0, 5, 0, 7], "key0": ["a", "a", "b", "a", "b"], "x": [1, None, 4, 2, -1]})
    query = asked(TUMBLING, {"n": wr.count(), "total": wr.sum("x")}, keys=["string"])
    rows = slices_of(query, table.to_batches()[0])
    assert rows.schema == slice_schema(query, table.schema)
    assert rows.to_pylist() == [
        {"key0": "a", "#first": 0, "#last": 3, "#n": 3, "#1.n": 2, "#1.f0": 3, "#1.f1": 0},
        {"key0": "b", "#first": 5, "#last": 7, "#n": 2, "#1.n": 2, "#1.f0": 3, "#1.f1": 0},
    ]


def test_no_events_are_no_slices():
    for windows in (TUMBLING, {"w": wr.session(2)}):
        query = asked(windows, {"n": wr.count()}, keys=["string"])
        batch = pa.table({"time": pa.array([], pa.int64()), "key0": pa.array([], pa.string())})
        empty = pa.RecordBatch.from_arrays([c.combine_chunks() for c in batch.columns], schema=batch.schema)
        slices = slices_of(query, empty)
        assert slices.schema == slice_schema(query, batch.schema)
        operator = query.operator()
        operator.prepare(batch.schema)
        operator.take_slices(slices)
        assert operator.finish().num_rows == 0


def test_many_keys_in_many_slices_make_no_more_cells_than_there_are_events():
    count = 3_000
    table = pa.table({"time": np.arange(count) * 1_000_000, "key0": np.arange(count)})
    slices = slices_of(asked(TUMBLING, {"n": wr.count()}, keys=["int"]), table.to_batches()[0])
    assert slices.num_rows == count
    assert slices["#first"].to_pylist() == slices["#last"].to_pylist() == table["time"].to_pylist()


@pytest.mark.parametrize("windows", [TUMBLING, {"w": wr.session(2)}], ids=["aligned", "keyed"])
def test_dictionaries_and_views_travel_as_plain_strings(windows):
    for type_ in (pa.dictionary(pa.int8(), pa.string()), pa.string_view()):
        table = pa.table({"time": [1, 2, 9], "key0": pa.array(["a", None, "a"]).cast(type_)})
        query = asked(windows, {"n": wr.count()}, keys=["string"])
        operator = query.operator()
        give(operator, table)
        assert_same(query.run(table), operator.finish())


def test_several_slice_batches_may_come_as_one():
    table = pa.table({"time": [1, 2, 9, 4, 30, 3], "key0": ["a", "b", "a", "a", "b", "a"]})
    for windows in (TUMBLING, {"w": wr.session(2), "by": wr.tumbling(4)}):
        query = asked(windows, {"n": wr.count()}, keys=["string"])
        parts = [slices_of(query, table.slice(i, 2).to_batches()[0]) for i in (4, 0, 2)]
        operator = query.operator()
        operator.prepare(table.schema)
        operator.take_slices(pa.Table.from_batches(parts).combine_chunks().to_batches()[0])
        assert_same(query.run(table), operator.finish())


OBSTACLES = {
    "rows": ({"w": wr.tumbling(rows=3)}, {"n": wr.count()}, "does not cut all keys alike"),
    "gap of a column": ({"w": wr.session("i")}, {"n": wr.count()}, "no session of a static gap"),
    "landmark": ({"w": wr.landmark(since=0, every=5)}, {"n": wr.count()}, "does not cut all keys alike"),
    "sorted values": (TUMBLING, {"a": wr.median("i")}, "keeps single values"),
    "events in order": (TUMBLING, {"a": ALTERNATING}, "keeps single values"),
    "sketch": (TUMBLING, {"a": wr.approx_distinct("i")}, "keeps a sketch"),
    "first": (TUMBLING, {"a": wr.first("i")}, "depends on the order of events"),
    "text": (TUMBLING, {"a": wr.max("s")}, "text column 's'"),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_an_obstacle_is_named_and_refused(name):
    windows, aggregates, why = OBSTACLES[name]
    table = pa.table({"time": [1], "i": [1], "x": [1], "s": ["a"]})
    query = asked(windows, {"n": wr.count(), **aggregates})
    assert why in obstacle(query, table.schema)
    with pytest.raises(wr.QueryError, match=why):
        slices_of(query, table.to_batches()[0])
    operator = query.operator()
    operator.prepare(table.schema)
    with pytest.raises(wr.QueryError, match=why):
        operator.take_slices(table.to_batches()[0])


def test_a_key_that_is_called_as_a_column_of_slices_is_an_obstacle():
    query = wr.query(time="time", key="#n", windows=TUMBLING, aggregates={"n": wr.count()})
    assert "'#n'" in obstacle(query, pa.schema({"time": pa.int64(), "#n": pa.int64()}))


def test_what_can_travel_has_no_obstacle():
    table = pa.table({"time": [1], "x": [1], **{c: pa.nulls(1, pa.int64()) for c in "idfm"}, "s": ["a"]})
    for windows in (TUMBLING, {"w": wr.session(2), "by": wr.band(0, length=4)}):
        assert obstacle(asked(windows, {"n": wr.count("s"), "v": wr.variance("x")}), table.schema) is None


def divided(x):
    return 1 // x


def limited(a, b):
    if a + b > 10:
        raise ValueError("too much")
    return a + b


FAILING = wr.aggregate(lift=divided, combine=lambda a, b: a + b, identity=0, name="failing")
LIMITED = wr.aggregate(lift=lambda x: x, combine=limited, identity=0, name="limited")


@pytest.mark.parametrize("windows", [TUMBLING, {"w": wr.session(2)}], ids=["aligned", "keyed"])
def test_a_user_function_that_raises_is_named_with_its_row(windows):
    table = pa.table({"time": [1, 2, 3, 4], "x": [1, None, 0, 5]})
    query = asked(windows, {"a": FAILING})
    with pytest.raises(wr.UserFunctionError) as by_process:
        query.operator().process(table)
    with pytest.raises(wr.UserFunctionError) as by_slices:
        slices_of(query, table.to_batches()[0])
    assert str(by_slices.value) == str(by_process.value)
    assert by_slices.value.row == 2


def state(operator):
    return operator.snapshot(), operator.counters, operator.highest_time


@pytest.mark.parametrize("windows", [TUMBLING, {"w": wr.session(20)}], ids=["aligned", "keyed"])
def test_a_combine_that_raises_leaves_the_operator_as_it_was(windows):
    query = asked(windows, {"n": wr.count("x"), "a": LIMITED}, keys=["string"])
    operator = query.operator()
    give(operator, pa.table({"time": [1, 7], "key0": ["a", "b"], "x": [4, 5]}))
    before = state(operator)
    with pytest.raises(wr.UserFunctionError, match="combine function 'limited' of 'limited' raised"):
        give(operator, pa.table({"time": [12, 8, 3], "key0": ["c", "b", "a"], "x": [1, 6, 1]}))
    assert state(operator) == before
    give(operator, pa.table({"time": [2], "key0": ["a"], "x": [3]}))
    assert sorted(operator.finish()["a"].to_pylist()) == [5, 7]


@pytest.mark.parametrize("windows", [TUMBLING, {"w": wr.session(2)}], ids=["aligned", "keyed"])
def test_more_slices_than_the_limit_leave_the_operator_as_it_was(windows):
    query = asked(windows, {"n": wr.count()}, keys=["string"])
    operator = query.operator(max_slices=4)
    give(operator, pa.table({"time": [1, 20], "key0": ["a", "b"]}))
    before = state(operator)
    with pytest.raises(wr.LimitError, match="max_slices=4"):
        give(operator, pa.table({"time": [40, 50, 60], "key0": ["c", "d", "e"]}))
    assert state(operator) == before


def test_late_slices_are_counted_and_not_kept():
    query = asked(TUMBLING, {"n": wr.count()})
    operator = query.operator()
    give(operator, pa.table({"time": [12]}))
    operator.advance(10)
    give(operator, pa.table({"time": [1, 2, 6, 11]}))
    assert (operator.counters.late, operator.counters.events, operator.counters.arrivals) == (3, 2, 5)
    assert operator.late().num_rows == 0
    assert operator.finish()["n"].to_pylist() == [2]


@pytest.mark.parametrize("restarted", [False, True])
def test_slices_that_are_wider_than_those_here_spoil_no_window_that_is_added_later(restarted):
    """6 to 12 comes as one slice when the operator has two there, cut for a window that is gone and comes back."""
    short, long = {"short": wr.tumbling(3)}, {"long": wr.tumbling(6)}
    both, wide = (wr.query(time="t", windows=w, aggregates={"n": wr.count()}) for w in (short | long, long))
    table = pa.table({"t": [6, 7, 9, 10, 11]})
    (batch,) = table.to_batches()
    operator = both.operator()
    operator.process(table)
    operator.remove_window("short")
    operator.take_slices(slices_of(wide, batch))
    if restarted:
        operator = wide.restore(operator.snapshot())
    assert operator.add_window("short", wr.tumbling(3)) == 12
    operator.process(pa.table({"t": [12, 13]}))
    rows = [(r["window"], r["start"], r["n"]) for r in operator.finish().to_pylist()]
    assert sorted(rows) == [("long", 6, 10), ("long", 12, 2), ("short", 12, 2)]


def test_a_batch_of_another_schema_is_refused():
    table = pa.table({"time": [1, 2], "key0": ["a", "b"], "x": [1, 2]})
    query = asked(TUMBLING, {"total": wr.sum("x")}, keys=["string"])
    slices = slices_of(query, table.to_batches()[0])
    operator = query.operator()
    with pytest.raises(wr.QueryError, match="prepare the operator"):
        operator.take_slices(slices)
    operator.prepare(table.schema)
    with pytest.raises(wr.QueryError, match="there is no column '#first'"):
        operator.take_slices(table.to_batches()[0])
    for name, wrong in (("key0", pa.large_string()), ("#n", pa.int32()), ("#1.f0", pa.float64())):
        at = slices.schema.get_field_index(name)
        with pytest.raises(wr.QueryError, match=f"column '{name}'"):
            operator.take_slices(slices.set_column(at, name, slices[name].cast(wrong)))
    nulls = pa.array([None, 1], pa.int64())
    with pytest.raises(wr.QueryError, match="1 nulls"):
        operator.take_slices(slices.set_column(slices.schema.get_field_index("#1.n"), "#1.n", nulls))
    assert operator.counters.events == 0
    operator.take_slices(slices)
    assert operator.finish()["total"].to_pylist() == [1, 2]


def test_a_bad_row_is_refused_and_not_folded():
    query = asked(TUMBLING, {"n": wr.count()})
    with pytest.raises(wr.DataError, match="row 1"):
        slices_of(query, pa.table({"time": [1, None]}).to_batches()[0])


@pytest.mark.parametrize("key", [[], ["key0"]])
@pytest.mark.parametrize("end", ["lowest", "highest"])
@pytest.mark.parametrize("gap", [7, 1_000_000, 3 * 10**18])
def test_sessions_at_the_ends_of_time(gap, end, key):
    first = -(2**63) + 2 if end == "lowest" else 2**63 - 1 - gap - 10
    table = pa.table({"time": [first, first + 5, first + 3], "key0": [1, 1, 1]})
    query = wr.query(time="time", key=key, windows={"w": wr.session(gap)}, aggregates={"n": wr.count()})
    operator = query.operator()
    give(operator, table)
    for found in (query.run(table), operator.finish()):
        spans = [(row["start"], row["end"], row["n"]) for row in found.to_pylist()]
        assert spans == [(first, first + 5 + gap, 3)]

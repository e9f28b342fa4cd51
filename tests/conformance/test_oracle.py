"""The engine's answer over bounded data is the oracle's: every window, every aggregate."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from specimens import AGGREGATES, WINDOWS

import windrow as wr
from tests.referee import answers, assert_same
from tests.referee.strategies import KEYS, TIMES, queries, streams

COLUMNS = {"x": "float", "i": "int", "s": "string", "d": "decimal"}
ALL = {
    "n": wr.count(),
    "total": wr.sum("i"),
    "cents": wr.sum("d"),
    "mean": wr.mean("x"),
    "low": wr.min("x"),
    "first": wr.first("s"),
    "letters": wr.concat("s"),
    "middle": wr.median("i"),
    "kinds": wr.distinct("s"),
}


@pytest.mark.parametrize("name", WINDOWS)
@given(data=st.data())
def test_every_window_agrees_with_the_oracle(name, data):
    case = WINDOWS[name]
    table = data.draw(streams(time=case.time, key=["string"], columns=COLUMNS, days=case.days))
    query = wr.query(time="time", key="key0", windows={"w": case.window}, aggregates=ALL)
    assert_same(answers(query, table), query.run(table))


@pytest.mark.parametrize("name", AGGREGATES)
@given(data=st.data())
def test_every_aggregate_agrees_with_the_oracle(name, data):
    aggregate, kinds = AGGREGATES[name]
    table = data.draw(streams(time=pa.int64(), key=["int"], columns={"z": "bool", **kinds}))
    windows = {"tumbling": wr.tumbling(9), "sliding": wr.sliding(17, every=5), "band": wr.band(0, length=50)}
    query = wr.query(time="time", key="key0", windows=windows, aggregates={"a": aggregate})
    assert_same(answers(query, table), query.run(table))


@pytest.mark.parametrize("name", AGGREGATES)
@examples(3)
@given(data=st.data())
def test_every_aggregate_agrees_with_the_oracle_on_long_streams(name, data):
    aggregate, kinds = AGGREGATES[name]
    seed = data.draw(st.integers(0, 2**32))
    table = data.draw(streams(time=pa.int64(), key=[], columns={"z": "bool", **kinds}, max_size=30))
    copies = pa.concat_tables([table] * (1 + seed % 40))
    query = wr.query(time="time", windows={"w": wr.sliding(40, every=15)}, aggregates={"a": aggregate})
    assert_same(answers(query, copies), query.run(copies))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: "-".join(key) or "none")
@given(data=st.data())
def test_every_type_of_key_agrees_with_the_oracle(key, data):
    table = data.draw(streams(time=pa.int64(), key=key, columns={"x": "int"}))
    query = wr.query(
        time="time",
        key=[f"key{i}" for i in range(len(key))],
        windows={"w": wr.sliding(20, every=10)},
        aggregates={"n": wr.count(), "total": wr.sum("x"), "all": wr.collect("x")},
    )
    assert_same(answers(query, table), query.run(table))


@pytest.mark.parametrize("time", TIMES, ids=str)
@given(data=st.data())
def test_random_queries_agree_with_the_oracle(time, data):
    columns = {"x": "float", "s": "string"}
    table = data.draw(streams(time=time, key=["int"], columns=columns))
    query = data.draw(queries(time=time, key=["int"], columns=columns))
    assert_same(answers(query, table), query.run(table))


@given(data=st.data())
def test_random_calendar_queries_agree_with_the_oracle(data):
    time = data.draw(st.sampled_from([t for t in TIMES if pa.types.is_temporal(t)]))
    table = data.draw(streams(time=time, key=["int"], columns={"x": "int"}, days=True))
    query = data.draw(queries(time=time, key=["int"], columns={"x": "int"}, days=True))
    assert_same(answers(query, table), query.run(table))

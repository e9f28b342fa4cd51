"""Keys and values of every sort, and windows of every kind, that wait and survive a restart."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal

import pyarrow as pa
import pytest
from bad_input.windows.support import LIVES, content, events, query, signals
from specimens import SEQUENCES

import windrow as wr
from tests.referee import answers, assert_same
from windrow.testing import replay

KEYS = {
    "null": [None, 1, None, 1],
    "NaN and zeros": [math.nan, -0.0, math.nan, 0.0],
    "text": ["a", None, "a", ""],
    "decimals": [Decimal("1.0"), None, Decimal("1.00"), Decimal(2)],
    "booleans": [True, None, True, False],
    "dictionary": pa.array(["a", "b", "a", None]).dictionary_encode(),
    "string view": pa.array(["a", "b", "a", None], pa.string_view()),
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("window", LIVES, ids=str)
def test_keys_of_every_sort_are_told_apart_and_survive_a_restart(window, name):
    asked = query(window, key="k")
    table = events([1, 2, 3, 4], k=KEYS[name], g=[5] * 4)
    operator = asked.operator()
    operator.process(table.slice(0, 2))
    operator = asked.restore(operator.snapshot())
    operator.process(table.slice(2))
    assert_same(answers(asked, table), operator.finish())


VALUES = {
    "string view": pa.array(["a", "b" * 40, None, "c"], pa.string_view()),
    "dictionary": pa.array(["a", "b", None, "a"]).dictionary_encode(),
    "large string": pa.array(["a", None, "b", "c"], pa.large_string()),
    "decimal": pa.array([Decimal("1.5"), None, Decimal("2.5"), Decimal("1.5")]),
    "timestamp": pa.array([1, 2, None, 3], pa.timestamp("ns", "UTC")),
    "boolean": pa.array([True, None, False, True]),
    "int8": pa.array([1, 2, None, 4], pa.int8()),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("key", [(), "k"], ids=["one key", "keys"])
def test_values_of_every_type_wait_and_survive_a_restart(name, key):
    computed = {"f": wr.first("v"), "m": wr.max("v"), "c": wr.collect("v"), "d": wr.distinct("v")}
    windows = {"r": wr.tumbling(rows=2), "b": wr.slide_by_rows(2, every_rows=1), "s": wr.session(5)}
    asked = query(windows, aggregates=computed, key=key)
    table = events([1, 2, 2, 4], v=VALUES[name], k=[1, 1, 2, 2])
    arrived = pa.concat_tables([table.slice(2), table.slice(0, 2)])
    operator = asked.operator(lateness=2)
    operator.process(arrived.slice(0, 2))
    operator.process(arrived.slice(2, 1))
    operator = asked.restore(operator.snapshot())
    operator.process(arrived.slice(3))
    found = [operator.advance(3)]
    operator = asked.restore(operator.snapshot())
    assert_same(asked.run(arrived), pa.concat_tables([*found, operator.finish()]))


def test_columns_may_come_go_and_change_places_between_batches():
    operator = query(wr.tumbling(rows=2)).operator()
    operator.process(pa.table({"t": [1], "i": [0]}))
    operator.process(pa.table({"i": [1], "t": [2]}))
    operator.process(pa.table({"x": ["new"], "i": [2], "y": [1.0], "t": [3]}))
    operator.process(pa.table({"t": [4], "i": [3], "x": [5]}))
    assert content(operator.finish()) == [(1, 3, (0, 1)), (3, 5, (2, 3))]


@pytest.mark.parametrize("mode", ["append", "update"])
def test_two_hundred_windows_of_all_kinds_are_answered_at_once(mode):
    windows = {f"{name} {copy}": window for copy in range(10) for name, window in SEQUENCES.items()}
    assert len(windows) > 200
    table = signals([1, 9, 3, 3, 20, 21])
    asked = wr.query(time="time", key="key0", windows=windows, aggregates={"ids": wr.collect("i")})
    operator = asked.operator(mode=mode, lateness=10)
    operator.process(table)
    found = [operator.advance(9)]
    operator = asked.restore(operator.snapshot())
    rows = pa.concat_tables([*found, operator.finish()])
    assert_same(answers(asked, table), replay(rows) if mode == "update" else rows)


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_window_can_be_pickled_compared_and_explained(name):
    asked = wr.query(time="time", windows={"w": SEQUENCES[name]}, aggregates={"n": wr.count()})
    twin = pickle.loads(pickle.dumps(asked))
    assert twin == asked
    assert hash(twin.windows["w"]) == hash(SEQUENCES[name])
    assert "w" in str(twin.explain())
    assert "w" in str(twin.explain(signals([0] * 6).schema))
    operator = twin.operator()
    operator.process(signals([1, 9, 3, 3, 20, 21]))
    assert asked.restore(operator.snapshot()).finish().num_rows == operator.finish().num_rows

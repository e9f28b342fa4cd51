"""Columns that are missing, doubled or of another type; tables that are none."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest
from bad_input.support import counts, query, stream, times

import windrow as wr


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({"time": "when"}, "when"),
        ({"key": "user"}, "user"),
        ({"aggregates": {"a": wr.sum("amount")}}, "amount"),
        ({"aggregates": {"a": wr.weighted_mean("x", weight="weight")}}, "weight"),
        ({"aggregates": {"a": wr.count("amount")}}, "amount"),
    ],
    ids=["time", "key", "value", "second column", "count"],
)
def test_an_unknown_column_is_named_with_those_that_exist(parts, name):
    table = pa.table({"ts": [1], "x": [1.0]})
    with pytest.raises(wr.QueryError, match=f"there is no column '{name}'.*'ts', 'x'"):
        query(**parts).run(table)


def test_a_column_that_occurs_twice_is_refused():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["ts", "ts"])
    with pytest.raises(wr.QueryError, match="column 'ts' occurs 2 times"):
        query().run(table)


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.bool_(), pa.list_(pa.int64()), pa.decimal128(5, 2)], ids=str
)
def test_a_time_of_another_type_is_refused(type_):
    with pytest.raises(wr.QueryError, match=r"column 'ts' of type .* cannot be a time"):
        query().run(times([None], type_))


@pytest.mark.parametrize("type_", [pa.string(), pa.date32(), pa.timestamp("s")], ids=str)
def test_a_sum_of_another_type_is_refused(type_):
    table = pa.table({"ts": [1], "x": pa.array([None], type_)})
    with pytest.raises(wr.QueryError, match=r"aggregate 'a': sum\(x\) needs a numeric column, not "):
        query(aggregates={"a": wr.sum("x")}).run(table)


@pytest.mark.parametrize(
    "type_",
    [pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.null(), pa.month_day_nano_interval()],
    ids=str,
)
def test_a_key_of_a_type_without_equality_is_refused(type_):
    table = pa.table({"ts": [1], "k": pa.array([None], type_)})
    with pytest.raises(wr.QueryError, match=r"key column 'k' of type .* cannot be a key"):
        query(key="k").run(table)


def test_a_schema_that_changes_between_batches_is_refused():
    operator = stream(aggregates={"a": wr.sum("x")})
    operator.process(pa.table({"ts": [1], "x": [1]}))
    with pytest.raises(wr.QueryError, match="column 'x' was int64 in the first batch and is double"):
        operator.process(pa.table({"ts": [2], "x": [2.0]}))
    with pytest.raises(wr.QueryError, match="there is no column 'x'"):
        operator.process(pa.table({"ts": [2]}))
    assert operator.finish()["a"].to_pylist() == [1]


def test_late_rows_survive_a_column_that_is_not_read_and_comes_later():
    operator = stream()
    operator.process(times([1, 35]))
    operator.advance(30)
    operator.process(times([6]))
    operator.process(pa.table({"ts": [5], "extra": ["x"]}))
    assert operator.late()["ts"].to_pylist() == [6, 5]


def test_bad_rows_survive_a_column_that_is_not_read_and_comes_later():
    operator = query().operator(on_bad="divert")
    operator.process(times([1, None]))
    operator.process(pa.table({"ts": pa.array([5, None], pa.int64()), "extra": ["x", "y"]}))
    assert operator.bad().num_rows == 2


def test_an_empty_table_gives_an_empty_answer_of_the_right_types():
    asked = query(key="k", windows={"w": wr.tumbling("10 seconds")})
    result = asked.run(pa.schema([("ts", pa.timestamp("s")), ("k", pa.string())]).empty_table())
    assert result.num_rows == 0
    assert result.schema.field("start").type == pa.timestamp("s")
    assert result.schema.field("k").type == pa.string()


def test_no_table_at_all_gives_an_empty_answer():
    assert query().run(iter([])).num_rows == 0
    assert query().run(iter([])).column_names == ["window", "start", "end", "n"]


def test_a_table_without_columns_is_refused():
    with pytest.raises(wr.QueryError, match="there is no column 'ts', nor any other"):
        query().run(pa.table({}))


@pytest.mark.parametrize("events", [5, b"events", [1, 2]], ids=repr)
def test_what_does_not_speak_arrow_is_refused(events):
    with pytest.raises(wr.QueryError, match="do not speak Arrow"):
        stream().process(events)


@pytest.mark.parametrize(
    "column", [pa.array([1]), pa.chunked_array([[1]]), pl.Series([1])], ids=["array", "chunks", "polars"]
)
def test_a_column_is_not_a_table(column):
    with pytest.raises(wr.QueryError, match=r"events of type \w+ are not a table: "):
        stream().process(column)


def test_a_table_with_an_extension_type_can_be_saved_and_restored():
    operator = stream()
    operator.process(pa.table({"ts": [1], "id": pa.array([b"0" * 16], pa.uuid())}))
    assert counts(operator.query.restore(operator.snapshot()).finish()) == {(0, 10): 1}

"""Queries with expressions and filters answer as the oracle does to events of which all of it was computed in plain Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples
from specimens import AGGREGATES, WINDOWS

import windrow as wr
from tests.referee import answers, assert_same
from tests.referee.strategies import streams
from windrow.engine.intake.projection import projected
from windrow.expressions.building import column_name, filtered

COLUMNS = {"x": "float", "i": "small", "s": "string", "z": "bool"}


def _doubled(row: dict[str, Any]) -> int | None:
    return None if row["i"] is None else row["i"] * 2 + 1


def _holds(row: dict[str, Any]) -> bool:
    """`i > 0 or z`, where null is unknown."""
    return (row["i"] is not None and row["i"] > 0) or row["z"] is True


EXPRESSION = "cast(i as int) * 2 + 1"
CONDITION = "i > 0 or z"
ALL = {
    "n": wr.count(),
    "some": wr.count(where=CONDITION),
    "words": wr.count("s", where=CONDITION),
    "total": wr.sum(wr.expr(EXPRESSION)),
    "part": wr.sum(wr.expr(EXPRESSION), where=CONDITION),
    "mean": wr.mean("x", where=wr.col("z")),
    "first": wr.first("s", where=CONDITION),
    "last": wr.last("x", where=CONDITION),
    "letters": wr.concat("s", where="z"),
    "middle": wr.median("i", where=CONDITION),
    "peak": wr.argmax("s", by=wr.expr(EXPRESSION), where=CONDITION),
}


def computed(table: pa.Table, **keys: Any) -> pa.Table:
    """The table with columns as the engine is to make them, row by row."""
    rows = table.drop_columns(["time"]).to_pylist()

    def only(name: str, where: Any, type_: pa.DataType) -> pa.Array:
        return pa.array([row[name] if where(row) else None for row in rows], type_)

    schema = table.schema
    made = {
        column_name(wr.expr(EXPRESSION)): pa.array(map(_doubled, rows), pa.int32()),
        filtered(None, CONDITION): pa.array([True if _holds(row) else None for row in rows]),
        filtered(wr.expr(EXPRESSION), CONDITION): pa.array(
            [_doubled(row) if _holds(row) else None for row in rows], pa.int32()
        ),
        filtered("x", "z"): only("x", lambda row: row["z"], schema.field("x").type),
        filtered("s", "z"): only("s", lambda row: row["z"], schema.field("s").type),
    }
    for name in ("s", "x", "i"):
        made[filtered(name, CONDITION)] = only(name, _holds, schema.field(name).type)
    for name, array in made.items():
        table = table.append_column(pa.field(str.__str__(name), array.type), array)
    return table


@pytest.mark.parametrize("name", WINDOWS)
@examples(2)
@given(data=st.data())
def test_expressions_and_filters_agree_with_the_oracle_in_every_window(name: str, data: Any) -> None:
    case = WINDOWS[name]
    table = data.draw(streams(time=case.time, key=["string"], columns=COLUMNS, days=case.days))
    query = wr.query(time="time", key="key0", windows={"w": case.window}, aggregates=ALL)
    assert_same(answers(query, computed(table)), query.run(table))


@pytest.mark.parametrize("name", AGGREGATES)
@examples(2)
@given(data=st.data())
def test_every_aggregate_with_a_filter_agrees_with_the_oracle(name: str, data: Any) -> None:
    aggregate, kinds = AGGREGATES[name]
    table = data.draw(streams(time=pa.int64(), key=["int"], columns={"z": "bool", **kinds}))
    first = aggregate.columns[0] if aggregate.columns else None
    column = filtered(first, "not z")
    some = replace(aggregate, columns=(column, *aggregate.columns[1:]))
    windows = {"tumbling": wr.tumbling(9), "sliding": wr.sliding(17, every=5)}
    query = wr.query(time="time", key="key0", windows=windows, aggregates={"a": some, "n": wr.count()})
    values = [True] * len(table) if first is None else table[first].to_pylist()
    passing = [z is False for z in table["z"].to_pylist()]
    type_ = pa.bool_() if first is None else table.schema.field(first).type
    array = pa.array([v if holds else None for v, holds in zip(values, passing, strict=True)], type_)
    assert_same(
        answers(query, table.append_column(pa.field(str.__str__(column), type_), array)), query.run(table)
    )


@pytest.mark.parametrize("threads", [1, 2])
@examples(8)
@given(data=st.data())
def test_the_filter_of_a_query_and_computed_keys_agree_with_the_oracle(threads: int, data: Any) -> None:
    table = data.draw(streams(time=pa.int64(), key=[], columns=COLUMNS))
    windows = {"w": wr.tumbling(7), "s": wr.session(3), "rows": wr.tumbling(rows=3)}
    query = wr.query(
        time="time",
        key={"k": wr.expr("i % 3"), "s": "s"},
        where=CONDITION,
        windows=windows,
        aggregates={"n": wr.count(), "total": wr.sum(wr.expr(EXPRESSION)), "mean": wr.mean("x", where="z")},
    )
    rows = table.drop_columns(["time"]).to_pylist()
    keys = [None if row["i"] is None else (abs(row["i"]) % 3) * (1 if row["i"] >= 0 else -1) for row in rows]
    known = computed(table).append_column("k", pa.array(keys, pa.int32()))
    known = known.filter(pa.array([_holds(row) for row in rows], pa.bool_()))
    assert_same(answers(projected(query), known), query.run(table, threads=threads))


@pytest.mark.parametrize("mode", ["append", "update"])
@examples(4)
@given(data=st.data())
def test_a_stream_answers_as_if_its_columns_had_been_computed_before(mode: str, data: Any) -> None:
    table = data.draw(streams(time=pa.int64(), key=["int"], columns=COLUMNS))
    windows = {"w": wr.sliding(9, every=4), "s": wr.session(5), "rows": wr.tumbling(rows=3)}
    some = {name: ALL[name] for name in ("n", "some", "part", "last", "letters")}
    query = wr.query(time="time", key="key0", windows=windows, aggregates=some)
    known, half = computed(table), len(table) // 2
    before, after = (query.operator(mode=mode, lateness=3) for _ in "12")
    for begin, end in ((0, half), (half, len(table))):
        before.process(known.slice(begin, end - begin))
        after.process(table.slice(begin, end - begin))
        if before.metrics().events:
            newest = max(t for t in table["time"].to_pylist()[:end] if t is not None)
            assert_same(before.advance(newest), after.advance(newest))
        after = query.restore(after.snapshot())
    assert_same(before.finish(), after.finish())
    late = after.late()
    assert str(late.to_pylist()) == str(
        before.late().select(late.column_names).to_pylist()
    )  # NaN is equal to itself
    assert late.column_names == table.column_names

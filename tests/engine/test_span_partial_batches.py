"""Slices of events that last, made before the operator: all ends in order of time are as good as the events."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profiles import examples

import windrow as wr
from tests.referee import assert_same
from tests.referee.span_strategies import span_streams
from windrow.engine.exchange import obstacle, slice_schema, slices_of
from windrow.query import Query

WHOLE = wr.span("since", "until")
COLUMNS = {"x": "int", "d": "decimal"}
AGGREGATES = {"n": wr.count(), "total": wr.sum("x"), "mean": wr.mean("d"), "known": wr.count("x")}
WINDOWS: dict[str, dict[str, wr.Window]] = {
    "tumbling": {"w": wr.tumbling(5)},
    "sliding": {"w": wr.sliding(17, every=5)},
    "several": {"a": wr.sliding(9, every=4), "b": wr.cumulate(12, step=3)},
}


def asked(**parts: Any) -> Query:
    return wr.query(
        **{"time": WHOLE, "key": "key0", "windows": WINDOWS["sliding"], "aggregates": AGGREGATES, **parts}
    )


def answered(query: Query, table: pa.Table, *, at_once: int, rows: int) -> pa.Table:
    """The answer by slices, which are made of so many events at once, and taken so many rows at a time."""
    parts = [slices_of(query, batch) for batch in table.combine_chunks().to_batches(max_chunksize=at_once)]
    schema = slice_schema(query, table.schema)
    slices = pa.Table.from_batches(parts, schema).sort_by("#first").combine_chunks()
    operator = query.operator()
    operator.prepare(table.schema)
    given = []
    for begin in range(0, len(slices), rows):
        operator.take_slices(slices.slice(begin, rows).combine_chunks().to_batches()[0])
        if begin + rows < len(slices):
            following = slices["#first"][begin + rows].as_py()
            operator.engines[0].spans.reach(following)  # type: ignore[union-attr]
            given.append(operator.complete_to(following))
    return pa.concat_tables([*given, operator.finish()])


@pytest.mark.parametrize("windows", WINDOWS)
@examples(40)
@given(data=st.data())
def test_slices_in_order_of_time_answer_the_same(windows: str, data: Any) -> None:
    key = data.draw(st.sampled_from([(), ("int",), ("string",)]))
    spread = data.draw(st.sampled_from([None, 12, 10**9]))
    table = data.draw(span_streams(time=pa.int64(), key=key, columns=COLUMNS, spread=spread))
    query = asked(key=["key0"] if key else [], windows=WINDOWS[windows])
    at_once, rows = data.draw(st.sampled_from([1, 3, 50])), data.draw(st.sampled_from([1, 4, 50]))
    assert_same(query.run(table), answered(query, table, at_once=at_once, rows=rows))


SCHEMA = pa.schema([("since", pa.int64()), ("until", pa.int64()), ("key0", pa.string()), ("x", pa.int64())])
OWN = wr.aggregate(
    lift=lambda x: x, combine=lambda a, b: a + b, invert=lambda a, b: a - b, identity=0, columns=["x"]
)
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "open events": ({"time": wr.span("since", "until", id="x")}, "may open or close an event"),
    "shares": ({"time": wr.span("since", "until", contributes="prorated")}, "contribute as a whole"),
    "gaps": ({"windows": {"w": wr.sliding(3, every=8)}}, "there are gaps between its windows"),
    "no inverse": ({"aggregates": {"high": wr.max("x")}}, r"'high' \(max\(x\)\) cannot take events of"),
    "own": ({"aggregates": {"own": OWN}}, "'own' .* is made by functions of your own"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_taken_out_again_is_refused(name: str) -> None:
    parts, why = REFUSED[name]
    query = asked(**{"aggregates": {"n": wr.count()}, **parts})
    assert obstacle(query, SCHEMA) is not None
    with pytest.raises(wr.QueryError, match=why):
        slices_of(query, pa.RecordBatch.from_pylist([], SCHEMA))


def test_slices_that_come_too_late_are_refused() -> None:
    query = asked(aggregates={"n": wr.count()})
    rows = {"since": 3, "until": 40, "key0": "a", "x": 1}
    operator = query.operator()
    operator.prepare(SCHEMA)
    slices = slices_of(query, pa.RecordBatch.from_pylist([rows], SCHEMA))
    operator.take_slices(slices)
    operator.finish()
    with pytest.raises(wr.QueryError, match="must come in order of time"):
        operator.take_slices(slices)

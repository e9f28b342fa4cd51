"""What an expression is, embedded and on Spark: random trees over awkward values, and which rows are bad."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from expression_trees import any_trees, table
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from streams import Step, apart, plain_rows, run_stream

import windrow as wr
from tests.profiles import examples
from windrow.errors import QueryError
from windrow.expressions.arrow import Evaluation
from windrow.expressions.building import MARK, Expr, node_of
from windrow.expressions.formula import Formula
from windrow.spark.expressions import column
from windrow.spark.schema import arrow_schema

TABLE = table(150, seed=7)


def _plain(type_: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", tz="UTC") if pa.types.is_timestamp(type_) else type_


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        # Functions such as exp may differ in the last bits, which grow in sums.
        return one == other or math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


@examples(4)
@given(found=st.lists(any_trees, min_size=30, max_size=50), anew=st.integers(0, 3))
def test_arrow_and_spark_agree_on_values_types_and_bad_rows(
    spark: SparkSession, found: list[Any], anew: int
) -> None:
    events = table(150, seed=anew) if anew else TABLE
    df = spark.createDataFrame(events)
    schema = arrow_schema(df.schema, df.columns)
    (batch,) = events.cast(schema).to_batches()
    formulas = []
    for node in found:
        name = MARK + str(Expr(node))
        assert node_of(name) == node_of(MARK + str(Expr(node_of(name))))
        try:
            formulas.append(Formula(name, schema))
        except QueryError:
            continue  # what cannot be meant is refused, for both alike
    assert formulas
    columns = []
    for i, formula in enumerate(formulas):
        values, bad = column(formula)
        columns.append(values.alias(f"v{i}"))
        if bad is not None:
            columns.append(bad.alias(f"b{i}"))
    answers = df.select(*columns).toArrow()
    evaluation = Evaluation(batch)
    for i, formula in enumerate(formulas):
        here, wrong = evaluation.column(formula.typed)
        there = answers[f"v{i}"].combine_chunks()
        assert _plain(here.type) == _plain(there.type), formula.name
        flags = (
            answers[f"b{i}"].fill_null(0).to_pylist() if f"b{i}" in answers.column_names else [0] * len(here)
        )
        marks = [0] * len(here) if wrong is None else wrong.tolist()
        for row, (x, y, bad, mark) in enumerate(
            zip(here.to_pylist(), there.to_pylist(), flags, marks, strict=True)
        ):
            said = f"{formula.name} over {formula.inputs(batch, row)}: {x!r} ({mark}), on Spark {y!r} ({bad})"
            assert bad == mark, said
            assert bad or _same(x, y), said


SOME = pa.table(
    {
        "ts": pa.array([1, 2, 3, 7, 8, 12], pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
        "user": ["ann", "bob", None, "ann", "bob", "ann"],
        "price": pa.array([4, 9, 5, 7, None, 1], pa.int64()),
        "quantity": pa.array([2, 3, 4, 5, 6, 1], pa.int64()),
        "status": ["ok", "failed", "ok", "failed", "ok", "ok"],
    }
)
QUERY = wr.query(
    time="ts",
    key={"who": wr.expr("upper(user)"), "status": "status"},
    where="quantity > 1 or user is null",
    windows={"w": wr.tumbling("5 milliseconds"), "s": wr.sliding("10 milliseconds", every="5 milliseconds")},
    aggregates={
        "n": wr.count(),
        "dear": wr.count(where="price > 4"),
        "total": wr.sum(wr.expr("price * quantity")),
        "some": wr.sum(wr.expr("price * quantity"), where="quantity > 2"),
        "most": wr.max("price", where="status = 'ok'"),
    },
    select={"share": "dear / n", "year": "year(start)"},
)


def in_same_types(rows: pa.Table) -> list[str]:
    return plain_rows(
        rows.set_column(rows.column_names.index("window"), "window", rows["window"].cast(pa.string()))
    )


@pytest.mark.parametrize("path", ["auto", "general"])
def test_a_query_of_expressions_answers_as_it_does_embedded(spark: SparkSession, path: str) -> None:
    found = QUERY.on_spark(spark.createDataFrame(SOME), path=path).toArrow()
    assert in_same_types(found) == in_same_types(QUERY.run(SOME))


def test_filters_are_pushed_down_with_their_aggregates(spark: SparkSession) -> None:
    said = QUERY.explain(engine="spark", df=spark.createDataFrame(SOME))
    assert said.startswith("on Spark, batch: pushed down")
    assert "count(where price > 4)" in said


def test_windows_of_conditions_take_text_on_spark(spark: SparkSession) -> None:
    query = wr.query(
        time="ts",
        windows={"t": wr.threshold("quantity > 2 and status <> 'x'"), "p": wr.punctuated("price = 7")},
        aggregates={"n": wr.count(), "last": wr.last("user", where="price is not null")},
    )
    found = query.on_spark(spark.createDataFrame(SOME)).toArrow()
    assert in_same_types(found) == in_same_types(query.run(SOME))


def test_a_row_that_cannot_be_computed_is_an_error_or_set_aside(spark: SparkSession) -> None:
    query = wr.query(
        time="ts",
        windows={"w": wr.tumbling("5 milliseconds")},
        aggregates={
            "x": wr.sum(wr.expr("price / (quantity - 3)")),
            "y": wr.sum(wr.expr("1 / price"), where="price > 1"),
        },
    )
    df = spark.createDataFrame(SOME)
    with pytest.raises(
        PySparkException, match=r"column 'price / \(quantity - 3\)', value .*division by zero"
    ):
        query.on_spark(df).toArrow()
    windows, _, bad = apart(query.on_spark(df, on_bad="divert", side_rows=True).toArrow())
    operator = query.operator(on_bad="divert")
    operator.process(SOME)
    assert in_same_types(windows) == in_same_types(operator.finish())
    assert plain_rows(bad) == plain_rows(operator.bad())
    assert bad.num_rows == 1


@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_stream_of_expressions_answers_as_the_embedded_operator(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    steps = [Step(SOME.slice(0, 4), 6), Step(SOME.slice(4), 100)]
    rows = run_stream(spark, tmp_path, QUERY, steps, mode=mode, on_bad="divert")
    operator = QUERY.operator(mode=mode)
    parts = []
    for step in steps:
        operator.process(step.events)
        parts.append(operator.advance(datetime.fromtimestamp(step.watermark / 1000, UTC)))
    assert in_same_types(rows) == in_same_types(pa.concat_tables(parts))


def test_sql_over_data_frames_gives_data_frames(spark: SparkSession) -> None:
    text = (
        "SELECT upper(user) AS who, window_start, sum(price * quantity) FILTER (WHERE quantity > 2) / count(*) AS mean "
        "FROM TUMBLE(trades, ts, INTERVAL '5 milliseconds') WHERE status <> 'x' GROUP BY who, window_start HAVING count(*) > 0;"
        "SELECT count(*) AS n FROM TUMBLE(trades, ts, INTERVAL '10 milliseconds') WHERE status <> 'x' GROUP BY upper(user)"
    )
    for here, there in zip(
        wr.sql(text, trades=SOME), wr.sql(text, trades=spark.createDataFrame(SOME)), strict=True
    ):
        assert plain_rows(there.toArrow()) == plain_rows(here)

"""A query asked at points, on Spark: events and points of a bucket of keys meet, and are answered as anywhere else.

    events -> bucket --.
                        >  cogroup  -> Query.at for each bucket -> points with answers
    points -> bucket --'

Events come without their order: where times are equal, and an aggregate goes by arrival, any of them may come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from windrow.aggregates.base import whole_number
from windrow.engine.at.asking import at
from windrow.errors import QueryError
from windrow.options import PlacementOptions
from windrow.spark.compatibility import spark_schema
from windrow.spark.results import conformed
from windrow.spark.schema import arrow_schema, named, require_dataframe, require_names, result_schema
from windrow.spark.stages import bucket_of, numbered
from windrow.spec import QuerySpec


def at_on_spark(
    query: QuerySpec, points: DataFrame, events: DataFrame | None, *, min_rows: int, on_bad: str, buckets: int
) -> DataFrame:
    """As `Query.at_on_spark`."""
    if query.key_expressions:
        name = next(iter(query.key_expressions))
        raise QueryError(
            f"the key {name!r} is an expression: on Spark, points and events must have it as a column"
        )
    count = PlacementOptions(buckets=buckets).buckets_of(keyed=bool(query.key))
    least = whole_number(min_rows, what="min_rows", least=0)
    each = events is None
    read = [query.time_columns[0], *query.key]
    _require(points, query.source_columns if each else read)
    asked = arrow_schema(points.schema, points.columns)
    known = asked
    if events is not None:
        _require(events, query.source_columns)
        known = arrow_schema(events.schema, list(query.source_columns))
    settings: dict[str, Any] = {"min_rows": least, "on_bad": on_bad, "threads": 1}
    _require_alike(query.key, asked, known)
    # Everything that is wrong without a row is refused here.
    empty = at(query, None if each else asked.empty_table(), known.empty_table(), **settings)
    result = result_schema(empty.schema, known, side_rows=False)
    rows = _grouped(points, asked, query, count)
    answer = partial(_answered, query, asked, known, result, settings)
    if events is None:
        return rows.applyInArrow(lambda table: answer(None, table), spark_schema(result))
    others = _grouped(events, known, query, count)
    return rows.cogroup(others).applyInArrow(lambda left, right: answer(left, right), spark_schema(result))


def _grouped(df: DataFrame, schema: pa.Schema, query: QuerySpec, buckets: int) -> Any:
    """The columns of a schema, grouped by their bucket, which stands behind them."""
    # The hash of Spark depends on the type: equal integers have one bucket if they are as wide.
    keys = [
        named(k).cast("bigint") if pa.types.is_integer(schema.field(k).type) else named(k) for k in query.key
    ]
    rows = numbered(df.select(*map(named, schema.names), bucket_of(keys, buckets)))
    return rows.groupBy(rows.columns[-1])


def _require_alike(keys: Sequence[str], asked: pa.Schema, known: pa.Schema) -> None:
    """An error if equal keys of points and events could fall into different buckets."""
    for name in keys:
        one, other = asked.field(name).type, known.field(name).type
        if one != other and not (pa.types.is_integer(one) and pa.types.is_integer(other)):
            raise QueryError(
                f"the key {name!r} is {one} in the points and {other} in the events: cast one of the two, so that "
                "equal keys meet in one bucket"
            )


def _require(df: DataFrame, names: Sequence[str]) -> None:
    require_dataframe(df)
    if df.isStreaming:
        raise QueryError(
            "at_on_spark takes batch DataFrames, and this one is a stream: a running operator is asked with Operator.at"
        )
    require_names(df, names)


def _answered(
    query: QuerySpec,
    asked: pa.Schema,
    known: pa.Schema,
    result: pa.Schema,
    settings: dict[str, Any],
    points: pa.Table | None,
    events: pa.Table,
) -> pa.Table:
    """The answer of a bucket, in the types that Spark expects."""
    rows = None if points is None else _as(points, asked)
    found = at(query, rows, _as(events, asked if points is None else known), **settings)
    return pa.Table.from_batches(conformed(found, result), result)


def _as(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema, by place, in its types: without the bucket, which comes last."""
    return table.select(range(len(schema))).rename_columns(schema.names).cast(schema)

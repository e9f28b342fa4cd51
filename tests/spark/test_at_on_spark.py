"""Queries asked at points on Spark say what they say in this process."""

from __future__ import annotations

import pyarrow as pa
import pytest
from specimens import AGGREGATES, fixed_stream
from streams import plain_rows

import windrow as wr
from tests.referee.strategies import in_ticks

EXACT = (
    "sum of integers",
    "median",
    "max of decimals",
    "distinct strings",
    "m4",
    "count of a column",
    "collect strings",
)
WINDOWS = {
    "last": wr.trailing(7),
    "around": wr.around(before=3, after=2),
    "rows": wr.trailing(rows=4, closed="right"),
    "edges": wr.tumbling(10),
}


def _streams() -> tuple[wr.Query, pa.Table, pa.Table]:
    aggregates, columns = {}, {}
    for name in EXACT:
        aggregate, kinds = AGGREGATES[name]
        (kind,) = kinds.values()
        columns[f"of {kind}"] = kind
        aggregates[name] = type(aggregate)(**{**vars(aggregate), "columns": (f"of {kind}",)})
    events = fixed_stream(columns, size=120, span=60, seed=4)
    # Equal times would be taken in any order on Spark.
    events = events.set_column(
        0, "time", pa.array(range(0, 240, 2), pa.int64()).cast(pa.timestamp("us", "UTC"))
    )
    points = pa.table(
        {
            "label.1": [f"label {i}" for i in range(60)],
            "time": pa.array(range(-10, 290, 5), pa.int64()).cast(pa.timestamp("us", "UTC")),
            "key0": pa.array([1, None, 2] * 20, pa.int64()),
        }
    )
    windows = {name: in_ticks(window, pa.timestamp("us")) for name, window in WINDOWS.items()}
    return wr.query(time="time", key="key0", windows=windows, aggregates=aggregates), points, events


def test_points_are_answered_as_in_this_process(spark) -> None:
    query, points, events = _streams()
    found = query.at_on_spark(
        spark.createDataFrame(points), spark.createDataFrame(events), buckets=3
    ).toArrow()
    expected = query.at(points, events)
    assert found.column_names == expected.column_names
    assert plain_rows(found) == plain_rows(expected)


def test_each_event_is_answered_as_in_this_process(spark) -> None:
    query, _, events = _streams()
    found = query.at_on_spark(spark.createDataFrame(events), min_rows=2).toArrow()
    assert plain_rows(found) == plain_rows(query.at(events, min_rows=2))


def test_without_a_key_there_is_one_bucket(spark) -> None:
    query, points, events = _streams()
    alone = wr.query(time="time", windows=query.windows, aggregates=query.aggregates)
    found = alone.at_on_spark(spark.createDataFrame(points), spark.createDataFrame(events)).toArrow()
    assert plain_rows(found) == plain_rows(alone.at(points, events))


def test_what_makes_no_sense_is_refused_before_a_job_runs(spark) -> None:
    query, points, events = _streams()
    frame = spark.createDataFrame(points)
    with pytest.raises(wr.QueryError, match="takes a DataFrame of Spark"):
        query.at_on_spark(points, events)
    with pytest.raises(wr.QueryError, match="this one is a stream"):
        query.at_on_spark(
            frame, spark.readStream.format("rate").load().selectExpr("timestamp as time", "value as key0")
        )
    sessions = wr.query(time="time", windows={"s": wr.threshold("x")}, aggregates={"n": wr.count()})
    with pytest.raises(wr.QueryError, match="cannot be asked at a point"):
        sessions.at_on_spark(spark.createDataFrame(pa.table({"time": [1], "x": [True]})))


def test_keys_of_integers_of_any_width_meet(spark) -> None:
    query = wr.query(time="time", key="k", windows={"w": wr.trailing(100)}, aggregates={"n": wr.count()})
    events = pa.table({"time": [1] * 20, "k": list(range(20))})
    points = pa.table({"time": [9] * 20, "k": pa.array(range(20), pa.int32())})
    found = query.at_on_spark(spark.createDataFrame(points), spark.createDataFrame(events)).toArrow()
    assert found["n"].to_pylist() == [1] * 20
    floats = points.set_column(1, "k", points["k"].cast(pa.float64()))
    with pytest.raises(wr.QueryError, match="the key 'k' is double in the points and int64 in the events"):
        query.at_on_spark(spark.createDataFrame(floats), spark.createDataFrame(events))

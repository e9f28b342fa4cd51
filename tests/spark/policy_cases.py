"""Operators over policy windows for the tests on Spark, and what they say to rows in order of time."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import windrow as wr
from windrow import policies as wp

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("k", pa.string()),
        ("x", pa.int64()),
        ("id", pa.int64()),
        ("lane", pa.int64()),
        ("end", pa.bool_()),
    ]
)
AGGREGATES = {"n": wr.count(), "total": wr.sum("x"), "high": wr.max("x"), "middle": wr.median("x")}


def aggregate(window: str, **options: Any) -> Callable[[], wp.Operator]:
    by = "k" if "partitioned" in window else None
    return lambda: wp.Aggregate(window, AGGREGATES, partition_by=by, **options)


def sort(window: str, **options: Any) -> Callable[[], wp.Operator]:
    by = "k" if "partitioned" in window else None
    return lambda: wp.Sort(window, ["x", ("id", "descending")], partition_by=by, **options)


def deduplicate(window: str) -> Callable[[], wp.Operator]:
    by = "k" if "partitioned" in window else None
    return lambda: wp.Deduplicate(window, "x", partition_by=by)


def join(left: str, right: str, **options: Any) -> Callable[[], wp.Operator]:
    by: tuple[str, ...] = ("k",) if "partitioned" in left else ()
    return lambda: wp.Join(left, right, on="x", partition_by=by, **options)


def running(window: str) -> Callable[[], wp.Operator]:
    """An operator of one's own, which workers do not know either: the sums of partitions so far, at each row."""

    class Running(wp.Windowed):
        state_fields = ("totals",)

        def __init__(self, window: str, **options: Any) -> None:
            super().__init__(window, **options)
            self.totals: dict[str, int] = {}

        def result_schema(self, *inputs: pa.Schema) -> pa.Schema:
            return pa.schema([("k", pa.string()), ("total", pa.int64())])

        def trigger(self, event: wp.Event) -> None:
            key = event.partition
            self.totals[key] = self.totals.get(key, 0) + event.content["x"][-1].as_py()
            self.emit([{"k": key, "total": self.totals[key]}])

    return lambda: Running(window, partition_by="k")


def within(distance: int) -> Any:
    """A predicate of pairs that Spark sends along, whatever workers know."""
    return lambda left, right: np.abs(left["id"].to_numpy() - right["id"].to_numpy()) < distance


# The first of each kind go through a stream, and all through a batch and through buckets.
CASES: dict[str, Callable[[], wp.Operator]] = {
    "aggregate, punct": aggregate("tumbling, punct(), partitioned"),
    "sort": sort("sliding, count(6), count(1), partitioned"),
    "deduplicate": deduplicate("sliding, delta(ts, 2 seconds), count(1), partitioned"),
    "join": join(
        "sliding, count(5), count(1), partitioned",
        "sliding, delta(ts, 1 second), count(1), partitioned",
        how="full",
    ),
    "own": running("sliding, count(2), count(1), partitioned"),
    "aggregate": aggregate("sliding, count(7), count(3), partitioned", partial_windows=False),
    "aggregate, tumbling": aggregate("tumbling, count(4), partitioned"),
    "aggregate, groups": aggregate("tumbling, delta(ts, 1 second)", group_by="k"),
    "aggregate, delta": aggregate("sliding, delta(ts, 1 second), delta(ts, 400 milliseconds), partitioned"),
    "aggregate, few": aggregate("sliding, count(5), delta(ts, 1 second), partitioned, partitionCount(3)"),
    "sort, punct": sort("tumbling, punct()"),
    "sort, tumbling": sort("tumbling, delta(ts, 700 milliseconds), partitioned", partial=False),
    "deduplicate, punct": deduplicate("tumbling, punct(), partitioned"),
    "deduplicate, few": deduplicate("sliding, count(20), count(1), partitioned, tupleCount(40)"),
    "join, one-sided": join("sliding, count(30), count(1)", "sliding, count(0), count(1)", how="right"),
    "join, match": join("sliding, count(9), count(1)", "sliding, count(9), count(1)", match=within(40)),
}
STREAMED = list(CASES)[:5]


def is_punctuated(operator: wp.Operator) -> bool:
    return "punct()" in str(operator.windows[0])


def rows(count: int, *, seed: int, begin: int = 0, span: int = 10_000) -> pa.Table:
    """Rows with times in so many milliseconds, in no order and some of them equal; one of 15 is a punctuation."""
    luck = random.Random(seed)
    moments = [(begin + luck.randrange(span)) * 1_000 for _ in range(count)]
    columns = [
        moments,
        [luck.choice("abcde") for _ in moments],
        [luck.randrange(12) for _ in moments],
        [begin + i for i in range(count)],
        [luck.randrange(2) for _ in moments],
        [luck.randrange(15) == 0 for _ in moments],
    ]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def in_order(table: pa.Table, operator: wp.Operator) -> pa.Table:
    """Of equal times, left ones come before right ones, and rows before punctuations."""
    last = np.zeros(len(table), np.int64)
    if isinstance(operator, wp.Join):
        last = table["lane"].to_numpy()
    elif is_punctuated(operator):
        last = table["end"].to_numpy()
    return table.take(pa.array(np.lexsort((last, table["ts"].cast(pa.int64()).to_numpy()))))


def answered(operator: wp.Operator, table: pa.Table, *, finish: bool) -> pa.Table:
    """What the embedded operator says to rows in order of time."""
    table = in_order(table, operator)
    given = []
    if isinstance(operator, wp.Join):
        for port in (0, 1):
            operator.process(SCHEMA.empty_table(), port)
        for i, side in enumerate(table["lane"].to_pylist()):
            given.append(operator.process(table.slice(i, 1), side)[0].table)
    elif is_punctuated(operator):
        ends = table["end"].to_numpy()
        kept = table.filter(pa.array(~ends))
        given.append(operator.process(wp.Punctuated.of(kept, np.cumsum(~ends)[ends]))[0].table)
    else:
        given.append(operator.process(table)[0].table)
    if finish:
        given.append(operator.finish()[0].table)
    return pa.concat_tables(given)

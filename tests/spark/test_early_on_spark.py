"""Early rows on Spark: a changelog of micro-batches whose final rows are those of append mode, and rows that add up."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as sf
from streams import NIGHTLY, WATERMARK, Step, drained, expected, like, stream_of

import windrow as wr
from tests.referee import assert_same
from windrow.errors import QueryError

WINDOWS = {
    "time": wr.sliding(30, every=15),
    "session": wr.session(7),
    "rows": wr.tumbling(rows=4),
}
AGGREGATES = {"n": wr.count(), "total": wr.sum("x")}
CHANGES = ("op", "revision", "final")


def steps_of(*times: list[int]) -> list[Step]:
    """A micro-batch for each list of times, whose watermark is ten behind the newest of them."""
    schema = pa.schema([("time", pa.int64()), ("k", pa.string()), ("x", pa.int64())])
    made = []
    for ticks in times:
        keys = ["a" if tick % 3 else "b" for tick in ticks]
        table = pa.table({"time": ticks, "k": keys, "x": [1] * len(ticks)}, schema=schema)
        made.append(Step(table, max(ticks) - 10))
    return [*made, Step(schema.empty_table(), 1000)]


def replayed(rows: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    """What a changelog says in the end."""
    told: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}
    for row in rows:
        identity = row["k"], row["window"], row["start"], row["end"]
        if row["op"] != "insert":
            del told[identity]
        if row["op"] != "delete":
            told.setdefault(identity, set()).add((*identity, row["n"], row["total"]))
    return set().union(*told.values())


def test_early_rows_of_a_stream_add_up_to_the_answer(spark: Any, tmp_path: Path) -> None:
    steps = steps_of([20, 21, 25, 40], [33, 47, 48, 52], [60, 61, 66, 70, 20])
    query = wr.query(time="time", key="k", windows=WINDOWS, aggregates=AGGREGATES)
    by_time = wr.query(time="time", key="k", windows={"time": WINDOWS["time"]}, aggregates=AGGREGATES)
    df = stream_of(spark, tmp_path, steps)
    emits = {"batch": wr.each_batch(), "when": wr.when(pc.field("n") > 2), "rows": wr.every_rows(3)}
    chosen = list(emits) if NIGHTLY else ["when"]
    results = {
        name: query.on_spark(
            df, watermark=WATERMARK, metrics=name, buckets=2, mode="update", emit=emits[name]
        )
        for name in chosen
    }
    results["adding"] = by_time.on_spark(
        df, watermark=WATERMARK, metrics="adding", buckets=2, emit=wr.each_batch(discarding=True)
    )
    named = [result.select(sf.lit(name).alias("variant"), "*") for name, result in results.items()]
    together = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), named)
    got, _ = drained(together, tmp_path)
    wanted = expected(query, steps)
    final = {tuple(row.values()) for row in wanted.table.to_pylist()}
    for name in chosen:
        mine = got.filter(pc.equal(got["variant"], name)).drop_columns(["variant"])
        assert_same(
            wanted.answers,
            like(wanted.table, mine.filter(mine["final"]).drop_columns(list(CHANGES))),
            note=name,
        )
        told = replayed(mine.to_pylist())
        # The stream goes on: the last rows of a key may be a window that is not full.
        assert told >= final
        assert all(window == "rows" and n < 4 for _, window, _, _, n, _ in told - final)
        assert pc.any(pc.invert(mine["final"])).as_py()
    mine = got.filter(pc.equal(got["variant"], "adding"))
    sums = mine.group_by(["k", "window", "start", "end"]).aggregate([("n", "sum"), ("total", "sum")])
    alone = {row for row in final if row[1] == "time"}
    assert {tuple(row.values()) for row in sums.to_pylist()} == alone
    assert len(mine) > len(alone)


def test_early_rows_are_for_streams(spark: Any) -> None:
    query = wr.query(time="time", windows=WINDOWS, aggregates=AGGREGATES)
    batch = spark.createDataFrame([(1, 1)], "time long, x long")
    with pytest.raises(QueryError, match="are for streams"):
        query.on_spark(batch, mode="update", emit=wr.each_batch())
    with pytest.raises(QueryError, match='in mode "append" no row is'):
        query.on_spark(batch, emit=wr.each_batch())

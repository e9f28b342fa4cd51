"""Tables of Delta and Iceberg are what their changelogs say, whatever is applied twice; each is read with its own client."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from changelogs import NAMES, TYPES, Row, changelogs, changes
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from jobs import answer, in_order, last, orders
from killing import killed_at_last, reach
from lake_job import catalog, delta_table, iceberg_table, run
from profiles import examples
from pyiceberg.catalog import load_catalog

from windrow.errors import QueryError, StateError
from windrow.pipelines.delta import Delta
from windrow.pipelines.iceberg import Iceberg
from windrow.pipelines.schema import load
from windrow.pipelines.spec import DeltaSink, IcebergSink
from windrow.pipelines.upsert import Batch, Changes, Target
from windrow.testing import replay

UNIQUE = count()


@dataclass(frozen=True)
class Lake:
    """A kind of tables: one of a name to write, and how to read it."""

    target: Callable[[str], Target]
    read: Callable[[str], pa.Table]


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "delta":
        return Lake(
            lambda name: Delta(str(folder / name)),
            lambda name: DeltaTable(str(folder / name)).to_pyarrow_table(),
        )
    options = catalog(folder)

    def read(name: str) -> pa.Table:
        return load_catalog("lake", **options).load_table(f"shop.{name}").scan().to_arrow()

    return Lake(lambda name: Iceberg(f"shop.{name}", catalog="lake", options=options), read)


def rows_of(table: pa.Table, columns: list[str]) -> list[str]:
    return sorted(map(repr, zip(*table.select(columns).to_pydict().values(), strict=True)))


@examples(5)  # each makes many files
@given(log=changelogs(), cuts=st.lists(st.integers(0, 30), max_size=3), data=st.data())
def test_a_table_is_what_its_changelog_says_also_where_batches_are_applied_twice(
    lake: Lake, log: list[Row], cuts: list[int], data: Any
) -> None:
    name = f"random_{next(UNIQUE)}"
    target = lake.target(name)
    edges = [0, *sorted(min(cut, len(log)) for cut in cuts), len(log)]
    for number, (begin, end) in enumerate(pairwise(edges)):
        for _ in range(data.draw(st.integers(1, 2), label="how often")):
            target.apply(Batch(name, number, "c"), changes(log[begin:end]))
    stored = [n for n in NAMES if n != "revision"]
    wanted = replay(changes(log).rows.select(list(TYPES)))
    assert rows_of(lake.read(name), stored) == rows_of(wanted, stored)


ROW = {"k": "a", "window": "w", "start": 0, "end": 5, "x": 1.0, "op": "insert", "revision": 0}


def test_a_batch_that_cannot_follow_is_refused_and_changes_nothing(lake: Lake) -> None:
    target = lake.target("refused")
    target.apply(Batch("refused", 3, "one"), changes([ROW]))
    for number, checkpoint in ((2, "one"), (3, "two"), (4, "two")):
        with pytest.raises(StateError, match="stream 'refused' has applied micro-batches up to 3"):
            target.apply(Batch("refused", number, checkpoint), changes([ROW]))
    lacks = Changes(changes([ROW]).rows.append_column("y", pa.array([1.0])), None, TYPES)
    with pytest.raises(QueryError, match="is there and has no column y"):
        target.apply(Batch("refused", 4, "one"), lacks)
    assert rows_of(lake.read("refused"), ["k", "x"]) == ["('a', 1.0)"]


def test_batches_without_changes_leave_nothing_behind(lake: Lake) -> None:
    target = lake.target("seldom")
    for number in range(4):
        target.apply(Batch("seldom", number, "c"), changes([ROW] if number == 2 else []))
    target.apply(Batch("seldom", 5, "c"), changes([{**ROW, "op": "update", "x": 2.0}]))
    assert rows_of(lake.read("seldom"), ["k", "x"]) == ["('a', 2.0)"]


def test_two_streams_write_one_table(lake: Lake) -> None:
    target = lake.target("shared")
    for stream, key in (("one", "a"), ("two", "b"), ("two", "b")):
        target.apply(Batch(stream, 0, "c"), changes([{**ROW, "k": key}]))
    assert rows_of(lake.read("shared"), ["k"]) == ["('a',)", "('b',)"]


def test_late_and_bad_rows_have_a_table_of_their_own(lake: Lake) -> None:
    row = pa.array([{"ts": 5, "user": "ann"}])
    sides = pa.table({"side": ["late"], "side_reason": ["came late"], "side_row": row})
    target, both = lake.target("sided"), Changes(changes([ROW]).rows, sides, TYPES)
    for _ in range(2):
        target.apply(Batch("sided", 0, "c"), both)
    assert lake.read("sided_side").to_pylist() == sides.to_pylist()
    assert len(lake.read("sided")) == 1


def test_values_with_parts_are_kept_as_they_are(lake: Lake) -> None:
    types = {
        "many": pa.list_(pa.float64()),
        "both": pa.struct([("at", pa.timestamp("us", "Europe/Berlin")), ("n", pa.int64())]),
        "exact": pa.decimal128(20, 2),
        "raw": pa.binary(),
        "day": pa.date32(),
        "local": pa.timestamp("us"),
        "small": pa.int16(),
    }
    table = changes([ROW]).rows
    for name, type_ in types.items():
        table = table.append_column(name, pa.array([VALUES[name]], type_))
    lake.target("parts").apply(Batch("parts", 0, "c"), Changes(table, None, TYPES))
    (row,) = lake.read("parts").select(list(types)).to_pylist()
    assert row == table.select(list(types)).to_pylist()[0]


VALUES: dict[str, Any] = {
    "many": [1.5, None],
    "both": {"at": 1_700_000_000_000_000, "n": None},
    "exact": 7,
    "raw": b"\x00\xff",
    "day": 19_000,
    "local": 12_345_678,
    "small": -3,
}


def test_a_length_of_time_is_refused(lake: Lake) -> None:
    table = changes([ROW]).rows.append_column("long", pa.array([5], pa.duration("us")))
    with pytest.raises(QueryError, match=r"column 'long' is of type duration.* cast it"):
        lake.target("lengths").apply(Batch("lengths", 0, "c"), Changes(table, None, TYPES))


def test_a_driver_that_is_killed_leaves_tables_without_gaps_and_without_doubles(
    spark: Any, small_spark: dict[str, str], tmp_path: Path
) -> None:
    """Each of the two tables has a micro-batch that Spark may not know to be there; the first is killed in any case."""
    events = orders(90, disorder=20)
    (tmp_path / "orders").mkdir()
    for number, begin in enumerate(range(0, 90, 18)):
        pq.write_table(events.slice(begin, 18), tmp_path / "orders" / f"{number}.parquet")
    command = [
        sys.executable,
        str(Path(__file__).parent / "lake_job.py"),
        str(tmp_path),
        json.dumps(small_spark),
    ]

    def applied() -> bool:
        log = tmp_path / "delta" / "_delta_log"
        versions = list((tmp_path / "warehouse" / "shop").glob("*/metadata/*.metadata.json"))
        return (log / "00000000000000000002.json").exists() and len(versions) > 2

    with killed_at_last(command, tmp_path) as process:
        reach(process, applied)
    assert not (tmp_path / "checkpoints" / "delta" / "commits" / "4").exists(), (
        "the job was too quick to be killed"
    )
    pq.write_table(last(), tmp_path / "orders" / "last.parquet")
    run(spark, tmp_path)
    for table in (delta_table(tmp_path), iceberg_table(tmp_path)):
        assert in_order(table.to_pylist()) == answer(events)


def test_a_file_names_the_tables(write: Any) -> None:
    text = """
source: {files: events, schema: "ts timestamp, user string"}
watermark: 1 second
query: {time: ts, key: user, windows: {1m: {tumbling: 1 minute}}, aggregates: {n: count}}
sink: SINK
checkpoint: state
"""
    sink = load(
        write(text.replace("SINK", "{delta: s3://lake/totals, options: {AWS_REGION: eu-central-1}}"))
    ).sink
    assert sink == DeltaSink("s3://lake/totals", options={"AWS_REGION": "eu-central-1"})
    assert load(write(text.replace("SINK", "{iceberg: shop.totals, catalog: lake}"))).sink == IcebergSink(
        "shop.totals", catalog="lake"
    )
    with pytest.raises(QueryError, match="a column of the result cannot be called 'identity'"):
        load(write(text.replace("{n: count}", "{identity: count}").replace("SINK", "{delta: totals}")))

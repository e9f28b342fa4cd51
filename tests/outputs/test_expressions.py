"""Filters, computed keys and columns of the result beside the shapes that answers can have."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import parquet

import windrow as wr

EVENTS = pa.table(
    {
        "ts": [1, 2, 12, 13, 3, 22],
        "user": ["a", "b", "a", "b", "a", "a"],
        "x": pa.array([1, 2, 3, 4, None, 6], pa.int64()),
        "unread": [0] * 6,
    }
)
QUERY = wr.query(
    time="ts",
    key={"who": wr.expr("upper(user)")},
    where="x > 1 or user = 'a'",
    windows={"w": wr.tumbling(5)},
    aggregates={"n": wr.count(), "high": wr.sum(wr.expr("x * 2"), where="x > 2")},
    select={"share": "high / n"},
)


def test_columns_of_the_result_are_filled_and_made_wide_with_the_others() -> None:
    rows = QUERY.run(EVENTS, fill=None, sort=True).to_pylist()
    assert [(row["who"], row["start"], row["n"], row["share"]) for row in rows] == [
        ("A", 0, 2, None),
        ("A", 5, None, None),
        ("A", 10, 1, 6.0),
        ("A", 15, None, None),
        ("A", 20, 1, 12.0),
        ("B", 0, 1, None),
        ("B", 5, None, None),
        ("B", 10, 1, 8.0),
    ]
    assert "w_share" in QUERY.run(EVENTS, wide=True).column_names


def test_files_are_read_by_the_columns_of_expressions_whatever_their_size(tmp_path: object) -> None:
    path = f"{tmp_path}/events.parquet"
    parquet.write_table(EVENTS.drop_columns(["unread"]), path)
    for memory in ("1 GB", "1 kB"):
        assert QUERY.run(path, memory=memory, sort=True).equals(QUERY.run(EVENTS, sort=True))


def test_a_bad_row_of_a_file_is_named_by_its_number_before_the_filter(tmp_path: object) -> None:
    path = f"{tmp_path}/events.parquet"
    parquet.write_table(EVENTS, path)
    query = wr.query(
        time="ts",
        where="user = 'a'",
        windows={"w": wr.tumbling(5)},
        aggregates={"y": wr.sum(wr.expr("1 / (x - 3)"))},
    )
    for source, memory in ((EVENTS, "1 GB"), (path, "1 GB"), (path, "1 kB")):
        with pytest.raises(wr.DataError, match="division by zero") as caught:
            query.run(source, memory=memory)
        assert caught.value.row == 2


def test_labels_are_of_events_that_pass_the_filter() -> None:
    labels = QUERY.label(EVENTS)
    assert labels["w_start"].to_pylist() == [[0], [0], [10], [10], [0], [20]]
    some = wr.query(time="ts", where="x > 3", windows={"s": wr.session(2)}, aggregates={"n": wr.count()})
    assert some.label(EVENTS)["s_start"].to_pylist() == [None, None, None, 13, None, 22]

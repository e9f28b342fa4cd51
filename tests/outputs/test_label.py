"""Labels say of each event what the windows say of their events."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from specimens import WINDOWS

import windrow as wr
from tests.referee import answers
from tests.referee.strategies import streams
from windrow.testing.compare import plain_values


def as_sets(table: pa.Table) -> list[set]:
    """For each event the starts and ends of its windows."""
    columns = [table[name].combine_chunks() for name in ("w_start", "w_end")]
    if not pa.types.is_list(columns[0].type):
        pairs = zip(*map(plain_values, columns), strict=True)
        return [set() if start is None else {(start, end)} for start, end in pairs]
    pairs = list(zip(*(plain_values(column.flatten()) for column in columns), strict=True))
    edges = columns[0].offsets.to_pylist()
    return [set(pairs[a:b]) for a, b in pairwise(edges)]


def wanted(query: wr.Query, table: pa.Table) -> list[set]:
    """The same by the referee, which collects the numbers of rows."""
    numbered = table.append_column("row", pa.array(range(len(table)), pa.int64()))
    collecting = replace(query, aggregates=MappingProxyType({"rows": wr.collect("row")}))
    result = answers(collecting, numbered).table()
    found: list[set] = [set() for _ in range(len(table))]
    columns = (plain_values(result[name]) for name in ("start", "end", "rows"))
    for start, end, rows in zip(*columns, strict=True):
        for row in rows:
            found[row].add((start, end))
    return found


@pytest.mark.parametrize("name", WINDOWS)
@given(data=st.data())
def test_every_window_labels_the_events_that_it_holds(name, data):
    case = WINDOWS[name]
    table = data.draw(
        streams(
            time=case.time,
            key=["string"],
            columns={"x": "float", "i": "int", "s": "string", "d": "decimal"},
            days=case.days,
        )
    )
    query = wr.query(time="time", key="key0", windows={"w": case.window}, aggregates={"n": wr.count()})
    labels = query.label(table)
    assert len(labels) == len(table)
    assert labels.column_names == ["w_id", "w_start", "w_end"]
    assert as_sets(labels) == wanted(query, table)


def test_ids_number_windows_by_key_and_start():
    events = pa.table({"t": [30, 1, 3, 2, 11], "k": ["a", "a", "a", "b", "a"]})
    windows = {"tumbling": wr.tumbling(10), "visit": wr.session(5), "pair": wr.tumbling(rows=2)}
    labels = wr.query(time="t", key="k", windows=windows, aggregates={"n": wr.count()}).label(events)
    assert labels["tumbling_id"].to_pylist() == [2, 0, 0, 3, 1]
    assert labels["visit_id"].to_pylist() == [2, 0, 0, 3, 1]
    assert labels["visit_end"].to_pylist() == [35, 8, 8, 7, 16]
    assert labels["pair_id"].to_pylist() == [1, 0, 0, 2, 1]


def test_windows_that_overlap_are_lists():
    q = wr.query(time="t", windows={"w": wr.sliding(4, every=2)}, aggregates={"n": wr.count()})
    assert q.label({"t": [5, 1]}).to_pylist() == [
        {"w_id": [2, 3], "w_start": [2, 4], "w_end": [6, 8]},
        {"w_id": [0, 1], "w_start": [-2, 0], "w_end": [2, 4]},
    ]


def test_files_and_no_events_have_labels(tmp_path):
    table = pa.table({"t": [1, 12], "k": ["a", "b"], "row": [0, 0]})
    parquet.write_table(table, tmp_path / "events.parquet")
    q = wr.query(
        time="t",
        key="k",
        windows={"w": wr.tumbling(10), "s": wr.session(3)},
        aggregates={"n": wr.count("row")},
    )
    assert q.label(tmp_path / "events.parquet").equals(q.label(table))
    assert q.label(table.slice(0, 0)).schema == q.label(table).schema


def test_a_bad_row_is_named():
    for window in (wr.tumbling(10), wr.session(3)):
        q = wr.query(time="t", windows={"w": window}, aggregates={"n": wr.count()})
        with pytest.raises(wr.DataError, match="column 't', row 1, value None"):
            q.label({"t": [1, None]})


def test_windows_far_apart_are_numbered_by_key_and_start():
    q = wr.query(time="t", key="k", windows={"w": wr.tumbling(1)}, aggregates={"n": wr.count()})
    labels = q.label({"t": [0, 4 * 10**18, 4 * 10**18, 0, 5], "k": list("acbdc")})
    assert labels["w_id"].to_pylist() == [0, 3, 1, 4, 2]
    assert q.label({"t": [9 * 10**18, -9 * 10**18], "k": ["a", "a"]})["w_id"].to_pylist() == [1, 0]


@pytest.mark.parametrize("index", [pa.uint8(), pa.int8(), pa.uint64()], ids=str)
def test_a_dictionary_with_nulls_is_a_key(index):
    keys = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], index), pa.array(["a", "b"]))
    q = wr.query(time="t", key="k", windows={"w": wr.tumbling(9)}, aggregates={"n": wr.count()})
    assert q.label(pa.table({"t": [1, 1, 2], "k": keys}))["w_id"].to_pylist() == [0, 2, 1]

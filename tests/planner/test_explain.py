"""What `explain` says: what is shared, what is kept, what is live, and why."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from specimens import ALTERNATING, TOTAL

import windrow as wr
from windrow.engine.windows import ClosedWindows

SCHEMA = pa.schema([("ts", pa.timestamp("ms")), ("k", pa.string()), ("x", pa.int64()), ("s", pa.string())])


def text(aggregates, schema=SCHEMA, windows=None, **parts):
    windows = windows or {"1m": wr.tumbling("1 minute"), "1h": wr.sliding("1 hour", every="1 minute")}
    return wr.query(time="ts", windows=windows, aggregates=aggregates, **parts).explain(schema)


def test_windows_that_share_edges_are_said_to_be_fused():
    said = text({"n": wr.count()})
    assert "2 windows, 1 aggregate, one pass over 'ts'" in said
    assert "tumbling 1 minute" in said
    assert "sliding 1 hour every 1 minute" in said
    assert "edges from 1 progression; 1 progression fused away" in said
    assert "up to 61 windows" in said


def test_equal_partials_are_named_once_with_all_that_read_them():
    said = text(
        {"total": wr.sum("x"), "mean": wr.mean("x"), "p90": wr.quantile("x", 0.9), "d": wr.distinct("x")}
    )
    assert [line for line in said.splitlines() if "total = sum(x), mean = mean(x)" in line]
    assert [line for line in said.splitlines() if "p90 = " in line and "d = distinct(x)" in line]


def test_sizes_and_reasons_are_given():
    said = text({"n": wr.count(), "total": wr.sum("x")}, key="k")
    for words in ("per k", "kept per slice and key", "live per key", "bytes", "windows", "aligned", "store:"):
        assert words in said
    assert "single events:" in said
    assert (
        "dropped, because no window depends on their order, and all aggregates are made of partials" in said
    )
    assert "never, because all edges are known in advance" in said
    assert "never needed, because" in said


def test_events_are_kept_for_an_aggregate_that_needs_their_order():
    assert "kept, because" in text({"all": wr.concat("s")})
    assert "bytes per event" in text({"all": wr.concat("s")})


def test_without_a_schema_there_is_an_explanation_too():
    said = text({"total": wr.sum("x"), "first": wr.first("s")}, schema=None)
    assert "total = sum(x)" in said
    assert "live per key" in said


def test_irregular_windows_are_counted():
    band = wr.band(datetime(2024, 1, 1), length="1 hour")
    said = text({"n": wr.count()}, windows={"d": wr.calendar("1 day"), "b": band})
    assert "2 irregular windows" in said


@pytest.mark.parametrize("type_", [pa.int64(), pa.float64()], ids=str)
@pytest.mark.parametrize("name", ["sum", "total", "max", "variance"])
def test_the_store_that_is_named_is_the_one_that_merges(name, type_):
    aggregate = {"sum": wr.sum("x"), "total": TOTAL, "max": wr.max("x"), "variance": wr.variance("x")}[name]
    query = wr.query(time="ts", windows={"w": wr.sliding(500, every=1)}, aggregates={"a": aggregate})
    schema = pa.schema([("ts", pa.int64()), ("x", type_)])
    said = query.explain(schema).split("many windows are due at once\n")[1].splitlines()[0]
    operator = query.operator()
    operator.process(pa.table({"ts": range(5_000), "x": pa.array(range(5_000), type_)}))
    (merging,) = [s.merging for s in operator.engines[0].binding.stores.values() if len(s.fields)]
    first = np.arange(4_500)
    picked = merging.chosen(ClosedWindows(first, first, first + 500, first, first + 500), 1)
    assert f" {picked} " in said.split(", not ")[0]


def test_no_store_is_named_for_events_that_are_kept():
    assert "alternating" not in text({"a": ALTERNATING}).split("store:")[1].split("single events:")[0]


def test_windows_that_depend_on_more_than_time_name_the_stores_that_may_merge_them():
    several = {"s": wr.session("1 minute"), "t": wr.session("2 minutes")}
    for windows in (several, {"w": wr.sliding(rows=100, every_rows=10)}):
        said = text({"total": wr.sum("x"), "high": wr.max("x"), "n": wr.count()}, windows=windows)
        assert "store: chosen when windows are due" in said
        assert [line.split() for line in said.splitlines() if "  exact sum  " in line][-1][2:] == [
            "lazy,",
            "subtract_on_evict",
        ]
        assert "lazy, flat_fat, two_stacks_lite" in said


def test_a_session_alone_is_one_slice_and_needs_no_store():
    assert "store: none, because a session is one slice" in text(
        {"total": wr.sum("x")}, windows={"w": wr.session(5)}
    )

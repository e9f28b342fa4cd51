"""Every loop as plain Python and compiled: both do the same, bit for bit, whatever the window and the aggregate."""

from __future__ import annotations

import warnings

import pyarrow as pa
import pytest
from both_tiers import both_tiers
from specimens import AGGREGATES, SEQUENCES, WINDOWS, fixed_stream

import windrow as wr
from windrow.engine.compiler import InterpretedWarning

BOTH = {"few": wr.tumbling(9), "many": wr.sliding(40, every=3), "session": wr.session(3)}


def answered(query: wr.Query, table: pa.Table, marks: list[object]) -> None:
    """All windows of a table in small batches, in update mode, with late events and a restart."""
    op = query.operator(mode="update", lateness=4)
    size = -(-table.num_rows // (len(marks) + 1))
    for i, mark in enumerate(marks):
        op.process(table.slice(i * size, size))
        op.advance(mark)
        op = query.restore(op.snapshot())
    op.process(table.slice(len(marks) * size))
    op.finish()
    query.run(table)


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_aggregate_is_the_same_in_both_tiers(name):
    aggregate, kinds = AGGREGATES[name]
    table = fixed_stream(kinds, size=60, span=90, seed=3).sort_by("time")
    query = wr.query(time="time", key="key0", windows=BOTH, aggregates={"a": aggregate})
    with warnings.catch_warnings(), both_tiers() as seen:
        warnings.simplefilter("ignore", InterpretedWarning)
        answered(query, table, [30, 60])
    assert seen


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_window_that_depends_on_events_is_the_same_in_both_tiers(name):
    table = fixed_stream({"x": "float", "y": "string"}, size=60, span=90, seed=5)
    aggregates = {"n": wr.count(), "s": wr.sum("x"), "c": wr.collect("y")}
    query = wr.query(time="time", key="key0", windows={"w": SEQUENCES[name]}, aggregates=aggregates)
    with both_tiers() as seen:
        answered(query, table, [30, 60])
    assert seen


@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_of_time_is_the_same_in_both_tiers(name):
    given = WINDOWS[name]
    table = fixed_stream({"x": "float"}, size=60, span=90, seed=7)
    unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.get(getattr(given.time, "unit", ""), 1)
    stride = 86_400 * unit if given.days and pa.types.is_timestamp(given.time) else 1
    width = pa.int32() if pa.types.is_date32(given.time) else pa.int64()
    ticks = pa.array([tick * stride for tick in table["time"].to_pylist()], width)
    table = table.set_column(0, "time", ticks.cast(given.time))
    query = wr.query(
        time="time", key="key0", windows={"w": given.window}, aggregates={"n": wr.count(), "m": wr.max("x")}
    )
    with both_tiers() as seen:
        query.run(table)
    assert seen

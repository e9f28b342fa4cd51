"""Windows of time over events in order: the same as those of a query, as far as they have ended."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreted import interpreted

import windrow as wr
from tests.referee.strategies import batchings, streams
from windrow.errors import DataError, QueryError
from windrow.rolling import Rolling, held
from windrow.stores import STORES

PLAIN = [store.name for store in STORES.values() if store.needs is None]


@pytest.fixture
def without_compiler(monkeypatch):
    monkeypatch.setattr(held, "compiled", interpreted)


def by_query(table, aggregate, period, every):
    """The windows of a query that have ended when the last event has come."""
    query = wr.query(
        time="time", windows={"w": wr.sliding(period, every=every)}, aggregates={"answer": aggregate}
    )
    result = query.run(table).select(["start", "end", "answer"])
    last = max(table["time"].to_pylist(), default=0)
    return sorted((row for row in result.to_pylist() if row["end"] <= last), key=lambda row: row["start"])


@pytest.mark.usefixtures("without_compiler")
@pytest.mark.parametrize("aggregate", [wr.sum("x"), wr.count("x"), wr.last("x"), wr.collect("x")], ids=str)
@given(
    data=st.data(),
    table=streams(time=pa.int64(), key=(), columns={"x": "int"}, ordered=True),
    period=st.integers(1, 20),
    every=st.integers(1, 8),
)
def test_windows_of_time_are_those_of_a_query(aggregate, data, table, period, every):
    wanted = by_query(table, aggregate, period, every)
    batches = data.draw(batchings(table))
    for store in PLAIN:
        rolling = Rolling(aggregate, time="time", period=period, every=every, store=store)
        found = [row for batch in batches for row in rolling.process(batch).to_pylist()]
        assert found == wanted


def test_durations_are_those_of_the_time_column():
    times = pa.array([0, 900, 1500, 7200], pa.timestamp("s"))
    rolling = Rolling(wr.max("x"), time="t", period="30 minutes", every="15 minutes")
    found = rolling.process(pa.table({"t": times, "x": ["a", "c", "b", "z"]}))
    assert found.schema.field("start").type == pa.timestamp("s")
    assert [start.minute for start in found["start"].to_pylist()] == [45, 0, 15]
    assert found["answer"].to_pylist() == ["a", "c", "c"]


def test_a_silent_year_is_no_year_of_windows():
    times = pa.array([0, 365 * 86_400_000_000], pa.timestamp("us"))
    rolling = Rolling(wr.count(), time="t", period="10 seconds", every="1 second", store="daba_lite")
    assert rolling.process(pa.table({"t": times}))["answer"].to_pylist() == [1] * 10


def test_an_event_before_the_last_one_is_refused_and_leaves_all_as_it_was():
    rolling = Rolling(wr.sum("x"), time="t", period=10, every=5)
    assert rolling.process(pa.table({"t": [1, 6], "x": [1, 2]})).num_rows == 1
    with pytest.raises(
        DataError, match=r"column 't', row 1, value 4: comes after a later event, .* use a query"
    ):
        rolling.process(pa.table({"t": [7, 4], "x": [1, 2]}))
    with pytest.raises(DataError, match="column 't', row 0, value 5: comes after a later event"):
        rolling.process(pa.table({"t": [5], "x": [1]}))
    assert rolling.process(pa.table({"t": [11], "x": [0]}))["answer"].to_pylist() == [3]


def test_a_sum_that_overflows_names_its_window_and_leaves_all_as_it_was():
    rolling = Rolling(wr.sum("x"), time="t", period=10, every=10)
    with pytest.raises(DataError, match=r"row 1, .* the sum of the window \[0, 10\) overflows int64"):
        rolling.process(pa.table({"t": [1, 2, 12], "x": [2**62, 2**62, 1]}))
    assert rolling.process(pa.table({"t": [1, 12], "x": [5, 6]}))["answer"].to_pylist() == [5]


def test_events_without_a_time_or_beyond_all_windows_are_refused():
    rolling = Rolling(wr.count(), time="t", period=10, every=5)
    with pytest.raises(DataError, match="row 1, value None: an event needs a time"):
        rolling.process(pa.table({"t": [1, None]}))
    with pytest.raises(DataError, match=r"row 0, .* would overflow the column's type"):
        rolling.process(pa.table({"t": [2**63 - 8]}))


def test_what_makes_no_window_is_refused():
    with pytest.raises(QueryError, match="rows, or a time and a period: give one of the two"):
        Rolling(wr.count(), rows=3, time="t", period=10)
    for some in ({"period": 10}, {"time": "t"}, {"time": "t", "period": "1 hour"}):
        with pytest.raises(QueryError, match=r"needs all three: time .*, period .*, and every how far"):
            Rolling(wr.count(), **some)
    with pytest.raises(QueryError, match="period must be longer than zero, not 0"):
        Rolling(wr.count(), time="t", period=0, every=1)
    with pytest.raises(QueryError, match="every must be longer than zero, not -1 second"):
        Rolling(wr.count(), time="t", period="1 minute", every="-1 second")
    with pytest.raises(QueryError, match="has no ticks to count windows by"):
        Rolling(wr.count(), time="t", period=1.5, every=0.5).process(pa.table({"t": [1.0]}))


def test_nothing_comes_of_nothing():
    rolling = Rolling(wr.count(), time="t", period=10, every=5)
    assert rolling.process([]).num_rows == 0
    assert rolling.process(pa.table({"t": pa.array([], pa.int64())})).schema.names == [
        "start",
        "end",
        "answer",
    ]

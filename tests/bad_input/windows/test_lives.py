"""The life of an operator: empty batches, repeated calls, late events, windows that come and go."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bad_input.windows.support import LIVES, content, events, query

import windrow as wr
from tests.referee import assert_same
from windrow.testing import replay


@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("window", LIVES, ids=str)
def test_an_operator_lives_through_empty_batches_and_repeated_calls(window, mode):
    asked = query(window)
    operator = asked.operator(mode=mode)
    assert operator.finish().num_rows == 0
    operator = asked.operator(mode=mode)
    assert operator.advance(3).num_rows == operator.advance(3).num_rows == 0
    operator = asked.restore(operator.snapshot())
    table = events([3, 4, 50], g=[5, 5, 5])
    operator.process(table.slice(0, 0))
    assert operator.advance(3).num_rows == 0
    operator.process(table)
    found = [operator.advance(20), operator.advance(20), operator.finish()]
    assert found[1].num_rows == 0
    assert operator.finish().num_rows == 0
    rows = pa.concat_tables(found)
    assert_same(asked.run(table), replay(rows) if mode == "update" else rows)
    operator.process(pa.table({"t": [60], "i": [3], "g": [5]}))
    assert operator.late()["t"].to_pylist() == [60]
    assert asked.restore(operator.snapshot()).finish().num_rows == 0


@pytest.mark.parametrize("window", LIVES, ids=str)
def test_an_event_absurdly_far_ahead_is_diverted(window):
    operator = query(window).operator(max_ahead=100, on_bad="divert")
    operator.process(events([1], g=[5]))
    operator.advance(1)
    operator.process(pa.table({"t": [2, 10**12, 3], "i": [1, 2, 3], "g": [5, 5, 5]}))
    assert operator.bad()["i"].to_pylist() == [2]
    assert max(row["end"] for row in operator.finish().to_pylist()) < 20


@pytest.mark.parametrize("window", [wr.session(5), wr.session("g"), wr.tumbling(rows=2)], ids=str)
def test_a_broken_promise_of_order_is_a_bad_row(window):
    first = events([1, 5, 3], g=[1, 1, 1])
    second = pa.table({"t": [4, 5, 6], "i": [3, 4, 5], "g": [1, 1, 1]})
    with pytest.raises(wr.DataError, match=r"row 2, value 3.*comes after a later event"):
        query(window, ordered=True).operator().process(first)
    operator = query(window, ordered=True).operator(on_bad="divert")
    rows = [operator.process(first), operator.process(second)]
    assert operator.bad()["i"].to_pylist() == [2, 3]
    kept = pa.table({"t": [1, 5, 5, 6], "i": [0, 1, 4, 5], "g": [1, 1, 1, 1]})
    assert content(pa.concat_tables([*rows, operator.finish()])) == content(query(window).run(kept))


MIXED = {
    "a session": ({"a": wr.session(5)}, 2),
    "rows": ({"a": wr.tumbling(rows=2)}, 4),
    "a session and rows": ({"a": wr.session(5), "b": wr.tumbling(rows=2)}, 4),
    "a landmark": ({"a": wr.landmark(since=0, every=10)}, 4),
    "snapshots": ({"a": wr.snapshot()}, 4),
}


@pytest.mark.parametrize("name", MIXED)
def test_late_events_are_counted_beside_a_window_that_would_take_them(name):
    windows, partly = MIXED[name]
    operator = query({**windows, "long": wr.tumbling(100)}).operator()
    operator.process(events([1, 40]))
    operator.advance(30)
    operator.process(events([10, 24, 25, 29, 30]))
    metrics = operator.metrics()
    assert operator.late().num_rows == 0
    assert (metrics.late, metrics.partly_late, metrics.events) == (0, partly, 7)


def test_an_aggregate_added_while_events_wait_reads_a_column_that_they_lack():
    operator = query(wr.tumbling(rows=2), aggregates={"n": wr.count()}).operator()
    operator.process(events([10, 20, 30], y=[1, 2, 3]))
    assert operator.add_aggregate("y", wr.sum("y")) == 31
    operator = operator.query.restore(operator.snapshot())
    assert operator.advance(35)["y"].to_pylist() == [None]
    operator.process(events([40, 50], y=[4, 5]))
    assert operator.finish()["y"].to_pylist() == [None, 5]


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        (wr.tumbling(rows=2), wr.tumbling(10)),
        (wr.session(3), wr.tumbling(10)),
        (wr.tumbling(rows=2), wr.session(10)),
        (wr.session("g"), wr.tumbling(rows=2)),
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["append", "update"])
def test_an_operator_survives_a_restart_after_its_only_window_of_a_kind_went(gone, left, mode):
    table = events([10, 20, 30, 31], g=[1, 1, 1, 1])
    operator = query({"gone": gone, "left": left}).operator(mode=mode, lateness=5)
    operator.process(table.slice(0, 2))
    found = [operator.advance(20)]
    operator.remove_window("gone")
    operator = operator.query.restore(operator.snapshot())
    operator.process(table.slice(2))
    rows = pa.concat_tables([*found, operator.finish()])
    rows = rows.filter(pc.equal(rows["window"].cast(pa.string()), "left"))
    assert_same(query({"left": left}).run(table), replay(rows) if mode == "update" else rows)


def test_a_landmark_whose_slices_were_joined_in_the_middle_of_a_step_loses_no_window():
    times = [*range(5, 20_000, 10), 20_001]
    operator = query(wr.landmark(since=0, every=10), aggregates={"n": wr.count()}).operator()
    operator.process(events(times))
    assert operator.advance(20_002).num_rows == len(times) - 1
    assert operator.metrics().live_slices < 10
    assert operator.finish().to_pylist() == [{"window": "w", "start": 0, "end": 20_010, "n": len(times)}]

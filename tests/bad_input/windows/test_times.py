"""Times at the ends of their type, and times of every type."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from bad_input.windows.support import INT64_MAX, INT64_MIN, content, events, query, signals
from specimens import SEQUENCES

import windrow as wr
from tests.referee import answers, assert_same
from tests.referee.strategies import in_ticks, length
from windrow.testing import replay

AT_THE_ENDS = [INT64_MIN + 10**6, -5, 0, 4, INT64_MAX - 10**6]
NO_GRID = [
    wr.tumbling(rows=2),
    wr.delta("v", by=1),
    wr.slide_by_rows(10, every_rows=1),
    wr.latest(rows=2, every=10),
    wr.threshold("b", at_least=100),
    wr.session(10),
    wr.session("v"),
    wr.snapshot(),
    wr.landmark(since=INT64_MAX - 10**7, every=10),
]


@pytest.mark.parametrize("key", [(), "k"], ids=["one key", "keys"])
@pytest.mark.parametrize("window", NO_GRID, ids=str)
def test_times_at_both_ends_of_int64_do_not_wrap(window, key):
    table = events(AT_THE_ENDS, k=[1] * 5, v=[1, 5, 1, 9, 1], b=[True, True, True, False, True])
    asked = query(window, key=key)
    assert_same(answers(asked, table), asked.run(table))


@pytest.mark.parametrize("key", [(), "k"], ids=["one key", "keys"])
def test_events_at_opposite_ends_of_int64_are_not_one_session(key):
    asked = query(wr.session(10), key=key)
    table = events([AT_THE_ENDS[0], AT_THE_ENDS[-1]], k=[1, 1])
    operator = asked.operator()
    operator.process(table.slice(0, 1))
    operator.process(table.slice(1))
    assert_same(answers(asked, table), operator.finish())


def test_a_landmark_at_the_other_end_of_int64_does_not_wrap():
    asked = query(wr.landmark(since=INT64_MIN + 100, every=10))
    table = events([0, INT64_MAX - 10**6])
    assert_same(answers(asked, table), asked.run(table))


@pytest.mark.parametrize("type_", [pa.int8(), pa.uint8(), pa.int32()], ids=str)
def test_an_event_whose_session_would_leave_the_type_is_a_bad_row(type_):
    highest = {"int8": 2**7, "uint8": 2**8, "int32": 2**31}[str(type_)] - 1
    operator = query(wr.session(5)).operator(on_bad="divert")
    operator.process(events(pa.array([3, highest], type_)))
    assert operator.bad()["i"].to_pylist() == [1]
    assert content(operator.finish()) == [(3, 8, (0,))]


@pytest.mark.parametrize("type_", [pa.uint8(), pa.uint64()], ids=str)
@pytest.mark.parametrize("window", [wr.session(5), wr.tumbling(rows=2), wr.snapshot()], ids=str)
def test_an_unsigned_time_may_begin_at_zero(window, type_):
    found = query(window).run(events(pa.array([0, 1], type_)))
    assert_same(answers(query(window), events(pa.array([0, 1], type_))), found)


@pytest.mark.parametrize(
    "type_",
    [
        pa.float32(),
        pa.date32(),
        pa.date64(),
        pa.timestamp("s"),
        pa.timestamp("ms", "Europe/Berlin"),
        pa.timestamp("ns"),
        pa.int8(),
        pa.uint64(),
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["append", "update"])
def test_every_kind_works_on_every_type_of_time(type_, mode):
    ticks = pa.array([51, 59, 53, 53, 70, 71], pa.int32())
    column = (
        ticks.cast(pa.date32()).cast(type_) if pa.types.is_date(type_) else ticks.cast(pa.int64()).cast(type_)
    )
    since = datetime(1970, 1, 1, tzinfo=UTC) if pa.types.is_temporal(type_) else 50
    windows = SEQUENCES | {"landmark": wr.landmark(since=since, every=7)}
    table = signals(column)
    asked = wr.query(time="time", key="key0", windows=windows, aggregates={"ids": wr.collect("i")})
    asked = in_ticks(asked, type_)
    operator = asked.operator(mode=mode, lateness=length(6, type_))
    operator.process(table.slice(0, 2))
    found = [operator.advance(column[0])]
    operator = asked.restore(operator.snapshot())
    operator.process(table.slice(2))
    together = pa.concat_tables([*found, operator.finish()])
    assert_same(answers(asked, table), replay(together) if mode == "update" else together)

"""Times that are none, or that no window can hold."""

from __future__ import annotations

import math

import pandas
import pyarrow as pa
import pytest
from bad_input.support import counts, query, times

import windrow as wr
from tests.referee.strategies import in_ticks

TIME_TYPES = [
    pa.int8(),
    pa.uint16(),
    pa.int64(),
    pa.uint64(),
    pa.float32(),
    pa.float64(),
    pa.date32(),
    pa.date64(),
    pa.timestamp("s"),
    pa.timestamp("ns", "Europe/Berlin"),
]


def column_of(values, type_):
    if pa.types.is_date32(type_):
        return pa.array(values, pa.int32()).cast(type_)
    return pa.array(values, pa.int64()).cast(type_)


@pytest.mark.parametrize("type_", TIME_TYPES, ids=str)
def test_a_null_time_is_named_with_its_column_and_row(type_):
    table = pa.table({"ts": column_of([40, 41, None], type_)})
    with pytest.raises(wr.DataError, match=r"column 'ts', row 2, value None.*needs a time") as caught:
        in_ticks(query(), type_).run(table)
    assert (caught.value.column, caught.value.row, caught.value.value) == ("ts", 2, None)


@pytest.mark.parametrize("type_", TIME_TYPES, ids=str)
def test_a_null_time_is_diverted(type_):
    operator = in_ticks(query(), type_).operator(on_bad="divert")
    operator.process(pa.table({"ts": column_of([40, None, 41], type_)}))
    bad = operator.bad().to_pylist()
    assert [row["ts"] for row in bad] == [None]
    assert "needs a time" in bad[0]["bad_reason"]
    assert operator.metrics().bad == 1
    assert operator.finish()["n"].to_pylist() == [2]


def test_not_a_time_of_pandas_is_refused():
    frame = pandas.DataFrame({"ts": [pandas.Timestamp("2020-01-01"), pandas.NaT]})
    with pytest.raises(wr.DataError, match="column 'ts', row 1"):
        in_ticks(query(), pa.timestamp("ns")).run(frame)


def test_nan_as_a_time_is_refused():
    with pytest.raises(wr.DataError, match=r"column 'ts', row 1, value nan.*needs a time"):
        query().run(times([1.0, math.nan], pa.float64()))


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinity_as_a_time_is_refused(value):
    with pytest.raises(wr.DataError, match=r"column 'ts', row 0, value -?inf"):
        query().run(times([value, 1.0], pa.float64()))


def test_an_unsigned_time_too_large_for_int64_is_a_bad_row():
    table = times([100, 2**63 + 5], pa.uint64())
    with pytest.raises(wr.DataError, match=f"column 'ts', row 1, value {2**63 + 5}"):
        query().run(table)
    operator = query().operator(on_bad="divert")
    operator.process(table)
    assert operator.bad()["ts"].to_pylist() == [2**63 + 5]


@pytest.mark.parametrize("type_", [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()], ids=str)
def test_an_unsigned_time_may_begin_at_zero(type_):
    assert counts(query().run(times([0, 5, 12], type_))) == {(0, 10): 2, (10, 20): 1}


def test_windows_at_the_ends_of_a_small_type_are_answered_where_they_fit():
    assert counts(query().run(times([-120, 119], pa.int8()))) == {(-120, -110): 1, (110, 120): 1}


@pytest.mark.parametrize("value", [-128, 127])
def test_a_window_that_the_type_cannot_express_makes_a_bad_row(value):
    with pytest.raises(wr.DataError, match=f"row 0, value {value}.*overflow"):
        query().run(times([value], pa.int8()))


def test_a_window_too_long_for_the_type_is_refused():
    with pytest.raises(wr.QueryError, match=r"tumbling 200 is longer than column 'ts' \(int8\)"):
        query(windows={"w": wr.tumbling(200)}).run(times([1], pa.int8()))


@pytest.mark.parametrize("value", [-(2**63), 2**63 - 1])
def test_the_ends_of_int64_do_not_wrap(value):
    with pytest.raises(wr.DataError, match=f"row 0, value {value}.*overflow"):
        query().run(times([value]))

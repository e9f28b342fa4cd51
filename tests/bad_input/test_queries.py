"""Queries that make no sense: what is refused before there are events."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from bad_input.support import query, stream, times

import windrow as wr
from tests.referee.strategies import length


def test_a_window_name_is_given_once():
    with pytest.raises(wr.QueryError, match="duplicate window name 'w'"):
        query(windows=[("w", wr.tumbling(1)), ("w", wr.tumbling(2))])
    for operator in (stream(), stream()):
        with pytest.raises(wr.QueryError, match="duplicate window name 'w'"):
            operator.add_window("w", wr.tumbling(2))
        operator.process(times([1]))
    with pytest.raises(wr.QueryError, match="duplicate aggregate name 'n'"):
        query(aggregates=[("n", wr.count()), ("n", wr.count())])


@pytest.mark.parametrize("name", ["", 5, None])
def test_a_name_is_a_string_that_is_not_empty(name):
    with pytest.raises(wr.QueryError, match="name of a window is a string"):
        query(windows=[(name, wr.tumbling(1))])
    with pytest.raises(wr.QueryError, match="name"):
        stream().add_window(name, wr.tumbling(1))
    with pytest.raises(wr.QueryError, match="name"):
        stream().add_aggregate(name, wr.count())


@pytest.mark.parametrize(
    "size", [0, -1, 0.0, "0 seconds", "-5 seconds", timedelta(0), timedelta(-1)], ids=str
)
@pytest.mark.parametrize(
    "window",
    [
        wr.tumbling,
        lambda size: wr.sliding(size, every=1),
        lambda size: wr.sliding(1, every=size),
        lambda size: wr.cumulate(size, step=1),
        lambda size: wr.cumulate(1, step=size),
        lambda size: wr.band(0, length=size),
    ],
    ids=["tumbling", "length", "slide", "size", "step", "band"],
)
def test_a_length_of_zero_or_less_is_refused(window, size):
    with pytest.raises(wr.QueryError, match="must be longer than zero, not"):
        window(size)


def test_a_slide_of_a_nanosecond_over_years_is_refused_with_the_number_of_windows():
    with pytest.raises(wr.QueryError, match="puts each event into 94,608,000,000,000,000 windows"):
        wr.sliding("1095 days", every="1 nanosecond")
    with pytest.raises(wr.QueryError, match="up to 86,400,000 windows"):
        wr.cumulate("1 day", step="1 millisecond")


@pytest.mark.parametrize(
    "value",
    ["ten seconds", "", "10", "5 parsecs", "1 minute x", [1], None, True, math.nan, math.inf],
    ids=repr,
)
def test_a_duration_that_is_none_is_refused(value):
    with pytest.raises(wr.QueryError, match="length"):
        wr.tumbling(value)


@pytest.mark.parametrize("value", ["1 month", "2 quarters", "1 year"])
def test_a_month_has_no_fixed_length(value):
    with pytest.raises(
        wr.QueryError, match=f"length '{value}': a .* has no fixed length; use windrow.calendar"
    ):
        wr.tumbling(value)


def test_a_length_of_time_needs_a_time():
    with pytest.raises(
        wr.QueryError, match=r"length '1 second' is a length of time, but column 'ts' \(int64\)"
    ):
        query(windows={"w": wr.tumbling("1 second")}).run(times([1]))


def test_a_length_finer_than_a_tick_is_refused():
    table = times([1], pa.timestamp("s"))
    with pytest.raises(wr.QueryError, match="'1 millisecond' is finer than the ticks of column 'ts'"):
        query(windows={"w": wr.tumbling("1 millisecond")}).run(table)
    with pytest.raises(wr.QueryError, match=r"length 2.5 is not a whole number of ticks"):
        query(windows={"w": wr.tumbling(2.5)}).run(times([1]))


def test_a_calendar_needs_a_calendar():
    with pytest.raises(wr.QueryError, match=r"needs a timestamp or date, not column 'ts' \(int64\)"):
        query(windows={"w": wr.calendar("1 day")}).run(times([1]))
    with pytest.raises(wr.QueryError, match="calendar period '1 second'"):
        wr.calendar("1 second")
    with pytest.raises(wr.QueryError, match="longer than zero"):
        wr.calendar("0 days")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", ""])
def test_an_unknown_time_zone_is_refused(zone):
    with pytest.raises(wr.QueryError, match=f"there is no time zone '{re.escape(zone)}'"):
        wr.calendar("1 day", tz=zone)


@pytest.mark.parametrize("q", [-0.1, 1.1, math.nan])
def test_a_quantile_out_of_range_is_refused(q):
    with pytest.raises(wr.QueryError, match=f"between 0 and 1, not at {q}"):
        wr.quantile("x", q)


@pytest.mark.parametrize("name", ["window", "start", "end", "op", "revision", "k"])
def test_an_output_column_has_one_name(name):
    with pytest.raises(wr.QueryError, match=f"aggregate '{name}' clashes"):
        query(key="k", aggregates={name: wr.count()})
    operator = stream(key="k")
    with pytest.raises(wr.QueryError, match=f"aggregate '{name}' clashes"):
        operator.add_aggregate(name, wr.count())


@pytest.mark.parametrize("name", ["window", "start", "end", "op", "revision"])
def test_a_key_has_a_name_of_its_own(name):
    with pytest.raises(wr.QueryError, match=f"key column '{name}' clashes"):
        query(key=name)
    with pytest.raises(wr.QueryError, match="key column 'a' clashes"):
        query(key=["a", "a"])


def test_a_query_needs_windows_and_aggregates_that_are_such():
    with pytest.raises(wr.QueryError, match="at least one window"):
        query(windows={})
    with pytest.raises(wr.QueryError, match="at least one aggregate"):
        query(aggregates={})
    with pytest.raises(wr.QueryError, match="window 'w' is not a window, but '1 minute'"):
        query(windows={"w": "1 minute"})
    with pytest.raises(wr.QueryError, match=r"aggregate 'a' is not an aggregate, but tumbling 1"):
        query(aggregates={"a": wr.tumbling(1)})


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"mode": "complete"}, "mode must be one of append, update, not 'complete'"),
        ({"on_bad": "ignore"}, "on_bad must be raise or divert, not 'ignore'"),
        ({"lateness": -1}, "lateness must not be negative"),
        ({"lateness": "soon"}, "lateness 'soon' is not a duration"),
        ({"max_ahead": 0}, "max_ahead must be longer than zero"),
        ({"max_slices": 0}, "max_slices must be at least 1"),
        ({"max_slices": "many"}, "max_slices"),
    ],
    ids=str,
)
def test_an_option_that_means_nothing_is_refused(option, message):
    with pytest.raises(wr.QueryError, match=message):
        query().operator(**option)


@pytest.mark.parametrize("lateness", [2**63, 2**64, 10**30])
def test_a_lateness_that_overflows_is_refused(lateness):
    operator = query().operator(lateness=lateness)
    with pytest.raises(wr.QueryError, match=f"lateness of {lateness} overflow column 'ts'"):
        operator.process(times([1]))


@pytest.mark.parametrize(
    ("start", "type_"), [(2**63 - 5, pa.int64()), (datetime(9000, 1, 1), pa.timestamp("ns"))], ids=str
)
def test_a_band_beyond_the_measure_is_refused(start, type_):
    with pytest.raises(wr.QueryError, match="band from"):
        query(windows={"b": wr.band(start, length=length(10, type_))}).run(times([1], type_))

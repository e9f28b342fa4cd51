"""Calendar windows agree with pandas, polars and NumPy, in zones of all kinds."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr
from tests.referee import answers, assert_same
from tests.referee.strategies import streams, windows

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Asia/Tehran",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Casablanca",
]


def starts(window: wr.windows.Window, instants: list[datetime], zone: str) -> list[datetime]:
    """Where the window of each instant, which has no zone, begins; on the clock."""
    table = pa.table({"t": pa.array(instants, pa.timestamp("us")).cast(pa.timestamp("us", zone))})
    labels = wr.query(time="t", windows={"w": window}, aggregates={"n": wr.count()}).label(table)
    return labels["w_start"].to_pylist()


def instants(year: int, step: timedelta, count: int = 400) -> list[datetime]:
    return [datetime(year, 1, 1) + i * step for i in range(count)]


@pytest.mark.parametrize(
    "type_", [pa.timestamp("us", "UTC"), pa.timestamp("s", "Europe/Berlin"), pa.date32()], ids=str
)
@given(data=st.data())
def test_every_calendar_agrees_with_the_oracle(type_, data):
    table = data.draw(streams(time=type_, key=["string"], days=True))
    window = data.draw(windows(type_, days=True))
    query = wr.query(time="time", key="key0", windows={"w": window}, aggregates={"n": wr.count()})
    assert_same(answers(query, table), query.run(table))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    ("window", "every"),
    [
        (wr.calendar("1 hour"), "1h"),
        (wr.calendar("30 minutes"), "30m"),
        (wr.calendar("6 hours"), "6h"),
        (wr.calendar("1 day"), "1d"),
        (wr.calendar("1 week"), "1w"),
        (wr.calendar("1 month"), "1mo"),
        (wr.calendar("1 quarter"), "1q"),
        (wr.calendar("1 year"), "1y"),
    ],
    ids=str,
)
def test_periods_begin_where_polars_truncates(window, every, zone):
    """Except where polars has no answer: at times that clocks jump over."""
    times = instants(2024, timedelta(hours=23, minutes=41))
    zoned = pl.Series(times).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    for instant, start in zip(zoned, starts(window, times, zone), strict=True):
        try:
            wanted = pl.Series([instant]).dt.truncate(every)[0]
        except pl.exceptions.ComputeError:
            continue
        assert start == wanted, instant


@pytest.mark.parametrize("zone", ZONES)
def test_hours_that_clocks_show_twice_begin_twice(zone):
    """An hour never holds two different hours of UTC offsets, and is as long as it is in polars."""
    times = instants(2024, timedelta(minutes=50), 366 * 29)
    table = pa.table({"t": pa.array(times, pa.timestamp("us")).cast(pa.timestamp("us", zone))})
    query = wr.query(time="t", windows={"w": wr.calendar("1 hour")}, aggregates={"n": wr.count()})
    frame = pl.from_arrow(table).group_by_dynamic("t", every="1h").agg(pl.len())
    found = query.run(table, sort=True)
    if zone == "Australia/Lord_Howe":  # where clocks move by half an hour, which polars counts otherwise
        assert sum(found["n"].to_pylist()) == len(times)
        return
    assert found["n"].to_pylist() == frame["len"].to_list()
    assert pl.from_arrow(found)["start"].to_list() == frame["t"].to_list()


@pytest.mark.parametrize("day", range(7))
def test_weeks_begin_with_any_day_as_in_pandas(day):
    names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    frequency = "W-" + names[day - 1][:3].upper()
    times = instants(2023, timedelta(hours=31))
    wanted = [pd.Timestamp(t).to_period(frequency).start_time.to_pydatetime() for t in times]
    found = starts(wr.calendar("1 week", week_start=names[day]), times, "UTC")
    assert [each.replace(tzinfo=None) for each in found] == wanted


@pytest.mark.parametrize("month", range(12))
@pytest.mark.parametrize(("period", "letter"), [("1 quarter", "Q"), ("1 year", "Y")])
def test_fiscal_years_and_quarters_are_those_of_pandas(period, letter, month):
    names = [date(2024, i + 1, 1).strftime("%B").lower() for i in range(12)]
    frequency = f"{letter}-{names[month - 1][:3].upper()}"
    times = instants(2022, timedelta(days=3, hours=5))
    wanted = [pd.Timestamp(t).to_period(frequency).start_time.to_pydatetime() for t in times]
    found = starts(wr.calendar(period, year_start=names[month]), times, "UTC")
    assert [each.replace(tzinfo=None) for each in found] == wanted


HOLIDAYS = [date(2024, 12, 25), date(2024, 12, 26), date(2025, 1, 1), date(2025, 1, 4)]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_business_days_are_those_of_numpy(zone):
    times = instants(2024, timedelta(hours=17), 800)
    found = starts(wr.calendar("1 business day", tz=zone, holidays=HOLIDAYS), times, zone)
    zoned = pl.Series(times).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    dates = np.array([t.date() for t in zoned], "datetime64[D]")
    wanted = np.busday_offset(dates, 0, "backward", holidays=np.array(HOLIDAYS, "datetime64[D]"))
    assert [(t.date(), t.hour) for t in found] == [(day, 0) for day in wanted.tolist()]


def test_days_begin_where_an_offset_says():
    shifts = wr.calendar("1 day", tz="Europe/Berlin", offset="6 hours")
    times = [datetime(2024, 3, 31, 3, 59), datetime(2024, 3, 31, 4, 0), datetime(2024, 3, 30, 5, 0)]
    found = starts(shifts, times, "Europe/Berlin")
    assert [t.replace(tzinfo=None) for t in found] == [
        datetime(2024, 3, 30, 6),
        datetime(2024, 3, 31, 6),
        datetime(2024, 3, 30, 6),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"period": "7 hours"}, "does not divide a day; wr.tumbling takes any length"),
        ({"period": "1 week", "week_start": "sunda"}, "week_start 'sunda' is not one; did you mean 'sunday'"),
        (
            {"period": "1 day", "week_start": "sunday"},
            "week_start does not go with a calendar period of '1 day'",
        ),
        ({"period": "1 month", "year_start": "april"}, "year_start does not go with"),
        ({"period": "1 day", "holidays": HOLIDAYS}, "holidays are for business days"),
        ({"period": "1 business day", "holidays": ["2024-12-25"]}, "holidays are dates, not '2024-12-25'"),
        (
            {"period": "1 business day", "holidays": [date(2024, 12, 25), "2024-12-26"]},
            "holidays are dates, not '2024-12-26'",
        ),
        ({"period": "1 business day", "holidays": date(2024, 12, 25)}, "holidays are several dates"),
        ({"period": "1 business day", "holidays": "2024-12-25"}, "holidays are several dates"),
        ({"period": "1 day", "offset": "24 hours"}, "offset must be whole seconds, and less than '1 day'"),
        ({"period": "1 day", "offset": "1 millisecond"}, "offset must be whole seconds"),
        ({"period": "1 fortnight"}, "write .* or .15 minutes."),
    ],
)
def test_what_makes_no_calendar_is_refused(arguments, message):
    with pytest.raises(wr.QueryError, match=message):
        wr.calendar(**arguments)


def test_a_date_has_no_hours():
    query = wr.query(time="t", windows={"w": wr.calendar("1 hour")}, aggregates={"n": wr.count()})
    with pytest.raises(wr.QueryError, match="has no time of day: windows on it begin with a day"):
        query.run({"t": [date(2024, 1, 1)]})

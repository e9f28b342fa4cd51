"""On a time, a plain number says no unit: it is refused wherever a length or a moment is needed, and zero is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from bad_input.support import query

import windrow as wr
from windrow.durations import parse_duration
from windrow.measure import Measure
from windrow.rolling import Rolling

TIMES = [pa.timestamp("us"), pa.timestamp("s", "Europe/Berlin"), pa.date32(), pa.date64()]
NUMBERS = [pa.int64(), pa.uint8(), pa.float64()]
START = datetime(2024, 1, 1, tzinfo=UTC)
DAY = "1 day"
WINDOWS = {
    "length of tumbling": lambda n: wr.tumbling(n),
    "offset of tumbling": lambda n: wr.tumbling(DAY, offset=n),
    "length of sliding": lambda n: wr.sliding(n, every=n),
    "offset of sliding": lambda n: wr.sliding(DAY, every=DAY, offset=n),
    "step of cumulate": lambda n: wr.cumulate(n, step=n),
    "length of a band": lambda n: wr.band(START, length=n),
    "start of a band": lambda n: wr.band(n, length=DAY),
    "gap of a session": lambda n: wr.session(n),
    "step of a landmark": lambda n: wr.landmark(since=START, every=n),
    "start of a landmark": lambda n: wr.landmark(since=n, every=DAY),
    "length of slide_by_rows": lambda n: wr.slide_by_rows(n, every_rows=1),
    "step of latest": lambda n: wr.latest(rows=1, every=n),
    "least length of a threshold": lambda n: wr.threshold("b", at_least=n),
}


def stream(type_: pa.DataType, **parts) -> tuple[wr.Query, pa.Table]:
    windows = parts.pop("windows", {"w": wr.tumbling(DAY)})
    table = pa.table({"t": pa.array([0], pa.int32()).cast(pa.date32()).cast(type_), "b": [True]})
    return query(time="t", windows=windows, **parts), table


@pytest.mark.parametrize("type_", TIMES, ids=str)
@pytest.mark.parametrize("name", WINDOWS)
def test_a_window_in_plain_numbers_is_refused_on_a_time(name, type_):
    asked, table = stream(type_, windows={"w": WINDOWS[name](5)})
    with pytest.raises(
        wr.QueryError, match=r"5 is a plain number, but column 't' .* is a time: give a (duration|moment)"
    ):
        asked.run(table)


@pytest.mark.parametrize(
    ("window", "said"),
    [
        (wr.session(5), "gap"),
        (wr.landmark(since=START, every=5), "every"),
        (wr.latest(rows=2, every=5), "every"),
        (wr.slide_by_rows(5, every_rows=1), "length"),
        (wr.threshold("b", at_least=5), "at_least"),
    ],
    ids=str,
)
def test_the_argument_is_called_by_its_name(window, said):
    asked, table = stream(pa.timestamp("us", "UTC"), windows={"w": window})
    with pytest.raises(wr.QueryError, match=rf"^window 'w': {said} 5 is a plain number"):
        asked.run(table)
    operator = query(time="t", windows={"v": wr.session(DAY)}).operator()
    operator.process(table)
    with pytest.raises(wr.QueryError, match=rf"window 'w': {said} 5 is a plain number"):
        operator.add_window("w", window)


@pytest.mark.parametrize("option", ["lateness", "max_ahead"])
def test_an_option_in_plain_numbers_is_refused_on_a_time(option):
    asked, table = stream(pa.timestamp("us"))
    operator = asked.operator(**{option: 5})
    said = f'{option} 5 is a plain number, but .* is a time: give a duration such as "5 seconds"'
    with pytest.raises(wr.QueryError, match=said):
        operator.process(table)


@pytest.mark.parametrize("part", ["longest", "release"])
def test_a_span_in_plain_numbers_is_refused_on_a_time(part):
    day = pa.array([0], pa.timestamp("us"))
    asked = query(time=wr.span("s", "e", **{part: 5}), windows={"w": wr.tumbling(DAY)})
    with pytest.raises(wr.QueryError, match=f"{part} 5 is a plain number"):
        asked.run(pa.table({"s": day, "e": pa.array([1], pa.timestamp("us"))}))


def test_a_rolling_window_in_plain_numbers_is_refused_on_a_time():
    with pytest.raises(wr.QueryError, match="period 5 is a plain number"):
        Rolling(wr.count(), time="t", period=5, every=5).process(stream(pa.timestamp("us"))[1])


@pytest.mark.parametrize("watermark", [5, 5.0, 0, np.int64(5), pa.scalar(5)], ids=repr)
@pytest.mark.parametrize("early", [False, True], ids=["after events", "before events"])
def test_a_watermark_in_plain_numbers_is_refused_on_a_time(watermark, early):
    asked, table = stream(pa.timestamp("us"))
    operator = asked.operator()
    steps = [partial(operator.process, table), partial(operator.advance, watermark)]
    first, second = reversed(steps) if early else steps
    first()
    with pytest.raises(wr.QueryError, match=r"is a plain number, but column 't' .* give a moment, such as a"):
        second()


@pytest.mark.parametrize("type_", TIMES, ids=str)
def test_zero_is_zero_in_every_unit(type_):
    windows = {"w": wr.tumbling(DAY, offset=0), "s": wr.sliding(DAY, every=DAY, offset=0.0)}
    asked, table = stream(type_, windows=windows)
    operator = asked.operator(lateness=0)
    operator.process(table)
    assert operator.finish().num_rows == 2


def test_a_day_and_not_a_second_is_proposed_for_dates():
    asked, table = stream(pa.date32(), windows={"w": wr.tumbling(7)})
    with pytest.raises(wr.QueryError, match='give a duration such as "7 days"'):
        asked.run(table)


@pytest.mark.parametrize("type_", NUMBERS, ids=str)
def test_plain_numbers_stay_right_on_other_measures(type_):
    asked = query(time="t", windows={"w": wr.tumbling(5)})
    operator = asked.operator(lateness=2)
    operator.process(pa.table({"t": pa.array([1, 7], type_)}))
    assert operator.advance(7).num_rows == 1


@pytest.mark.parametrize(
    ("given", "nanoseconds"),
    [
        (np.timedelta64(5, "s"), 5 * 10**9),
        (np.timedelta64(3, "ns"), 3),
        (np.timedelta64(2, "D"), 2 * 86_400 * 10**9),
        (np.timedelta64(2, "W"), 14 * 86_400 * 10**9),
        (np.timedelta64(7, "m"), 7 * 60 * 10**9),
        (np.timedelta64(3, "25s"), 75 * 10**9),
        (timedelta(minutes=1), 60 * 10**9),
    ],
    ids=repr,
)
def test_durations_of_numpy_and_python_are_taken(given, nanoseconds):
    assert parse_duration(given).nanoseconds == nanoseconds
    assert Measure("t", pa.timestamp("ns")).ticks(parse_duration(given), what="length") == nanoseconds


def test_nanoseconds_of_pandas_are_not_lost():
    assert parse_duration(pd.Timedelta(1500, "ns")).nanoseconds == 1500


@pytest.mark.parametrize(
    "given",
    [np.timedelta64(1, "M"), np.timedelta64(1, "Y"), np.timedelta64("NaT"), np.timedelta64(4)],
    ids=repr,
)
def test_a_duration_of_numpy_without_a_fixed_length_is_refused(given):
    with pytest.raises(wr.QueryError, match=r"has no fixed length; write it as"):
        parse_duration(given)

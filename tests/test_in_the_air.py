"""`examples/in_the_air.py` counts what the referee counts, and over the whole year what plain NumPy does."""

from __future__ import annotations

import importlib
import re
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.referee import answers, assert_same

EXAMPLES = Path(__file__).parents[1] / "examples"
FLIGHTS = 327_346
HOUR, QUARTER = 3_600, 900
AIRPORTS = ("EWR", "JFK", "LGA")
CLOCK = re.compile(r"^\s*(\d\d):00\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)")
BUSY = re.compile(
    r"^\s*(\w{3}) .*?\s(\d+)\s+\w{3} (\d\d \w{3} \d\d:\d\d) - \d\d:\d\d\s+(\d+) h (\d\d) min, to (\w{3})"
)


@pytest.fixture(scope="module")
def example():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        yield importlib.import_module("in_the_air")


@pytest.fixture(scope="module")
def flights(example):
    return example.load()


@pytest.fixture(scope="module")
def outcome(example, flights):
    return example.stream(flights)


def lives(flights: pa.Table, origin: str) -> tuple[np.ndarray, ...]:
    """Departure, landing and minutes of the flights of one airport, in seconds since 1970."""
    here = flights.filter(pc.field("origin") == origin)
    names = ("departed", "landed", "minutes")
    return tuple(here[name].cast(pa.int64()).to_numpy() for name in names)


def rows_of(table: pa.Table, origin: str) -> dict[str, np.ndarray]:
    """The rows of one airport by their start."""
    found = table.filter(pc.field("origin") == origin).sort_by("start")
    return {
        name: found[name].cast(pa.int64()).to_numpy() if name in ("start", "end") else found[name].to_numpy()
        for name in found.column_names
        if name not in ("origin", "window", "farthest")
    }


def test_some_hundred_flights_are_counted_as_the_referee_counts_them(example, flights):
    some = flights.slice(100_000, 300)
    for query in (example.SLIDING_HOURS, example.CLOCK_HOURS):
        assert_same(answers(query, some), query.run(some))


@pytest.mark.parametrize("origin", AIRPORTS)
def test_the_sliding_hours_of_the_year_are_those_of_numpy(flights, outcome, origin):
    assert len(flights) == FLIGHTS
    departed, landed, minutes = lives(flights, origin)
    found = rows_of(outcome.sliding, origin)
    low = (departed - HOUR) // QUARTER + 1
    high = (landed - 1) // QUARTER
    each = high - low + 1
    number = np.repeat(low, each) + np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
    starts, place = np.unique(number, return_inverse=True)
    longest = np.zeros(len(starts), np.int64)
    np.maximum.at(longest, place, np.repeat(minutes, each))

    np.testing.assert_array_equal(found["start"], starts * QUARTER)
    np.testing.assert_array_equal(found["end"], starts * QUARTER + HOUR)
    np.testing.assert_array_equal(found["flights"], np.bincount(place))
    np.testing.assert_array_equal(found["longest"], longest)


def flown_before(moments: np.ndarray, departed: np.ndarray, landed: np.ndarray) -> np.ndarray:
    """Seconds that all flights together were in the air before each moment."""

    def since(times: np.ndarray) -> np.ndarray:
        times = np.sort(times)
        count = np.searchsorted(times, moments)
        return count * moments - np.concatenate([[0], np.cumsum(times)])[count]

    return since(departed) - since(landed)


@pytest.mark.parametrize("origin", AIRPORTS)
def test_the_minutes_of_each_hour_add_up_to_those_of_the_year(flights, outcome, origin):
    departed, landed, minutes = lives(flights, origin)
    found = rows_of(outcome.clock, origin)
    seconds = flown_before(found["end"], departed, landed) - flown_before(found["start"], departed, landed)
    np.testing.assert_allclose(found["minutes"], seconds / 60, rtol=1e-12, atol=1e-9)
    assert found["minutes"].sum() == pytest.approx(minutes.sum(), rel=1e-12)


def test_the_tables_show_the_busiest_hours_and_the_average_of_each_hour(
    example, flights, outcome, monkeypatch, capsys
):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(example, "load", lambda limit: flights)
    monkeypatch.setattr(example, "stream", lambda flights: outcome)
    assert example.main([]) == 0
    lines = capsys.readouterr().out.splitlines()

    clock = [found for line in lines if (found := CLOCK.match(line))]
    assert [int(found[1]) for found in clock] == list(range(24))
    zone = ZoneInfo("America/New_York")
    for column, origin in enumerate(AIRPORTS, 2):
        departed, landed, _ = lives(flights, origin)
        hours = np.arange(departed.min() // HOUR, landed.max() // HOUR + 1) * HOUR
        seconds = np.diff(flown_before(np.append(hours, hours[-1] + HOUR), departed, landed))
        local = [datetime.fromtimestamp(hour, zone).hour for hour in hours.tolist()]
        average = np.bincount(local, seconds) / HOUR / 365
        assert [float(found[column]) for found in clock] == pytest.approx(average, abs=0.051)

    busy = [found for line in lines if (found := BUSY.match(line))]
    assert [found[1] for found in busy] == [origin for origin in AIRPORTS for _ in range(3)]
    for found in busy[::3]:
        departed, landed, minutes = lives(flights, found[1])
        begin = datetime.strptime(f"2013 {found[3]}", "%Y %d %b %H:%M").replace(tzinfo=zone).timestamp()
        inside = (departed < begin + HOUR) & (landed > begin)
        assert inside.sum() == int(found[2]) == rows_of(outcome.sliding, found[1])["flights"].max()
        assert minutes[inside].max() == 60 * int(found[4]) + int(found[5])


def test_the_closing_line_says_how_fast_it_was(example, outcome):
    assert re.search(
        r"327,346 flights, two queries, [\d,]+ windows .* flights per second", example.closing_line(outcome)
    )

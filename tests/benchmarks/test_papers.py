"""The papers' experiments run, agree with each other and fill their tables. What they measure is not tested."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow as wr

ROOT = Path(__file__).resolve().parents[2]


def lines(places: str, *names: str) -> dict[str, list[str]]:
    """Panels whose tables have the same lines."""
    return {name: places.split() for name in names}


# The panels of each experiment, and the lines of their tables, at tiny scale; None for one that has no table.
PANELS: dict[str, dict[str, list[str] | None]] = {
    "scotty-13": {**lines("1 20", "scotty-13", "scotty-13-flights")},
    "scotty-14": {**lines("1 20", "scotty-14-football", "scotty-14-machine", "scotty-14-flights")},
    "scotty-15": {
        **lines("10 100", "scotty-15a"),
        **lines("1,000 2,000", "scotty-15b"),
        **lines("10 100", "scotty-15c"),
        **lines("1,000 2,000", "scotty-15d"),
    },
    "scotty-16": {**lines("10 100", "scotty-16a", "scotty-16a-call", "scotty-16c")},
    "scotty-17": {**lines("0 40", "scotty-17a"), **lines("0-1 1-2", "scotty-17b")},
    "scotty-18": {"scotty-18": ["sum", "sum w/o invert", "max", "median"]},
    "scotty-19": {**lines("1 5", "scotty-19-football", "scotty-19-machine")},
    "scotty-20": {**lines("100 1,000", "scotty-20")},
    "scotty-21": {**lines("1 20", "scotty-21")},
    "scotty-22": {**lines("1 2", "scotty-22a", "scotty-22b")},
    "cutty-table-1": {},
    "cutty-8": {**lines("1 5", *(f"cutty-8{letter}" for letter in "bcefghd"))},
    "cutty-9": {**lines("1 4", *(f"cutty-9{letter}" for letter in "bcd"))},
    "pba-4": {**lines("8 64", "pba-4-machine", "pba-4-uniform"), **lines("8", "pba-4-flights")},
    "pba-5": {**lines("1 3", "pba-5-machine", "pba-5-uniform")},
    "pba-6": {**lines("0.1 0.2", "pba-6a"), **lines("10 30", "pba-6b")},
    "pba-7": {"pba-7a": None, "pba-7b": None},
    "spanning-10": {**lines("100 1,000", *(f"spanning-10{letter}" for letter in "abc"))},
    "spanning-11": {**lines("100 1,000", "spanning-11a", "spanning-11b")},
    "spanning-12": {
        **lines("1,000 5,000", *(f"spanning-12{part}" for part in ("a", "a-50", "a-500", "a-odd", "b")))
    },
    "spanning-13": {**lines("1,000", *(f"spanning-13{part}" for part in ("a", "a-50", "b", "b-50")))},
    "spanning-14": {**lines("60", "spanning-14a", "spanning-14b")},
    "spanning-15": {**lines("1.0", "spanning-15")},
    "windowing-3": {**lines("10 100", "windowing-3", "windowing-3-rates")},
    "windowing-4": {**lines("10 100", "windowing-4", "windowing-4-rates")},
}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a module of the experiments, which stand beside the package and are not installed."""
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"benchmarks.papers.{name}")


@pytest.fixture
def tiny(load: Any) -> Iterator[Any]:
    """The smallest setting. Garbage is collected before each measurement: what is there already is left out."""
    experiment = load("experiment")
    gc.freeze()
    yield experiment.Setting(experiment.SCALES["tiny"])
    gc.unfreeze()


def test_every_experiment_is_checked_here(load: Any) -> None:
    assert list(load("__main__").MODULES) == list(PANELS)


@pytest.mark.parametrize("name", PANELS)
def test_every_experiment_fills_its_tables_and_plots(name: str, load: Any, tiny: Any, tmp_path: Path) -> None:
    experiment = load("__main__").experiment(name)
    outcome = experiment.measure(tiny)
    tables = {
        panel.name: [line.name for line in panel.table().lines] if panel.tabled else None
        for panel in outcome.panels
    }
    assert tables == PANELS[name]
    assert outcome.panels or outcome.tables
    for panel in outcome.panels:
        shown = str if panel.kind == "map" else (int, float)
        assert any(
            isinstance(figure, shown) for values in panel.series.values() for figure in values.values()
        )
    load("page").files(name, outcome, tmp_path)
    assert {path.stem for path in tmp_path.glob("*.svg")} == set(PANELS[name])
    section = load("page").section(experiment, outcome, "command", "2026-01-01")
    assert f"## {name}\n" in section
    assert "**Verdict.** The claim " in section


def test_a_verdict_is_chosen_by_the_numbers(load: Any) -> None:
    findings = load("findings")
    good, bad = findings.at_least("speed", 3.0, 2.0), findings.at_most("memory", 0.5, 0.25, "%")
    assert findings.verdict([good]) == "The claim holds here. Measured: speed 3.0x (bound: ≥ 2.0x)."
    assert findings.verdict([bad]).startswith("The claim does not hold here. Measured: memory 50 %")
    assert findings.verdict([good, bad]) == (
        "The claim holds here in part, in 1 of 2 points: speed 3.0x (bound: ≥ 2.0x). "
        "Not so: memory 50 % (bound: ≤ 25 %)."
    )


def test_a_slow_contender_is_measured_on_fewer_events(load: Any) -> None:
    timing, experiment = load("timing"), load("experiment")
    scale = experiment.Scale("example", events=0, least=10, batch=1, seconds=1.0, repeats=1)
    works = {"fast": lambda events: events * 1e-6, "slow": lambda events: events * 0.1}
    found = timing.measured(works, scale, 100_000)
    assert found["fast"].events == 100_000
    assert found["slow"].events == 10
    assert found["slow"].rate == pytest.approx(10)


def test_a_technique_with_another_answer_is_noticed(load: Any) -> None:
    contenders, streams, workload = load("contenders"), load("streams"), load("scotty.workload")
    stream = streams.football(2_000).first(2_000, 500)
    query = workload.query(workload.tumbling(2))
    other = workload.query(workload.tumbling(2), wr.max("value"))
    makers = {"right": lambda q: q.operator(), "wrong": lambda _: other.operator()}
    with pytest.raises(AssertionError, match="wrong: other answers in column 'answer'"):
        contenders.require_agreement(query, makers, stream)


def test_a_technique_that_cannot_run_something_says_so_in_its_place(load: Any, tiny: Any) -> None:
    timing, streams, workload = load("timing"), load("streams"), load("scotty.workload")
    sweep = timing.Sweep(["general slicing", "cutty", "aggregate buckets"], tiny.scale)
    source = streams.disordered(streams.football(2_000), 0.2, 2.0)
    sweep.run(1, workload.query(workload.tumbling(1), wr.median("value")), source)
    assert sweep.series["cutty"] == {1: "in order only"}
    assert sweep.series["aggregate buckets"] == {1: "cannot"}
    assert "cannot: aggregate 'answer'" in sweep.note()


def test_a_share_of_the_events_is_late_and_the_watermark_waits_for_them(load: Any) -> None:
    streams = load("streams")
    source = streams.disordered(streams.football(20_000), 0.2, 2.0)
    behind = np.maximum.accumulate(source.times) - source.times
    assert 0.1 < (behind > 0).mean() < 0.25
    assert source.slack == behind.max() <= 2 * streams.SECOND
    query = wr.query(time="ts", windows={"w": wr.tumbling("1 second")}, aggregates={"n": wr.count()})
    operator = query.operator()
    rows = sum(
        sum(table["n"].to_pylist())
        for table in load("contenders").feed(operator, source.first(20_000, 1_000))
    )
    assert rows == 20_000


def test_flights_really_leave_out_of_order(load: Any) -> None:
    streams = load("streams")
    assert streams.flights().slack == 0
    late = streams.flights(by_departure=True)
    assert late.slack > 3_600 * streams.SECOND
    assert len(late) == len(streams.flights())


def test_the_papers_own_files_are_read(load: Any, tmp_path: Path) -> None:
    files, experiment = load("files"), load("experiment")
    football, machine, other = (tmp_path / name for name in ("full-game", "allData.txt", "other.csv"))
    football.write_text(
        "".join(f"{sensor},{t}000000,{t},0,0,0,0,0,0,0,0,0,0\n" for sensor, t in ((4, 3), (61, 2), (8, 1)))
    )
    machine.write_text(
        "".join(f"2012-02-22T16:46:28.{i}0+00:00\t{i}\t{10 + i}\t0\t0\t{i % 2}\t7\n" for i in range(3))
    )
    other.write_text("a,b\n1,2\n")
    assert files.read(football).table["value"].to_pylist() == [1, 3]
    assert files.read(football).times.tolist() == [1, 3]
    read = files.read(machine)
    assert read.table["value"].to_pylist() == [10, 11, 12]
    assert read.table.column_names == ["ts", "value", "sensor_1"]
    setting = experiment.Setting(experiment.SCALES["tiny"], football)
    assert len(files.stream(setting, "football", 100)) == 2
    assert len(files.stream(setting, "machine", 100)) == 100
    with pytest.raises(ValueError, match="neither a file of the DEBS grand challenge"):
        files.read(other)


@given(
    values=st.lists(st.integers(0, 100), min_size=1, max_size=60),
    seed=st.integers(0, 1_000),
    queries=st.integers(1, 4),
)
def test_slices_and_events_as_leaves_give_the_sums_between_marks(
    values: list[int], seed: int, queries: int
) -> None:
    marked = _module("cutty.marked")
    column = np.array(values)
    columns = np.random.default_rng(seed).random((queries, len(values))) < 0.3
    marks = marked.marks_of(columns)
    expected = []
    for i in range(len(values)):
        for q in np.flatnonzero(columns[:, i]):
            before = np.flatnonzero(columns[q, :i])
            if len(before):
                expected.append(int(column[before[-1] : i].sum()))
    for cuts in (marks.cuts(len(values)), np.ones(len(values), np.bool_)):
        assert marked.run(column, cuts, marks).sums.tolist() == expected


def _module(name: str) -> ModuleType:
    """As `load`, where a fixture would have to be made anew for each example."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        return importlib.import_module(f"benchmarks.papers.{name}")


def test_sections_that_are_not_run_stay_on_the_page(load: Any, tmp_path: Path) -> None:
    page, path = load("page"), tmp_path / "papers.md"
    names = ["one", "two"]
    page.publish(path, {"one": "## one\n\nold\n", "two": "## two\n\nold\n"}, names, {"CPU": "abacus"})
    page.publish(path, {"two": "## two\n\nnew\n"}, names, {"CPU": "abacus"})
    text = path.read_text()
    assert "## one\n\nold\n" in text
    assert "## two\n\nnew\n" in text
    assert "- CPU: abacus" in text


def test_a_part_of_a_figure_runs_the_whole_of_it(load: Any) -> None:
    options = load("__main__").arguments(["scotty-15c", "scotty-15", "pba-4", "--scale", "tiny"])
    assert options.names == ["scotty-15", "pba-4"]
    assert load("__main__").arguments(["all"]).names == list(PANELS)


@pytest.mark.parametrize("given", [["nothing"], ["scotty-15", "--data", "nowhere"], ["list", "scotty-15"]])
def test_what_cannot_be_meant_is_refused(
    given: list[str], load: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        load("__main__").arguments(given)
    assert "error" in capsys.readouterr().err


def test_the_list_names_every_experiment(load: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert load("__main__").main(["list"]) == 0
    printed = capsys.readouterr().out
    assert [name for name in PANELS if name not in printed] == []


def test_one_command_writes_page_plots_and_tables(load: Any, tmp_path: Path) -> None:
    assert load("__main__").main(["scotty-20", "--scale", "tiny", "--out", str(tmp_path)]) == 0
    assert "![Figure 20](papers/scotty-20.svg)" in (tmp_path / "papers.md").read_text()
    assert (tmp_path / "papers" / "scotty-20.svg").read_text().startswith("<?xml")
    lines = (tmp_path / "papers" / "scotty-20.csv").read_text().splitlines()
    assert lines[0] == ",sum,median"
    assert len(lines) == 3

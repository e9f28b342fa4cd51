"""The benchmarks run, check their answers and fill their tables. What they measure is not tested."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = ("windows", "small_batches", "aggregates", "keyed", "median", "rivals", "startup")


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a module of the benchmarks, which stand beside the package and are not installed."""
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"benchmarks.{name}")


@pytest.fixture
def harness(load: Any) -> ModuleType:
    return load("support.harness")


@pytest.fixture
def report(load: Any) -> ModuleType:
    return load("support.report")


def test_the_command_knows_every_question(load: Any) -> None:
    assert load("__main__").QUESTIONS == QUESTIONS


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_has_right_answers_and_a_table(question: str, load: Any, harness: ModuleType) -> None:
    tables = load(question).measure(harness.SCALES["tiny"])
    assert tables
    for table in tables:
        assert table.lines
        assert table.ours in table.columns
        assert all(line.met in (True, False, None) for line in table.lines)


class Opponent:
    """Gives the rows it was made with, whatever is asked."""

    library = "polars"

    def __init__(self, answers: dict[str, list[pa.Table]], jobs: list[str]) -> None:
        self.answers, self.jobs = answers, jobs

    def rows(self, form: int, path: Path) -> list[pa.Table]:
        return self.answers[self.jobs[form]]


def test_a_rival_with_one_wrong_value_is_noticed(load: Any, tmp_path: Path) -> None:
    rivals, streams = load("rivals"), load("support.streams")
    events = streams.batch_job(5_000)
    jobs = [form.job for form in rivals.forms("polars")]
    answers = {job: rivals.answer(job, events.slice(0, 500)) for job in rivals.JOBS}
    rivals.verify(Opponent(answers, jobs), events, tmp_path)

    wrong = answers["both"][1]
    totals = wrong["total"].to_pylist()
    totals[3] += 1
    answers["both"][1] = wrong.set_column(wrong.column_names.index("total"), "total", pa.array(totals))
    with pytest.raises(AssertionError, match="polars, both, hand-sliced once: not the same rows"):
        rivals.verify(Opponent(answers, jobs), events, tmp_path)


def rounds(harness: ModuleType, repeats: int) -> Any:
    return harness.Scale("example", events=1, batch=1, repeats=repeats, seconds=0)


def test_contenders_take_turns_and_keep_their_best_time(harness: ModuleType) -> None:
    turns: list[str] = []
    times = {"ours": iter([0.3, 0.1, 0.2]), "rival": iter([0.5, 0.6, 0.4])}

    def contender(name: str) -> Any:
        return lambda: (turns.append(name), next(times[name]))[1]

    best = harness.race({name: contender(name) for name in times}, rounds(harness, 3))
    assert best == {"ours": 0.1, "rival": 0.4}
    assert turns == ["ours", "rival"] * 3


def test_a_contender_that_is_slow_beyond_patience_runs_once(harness: ModuleType) -> None:
    times = iter([harness.PATIENCE_SECONDS + 1])
    best = harness.race({"slow": lambda: next(times)}, rounds(harness, 3))
    assert best == {"slow": harness.PATIENCE_SECONDS + 1}


def example(harness: ModuleType) -> dict[str, list[Any]]:
    fast = harness.Line("fast", {"M/s": 312.4, "rival": 36.0}, harness.at_least("M/s", 300), headline=True)
    slow = harness.Line("slow", {"M/s": 2.5, "rival": None}, harness.at_least("M/s", 5))
    return {"speed": [harness.Table("Speed", (fast, slow), ours="M/s", beside="rival")]}


def test_the_page_shows_machine_command_and_every_line(harness: ModuleType, report: ModuleType) -> None:
    page = report.page(example(harness), {"CPU": "abacus"}, "python -m benchmarks", {"speed": "How fast?"})
    assert "- CPU: abacus" in page
    assert "`python -m benchmarks`" in page
    assert "How fast?" in page
    assert "| fast | 312 | 36.0 | M/s ≥ 300 | yes |" in page
    assert "| slow | 2.50 |  | M/s ≥ 5 | no |" in page


def test_the_readme_changes_between_its_markers_only(
    harness: ModuleType, report: ModuleType, tmp_path: Path
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{report.OPEN}\nold\n{report.CLOSE}\nafter\n")
    summary = report.summary(
        example(harness), {"CPU": "abacus", "Date": "2026-01-01"}, "python -m benchmarks"
    )
    report.embed(readme, summary)
    report.embed(readme, summary)
    text = readme.read_text()
    assert text.startswith(f"before\n{report.OPEN}\n\n| ")
    assert text.endswith(f"\n\n{report.CLOSE}\nafter\n")
    assert text.count("| Speed: fast | 312 M/s | 36.0 (rival) | M/s ≥ 300 | yes |") == 1
    assert "old" not in text
    assert "slow" not in text


def test_a_readme_without_markers_is_refused(report: ModuleType, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("no place for a table")
    with pytest.raises(ValueError, match="needs the comments"):
        report.embed(readme, "table")


def test_one_that_fails_is_reported_and_the_others_go_on(
    load: Any, harness: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any
) -> None:
    def fail(scale: Any) -> Any:
        raise RuntimeError("the rival is asleep")

    monkeypatch.setattr(load("windows"), "measure", fail)
    monkeypatch.setattr(load("median"), "measure", lambda scale: example(harness)["speed"])
    status = load("__main__").main(["windows", "median", "--scale", "tiny", "--out", str(tmp_path)])
    printed = capfd.readouterr()
    assert status == 1
    assert "the rival is asleep" in printed.err
    assert "failed: windows" in printed.out
    assert "Speed" in printed.out

"""The benchmarks run, check their answers and fill their tables. What they measure is not tested."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from profiles import NIGHTLY

import windrow as wr

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = (
    "windows",
    "small_batches",
    "growth",
    "adding",
    "early",
    "aggregates",
    "overflow",
    "keyed",
    "median",
    "at",
    "sessions",
    "counts",
    "data_driven",
    "spans",
    "policies",
    "slices",
    "rivals",
    "threads",
    "files",
    "outputs",
    "expressions",
    "choice",
    "stores",
    "startup",
)
SLICED = [
    "sliding 60 ms every 10 ms",
    "sliding 10 ms every 3 ms",
    "sliding 60 rows every 10",
    "sliding 10 rows every 3",
    "session",
    "punctuated",
]
GROWING = [
    "tumbling",
    "session",
    "tumbling and session",
    "rows",
    "punctuated",
    "deterministic",
    "spans",
    "ten mixed",
]
ADDED = [
    "ten tumblings",
    "ten sessions",
    "ten counts",
    "five tumblings, five sessions",
    "five tumblings, five counts",
    "five sessions, five counts",
]
# The lines of each table, at tiny scale.
LINES = {
    "growth": [
        *[[f"{query}, {mode}" for query in GROWING for mode in ("append", "update")] for _ in range(2)],
        [
            f"{history} held, {mode}, {order}"
            for order in ("in order", "a late event")
            for mode in ("append", "update")
            for history in ("1,000", "2,000")
        ],
    ],
    "adding": [ADDED, ADDED],
    "threads": [
        [
            f"{kind}, {keys}"
            for keys in ("100 keys", "1,000 keys", "100,000 keys", "one key")
            for kind in ("tumbling", "session", "rows")
        ],
        ["1 thread", "2 threads"][: len(os.sched_getaffinity(0))],
    ],
    "sessions": [
        [
            f"{count} windows and a session, {order}"
            for order in ("in order", "20 % late")
            for count in ("20", "1,000")
        ],
        [
            f"{count}, {order}"
            for order in ("in order", "20 % late")
            for count in ("1 session", "100 sessions")
        ],
        ["200 keys, gap 30 s", "200 keys, gap 3 s"],
        [
            "windrow",
            "polars: cum_sum, group_by",
            "polars: cum_sum, group_by, streaming",
            "duckdb: window functions, GROUP BY",
            "duckdb: the same in the order of the table",
            "pandas: diff, cumsum, groupby",
        ],
    ],
    "counts": [
        [
            f"20 count windows, {aggregate}, {order}"
            for order in ("in order", "20 % late")
            for aggregate in ("sum", "max")
        ]
    ],
    "data_driven": [
        [
            "punctuated, column",
            "delta",
            "threshold, column",
            "threshold, expression",
            "trader's window, compiled",
        ]
    ],
    "spans": [
        ["events inside one slice", "events across 100 slices", "events across 1,000 slices"],
        ["events of 10 ticks, windows of 1 x 10", "events of 10 ticks, windows of 5 x 1,000"],
        [
            "windrow, all at once",
            "windrow, 10,000 at a time",
            "polars: join_where, group_by",
            "polars: int_ranges, explode, group_by",
            "polars: int_ranges, explode, group_by, streaming",
            "duckdb: unnest, GROUP BY",
        ],
        ["one event across 500,000 slices"],
    ],
    "slices": [SLICED, SLICED, SLICED],
    "stores": [
        [
            "daba_lite, max, 1,024 events",
            "two_stacks_lite, max, 1,024 events",
            "flat_fit, max, 1,024 events",
            "fiba, max, 8,192 events",
            "subtract_on_evict, sum, 1,024 events",
            "sba, max, 1,024 events",
            "slick_deque, max, 1,024 events",
            "fiba, max, 8,192 events, 128 too late",
            "fiba, max, 8,192 events, 1,024 too late",
        ],
        ["sba, max, 1,024 events", "subtract_on_evict, sum, 1,024 events"],
    ],
}


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
def test_every_question_has_right_answers_and_a_table(
    question: str, load: Any, harness: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = load(question)
    if (
        question == "spans" and not NIGHTLY
    ):  # the papers' experiments have the others, and compiling them takes long
        monkeypatch.setattr(asked, "TECHNIQUES", [asked.SLICING, asked.SWEEPING])
    tables = asked.measure(harness.SCALES["tiny"])
    assert tables
    for table in tables:
        assert table.lines
        assert table.ours in table.columns
        assert all(line.met in (True, False, None) for line in table.lines)
    if question in LINES:
        assert [[line.name for line in table.lines] for table in tables] == LINES[question]


def test_sessions_are_not_taken_for_right_if_one_is_not(load: Any) -> None:
    sessions, streams = load("sessions"), load("support.streams")
    fixed, stream = sessions.query_of(sessions.tumbling(2)), streams.bursts(30_000, 10_000, late=True)
    right = sessions.query_of(sessions.tumbling(2) | sessions.session_of(1_000))
    sessions.check(right, fixed, stream)
    with pytest.raises(AssertionError, match="a session: 1 rows, not 3"):
        sessions.check(sessions.query_of(sessions.tumbling(2) | sessions.session_of(3_001)), fixed, stream)
    with pytest.raises(AssertionError, match="2 tumbling windows beside a session"):
        sessions.check(
            right, sessions.query_of({"a": wr.tumbling("999 ms"), "b": wr.tumbling("2 seconds")}), stream
        )


def test_sessions_of_a_key_are_compared_key_by_key(load: Any) -> None:
    sessions, streams = load("sessions"), load("support.streams")
    stream, _ = streams.keyed(5_000, 20, 1_000, seconds=200)
    query = sessions.query_of({"session": wr.session("3 seconds")}, key=("key",))
    assert sessions.check_keyed(query, stream, 3_000) > 20
    with pytest.raises(AssertionError):
        sessions.check_keyed(query, stream, 2_000)


@pytest.mark.parametrize("library", ["polars", "duckdb", "pandas"])
def test_every_library_finds_the_sessions_that_windrow_finds(library: str, load: Any) -> None:
    sessions, opponents = load("sessions"), load("opponents")
    job = load(f"opponents.{library}_sessions")
    threads = importlib.import_module("polars").thread_pool_size() if library == "polars" else 1
    events = load("support.streams").session_job(100_000)
    ours = opponents.rows(opponents.SESSIONS, sessions.query_of(sessions.session_of(1_000)).run(events))
    assert len(ours) == 10
    for form in job.FORMS:
        (theirs,) = form.run(job.load(events, threads))
        assert opponents.rows(opponents.SESSIONS, job.to_arrow(theirs)) == ours, form.name


def test_a_library_with_one_wrong_session_is_noticed(load: Any, tmp_path: Path) -> None:
    sessions, opponents = load("sessions"), load("opponents")
    events = load("support.streams").session_job(30_000)
    right = opponents.rows(opponents.SESSIONS, sessions.query_of(sessions.session_of(1_000)).run(events))
    sessions.verify(Opponent({opponents.SESSION: [right]}, [opponents.SESSION] * 2), events, tmp_path)
    wrong = right.slice(0, 2)
    with pytest.raises(AssertionError, match="polars, cum_sum, group_by: not the same sessions"):
        sessions.verify(Opponent({opponents.SESSION: [wrong]}, [opponents.SESSION] * 2), events, tmp_path)


def test_a_library_with_one_wrong_hour_of_flights_is_noticed(load: Any, tmp_path: Path) -> None:
    spans, opponents = load("spans"), load("opponents")
    flights = load("support.flights").flights_job(500)
    right = opponents.rows(opponents.SPANS, spans.IN_THE_AIR.run(flights))
    jobs = [opponents.IN_THE_AIR] * 3
    spans.verify(Opponent({opponents.IN_THE_AIR: [right]}, jobs), flights, tmp_path)
    with pytest.raises(AssertionError, match="polars, join_where, group_by: not the same windows"):
        spans.verify(Opponent({opponents.IN_THE_AIR: [right.slice(1)]}, jobs), flights, tmp_path)


def test_events_inside_one_slice_cross_none(load: Any) -> None:
    spans = load("spans")
    table = spans.inside(1_000).table
    starts, ends = table["since"].to_numpy(), table["until"].to_numpy()
    assert (starts < ends).all()
    assert (starts // spans.SLICE == (ends - 1) // spans.SLICE).all()


def test_count_windows_are_compared_with_time_windows(load: Any) -> None:
    counts, streams, windows = load("counts"), load("support.streams"), load("windows")
    aggregates = {"a": wr.sum("value")}
    for late in (False, True):
        stream = streams.one_key(30_500, 10_000, late=late)
        counts.check(counts.counting(aggregates), windows.windows_query(20, aggregates), stream)
    with pytest.raises(AssertionError, match="count windows"):
        counts.check(counts.counting({"a": wr.max("value")}), windows.windows_query(20, aggregates), stream)


def test_the_traders_window_is_that_of_the_example(load: Any) -> None:
    ours = load("data_driven")
    spec = importlib.util.spec_from_file_location("trader", ROOT / "examples" / "trader.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    state, scaled = (0, *[ours.NEVER] * 4), (0, *[example.NEVER] * 4)
    for second, price in enumerate([12, 12, 9, 9, 11, 8, 8, 12] * 40):
        state, *changes = ours.follow_the_price(state, second * ours.SECOND, price)
        scaled, *expected = example.follow_the_price(scaled, second * example.MINUTE, price)
        assert changes == expected


def test_every_event_is_folded_once_however_events_come(load: Any) -> None:
    slices = load("slices")
    events = slices.events_of(300)
    for name, window, _, _ in slices.CASES:
        fed = slices.with_silences(events) if name == "session" else events
        for batch in (1, 7, 100):
            tally = slices.run(window, fed, batch)
            assert tally.combines["folds"] == len(events), name
            assert tally.windows > 0
            assert tally.live_slices > 0


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


def test_a_section_shows_its_command_and_every_line(harness: ModuleType, report: ModuleType) -> None:
    tables = example(harness)["speed"]
    section = report.section("speed", tables, "python -m benchmarks speed", "2026-01-01", "How fast?")
    page = report.page([section], {"CPU": "abacus", "Date": "2026-02-02"})
    assert "- CPU: abacus" in page
    assert "\n## speed\n\n`python -m benchmarks speed`, 2026-01-01\n\nHow fast?\n" in page
    assert "| fast | 312 | 36.0 | M/s ≥ 300 | yes |" in page
    assert "| slow | 2.50 |  | M/s ≥ 5 | no |" in page
    assert report.sections_of(page) == {"speed": section}
    assert report.page(report.sections_of(page).values(), {"CPU": "abacus"}) == page


def test_a_whole_number_is_shown_as_it_is(report: ModuleType) -> None:
    shown = [report.number(figure) for figure in (7, 7.0, 1_234, 0.5, "x", None)]
    assert shown == ["7", "7.00", "1,234", "0.50", "x", ""]


def test_a_benchmark_that_runs_again_replaces_its_own_section_only(load: Any, tmp_path: Path) -> None:
    main, page = load("__main__"), tmp_path / "docs" / "benchmarks.md"
    main.publish(page, {"startup": "## startup\n\nlong\n", "windows": "## windows\n\nmany\n"}, {"CPU": "a"})
    main.publish(page, {"startup": "## startup\n\nshort\n"}, {"CPU": "b"})
    text = page.read_text()
    assert text.endswith("## windows\n\nmany\n\n## startup\n\nshort\n")
    assert "- CPU: b" in text
    assert "long" not in text


def test_a_page_changes_between_its_markers_only(
    harness: ModuleType, report: ModuleType, tmp_path: Path
) -> None:
    page = tmp_path / "spark.md"
    page.write_text(f"before\n{report.OPEN}\nold\n{report.CLOSE}\nafter\n")
    summary = report.summary(
        example(harness), {"CPU": "abacus", "Date": "2026-01-01"}, "python -m benchmarks"
    )
    report.embed(page, summary)
    report.embed(page, summary)
    text = page.read_text()
    assert text.startswith(f"before\n{report.OPEN}\n\n| ")
    assert text.endswith(f"\n\n{report.CLOSE}\nafter\n")
    assert text.count("| Speed: fast | 312 M/s | 36.0 (rival) | M/s ≥ 300 | yes |") == 1
    assert "old" not in text
    assert "slow" not in text


def test_a_page_without_markers_is_refused(report: ModuleType, tmp_path: Path) -> None:
    page = tmp_path / "spark.md"
    page.write_text("no place for a table")
    with pytest.raises(ValueError, match="needs the comments"):
        report.embed(page, "table")


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


def test_an_added_window_with_a_wrong_row_is_noticed(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    adding = load("adding")
    adding.check(("sessions",))
    right = adding.Pair.take

    def wrong(pair: Any, name: str, batch: pa.RecordBatch) -> pa.Table:
        return right(pair, name, batch.slice(1) if name == "added" else batch)

    monkeypatch.setattr(adding.Pair, "take", wrong)
    with pytest.raises(AssertionError, match="sessions 1, added"):
        adding.check(("sessions",))


def test_a_late_event_is_in_the_middle_of_the_history(load: Any) -> None:
    growth = load("growth")
    source = growth.Source(1_000, late=True)
    for _ in source.filling():
        pass
    for _ in range(50):
        before = source.now
        first, *others = source.call()["ts"].to_pylist()
        assert before - 750 <= first <= before - 250
        assert others == list(range(before + 2, before + 101))


def test_a_history_is_measured_by_a_bounded_number_of_calls(load: Any) -> None:
    bounds = load("growth").Bounds(few=3, enough=20, many=200, patience=4, seconds=0.5)
    calls = {}
    for each in (0.0001, 0.01, 0.1, 1, 5):
        calls[each] = next(count for count in range(1_000) if bounds.reached(count, count * each))
    assert calls == {0.0001: 200, 0.01: 50, 0.1: 20, 1: 4, 5: 3}


def test_figures_are_written_for_programs(
    load: Any, harness: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(load("median"), "measure", lambda scale: example(harness)["speed"])
    path = tmp_path / "figures.json"
    assert load("__main__").main(["median", "--scale", "tiny", "--json", str(path)]) == 0
    written = json.loads(path.read_text())
    assert written["windrow"] == wr.__file__
    before = load("before")
    figures = before.figures_of(written["questions"]["median"])
    assert figures == {("Speed", "fast", "M/s"): 312.4, ("Speed", "slow", "M/s"): 2.5}


def test_only_windrow_is_compared_with_before_where_rivals_have_lines_too(load: Any) -> None:
    ours = {"name": "windrow", "figures": {"M events/s": 90.0}}
    theirs = {"name": "polars: group_by", "figures": {"M events/s": 45.0, "faster by": 2.0}}
    table = {"title": "Job", "ours": "faster by", "beside": "M events/s", "lines": [ours, theirs]}
    assert load("before").figures_of([table]) == {("Job", "windrow", "M events/s"): 90.0}


def test_speed_is_more_than_one_where_rates_rise_and_times_fall(load: Any) -> None:
    before = load("before")
    rate, cost, gone = ("a", "b", "M events/s"), ("a", "b", "ms"), ("a", "gone", "ms")
    then = before.better({rate: 1.0, cost: 4.0, gone: 1.0}, {rate: 2.0, cost: 8.0})
    assert then == {rate: 2.0, cost: 4.0, gone: 1.0}
    found = list(before.speeds(then, {rate: 3.0, cost: 5.0}))
    assert found == [(rate, 2.0, 3.0, 1.5), (cost, 4.0, 5.0, 0.8)]


def test_a_commit_is_there_as_long_as_it_is_compared(load: Any, tmp_path: Path) -> None:
    before, repository = load("before"), tmp_path / "repository"

    def git(*arguments: str) -> str:
        named = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(repository), *named, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    repository.mkdir()
    git("init", "--quiet")
    (repository / "file").write_text("then")
    git("add", "file")
    git("commit", "--quiet", "--message", "then")
    (repository / "file").write_text("now")
    seen: list[Path] = []

    def interrupted() -> None:
        with before.checked_out("HEAD", repository) as tree:
            assert (tree / "file").read_text() == "then"
            seen.append(tree)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not seen[0].exists()
    assert len(git("worktree", "list").splitlines()) == 1
    with (
        pytest.raises(SystemExit, match="nothing cannot be checked out"),
        before.checked_out("nothing", repository),
    ):
        pass


def test_a_question_that_a_source_cannot_run_says_why(load: Any, tmp_path: Path) -> None:
    before = load("before")
    (tmp_path / "src" / "windrow").mkdir(parents=True)
    (tmp_path / "src" / "windrow" / "__init__.py").write_text("raise ImportError('too old')")
    trees = {"then": before.tree_of(tmp_path, "windows")}
    assert trees["then"].benchmarks == ROOT
    with pytest.raises(before.CannotRun, match="the source of then cannot run it: ImportError: too old"):
        before.compare(trees, "windows", "tiny", 1)

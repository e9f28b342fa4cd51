"""`windrow run`, `check`, `explain`, `schema`: what they show, write and refuse, and with which exit code."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from pyarrow import csv, feather

import windrow as wr
from windrow.cli import bench
from windrow.cli.main import main
from windrow.pipelines.calls import AGGREGATES, WINDOWS, Form
from windrow.pipelines.json_schema import SCHEMAS
from windrow.pipelines.queries import load_query

ROOT = Path(__file__).parents[2]
STORM = str(ROOT / "examples" / "storm.csv")
QUERY = """\
time: scheduled
key: origin
windows:
  12 hours: {tumbling: 12 hours}
  a day: {sliding: 1 day, every: 1 hour}
aggregates:
  flights: count
  p90: {quantile: [delay, 0.9]}
"""
DELAYS = wr.query(
    time="scheduled",
    key="origin",
    windows={"12 hours": wr.tumbling("12 hours"), "a day": wr.sliding("1 day", every="1 hour")},
    aggregates={"flights": wr.count(), "p90": wr.quantile("delay", 0.9)},
)


@pytest.fixture
def query(tmp_path: Path) -> str:
    path = tmp_path / "delays.yaml"
    path.write_text(QUERY)
    return str(path)


def expected(query: wr.Query = DELAYS) -> pa.Table:
    return query.run(csv.read_csv(STORM))


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow", "jsonl"])
def test_a_query_runs_over_files_and_its_windows_are_in_a_file(
    query: str, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / f"out.{ending}"
    assert main(["run", query, STORM, "-o", str(output)]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"{len(expected())} windows in ")
    if ending == "jsonl":
        rows = [json.loads(line) for line in output.read_text().splitlines()]
        assert rows == json.loads(json.dumps(expected().to_pylist(), default=str))
        return
    read = {"parquet": pq.read_table, "csv": csv.read_csv, "arrow": feather.read_table}[ending]
    written = read(str(output))
    assert written.cast(expected().schema).equals(expected())


def test_files_of_a_folder_and_of_a_glob_are_one_table(query: str, tmp_path: Path) -> None:
    table, folder = csv.read_csv(STORM), tmp_path / "events"
    (folder / "day=1").mkdir(parents=True)
    pq.write_table(table.slice(0, 1000), folder / "day=1" / "a.parquet")
    pq.write_table(table.slice(1000), folder / "b.parquet")
    for place in (str(folder), str(folder / "**" / "*.parquet")):
        assert main(["run", query, place, "-o", str(tmp_path / "out.parquet")]) == 0
        got = pq.read_table(tmp_path / "out.parquet")
        assert sorted(map(str, got.to_pylist())) == sorted(map(str, expected().to_pylist()))


def test_a_table_shows_the_first_rows_and_lines_over_time(
    query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", query, STORM, "--rows", "3"]) == 0
    shown = capsys.readouterr().out
    assert "EWR      12 hours   2013-02-07 00:00:00   2013-02-07 12:00:00" in shown
    assert f"3 of {len(expected())} rows" in shown
    lines = [line for line in shown.splitlines() if "█" in line]
    assert len(lines) == 12
    assert all(name in " ".join(lines) for name in ("EWR", "LGA", "JFK", "a day", "flights", "p90"))


def test_standard_output_can_be_csv_and_another_key_can_be_named(
    query: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["run", query, STORM, "--key", "carrier", "--key", "origin", "-o", "-"]) == 0
    got = csv.read_csv(io.BytesIO(capfdbinary.readouterr().out))
    by_carrier = wr.query(
        time="scheduled", key=["carrier", "origin"], windows=DELAYS.windows, aggregates=DELAYS.aggregates
    )
    assert got.cast(expected(by_carrier).schema).equals(expected(by_carrier))


def test_the_query_of_a_pipeline_runs_embedded(tmp_path: Path) -> None:
    example = ROOT / "examples" / "pipeline"
    command = ["run", str(example / "totals.yaml"), str(example / "payments.csv")]
    assert main([*command, "-o", str(tmp_path / "out.parquet")]) == 0
    assert set(pq.read_table(tmp_path / "out.parquet")["window"].to_pylist()) == {"1m", "5m", "high"}


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (
            "tumbling",
            "tumblin",
            "4:13: windows.12 hours: 'tumblin' is not a window; did you mean 'tumbling'?",
        ),
        ("delay, 0.9", "dela, 0.9", "8:20: aggregates.p90: there is no column 'dela'"),
        (
            "time: scheduled\n",
            "time: carrier\n",
            "1:7: time: column 'carrier' of type string cannot be a time",
        ),
        ("aggregates:", "agregates:", "6:1: a query has no field 'agregates'; did you mean 'aggregates'?"),
    ],
)
def test_what_is_wrong_has_its_place_and_the_exit_code_2(
    query: str, old: str, new: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(query).write_text(QUERY.replace(old, new))
    for command in ("run", "check", "explain"):
        assert main([command, query, STORM]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        (line,) = said.err.splitlines()
        assert line.startswith(f"{query}:"), line
        assert error.partition(": ")[2] in line, line
        assert f"{query}:{error.partition(': ')[0]}:" in line, line


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([STORM, "-o", "out.xlsx"], "-o takes a file that ends in .parquet"),
        ([STORM, "-o", "nowhere/out.csv"], "there is no folder"),
        (["nothing.csv"], "there is no file 'nothing.csv'"),
        ([__file__], "does not say by its name how to read it"),
    ],
)
def test_files_that_cannot_be_are_told_before_anything_is_read(
    query: str, words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", query, *words]) == 2
    assert error in capsys.readouterr().err


def test_a_file_can_be_checked_alone_and_against_events(
    query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", query]) == 0
    assert "is sound: 2 windows, 2 aggregates; name a file of events" in capsys.readouterr().out
    assert main(["check", query, STORM]) == 0
    assert capsys.readouterr().out == f"{query} is sound: 2 windows, 2 aggregates, and it fits {STORM}\n"
    assert main(["check", str(ROOT / "examples" / "pipeline" / "totals.yaml")]) == 0
    assert "totals.yaml is sound: 3 windows, 3 aggregates" in capsys.readouterr().out


def test_a_check_looks_at_all_files(query: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = csv.read_csv(STORM)
    pq.write_table(table, tmp_path / "a.parquet")
    texts = table.set_column(table.column_names.index("delay"), "delay", table["delay"].cast(pa.string()))
    pq.write_table(texts, tmp_path / "b.parquet")
    assert main(["check", query, f"{tmp_path}/*.parquet"]) == 2
    assert "column 'delay' is " in (said := capsys.readouterr().err)
    assert "string in " in said


@pytest.mark.parametrize("output", ["events.parquet", "folder/new.parquet"])
def test_events_are_not_written_over(
    query: str, tmp_path: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    for place in ("events.parquet", "folder/events.parquet"):
        pq.write_table(csv.read_csv(STORM), tmp_path / place)
    before = (tmp_path / "events.parquet").read_bytes()
    events = [str(tmp_path / "events.parquet"), str(tmp_path / "folder")]
    assert main(["run", query, *events, "-o", str(tmp_path / output)]) == 2
    assert "that is where the events are" in capsys.readouterr().err
    sql = "SELECT origin, window_end, count(*) AS n FROM TUMBLE(events, scheduled, INTERVAL '1 day') GROUP BY origin, window_end"
    assert main(["run", sql, *events, "-o", str(tmp_path / output)]) == 2
    assert (tmp_path / "events.parquet").read_bytes() == before
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["events.parquet"]


def test_the_plan_is_that_of_the_query_with_the_options_of_the_file(
    query: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", query]) == 0
    assert capsys.readouterr().out == f"{DELAYS.explain()}\n"
    Path(query).write_text(QUERY + "lateness: 6 hours\n")
    assert main(["explain", query, STORM]) == 0
    assert capsys.readouterr().out == f"{DELAYS.explain(csv.read_csv(STORM).schema, lateness='6 hours')}\n"


def test_python_dash_m_windrow_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "windrow", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"windrow {wr.__version__}\n")


def test_shells_complete_commands() -> None:
    code = "import os; os.environ.update(_WINDROW_COMPLETE='complete_bash', COMP_WORDS='windrow ru', COMP_CWORD='1')\n"
    code += "from windrow.cli.main import main; main([])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["run"]


@pytest.mark.parametrize("what", SCHEMAS)
def test_the_schema_that_editors_use_is_made_of_the_functions_that_are_there(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schema", what]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    for kind, functions in (("window", WINDOWS), ("aggregate", AGGREGATES)):
        forms = schema["$defs"][kind]["anyOf"]
        described = {form["required"][0] for form in forms if "required" in form}
        assert described == {
            name for name, function in functions.items() if Form(name, function).is_for_files
        }
    assert main(["schema", "nothing"]) == 2
    assert "there is no schema of 'nothing'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "sound"),
    [
        ("", "", True),
        ("scheduled", "{span: [begin, end]}", True),
        ("flights: count", "flights: {count: }", True),
        ("flights: count", "best: {max_by: [delay, carrier]}", False),
        ("tumbling: 12 hours", "tumbling: {rows: 100}", True),
        ("every: 1 hour", "evry: 1 hour", False),
        ("tumbling", "tumblin", False),
        ("aggregates:", "on_bad: divert\naggregates:", True),
        ("aggregates:", "on_bad: 5\naggregates:", False),
        ("aggregates:", "mode: update\nemit: {every: 10 seconds}\naggregates:", True),
        ("aggregates:", "mode: update\nemit: each_batch\naggregates:", True),
        ("aggregates:", "mode: update\nemit: {every_rows: many}\naggregates:", False),
        ("aggregates:", "emit: close\naggregates:", True),
        ("aggregates:", "emit: clos\naggregates:", False),
        ("key: origin\n", "", True),
        ("time: scheduled\n", "", False),
    ],
)
def test_the_schema_takes_what_the_command_takes(query: str, old: str, new: str, sound: bool) -> None:
    text = QUERY.replace(old, new)
    Path(query).write_text(text)
    validator = jsonschema.Draft202012Validator(SCHEMAS["query"]())
    assert validator.is_valid(yaml.safe_load(text)) == sound
    assert (main(["check", query]) == 0) == sound


def test_the_schema_of_pipelines_takes_the_example() -> None:
    example = yaml.safe_load((ROOT / "examples" / "pipeline" / "totals.yaml").read_text())
    validator = jsonschema.Draft202012Validator(SCHEMAS["pipeline"]())
    assert [error.message for error in validator.iter_errors(example)] == []
    del example["sink"]
    assert not validator.is_valid(example)


HALF_DAYS = """
SELECT origin, window_start, window_end, count(*) AS flights, avg(delay) AS mean
FROM TUMBLE({table}, scheduled, INTERVAL '12 hours') GROUP BY origin, window_start, window_end
"""


def test_sql_runs_over_files_that_are_tables_by_their_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = wr.sql(HALF_DAYS.format(table="t"), t=csv.read_csv(STORM))
    output = tmp_path / "out.parquet"
    (tmp_path / "half.sql").write_text(HALF_DAYS.format(table="storm"))
    for words in (
        [HALF_DAYS.format(table="storm"), STORM],
        [HALF_DAYS.format(table="events"), STORM],
        [HALF_DAYS.format(table="departures"), f"departures={STORM}"],
        [str(tmp_path / "half.sql"), STORM],
    ):
        assert main(["run", *words, "-o", str(output)]) == 0
        assert pq.read_table(output).cast(wanted.schema).equals(wanted)
    assert main(["run", HALF_DAYS.format(table="storm"), STORM, "--rows", "2"]) == 0
    shown = capsys.readouterr().out
    assert "2013-02-07 00:00:00   2013-02-07 12:00:00" in shown
    assert main(["run", HALF_DAYS.format(table="nothing"), STORM]) == 2
    assert "nothing" in capsys.readouterr().err
    assert main(["run", HALF_DAYS.format(table="storm"), STORM, "--key", "origin"]) == 2
    assert "--key and --divert are for files of queries" in capsys.readouterr().err


def test_the_demo_needs_nothing_at_hand(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["demo", "-o", str(tmp_path / "demo.png")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("200,000 made-up flights")
    assert "█" in shown
    assert (tmp_path / "demo.png").stat().st_size > 5_000


def test_the_benchmark_compares_with_who_can_say_the_same(
    query: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["bench", "--rows", "5000"]) == 0
    minute, sliding, session, *_ = [line for line in capsys.readouterr().out.splitlines() if ": " in line]
    assert minute.count(" M") == 3
    assert "other rows" in sliding  # polars leaves out windows that begin before the first event
    assert session.split()[-2:] == ["-", "-"]
    assert main(["bench", query, STORM]) == 0
    assert "all of them in one pass" in capsys.readouterr().out
    assert main(["bench", query]) == 2


@pytest.mark.parametrize(
    "change",
    [
        ("aggregates:", "where: delay > 5\naggregates:"),
        ("key: origin", "key: {line: carrier}"),
        ("aggregates:", "select: {twice: flights * 2}\naggregates:"),
        ("flights: count", 'flights: {sum: "delay * 2"}'),
        ("flights: count", "flights: {count: , where: delay > 5}"),
    ],
)
def test_the_benchmark_measures_the_query_as_it_is(
    query: str,
    change: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = QUERY.replace("  p90: {quantile: [delay, 0.9]}\n", "").replace("  a day:", "  '[/a] day':")
    Path(query).write_text(text.replace(*change))
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["bench", query, STORM]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if ": " in line]
    assert [line.split()[-2:] for line in shown] == [["-", "-"], ["-", "-"]]
    assert shown[1].split()[:2] == ["[/a]", "day:"]


def test_the_benchmark_leaves_out_what_the_query_leaves_out(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(query).write_text(QUERY.replace("aggregates:", "where: delay > 100\naggregates:"))
    counts = []
    real = bench.measured
    monkeypatch.setattr(
        bench, "measured", lambda q, table: counts.append(len(q.run(table))) or real(q, table)
    )
    assert main(["bench", query, STORM]) == 0
    late = csv.read_csv(STORM)
    late = late.filter(pc.greater(late["delay"], 100))
    everything = DELAYS.run(late)["window"].to_pylist()
    assert counts == [everything.count("12 hours"), everything.count("a day"), len(everything)]


def test_a_dashboard_replays_files(query: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--seconds", "0.1", "--port", "0", "--once", "--resolution", "1 hour"]
    assert main(["dashboard", query, STORM, *words]) == 0
    assert capsys.readouterr().out.startswith("http://127.0.0.1:")
    example = str(ROOT / "examples" / "pipeline" / "totals.yaml")
    assert main(["dashboard", example, *words]) == 0
    assert main(["dashboard", query, *words]) == 2
    assert "takes files of events, too" in capsys.readouterr().err


def test_texts_are_shown_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["[/home]", "[red] x"]
    rows = {"price[/usd]": [n for n in names for _ in range(3)], "ts": [1, 12, 23] * 2}
    pq.write_table(pa.table(rows), tmp_path / "e.parquet")
    (tmp_path / "q.yaml").write_text(
        "{time: ts, key: 'price[/usd]', windows: {'[w]': {tumbling: 10}}, aggregates: {'[b]n': count}}"
    )
    assert main(["run", str(tmp_path / "q.yaml"), str(tmp_path / "e.parquet")]) == 0
    lines = capsys.readouterr().out.splitlines()
    for text in ("[/home]", "[red] x"):
        assert sum(line.strip().startswith(text) for line in lines) == 4
    assert sum(line.strip().startswith("price[/usd]") for line in lines) == 2
    assert any("[b]n" in line for line in lines)


@pytest.mark.parametrize("output", ["out.csv", "-"])
def test_what_csv_cannot_hold_is_told_before_it_is_computed(
    query: str, output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = output if output == "-" else str(tmp_path / output)
    Path(query).write_text(QUERY.replace("flights: count", "delays: {collect: delay}"))
    assert main(["run", query, STORM, "-o", place]) == 2
    assert f"-o {place}: CSV cannot hold column 'delays', which is list<" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()
    statement = HALF_DAYS.format(table="storm").replace("count(*) AS flights", "array_agg(delay) AS delays")
    assert main(["run", statement, STORM, "-o", place]) == 2
    assert "CSV cannot hold column 'delays'" in capsys.readouterr().err


def test_what_json_has_no_number_for_is_null(query: str, tmp_path: Path) -> None:
    rows = {"ts": [1, 11, 21], "x": [1.5, float("nan"), float("inf")]}
    pq.write_table(pa.table(rows), tmp_path / "e.parquet")
    Path(query).write_text(
        "{time: ts, windows: {w: {tumbling: 10}}, aggregates: {x: {last: x}, all: {collect: x}, m: {m4: x}}}"
    )
    assert main(["run", query, str(tmp_path / "e.parquet"), "-o", str(tmp_path / "o.jsonl")]) == 0
    text = (tmp_path / "o.jsonl").read_text()
    assert [json.loads(line)["x"] for line in text.splitlines()] == [1.5, None, None]
    assert "NaN" not in text
    assert "Infinity" not in text


def test_a_file_that_cannot_be_written_is_a_sentence(
    query: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there.csv").mkdir()
    (tmp_path / "there.svg").mkdir()
    for words in (
        ["run", query, STORM, "-o", str(tmp_path / "there.csv")],
        ["explain", query, "--picture", str(tmp_path / "there.svg")],
        ["plot", query, STORM, "-o", str(tmp_path / "there.svg")],
    ):
        assert main(words) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert "there." in line
    assert main(["demo", "-o", str(tmp_path / "demo.nope")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "-o takes a file that ends in .png, .svg, .pdf, not" in said.err


@pytest.mark.parametrize("words", [[], ["--history", "10"], ["--resolution", "5"]])
def test_a_dashboard_replays_numbers_and_events_without_a_time(
    query: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    always = ["--seconds", "0.1", "--port", "0", "--once"]
    Path(query).write_text("{time: ts, windows: {w: {tumbling: 10}}, aggregates: {n: count}}")
    for times, code in (([1, 25, 13, None], 0), ([None], 0), ([], 2)):
        pq.write_table(pa.table({"ts": pa.array(times, pa.int64())}), tmp_path / "e.parquet")
        assert main(["dashboard", query, str(tmp_path / "e.parquet"), *always, *words]) == code
    assert f"there are no events in {tmp_path / 'e.parquet'}" in capsys.readouterr().err


def test_a_query_file_may_promise_that_events_come_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query, events = tmp_path / "ordered.yaml", tmp_path / "events.csv"
    said = "{time: t, windows: {w: {tumbling: 10}}, aggregates: {n: count}, ordered: %s}"
    events.write_text("t\n1\n12\n3\n")
    query.write_text(said % "false")
    assert main(["run", str(query), str(events)]) == 0
    query.write_text(said % "true")
    jsonschema.validate(yaml.safe_load(query.read_text()), SCHEMAS["query"]())
    assert load_query(query).query.ordered
    assert main(["check", str(query), str(events)]) == 0
    capsys.readouterr()
    assert main(["run", str(query), str(events)]) == 2
    assert "row 2" in capsys.readouterr().err
    query.write_text(said % "1")
    assert main(["check", str(query)]) == 2
    assert "ordered is true or false, not 1" in capsys.readouterr().err

"""`windrow pipeline FILE`: what it checks, shows and says, and how it stops; once as a process of its own."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_spark import java_options

import windrow as wr
from windrow.cli import stopping
from windrow.cli.main import main
from windrow.cli.progress import shown
from windrow.cli.stopping import follow, signals
from windrow.pipelines.listener import Progress

ROWS = 2_000
PIPELINE = """\
source: {replay: events.parquet, time: ts, disorder: 0.2, delay: 5 seconds, max_rows: 500}
watermark: 10 seconds
query:
  time: ts
  key: user
  windows: {10s: {tumbling: 10 seconds}, 30s: {sliding: 30 seconds, every: 10 seconds}}
  aggregates: {n: count, total: {sum: amount}}
  buckets: 1
sink: {parquet: out/windows}
checkpoint: out/checkpoint
settings:
  spark.sql.shuffle.partitions: 1
  spark.driver.memory: 512m
  spark.driver.extraJavaOptions: "OPTIONS"
  spark.python.authenticate.socketTimeout: 600s
""".replace("OPTIONS", java_options())


def events() -> pa.Table:
    begin = int(datetime(2024, 5, 1, tzinfo=UTC).timestamp() * 1_000_000)
    return pa.table(
        {
            "ts": pa.array([begin + i * 100_000 for i in range(ROWS)], pa.timestamp("us", "UTC")),
            "user": ["abc"[i % 3] for i in range(ROWS)],
            "amount": [i * 7 % 11 for i in range(ROWS)],
        }
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pq.write_table(events(), tmp_path / "events.parquet")
    path = tmp_path / "orders.yaml"
    path.write_text(PIPELINE)
    return path


def committed(file: Path, batch: int) -> bool:
    return (file.parent / "out" / "checkpoint" / "commits" / str(batch)).exists()


def running(file: Path, batch: int) -> bool:
    return (file.parent / "out" / "checkpoint" / "offsets" / str(batch)).exists() and not committed(
        file, batch
    )


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[[list[str]], subprocess.Popen[str]]]:
    """Commands in process groups of their own, which are what a terminal sends Ctrl-C to."""
    launched: list[subprocess.Popen[str]] = []

    def begin(words: list[str]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "windrow", *words]
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        launched.append(process)
        return process

    yield begin
    for process in launched:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def here(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs on the Spark of the tests, which it must not end."""
    import windrow.pipelines.run as run

    class Kept:
        def __getattr__(self, name: str) -> Any:
            return (lambda: None) if name == "stop" else getattr(spark, name)

    monkeypatch.setattr(run, "session", lambda *_, **__: Kept())


@pytest.mark.usefixtures("here")
def test_control_c_lets_the_running_micro_batch_end_and_the_command_that_is_printed_goes_on(
    file: Path,
    launch: Callable[[list[str]], subprocess.Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    process = launch(["pipeline", "orders.yaml", "--master", "local[1]"])
    while not running(file, 1):
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
            pytest.fail(f"the pipeline ended before it could be stopped:\n{process.communicate()[0]}")
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate()
    assert process.returncode == 130, said
    assert committed(file, 1)
    assert "stopping after the running micro-batch" in said
    found = re.search(
        r"^stopped: \d micro-batches, the last one (\d); (\d,\d00) rows, late 0, bad 0$", said, re.MULTILINE
    )
    assert found is not None, said
    assert int(found[2].replace(",", "")) == (int(found[1]) + 1) * 500 < ROWS
    assert "orders: batch 1: 500 rows" in said
    resume = re.search(
        r"^to go on from the last finished micro-batch \(.*/out/checkpoint\): windrow (.*)$",
        said,
        re.MULTILINE,
    )
    assert resume is not None, said
    assert not list((file.parent / "out").glob("**/*.inprogress"))

    file.write_text(PIPELINE + "trigger: available_now\n")
    monkeypatch.chdir(file.parent)
    assert main(shlex.split(resume[1])) == 0
    assert re.search(r"^done: .* late 0, bad 0$", capsys.readouterr().err, re.MULTILINE)
    query = wr.query(
        time="ts",
        key="user",
        windows={
            "10s": wr.tumbling("10 seconds"),
            "30s": wr.sliding("30 seconds", every="10 seconds"),
        },
        aggregates={"n": wr.count(), "total": wr.sum("amount")},
    )
    ended = datetime(2024, 5, 1, 0, 3, 9, 900_000, tzinfo=UTC)  # ten seconds before the last event
    wanted = [row for row in query.run(events()).to_pylist() if row["end"] <= ended]
    output = pq.read_table([*(file.parent / "out" / "windows").glob("*.parquet")]).to_pylist()
    got = [
        {**row, "start": row["start"].replace(tzinfo=UTC), "end": row["end"].replace(tzinfo=UTC)}
        for row in output
    ]
    assert sorted(map(repr, plain(got))) == sorted(map(repr, plain(wanted)))


def plain(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (r["user"], r["window"], r["start"].timestamp(), r["end"].timestamp(), r["n"], r["total"])
        for r in rows
    ]


def test_a_file_can_be_checked_without_spark(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "import sys; from windrow.cli.main import main; code = main(sys.argv[1:]); sys.exit(code + 50 * ('pyspark' in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code, "pipeline", str(file), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    sound = f"{file} is sound: 2 windows, 2 aggregates"
    assert done.stdout == f"{sound}; its source declares no columns, so none were checked\n"
    file.write_text(PIPELINE.replace("tumbling", "tumblin"))
    assert main(["pipeline", str(file), "--check"]) == 2
    assert f"{file}:6:18: query.windows.10s: 'tumblin' is not a window" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["pipline"], ["pipeline"], ["pipeline", "a.yaml", "--conf", "x"]])
def test_a_command_that_cannot_be_understood_ends_with_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr()
    assert "Usage: windrow" in said.out + said.err


def test_control_c_before_there_is_a_stream_is_a_sentence(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import windrow.pipelines.run as run

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "session", interrupted)
    assert main(["pipeline", str(file)]) == 130
    assert capsys.readouterr().err == "stopped before the pipeline had begun\n"


def test_a_package_that_is_missing_is_named(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    for name in [
        name for name in sys.modules if name.startswith(("windrow.pipelines", "windrow.cli.pipeline"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["pipeline", str(file)]) == 2
    assert capsys.readouterr().err == (
        "this needs the package 'yaml': pip install 'windrow-stream[cli]', or '.[cli]' in a clone\n"
    )


@pytest.mark.usefixtures("here")
def test_a_query_that_does_not_fit_its_source_ends_with_2(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(PIPELINE.replace("{sum: amount}", "{sum: price}"))
    assert main(["pipeline", str(file)]) == 2
    said = capsys.readouterr().err
    assert f"{file}: " in said
    assert "'price'" in said


@pytest.mark.usefixtures("here")
def test_how_a_query_is_computed_is_told_without_running_it(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", str(file), "--explain"]) == 0
    assert capsys.readouterr().out.startswith("on Spark, streaming: general\n")
    assert not (file.parent / "out").exists()


@pytest.mark.usefixtures("here")
def test_a_pipeline_that_fails_says_why_in_a_line_and_ends_with_1(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = events().slice(0, 3)
    times = pa.array([table["ts"][0].as_py(), None, None], table.schema.field("ts").type)
    pq.write_table(table.set_column(0, "ts", times), file.parent / "events.parquet")
    file.write_text(PIPELINE.replace(", time: ts, disorder: 0.2, delay: 5 seconds", ""))
    assert main(["pipeline", str(file)]) == 1
    said = capsys.readouterr().err
    assert re.search(
        r"^the pipeline failed: column 'ts', row \d, value None: an event needs a time", said, re.MULTILINE
    ), said
    assert f"windrow pipeline {file}" in said


@dataclass
class Stream:
    """A stream that never ends by itself; `batches` says how far it is each time it is looked at."""

    batches: Iterator[int]
    active: bool = True
    stopped: list[int] = field(default_factory=list)
    at: int = -1

    def awaitTermination(self, timeout: float) -> bool:
        self.at = next(self.batches)
        return False

    @property
    def lastProgress(self) -> Any:
        return None if self.at < 0 else SimpleNamespace(batchId=self.at)

    @property
    def status(self) -> dict[str, bool]:
        return {"isTriggerActive": self.active}

    def stop(self) -> None:
        self.stopped.append(self.at)


def signalled(at: list[int], *numbers: int) -> Iterator[int]:
    """Micro-batches as they end, with signals before the second look."""
    for i, batch in enumerate(at):
        if i == 1:
            for number in numbers:
                signal.raise_signal(number)
        yield batch


def test_a_stream_is_stopped_when_the_running_micro_batch_has_ended() -> None:
    stream = Stream(signalled([4, 4, 4, 4, 5, 6], signal.SIGTERM))
    with signals() as asked:
        assert follow(stream, asked) == 143  # type: ignore[arg-type]
    assert stream.stopped == [5]


def test_a_stream_that_waits_for_events_is_stopped_at_once() -> None:
    stream = Stream(signalled([-1, -1, -1], signal.SIGINT), active=False)
    with signals() as asked:
        assert follow(stream, asked) == 130  # type: ignore[arg-type]
    assert len(stream.stopped) == 1


def test_a_second_control_c_does_not_wait_and_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    stream = Stream(signalled([4] * 9, signal.SIGINT, signal.SIGINT))
    with signals() as asked:
        assert follow(stream, asked) == 130  # type: ignore[arg-type]
    assert stream.stopped == [4]
    assert signal.getsignal(signal.SIGINT) is before
    assert stopping.GLANCE <= 0.2


PROGRESS = Progress(
    name="orders",
    batch=3,
    rows=500,
    rows_per_second=1234.5,
    watermark=None,
    lag=None,
    waiting=None,
    state_bytes=0,
    state_rows=0,
    total=2_000,
    late=7,
)


def test_a_terminal_shows_one_line_that_is_redrawn_and_a_file_gets_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with shown() as display:
        display.show(PROGRESS)
    assert capsys.readouterr().err.endswith(
        "orders: batch 3: 500 rows, 1,234 rows/s, state 0.0 MB, late 7, bad 0\n"
    )
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with shown() as display:
        assert display.summary() == "no micro-batch"
        display.show(PROGRESS)
        display.close()
    said = capsys.readouterr().err
    assert "batch 3" in said
    assert "33mlate 7" in said
    assert display.summary() == "1 micro-batch, the last one 3; 2,000 rows, late 7, bad 0"

"""The pipelines of docs/pipelines.md, and the declarative one of the examples, run and give the embedded answer."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyarrow.csv import read_csv

import windrow as wr
from windrow.engine.bounded import run
from windrow.pipelines.run import start
from windrow.pipelines.schema import load
from windrow.pipelines.spec import KafkaSink, ParquetSink, Pipeline, PostgresSink
from windrow.spec import QuerySpec

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "pipelines.md").read_text("utf-8")
PIPELINES = re.findall(r"^```yaml\n(.*?)^```\n", PAGE, re.MULTILINE | re.DOTALL)
EPOCH = datetime(2024, 5, 1, tzinfo=UTC)
MOMENT = pa.timestamp("us", "UTC")


def written(tmp_path: Path, sink: type) -> Pipeline:
    """The pipeline of the page with this sink, loaded from a file; it ends when its source has no more."""
    for number, text in enumerate(PIPELINES):
        path = tmp_path / f"pipeline{number}.yaml"
        path.write_text(text, "utf-8")
        pipeline = load(path)
        if isinstance(pipeline.sink, sink):
            # One bucket: a test has few keys, and the Spark of the tests one core.
            options = {**pipeline.options, "buckets": 1}
            return replace(pipeline, trigger="available_now", options=options)
    raise AssertionError(f"no pipeline of the page writes to a {sink.__name__}")


def ran(spark: Any, pipeline: Pipeline) -> list[Any]:
    """The reports of a pipeline that has come to its end."""
    running = start(spark, pipeline)
    running.awaitTermination()
    return list(running.recentProgress)


def plain(rows: list[dict[str, Any]], query: QuerySpec) -> list[tuple[Any, ...]]:
    names = [*query.key, "window", "start", "end", *query.aggregates]
    return sorted(tuple(_value(row[name]) for name in names) for row in rows)


def _value(value: Any) -> Any:
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    return value


def payments(count: int, *, first: int = 0) -> list[dict[str, Any]]:
    """A payment every five seconds."""
    return [
        {
            "ts": EPOCH + timedelta(seconds=5 * i),
            "id": f"payment {i}",
            "user": ("ada", "bob", "cyd")[i * i % 3],
            "amount": float(i % 17),
        }
        for i in range(first, first + count)
    ]


def messages(rows: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps({**row, "ts": row["ts"].isoformat()}).encode() for row in rows]


def ended(query: QuerySpec, rows: list[dict[str, Any]], watermark: datetime) -> list[dict[str, Any]]:
    """The windows that end by the watermark."""
    table = pa.Table.from_pylist(rows)
    table = table.set_column(0, "ts", table["ts"].cast(MOMENT))
    return [row for row in run(query, table, on_bad="raise").to_pylist() if row["end"] <= watermark]


def test_the_page_has_three_pipelines() -> None:
    assert len(PIPELINES) == 3
    assert all("\nsink:" in text and "\ncheckpoint:" in text for text in PIPELINES)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA", "nowhere:9092")
    monkeypatch.setenv("DATABASE", "dbname=nothing")


def test_the_errors_that_the_page_shows_are_those_of_such_a_file(tmp_path: Path) -> None:
    text = PIPELINES[1]
    for right, wrong in (
        ("10 seconds", "10 secnds"),
        ("key: user", "key: usr"),
        ("1 minute", "60"),
        ("session", "sesion"),
        ("sum: amount", "sum: user"),
    ):
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    (tmp_path / "totals.yaml").write_text(text)
    with pytest.raises(wr.QueryError) as caught:
        load(tmp_path / "totals.yaml")
    shown = re.findall(r"^    (totals\.yaml:\d.*), \.\.\.$", PAGE, re.MULTILINE)
    said = str(caught.value).replace(f"{tmp_path}/", "").splitlines()
    assert len(said) == len(shown) == 5
    assert all(line.startswith(start) for line, start in zip(said, shown, strict=True)), said


def test_a_recorded_file_becomes_parquet_files(spark: Any, tmp_path: Path) -> None:
    example = ROOT / "examples" / "pipeline"
    assert PIPELINES[0] == (example / "totals.yaml").read_text("utf-8")
    shutil.copy(example / "payments.csv", tmp_path)
    pipeline = written(tmp_path, ParquetSink)
    reports = ran(spark, pipeline)
    assert sum(report.numInputRows for report in reports) == 600
    rows = [
        {**row, "ts": row["ts"].replace(tzinfo=UTC)} for row in read_csv(example / "payments.csv").to_pylist()
    ]
    found = spark.read.parquet(str(tmp_path / "out" / "totals")).toArrow().to_pylist()
    wanted = ended(pipeline.query, rows, EPOCH + timedelta(seconds=599 - 10))
    assert plain(found, pipeline.query) == plain(wanted, pipeline.query)


def test_files_in_a_folder_are_printed_as_windows(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pa.Table.from_pylist(payments(24)).select(["ts", "user", "amount"])
    (tmp_path / "events").mkdir()
    pq.write_table(table.set_column(0, "ts", table["ts"].cast(MOMENT)), tmp_path / "events" / "0.parquet")
    text = """
        source: {files: events}
        watermark: 10 seconds
        query: {time: ts, windows: {1m: {tumbling: 1 minute}}, aggregates: {n: count, total: {sum: amount}}, buckets: 1}
        sink: {console: 20}
        trigger: available_now
    """
    (tmp_path / "printed.yaml").write_text(dedent(text))
    ran(spark, load(tmp_path / "printed.yaml"))
    (line,) = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("batch ")]
    assert re.fullmatch(
        r"window=1m  start=2024-05-01 00:00:00\S*  end=2024-05-01 00:01:00\S*  n=12  total=66.0", line
    )


def test_messages_of_one_topic_become_messages_of_another(
    spark: Any, kafka_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA", kafka_server.servers)
    pipeline = written(tmp_path, KafkaSink)
    source, sink = pipeline.source, pipeline.sink
    assert isinstance(sink, KafkaSink)
    # The session of each user is one: nobody is silent for longer than 30 seconds. One message is poison, one of 2099.
    rows = payments(60)
    far = [{**rows[0], "ts": datetime(2099, 1, 1, tzinfo=UTC)}]
    kafka_server.produce(vars(source)["topic"], [*messages(rows), b"{", *messages(far)])
    reports = ran(spark, pipeline)
    counted = [report.observedMetrics["windrow"] for report in reports if "windrow" in report.observedMetrics]
    assert sum(row["bad"] for row in counted) == 2

    values = dict(kafka_server.consume(sink.topic))
    found = [json.loads(value) for value in values.values() if value is not None]
    wanted = ended(pipeline.query, rows, rows[-1]["ts"] - timedelta(seconds=10))
    assert plain(found, pipeline.query) == plain(wanted, pipeline.query)
    assert len(kafka_server.consume(sink.bad_topic)) == 2


def test_messages_become_rows_of_a_table(
    spark: Any, kafka_server: Any, postgres_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA", kafka_server.servers)
    monkeypatch.setenv("DATABASE", postgres_server.dsn)
    pipeline = written(tmp_path, PostgresSink)
    source: Any = replace(pipeline.source, topic="payments-with-ids")  # type: ignore[type-var]
    rows = payments(60)
    # The producer has sent a quarter of them twice, and each message that is poison counts.
    kafka_server.produce(source.topic, [*messages(rows), b"no", b"neither", *messages(rows[45:])])
    reports = ran(spark, replace(pipeline, source=source))
    dropped = [o.customMetrics.get("numDroppedDuplicateRows", 0) for r in reports for o in r.stateOperators]
    counted = [report.observedMetrics["windrow"] for report in reports if "windrow" in report.observedMetrics]
    assert (sum(dropped), sum(row["bad"] for row in counted)) == (15, 2)

    names = [*pipeline.query.key, "window", "start", "end", *pipeline.query.aggregates]
    columns = ", ".join(f'"{name}"' for name in names)
    with psycopg.connect(postgres_server.dsn) as connection:
        found = [
            dict(zip(names, row, strict=True))
            for row in connection.execute(f"SELECT {columns} FROM payment_totals")
        ]
    wanted = ended(pipeline.query, rows, rows[-1]["ts"] - timedelta(seconds=10))
    assert plain(found, pipeline.query) == plain(wanted, pipeline.query)


def test_the_declarative_pipeline_of_the_examples_runs(tmp_path: Path, small_spark: dict[str, str]) -> None:
    folder = tmp_path / "declarative"
    shutil.copytree(ROOT / "examples" / "declarative", folder)
    spec = folder / "spark-pipeline.yml"
    spec.write_text(
        re.sub(r"^storage: .*$", f"storage: file://{folder}/storage", spec.read_text(), flags=re.MULTILINE)
    )
    rows = [{**row, "amount": int(row["amount"])} for row in payments(100)]
    table = pa.Table.from_pylist(rows).select(["ts", "user", "amount"])
    (folder / "payments").mkdir()
    pq.write_table(table.set_column(0, "ts", table["ts"].cast(MOMENT)), folder / "payments" / "0.parquet")
    home = Path(pyspark.__file__).parent
    settings = [word for name, value in small_spark.items() for word in ("--conf", f"{name}={value}")]
    done = subprocess.run(
        [str(home / "bin" / "spark-pipelines"), "run", *settings],
        cwd=folder,
        env={
            **os.environ,
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    query = wr.query(
        time="ts",
        key="user",
        windows={"1m": wr.tumbling("1 minute"), "5m": wr.sliding("5 minutes", every="1 minute")},
        aggregates={"n": wr.count(), "total": wr.sum("amount")},
    )
    tables = folder / "spark-warehouse"
    found = pq.read_table([*(tables / "windows").glob("*.parquet")]).to_pylist()
    wanted = ended(query, rows, rows[-1]["ts"] - timedelta(seconds=10))
    assert plain(found, query) == plain(wanted, query)
    assert len(pq.read_table([*(tables / "busiest").glob("*.parquet")])) == 3

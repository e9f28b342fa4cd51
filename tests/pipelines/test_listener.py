"""What a stream reports, as numbers and as a line; a pipeline whose events are late, bad and sent twice."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow as wr
from windrow.pipelines.dedupe import dedupe
from windrow.pipelines.listener import Progress, ProgressListener
from windrow.pipelines.run import start
from windrow.pipelines.spec import Dedupe, FileSource, ParquetSink, Pipeline, ReplaySource, Watermark

REPORT: dict[str, Any] = {
    "id": "8f5e",
    "runId": "82a7",
    "name": "payments",
    "timestamp": "2024-05-01T12:00:10.000Z",
    "batchId": 17,
    "batchDuration": 1500,
    "numInputRows": 12_000,
    "processedRowsPerSecond": 8431.4,
    "eventTime": {"watermark": "2024-05-01T11:59:58.000Z", "max": "2024-05-01T12:00:08.000Z"},
    "stateOperators": [
        {
            "memoryUsedBytes": 1_000_000,
            "numRowsTotal": 70,
            "numRowsDroppedByWatermark": 2,
            "customMetrics": {"numDroppedDuplicateRows": 5},
        },
        {"memoryUsedBytes": 234_000, "numRowsTotal": 4, "numRowsDroppedByWatermark": 0, "customMetrics": {}},
    ],
    "observedMetrics": {"windrow": {"events": 11_990, "late": 3, "bad": 1}},
    "sources": [
        {
            "endOffset": {"payments": {"0": 50, "1": 70}},
            "latestOffset": {"payments": {"0": 60, "1": 70, "2": 5}},
        }
    ],
}


def test_a_report_is_one_line() -> None:
    assert str(Progress.of(REPORT)) == (
        "payments: batch 17: 12,000 rows, 8,431 rows/s, watermark 2024-05-01 11:59:58, 15 rows waiting, lag 3.5 s, "
        "state 1.2 MB, late 5, bad 1, duplicates 5"
    )


def test_a_report_without_events_or_state_is_a_line_too() -> None:
    bare = {
        **REPORT,
        "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"},
        "stateOperators": [],
        "sources": [{}],
    }
    del bare["observedMetrics"]
    del bare["processedRowsPerSecond"]
    said = str(Progress.of({**bare, "name": None, "numInputRows": 0}))
    assert said == "8f5e: batch 17: 0 rows, 0 rows/s, state 0.0 MB, late 0, bad 0"


def test_events_of_the_past_have_no_lag() -> None:
    replay = {"endOffset": {"row": 5, "of": 9}, "latestOffset": {"row": 9, "of": 9}}
    assert "4 rows waiting, state" in str(Progress.of({**REPORT, "sources": [replay]}))


def test_what_waits_is_told_by_the_source_if_it_can() -> None:
    def waiting(end: Any, latest: Any) -> int | None:
        return Progress.of({**REPORT, "sources": [{"endOffset": end, "latestOffset": latest}]}).waiting

    assert waiting({"row": 5, "of": 9}, {"row": 8, "of": 9}) == 3
    assert waiting({"logOffset": 1}, None) is None
    assert waiting(None, {"payments": {"0": 7}}) is None


def test_counters_run_on_and_a_report_counts_once(caplog: pytest.LogCaptureFixture) -> None:
    listener = ProgressListener()
    reports = [SimpleNamespace(json=json.dumps({**REPORT, "batchId": number})) for number in (1, 2, 2, 3)]
    with caplog.at_level(logging.INFO, "windrow.pipelines"):
        listener.onQueryProgress(SimpleNamespace(progress=reports[0]))  # type: ignore[arg-type]
        listener.catch_up(reports)  # type: ignore[arg-type]
    assert [line.split(",")[0] for line in caplog.messages] == [f"payments: batch {i}: 12" for i in (1, 2, 3)]
    assert caplog.messages[-1].endswith("late 15, bad 3, duplicates 15")


def test_from_when_on_what_came_later_is_complete_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    listener, counted = ProgressListener(), REPORT["observedMetrics"]["windrow"]
    known = {"window 1d": "2024-05-02 00:00:00"}
    more = {**known, "aggregate p99": "2024-05-01 13:00:00"}
    starts = [{}, known, known, {}, more]
    metrics = [{"windrow": {**counted, "complete_from": each}} for each in starts]
    reports = [{**REPORT, "batchId": i, "observedMetrics": each} for i, each in enumerate(metrics)]
    with caplog.at_level(logging.INFO, "windrow.pipelines"):
        listener.catch_up([SimpleNamespace(json=json.dumps(report)) for report in reports])  # type: ignore[misc]
    said = [line.partition("duplicates ")[2].partition(", ")[2] for line in caplog.messages]
    first, second = (f"{name} complete from {start}" for name, start in more.items())
    assert said == ["", first, "", "", second]


EPOCH = datetime(2024, 5, 1, tzinfo=UTC)
QUERY = wr.query(
    time="ts",
    key="user",
    windows={"10s": wr.tumbling("10 seconds"), "visit": wr.session("2 seconds")},
    aggregates={"n": wr.count(), "total": wr.sum("amount")},
)


def rows_of(seconds: list[float | None], first_id: int) -> list[dict[str, Any]]:
    return [
        {
            "ts": None if second is None else EPOCH + timedelta(seconds=second),
            "id": first_id + i,
            "user": "ab"[i % 2],
            "amount": i,
        }
        for i, second in enumerate(seconds)
    ]


# Two micro-batches of 60 rows. In the third 3 are late by the watermark of the first, 4 have no time or one of 2099, half of
# them no id either, and 10 rows come again.
GOOD = rows_of([float(second) for second in range(60)], 0)
LATER = rows_of([60.0 + second for second in range(60)], 100)
LATE = rows_of([1.0, 2.0, 3.0], 200)
NO_TIME = rows_of([None, 75 * 365 * 86_400.0], 300)
BAD = [*NO_TIME, *({**row, "id": None} for row in NO_TIME)]
EVENTS = [*GOOD, *LATER, *LATE, *BAD, *GOOD[50:]]
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("user", pa.string()), ("amount", pa.int64())]
)


def plain(table: pa.Table) -> list[str]:
    names = ["user", "window", "start", "end", "n", "total"]
    return sorted(repr([row[name] for name in names]) for row in table.to_pylist())


def test_late_bad_and_repeated_events_are_counted_and_the_windows_are_those_of_the_others(
    spark: Any, tmp_path: Path
) -> None:
    pq.write_table(pa.Table.from_pylist(EVENTS, SCHEMA), tmp_path / "events.parquet")
    pipeline = Pipeline(
        name="orders",
        source=ReplaySource(str(tmp_path / "events.parquet"), max_rows=60),
        watermark=Watermark("10 seconds"),
        dedupe=Dedupe("id", horizon="30 seconds"),
        query=QUERY,
        options={"buckets": 1, "on_bad": "divert"},
        sink=ParquetSink(str(tmp_path / "windows")),
        checkpoint=str(tmp_path / "checkpoint"),
        trigger="available_now",
    )
    shown: list[Progress] = []
    listener = ProgressListener(show=shown.append)
    spark.streams.addListener(listener)
    running = start(spark, pipeline)
    running.awaitTermination()
    spark.streams.removeListener(listener)
    listener.catch_up(running.recentProgress)

    last = shown[-1]
    assert [progress.batch for progress in shown] == list(range(len(shown)))
    assert (last.name, last.total, last.late, last.bad, last.duplicates) == ("orders", len(EVENTS), 3, 4, 10)
    assert last.watermark == EPOCH + timedelta(seconds=119 - 10)
    assert last.state_bytes > 0
    ended = QUERY.run(pa.Table.from_pylist([*GOOD, *LATER], SCHEMA)).to_pylist()
    wanted = pa.Table.from_pylist([row for row in ended if row["end"] <= last.watermark])
    assert plain(spark.read.parquet(str(tmp_path / "windows")).toArrow().cast(wanted.schema)) == plain(wanted)


def test_a_stage_that_cannot_be_is_refused_before_the_stream_starts(spark: Any, tmp_path: Path) -> None:
    def refused(schema: str | None, **given: Any) -> str:
        with pytest.raises(wr.QueryError) as caught:
            start(
                spark,
                Pipeline(
                    source=FileSource(str(tmp_path), schema=schema),
                    watermark=Watermark("1 second"),
                    query=QUERY,
                    sink=ParquetSink(str(tmp_path / "windows")),
                    checkpoint=str(tmp_path / "checkpoint"),
                    **given,
                ),
            )
        return str(caught.value)

    columns = "ts timestamp, user string, amount long"
    assert "holds no Parquet file that tells the columns: give the source a schema" in refused(None)
    assert "needs a column of type timestamp, and 'ts' is string" in refused(
        columns.replace("timestamp", "string")
    )
    assert "'ts'" in refused("at timestamp, user string, amount long")
    assert "duplicates cannot be recognized: there is no column 'id'" in refused(
        columns, dedupe=Dedupe("id", horizon="1 hour")
    )
    with pytest.raises(wr.QueryError, match="dedupe needs a watermark"):
        dedupe(spark.readStream.schema(columns).parquet(str(tmp_path)), id="user", horizon="1 hour")

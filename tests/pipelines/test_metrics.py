"""Numbers over HTTP: what Prometheus and Kubernetes are told, read over loopback from the real server."""

from __future__ import annotations

import json
import socket
import urllib.request
from datetime import UTC, datetime, timedelta
from urllib.error import HTTPError

import pytest
from prometheus_client.parser import text_string_to_metric_families

from windrow.errors import QueryError
from windrow.pipelines.listener import Progress
from windrow.pipelines.metrics import Metrics, parse_address, served

PROGRESS = Progress(
    name="orders",
    batch=3,
    rows=500,
    rows_per_second=1234.5,
    watermark=datetime(2024, 5, 1, tzinfo=UTC),
    lag=timedelta(seconds=2.5),
    waiting=None,
    state_bytes=4096,
    state_rows=17,
    total=2000,
    late=7,
    bad=1,
)


def get(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as refused:
        return refused.code, refused.read().decode()


def test_prometheus_reads_the_last_progress_of_each_stream() -> None:
    metrics = Metrics()
    with served(metrics, ":0") as address:
        assert address.startswith("http://127.0.0.1:")
        metrics.show(PROGRESS)
        metrics.show(Progress("other", 0, 1, 1.0, None, None, 5, 0, 0, total=1))
        status, text = get(f"{address}/metrics")
    assert status == 200
    found = {
        (sample.name, sample.labels["pipeline"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["windrow_rows_total", "orders"] == 2000
    assert found["windrow_late_rows_total", "orders"] == 7
    assert found["windrow_bad_rows_total", "orders"] == 1
    assert found["windrow_state_bytes", "orders"] == 4096
    assert found["windrow_lag_seconds", "orders"] == 2.5
    assert found["windrow_watermark_seconds", "orders"] == 1714521600
    assert found["windrow_rows_waiting", "other"] == 5
    assert ("windrow_lag_seconds", "other") not in found


def test_a_stream_is_ready_when_a_micro_batch_has_finished_and_alive_until_it_fails() -> None:
    metrics, well = Metrics(), [True]
    with served(metrics, "127.0.0.1:0", is_alive=lambda: well[0]) as address:
        assert get(f"{address}/ready") == (503, '{"ready": false, "streams": []}')
        metrics.show(PROGRESS)
        status, text = get(f"{address}/ready")
        assert status == 200
        assert json.loads(text)["streams"][0]["lag_seconds"] == 2.5
        assert get(f"{address}/alive") == (200, '{"alive": true}')
        well[0] = False
        assert get(f"{address}/alive") == (503, '{"alive": false}')
        assert get(f"{address}/elsewhere")[0] == 404
    with pytest.raises(OSError, match="refused"):
        get(f"{address}/alive")


def test_an_address_that_makes_no_sense_or_is_taken_is_a_sentence() -> None:
    assert parse_address(":9464") == ("127.0.0.1", 9464)
    assert parse_address("0.0.0.0:80") == ("0.0.0.0", 80)
    for wrong in ("9464", ":x", ":70000"):
        with pytest.raises(QueryError, match="such as :9464"):
            parse_address(wrong)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(QueryError, match=f"cannot be served at 127.0.0.1:{port}"),
            served(Metrics(), f":{port}"),
        ):
            raise AssertionError


def test_a_progress_is_told_as_json_without_what_is_not_known() -> None:
    said = json.loads(json.dumps(PROGRESS.told()))
    assert said["pipeline"] == "orders"
    assert said["rows"] == 2000
    assert "rows_waiting" not in said

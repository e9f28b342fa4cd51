"""Through Spark Connect: a client without a JVM, and a server on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from small_job import answer
from streams import like

from windrow.testing import assert_same

HOME = Path(pyspark.__file__).parent
READY = "Spark Connect server started at: "
PARTS = ("pushdown", "combined", "general", "stream", "explained")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, small_spark: dict[str, str]) -> Iterator[str]:
    """The address of a server, on a port that it has found free."""
    settings = {
        **small_spark,
        "spark.master": "local[1]",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.log.level": "INFO",  # so that it says when it is ready, and where
    }
    command = [str(HOME / "bin" / "spark-submit")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    with subprocess.Popen(
        command,
        cwd=tmp_path_factory.mktemp("server"),
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            said = next((line for line in process.stdout if READY in line), None)
            assert said is not None, "the server ended before it was ready"
            drain = threading.Thread(target=process.stdout.read, daemon=True)
            drain.start()
            yield f"sc://{said.split(READY)[1].strip()}"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
        drain.join()


@pytest.fixture(scope="module")
def folder(server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a client of the server has written its results."""
    results = tmp_path_factory.mktemp("client")
    script = Path(__file__).parent / "small_job.py"
    command = [sys.executable, str(script), str(results), json.dumps({"spark.remote": server}), *PARTS]
    done = subprocess.run(command, cwd=results, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return results


@pytest.mark.parametrize("part", ["pushdown", "combined", "general", "stream"])
def test_a_query_through_connect_gives_the_embedded_answer(folder: Path, part: str) -> None:
    expected, got = answer(part), pq.read_table(folder / f"{part}.parquet")
    assert "error" not in got.column_names, got["error"][0].as_py()
    assert_same(expected, like(expected, got))


def test_a_query_is_explained_through_connect(folder: Path) -> None:
    text = pq.read_table(folder / "explained.parquet")["text"][0].as_py()
    assert text.startswith("on Spark, batch: pushed down\n")

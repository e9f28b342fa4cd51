"""Through Spark Connect, on an executor that is a process of its own, as on a cluster, and lacks windrow at first.

A server on this machine starts the executor (`pipelines/test_cluster` has several); its client, which has no JVM, sends
windrow to it as a zip. What is sent does not reach the Python of streams, neither on executors nor on the server: in the
end it is installed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyspark
import pytest
from patience import PATIENCE
from small_job import QUERIES, answer, events, join
from small_spark import java_options
from streams import like, plain_rows

import windrow
from tests.referee import assert_same

HOME = Path(pyspark.__file__).parent
READY = "Spark Connect server started at: "
SETTINGS = {
    "spark.master": "local-cluster[1,1,1024]",
    "spark.executor.memory": "1g",
    "spark.executor.extraJavaOptions": java_options(),
    "spark.sql.shuffle.partitions": "2",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.log.level": "INFO",  # so that the server says when it is ready, and where
}


def without_windrow(folder: Path) -> Path:
    """A Python that has everything but windrow, which is here by a `.pth` file: `-S` reads none."""
    path = folder / "python"
    packages = sysconfig.get_path("purelib")
    path.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"\n')
    path.chmod(0o755)
    command = [path, "-c", "import numba, pyarrow, windrow"]
    found = subprocess.run(command, env={}, capture_output=True, text=True, check=False)
    assert "No module named 'windrow'" in found.stderr
    return path


def zipped(target: Path) -> None:
    root = Path(windrow.__file__).parent
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(root.rglob("*.py")):
            archive.write(path, path.relative_to(root.parent))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For results, windrow as a zip, and `site`, where everybody looks for packages and finds none yet."""
    made = tmp_path_factory.mktemp("cluster")
    (made / "site").mkdir()
    zipped(made / "windrow.zip")
    return made


@pytest.fixture(scope="module")
def server(folder: Path, small_spark: dict[str, str]) -> Iterator[str]:
    """The address of a server, on a port that it has found free."""
    site = str(folder / "site")
    paths = {"spark.executorEnv.PYTHONPATH": site}
    command = [str(HOME / "bin" / "spark-submit")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for name, value in {**small_spark, **SETTINGS, **paths}.items():
        command += ["--conf", f"{name}={value}"]
    python = str(without_windrow(folder))
    environment = {"SPARK_HOME": str(HOME), "PYSPARK_PYTHON": python, "PYTHONPATH": site}
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **environment},
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
def results(server: str, folder: Path) -> dict[str, pa.Table]:
    """What a client of the server got from each part of the small job."""
    script = Path(__file__).parent / "small_job.py"
    command = [sys.executable, str(script), str(folder), server]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return {path.stem: pq.read_table(path) for path in folder.glob("*.parquet")}


def test_executors_without_windrow_say_so(results: dict[str, pa.Table]) -> None:
    assert "No module named 'windrow'" in results["missing"]["error"][0].as_py()


@pytest.mark.parametrize("part", QUERIES)
def test_executors_that_have_windrow_give_the_embedded_answer(
    results: dict[str, pa.Table], part: str
) -> None:
    expected, got = answer(part), results[part]
    assert "error" not in got.column_names, got["error"][0].as_py()
    assert_same(expected, like(expected, got))


def test_a_query_is_explained_through_connect(results: dict[str, pa.Table]) -> None:
    assert results["explained"]["text"][0].as_py().startswith("on Spark, batch: pushed down\n")


def test_operators_over_policy_windows_give_the_embedded_answer(results: dict[str, pa.Table]) -> None:
    table, operator, given = events().sort_by("ts"), join(), []
    for i in range(len(table)):
        row = table.slice(i, 1)
        given.append(operator.process(row.filter(pc.less(row["x"], 50)), port=0)[0].table)
        given.append(operator.process(row, port=1)[0].table)
    assert plain_rows(results["joined"]) == plain_rows(pa.concat_tables([t for t in given if len(t)]))


def test_a_table_is_refused_through_connect(results: dict[str, pa.Table]) -> None:
    """Micro-batches do not say there to which checkpoint they belong."""
    assert "Spark Connect does not tell" in results["upserted"]["error"][0].as_py()

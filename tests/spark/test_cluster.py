"""On executors that are processes of their own: `local-cluster` starts two, as a cluster would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from small_job import answer
from streams import like

import windrow
from windrow.testing import assert_same

SETTINGS = {
    "spark.master": "local-cluster[2,1,1024]",
    "spark.executor.memory": "1g",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def run_job(folder: Path, settings: dict[str, str], python: Path, *parts: str) -> dict[str, pa.Table]:
    """The results of these parts of the small job, with executors that run this Python."""
    script = Path(__file__).parent / "small_job.py"
    environment = {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_PYTHON": str(python),
    }
    command = [sys.executable, str(script), str(folder), json.dumps({**settings, **SETTINGS}), *parts]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    return {path.stem: pq.read_table(path) for path in folder.glob("*.parquet")}


def assert_answered(results: dict[str, pa.Table], part: str) -> None:
    got, expected = results[part], answer(part)
    assert "error" not in got.column_names, got["error"][0].as_py()
    assert_same(expected, like(expected, got))


def without_windrow(folder: Path) -> Path:
    """A Python that has everything but windrow, which is here by a `.pth` file: `-S` reads none."""
    path = folder / "python"
    packages = sysconfig.get_path("purelib")
    path.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"\n')
    path.chmod(0o755)
    found = subprocess.run(
        [path, "-c", "import numba, pyarrow, windrow"], capture_output=True, text=True, check=False
    )
    assert "No module named 'windrow'" in found.stderr
    return path


def zipped(target: Path) -> None:
    root = Path(windrow.__file__).parent
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(root.rglob("*.py")):
            archive.write(path, path.relative_to(root.parent))


def test_executors_that_have_windrow_answer_a_batch_and_a_stream(
    tmp_path: Path, small_spark: dict[str, str]
) -> None:
    results = run_job(tmp_path, small_spark, Path(sys.executable), "general", "stream")
    assert_answered(results, "general")
    assert_answered(results, "stream")


def test_executors_without_windrow_say_so_and_can_be_sent_it_as_a_zip(
    tmp_path: Path, small_spark: dict[str, str]
) -> None:
    zipped(tmp_path / "windrow.zip")
    results = run_job(tmp_path, small_spark, without_windrow(tmp_path), "missing", "ship", "shipped")
    assert "No module named 'windrow'" in results["missing"]["error"][0].as_py()
    assert_answered(results, "shipped")

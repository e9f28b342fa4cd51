"""A job that is killed in the middle of micro-batches, again and again, gives out what an unbroken one does.

The last time it is not killed: it is stopped cleanly, and started once more.

A micro-batch is in its middle in three ways, which the job's files tell: it was planned (`offsets`), its state
was written (`state`), its output was committed (`_spark_metadata`); it has ended when it is in `commits`.

A micro-batch that Spark finds in the sink is not run again, and then its rows do not move the watermark: the
next one comes with the watermark of the one before. Spark writes down which watermark each had, so the
output of a job that was killed is compared with that of operators that are given those.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from killing import killed_at_last, reach
from restarting import JOBS, start, steps
from streams import NIGHTLY, expected, like, write_step

from tests.referee import assert_same

STEPS = steps(7 if NIGHTLY else 5)
SEEDS = range(8 if NIGHTLY else 1)


def planned(folder: Path, batch: int) -> bool:
    return (folder / "checkpoint" / "offsets" / str(batch)).exists()


def state_written(folder: Path, batch: int) -> bool:
    return any((folder / "checkpoint" / "state").glob(f"*/*/{batch + 1}[._]*"))


def output_written(folder: Path, batch: int) -> bool:
    return (folder / "output" / "_spark_metadata" / str(batch)).exists()


MOMENTS: list[Callable[[Path, int], bool]] = [state_written, output_written]
if NIGHTLY:  # by day it is enough that one which was planned and begun is done again
    MOMENTS.append(planned)


def write_source(folder: Path) -> None:
    for number, step in enumerate(STEPS):
        write_step(folder / "source", number, step)


def launched(folder: Path, settings: dict[str, str]) -> AbstractContextManager[subprocess.Popen[bytes]]:
    script = Path(__file__).parent / "restarting.py"
    settings = {**settings, "spark.master": "local[1]"}
    return killed_at_last([sys.executable, str(script), str(folder), json.dumps(settings)], folder)


def stop_after(running: Any, batch: int) -> None:
    """Stop a stream cleanly once it has done this micro-batch, wherever it is then."""
    while running.lastProgress is None or running.lastProgress["batchId"] < batch:
        assert not running.awaitTermination(0.02), "the job ended before it could be stopped"
    running.stop()


def output_of(spark: Any, folder: Path) -> dict[str, pa.Table]:
    """What the sink has committed, by job; Spark leaves out files of attempts that failed."""
    output = spark.read.parquet(str(folder / "output")).toArrow()
    changes = ["op", "revision"]
    return {
        name: output.filter(pc.field("job") == name).drop_columns(
            ["job"] if job.options.get("mode") == "update" else ["job", *changes]
        )
        for name, job in JOBS.items()
    }


def watermarks(folder: Path) -> list[int]:
    """The watermark that each micro-batch had."""
    offsets = folder / "checkpoint" / "offsets"
    logs = [(offsets / str(batch)).read_text().splitlines() for batch in range(len(STEPS) + 1)]
    return [json.loads(lines[1])["batchWatermarkMs"] for lines in logs]


def assert_operators_output(spark: Any, folder: Path) -> None:
    held = watermarks(folder)
    given = [replace(step, watermark=mark) for step, mark in zip(STEPS, held[1:], strict=True)]
    output = output_of(spark, folder)
    for name, job in JOBS.items():
        options = {name: value for name, value in job.options.items() if name != "path"}
        wanted = expected(job.query, given, **options)
        assert_same(wanted.answers, like(wanted.table, output[name]), note=name)


if NIGHTLY:  # `test_streaming` has such jobs

    def test_an_unbroken_job_gives_the_output_of_its_operators(spark: Any, tmp_path: Path) -> None:
        write_source(tmp_path)
        start(spark, tmp_path).awaitTermination()
        assert watermarks(tmp_path) == [0, *(step.watermark for step in STEPS)]
        assert_operators_output(spark, tmp_path)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_job_that_is_killed_and_stopped_gives_the_output_of_its_operators(
    spark: Any, small_spark: dict[str, str], tmp_path: Path, seed: int
) -> None:
    write_source(tmp_path)
    luck = random.Random(seed)
    batches = sorted(luck.sample(range(1, len(STEPS) - 2), len(MOMENTS)))
    for batch, happened in zip(batches, luck.sample(MOMENTS, len(MOMENTS)), strict=True):
        with launched(tmp_path, small_spark) as process:
            reach(process, partial(happened, tmp_path, batch))
    stop_after(start(spark, tmp_path), batches[-1] + 1)
    start(spark, tmp_path).awaitTermination()
    assert_operators_output(spark, tmp_path)

"""A pipeline on a standalone cluster, submitted with `spark-submit`; a worker is killed in mid-stream."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest
from jobs import Job, answer, last, messages, orders
from killing import killed_at_last, reach
from patience import PATIENCE
from servers import Kafka
from small_spark import java_options

ROOT = Path(__file__).parent.parent.parent
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"


@dataclass(frozen=True)
class Cluster:
    master: str
    workers: list[int]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    command = [sys.executable, str(ROOT / "tools" / "cluster"), str(tmp_path_factory.mktemp("cluster"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        said = [line.split() for line in iter(process.stdout.readline, "ready\n")]
        yield Cluster(said[0][1], [int(pid) for _, _, pid in said[1:]])
        process.stdin.close()


def test_a_worker_that_is_killed_in_mid_stream_costs_nothing(
    spark: Any,
    cluster: Cluster,
    kafka_server: Kafka,
    kafka_jars: str,
    small_spark: dict[str, str],
    tmp_path: Path,
) -> None:
    """Only the work of tasks that ran there is done again."""
    given = orders(40)
    kafka_server.create("cluster", 2)
    # The last order must be read last, or what is behind it in the other partition would be late.
    for partition, end in ((0, messages(last())), (1, [])):
        kafka_server.produce("cluster", messages(given)[partition::2] + end, partition=partition)
    settings = {
        **{name: value for name, value in small_spark.items() if "executorEnv" not in name},
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": java_options(),
        "spark.sql.shuffle.partitions": "2",
    }
    job = Job(
        kafka_server.servers,
        "cluster",
        str(tmp_path),
        delay="30 seconds",
        reading={"max_rows": 20},
        settings=settings,
    )
    command = [str(SUBMIT), "--master", cluster.master, "--jars", kafka_jars]
    command += [str(Path(__file__).parent / "jobs.py"), json.dumps(asdict(job))]
    with killed_at_last(command, tmp_path) as process:
        reach(process, lambda: len(job.commits()) >= 1)
        os.killpg(cluster.workers[0], signal.SIGKILL)
        assert process.poll() is None
        assert process.wait(PATIENCE) == 0, (tmp_path / "log").read_text()[-3000:]
    assert len(job.commits()) > 2
    assert job.result(spark) == answer(given)

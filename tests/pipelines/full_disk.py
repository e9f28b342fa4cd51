"""A pipeline whose checkpoint is on a small disk, which is full for a while.

    unshare --mount python full_disk.py JOB MORE RESULT

Its disk is in memory and is seen by this process alone. `JOB` is a job as JSON, `MORE` a file with messages that come when the disk
is full; what the stream said then is written to `RESULT`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from jobs import Job
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from servers import produce

from windrow.pipelines.failures import plainly


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as ballast:
        while shutil.disk_usage(path).free:
            ballast.write(bytes(4096))


def main(asked: str, more: Path, result: Path) -> None:
    job = Job(**json.loads(asked))
    disk = Path(job.folder, "checkpoint")
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(disk)], check=True)
    builder = SparkSession.builder.appName("full disk")
    for name, value in job.settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    job.run(spark)
    fill(disk / "ballast")
    produce(job.servers, job.topic, more.read_bytes().splitlines())
    said = "nothing"
    try:
        job.run(spark)
    except StreamingQueryException as failure:
        said = str(plainly(failure, checkpoint=str(disk)))
    (disk / "ballast").unlink()
    job.run(spark)
    result.write_text(said)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))

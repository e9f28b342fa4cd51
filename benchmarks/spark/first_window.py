"""How long a fresh process and a fresh Spark take to give out their first window.

    python first_window.py FOLDER SIDE      prints the seconds, from the start of the process and from that of the stream

The folder has two files of events, the second of which ends windows of the first one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.spark import queries
from benchmarks.spark.data import SCHEMA, write
from benchmarks.spark.session import session

SPEC = (60, 60)
ROWS, KEYS = 20_000, 100
ROOT = Path(__file__).resolve().parents[2]


def asked(side: str, events: Any) -> Any:
    """The same window, of windrow's own operators or of Spark."""
    if side == "windrow":
        return queries.ours({"w": SPEC}).on_spark(events, path="general")
    return queries.sparks(events, SPEC)


def has_rows(output: Path) -> bool:
    """Whether a micro-batch has committed rows to these files."""
    for log in (output / "_spark_metadata").glob("[0-9]*"):
        files = [json.loads(line)["path"] for line in log.read_text().splitlines()[1:]]
        if any(pq.read_metadata(path.removeprefix("file://")).num_rows for path in files):
            return True
    return False


def run(folder: Path, side: str) -> float:
    """Seconds from the start of a stream to its first window in a file."""
    spark = session(folder / "spark")
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    events = reader.parquet(str(folder / "events")).withWatermark("ts", "0 seconds")
    output = folder / side
    begin = time.perf_counter()
    writer = asked(side, events).writeStream.format("parquet").option("path", str(output / "rows"))
    running = writer.option("checkpointLocation", str(output / "checkpoint")).start()
    while not has_rows(output / "rows"):
        assert not running.awaitTermination(0.02), "the stream has ended without a window"
    seconds = time.perf_counter() - begin
    running.stop()
    spark.stop()
    return seconds


def measured(folder: Path, side: str, cache: Path) -> tuple[float, float]:
    """Seconds of a whole process, and of its stream alone, with this folder of compiled code."""
    if not (folder / "events").exists():
        write(folder / "events", files=2, rows=ROWS, keys=KEYS, span=100)
    home = folder / f"{side}-{cache.name}-{len(list(folder.iterdir()))}"
    home.mkdir()
    (home / "events").symlink_to(folder / "events")
    environment = {**os.environ, "WINDROW_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "benchmarks.spark.first_window", str(home), side]
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-4_000:])
    return time.perf_counter() - begin, float(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), sys.argv[2])))

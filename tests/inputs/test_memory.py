"""A file four times as large as the memory that is left to the process is answered; to read it as a table fails."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

ROOM = 96 << 20
ROWS = 4 * ROOM // 24
STRETCH = 1000

# Everything that a run needs besides events is there before the limit is set: threads, code, compiled loops.
RUN = """
import resource, sys
import pyarrow as pa
import pyarrow.compute
import windrow as wr
from pyarrow import parquet
from pathlib import Path

query = wr.query(
    time="t", windows={"w": wr.tumbling(STRETCH)}, aggregates={"n": wr.count(), "total": wr.sum("x"), "top": wr.max("y")}
)
small, large, room = sys.argv[1], sys.argv[2], int(sys.argv[3])
for memory in ("200 kB", "1 GB"):
    for sign in (1, -1):
        table = parquet.read_table(small)
        parquet.write_table(table.set_column(0, "t", pa.compute.multiply(table["t"], sign)), small + ".parquet")
        query.run(small + ".parquet", memory=memory, threads=1)
(size,) = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmSize")]
limit = int(size) * 1024 + room
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
if sys.argv[4] == "as a table":
    try:
        parquet.read_table(large)
    except (MemoryError, OSError, pa.ArrowMemoryError):
        print("too large")
    sys.exit()
answer = query.run(large, memory=room // 4, threads=1)
assert answer["n"].to_pylist() == [STRETCH] * (answer.num_rows - 1) + [answer["n"][-1].as_py()]
print(answer.num_rows, sum(answer["n"].to_pylist()), sum(answer["total"].to_pylist()))
""".replace("STRETCH", str(STRETCH))


@pytest.mark.skipif(sys.platform != "linux", reason="the limit and the size of a process are Linux's")
@pytest.mark.parametrize("order", ["in order", "shuffled"])
def test_a_file_four_times_the_limit_is_answered(order, tmp_path):
    times = np.arange(ROWS)
    if order == "shuffled":
        times = times * 7919 % ROWS
    values = np.arange(ROWS)
    table = pa.table({"t": times, "x": values, "y": values.astype(float)})
    options = {"row_group_size": 1 << 17, "compression": "none", "use_dictionary": False}
    small, large = tmp_path / "small.parquet", tmp_path / "large.parquet"
    parquet.write_table(table.slice(0, 300_000), small, **options)
    parquet.write_table(table, large, **options)
    assert large.stat().st_size > 4 * ROOM
    environment = {
        **os.environ,
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_THRESHOLD_": "65536",
    }
    said = []
    for way in ("as a table", "as a file"):
        command = [sys.executable, "-c", RUN, str(small), str(large), str(ROOM), way]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.strip())
    assert said == ["too large", f"{-(-ROWS // STRETCH)} {ROWS} {ROWS * (ROWS - 1) // 2}"]

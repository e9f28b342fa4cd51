"""How fast is a file answered that need not fit into memory, and how much memory does that take?

Sum and max of integers in windows of 60 s over events 1 ms apart, in Parquet files of plain columns with a column that no query
reads. *at once* reads the file into a table, as `run` does with a file that takes less than a quarter of `memory`; the other ways
may take 64 MB for events: *in order* the rows are answered as they come, *nearly in order* (each up to 1,000 rows from its place) as well, and *shuffled* goes by
way of a temporary folder. *first pass alone* reads the times to see which it is. Peak memory is what Arrow and NumPy held at once in the run, as the
process that runs it says, beyond what it had before.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.support.harness import Figure, Line, Scale, Table, rate

ORDERS = ("in order", "nearly in order", "shuffled")
# A run in a process of its own, so that its peak is nobody else's.
RUN = """
import resource, sys, time
from pathlib import Path
import pyarrow as pa
import windrow as wr
from windrow.inputs.run import _Run
from windrow.inputs.progress import Progress
from windrow.inputs.sources import sources_of
from windrow.options import RunOptions

path, memory, pieces = sys.argv[1], sys.argv[2], int(sys.argv[3])
query = wr.query(time="t", windows={"w": wr.tumbling("60 seconds")}, aggregates={"total": wr.sum("x"), "top": wr.max("x")})
query.run(path + ".small.parquet", memory=memory)

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024

Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here on
before, begin = peak(), time.perf_counter()
if pieces:
    _Run(query, sources_of(path), RunOptions(memory=memory), Progress())._survey()
else:
    query.run(path, memory=memory)
print(time.perf_counter() - begin, peak() - before)
"""


def times_of(order: str, rows: int) -> np.ndarray:
    """Milliseconds from 0 on, in this order."""
    random = np.random.default_rng(23)
    if order == "shuffled":
        return random.permutation(rows)
    if order == "nearly in order":
        return np.argsort(np.arange(rows) + random.uniform(0, 1_000, rows), kind="stable")
    return np.arange(rows)


def write(path: Path, order: str, rows: int) -> None:
    random = np.random.default_rng(29)
    times = pa.array(times_of(order, rows), pa.int64()).cast(pa.timestamp("ms"))
    table = pa.table({"t": times, "x": random.integers(0, 1_000, rows), "unread": random.random(rows)})
    options = {"row_group_size": 1 << 20, "compression": "none", "use_dictionary": False}
    parquet.write_table(table, path, **options)
    parquet.write_table(table.slice(0, rows // 20), f"{path}.small.parquet", **options)


def seconds_and_bytes(path: Path, memory: str, *, survey: bool = False) -> tuple[float, float]:
    command = [sys.executable, "-c", RUN, str(path), memory, str(int(survey))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, size = done.stdout.split()
    return float(seconds), float(size)


def measure(scale: Scale) -> list[Table]:
    rows = scale.events
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for order in ORDERS:
            path = Path(folder) / f"{order}.parquet"
            write(path, order, rows)
            ways = {f"{order}, at once": "64 GB", order: "64 MB"}
            for name, memory in ways.items():
                found = [seconds_and_bytes(path, memory) for _ in range(scale.repeats)]
                seconds, size = min(found)
                figures: dict[str, Figure] = {
                    "M rows/s": rate(rows, seconds),
                    "peak, MB": size / 1e6,
                    "columns read, MB": rows * 16 / 1e6,
                }
                lines.append(Line(name, figures, headline=name == order))
            seconds = min(seconds_and_bytes(path, "64 MB", survey=True)[0] for _ in range(scale.repeats))
            lines.append(Line(f"{order}, first pass alone", {"M rows/s": rate(rows, seconds)}))
            path.unlink()
    return [Table("A Parquet file, with 64 MB for events", tuple(lines), ours="M rows/s", beside="peak, MB")]

"""How long until a fresh process has an answer?

Each line is a process of its own: `import windrow`, then a first result (20 windows, integer and float
sums, a thousand events) with nothing compiled yet, and again with the compiled code that the first one
left on disk. Times to a first result include the start of Python itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.support.harness import Line, Scale, Table, at_most

ROOT = Path(__file__).resolve().parents[1]
# Not getrusage: a new process inherits that peak from the one that started it.
MEMORY = """
with open("/proc/self/status") as status:
    memory = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
"""
IMPORT = f"""
import json, time
start = time.perf_counter()
import {{module}}
seconds = time.perf_counter() - start
{MEMORY}
print(json.dumps([seconds, memory]))
"""
FIRST_RESULT = f"""
import json
import pyarrow as pa
import windrow as wr
windows = {{f"{{i}} s": wr.tumbling(i * 1000) for i in range(1, 21)}}
aggregates = {{"total": wr.sum("value"), "mean": wr.mean("ratio")}}
query = wr.query(time="ts", windows=windows, aggregates=aggregates)
events = pa.table({{"ts": range(1000), "value": range(1000), "ratio": [i / 8 for i in range(1000)]}})
assert query.run(events)["total"].to_pylist() == [499500] * 20
{MEMORY}
print(json.dumps([0.0, memory]))
"""


def fresh(script: str, cache: Path | None = None) -> tuple[float, float, float]:
    """Run `script` in a new process: its own seconds, those of the whole process, its peak MiB."""
    environment = {**os.environ}
    if cache is not None:
        environment |= {"NUMBA_CACHE_DIR": str(cache), "WINDROW_CACHE_DIR": str(cache)}
    start = time.perf_counter()
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(done.stderr)
    inside, memory = json.loads(done.stdout)
    return inside, wall, memory


def best_of(repeats: int, script: str, cache: Path | None = None) -> tuple[float, float, float]:
    runs = [fresh(script, cache) for _ in range(repeats)]
    return min(runs, key=lambda run: run[1])


def measure(scale: Scale) -> list[Table]:
    repeats = scale.repeats
    lines = []
    for module, target in (("pyarrow", None), ("windrow", at_most("seconds", 0.5))):
        fresh(IMPORT.format(module=module))
        seconds, _, memory = best_of(repeats, IMPORT.format(module=module))
        name = f"import {module}"
        lines.append(Line(name, {"seconds": seconds, "peak MiB": memory}, target, headline=bool(target)))
    with tempfile.TemporaryDirectory() as folder:
        _, seconds, memory = fresh(FIRST_RESULT, Path(folder))
        lines.append(Line("first result, nothing compiled", {"seconds": seconds, "peak MiB": memory}))
        _, seconds, memory = best_of(repeats, FIRST_RESULT, Path(folder))
    figures = {"seconds": seconds, "peak MiB": memory}
    lines.append(Line("first result, compiled before", figures, at_most("seconds", 2), headline=True))
    return [Table("A fresh process", tuple(lines), ours="seconds", beside="peak MiB")]

"""How long until a fresh process has an answer?

Each figure is a process of its own: Python starts, makes events of two keys, imports a library and asks one query. *Cold* is
with nothing compiled; *warm* with all loops of the query on disk, compiled by an earlier process. Small inputs are answered by
plain Python in both. PyArrow imports pandas by itself where it is installed; *no pandas* is the same cold start where it is not.
*Loops* are those that were compiled cold. Where events are many, only the time behind their making counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.support.harness import Figure, Line, Scale, Table, at_most

# Not getrusage: a new process inherits that peak from the one that started it.
MEMORY = """
with open("/proc/self/status") as status:
    memory = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
print(json.dumps([seconds, memory]))
"""
IMPORT = f"""
import json, time
start = time.perf_counter()
import {{module}}
seconds = time.perf_counter() - start
{MEMORY}
"""
NO_PANDAS = """
import sys

class WithoutPandas:
    def find_spec(self, name, *_):
        if name == "pandas":
            raise ImportError(name)

sys.meta_path.insert(0, WithoutPandas())
"""
EVENTS = """
import json, time
import numpy as np, pyarrow as pa
random = np.random.default_rng(7)
ts = np.sort(random.integers(0, {events} // 5, {events})).astype("datetime64[s]")
keys = pa.DictionaryArray.from_arrays(random.integers(0, 2, {events}).astype(np.int8), ["north", "south"])
events = pa.table({{"ts": ts, "key": keys.cast(pa.string()), "x": random.random({events})}})
start = time.perf_counter()
"""
WINDROW = """
import windrow as wr
minute, sliding, session = wr.tumbling("1 minute"), wr.sliding("1 minute", every="10 seconds"), wr.session("10 seconds")
windows = {windows}
aggregates = {aggregates}
answer = wr.query(time="ts", key="key", windows=windows, aggregates=aggregates).run(events)
"""
DONE = f"""
assert len(answer)
seconds = time.perf_counter() - start
{MEMORY}
"""
POLARS = """
import polars as pl
answer = (
    pl.from_arrow(events)
    .group_by_dynamic("ts", every={every!r}, period="1m", group_by="key")
    .agg({aggregates})
)
"""
DUCKDB = """
import duckdb
answer = duckdb.sql("{sql}").to_arrow_table()
"""
QUERIES = {
    "tumbling; count, sum": ("{'w': minute}", "{'n': wr.count(), 's': wr.sum('x')}"),
    "sliding; count, mean, max": (
        "{'w': sliding}",
        "{'n': wr.count(), 'm': wr.mean('x'), 'h': wr.max('x')}",
    ),
    "session; count, sum": ("{'w': session}", "{'n': wr.count(), 's': wr.sum('x')}"),
    "rows; count, mean": ("{'w': wr.tumbling(rows=10)}", "{'n': wr.count(), 'm': wr.mean('x')}"),
    "three windows, five aggregates": (
        "{'t': minute, 's': sliding, 'g': session}",
        "{'n': wr.count(), 'm': wr.mean('x'), 'q': wr.quantile('x', 0.9), 'f': wr.first('x'), "
        "'d': wr.approx_distinct('x')}",
    ),
}
RIVALS = {
    "tumbling; count, sum": {
        "polars": POLARS.format(every="1m", aggregates="pl.len(), pl.sum('x')"),
        "duckdb": DUCKDB.format(
            sql="select key, time_bucket(interval '1 minute', ts) as w, count(*), sum(x) from events group by all"
        ),
    },
    "sliding; count, mean, max": {
        "polars": POLARS.format(
            every="10s", aggregates="pl.len(), pl.mean('x').alias('m'), pl.max('x').alias('h')"
        )
    },
    "session; count, sum": {
        "duckdb": DUCKDB.format(
            sql="with gaps as (select *, ts - lag(ts) over k > interval '10 seconds' as fresh from events "
            "window k as (partition by key order by ts)), numbered as (select *, sum(fresh::int) over "
            "(partition by key order by ts) as g from gaps) select key, g, count(*), sum(x) from numbered group by all"
        ),
    },
    "rows; count, mean": {
        "duckdb": DUCKDB.format(
            sql="with ranked as (select *, (row_number() over (partition by key order by ts) - 1) // 10 as g "
            "from events) select key, g, count(*), avg(x) from ranked group by all"
        ),
    },
}
SMALL = (1_000, 10_000)


def fresh(script: str, cache: Path | None = None, tier: str = "auto") -> tuple[float, float, float]:
    """Run `script` in a new process: its own seconds, those of the whole process, its peak MiB."""
    environment = {**os.environ, "WINDROW_TIER": tier}
    if cache is not None:
        environment["WINDROW_CACHE_DIR"] = str(cache)
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


def started(name: str, events: int, repeats: int, *, whole: bool) -> dict[str, Figure]:
    """The figures of a query: of the whole process, or of what comes behind the events."""
    windows, aggregates = QUERIES[name]
    begin = EVENTS.format(events=events)
    script = begin + WINDROW.format(windows=windows, aggregates=aggregates) + DONE
    figures: dict[str, Figure] = {}
    with tempfile.TemporaryDirectory() as folder:
        empty = [Path(folder) / str(i) for i in range(2 * repeats)]
        figures["cold"] = min(fresh(script, cache)[whole] for cache in empty[:repeats])
        if whole:
            figures["no pandas"] = min(fresh(NO_PANDAS + script, cache)[1] for cache in empty[repeats:])
        compiled = len(list(empty[0].rglob("*.bin")))
        fresh(script, Path(folder), tier="compiled")
        figures["warm"] = min(fresh(script, Path(folder))[whole] for _ in range(repeats))
    for rival, code in RIVALS.get(name, {}).items():
        figures[rival] = min(fresh(begin + code + DONE)[whole] for _ in range(repeats))
    return figures | {"loops": float(compiled)}


def measure(scale: Scale) -> list[Table]:
    tiny = scale.name == "tiny"
    lines = []
    for module, target in (("pyarrow", None), ("windrow", at_most("seconds", 0.5))):
        fresh(IMPORT.format(module=module))
        seconds, _, memory = best_of(scale.repeats, IMPORT.format(module=module))
        name = f"import {module}"
        lines.append(Line(name, {"seconds": seconds, "peak MiB": memory}, target, headline=bool(target)))
    tables = [Table("Imports", tuple(lines), ours="seconds", beside="peak MiB")]
    names = list(QUERIES)[:1] if tiny else list(QUERIES)
    for events, most in zip(SMALL[: 1 if tiny else 2], (0.85, 1.5), strict=False):
        found = {name: started(name, events, scale.repeats, whole=True) for name in names}
        rows = tuple(
            Line(name, figures, at_most("cold", most), headline=name == names[-1])
            for name, figures in found.items()
        )
        title = f"Seconds from the start of Python to the answer over {events:,} events"
        tables.append(Table(title, rows, ours="cold", beside="warm", also=("warm",)))
    if not tiny:
        events = scale.events // 2
        found = {name: started(name, events, 1, whole=False) for name in (names[0], names[-1])}
        rows = tuple(Line(name, figures) for name, figures in found.items())
        title = f"Seconds to import windrow and answer over {events:,} events"
        tables.append(Table(title, rows, ours="cold", beside="warm", also=("warm",)))
    return tables

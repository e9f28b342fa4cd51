"""How long until a fresh process has an answer?

Each figure is a process of its own: Python starts, makes events of two keys, imports a library and asks one query. *Cold* is
with nothing compiled; *warm* with all loops of the query on disk, compiled by an earlier process. Small inputs are answered by
plain Python in both. PyArrow imports pandas by itself where it is installed; *no pandas* is the same cold start where it is not.
*Loops* are those that were compiled cold. Where events are many, only the time behind their making counts; *carried* is a cold start
with a folder of code for any processor of this kind, made before by `windrow warm --all --portable`. What such code costs once
all is loaded is asked last, of the best of three answers in one process.
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
# The best of three, once all code is loaded.
AGAIN = f"""
query = wr.query(time="ts", key="key", windows=windows, aggregates=aggregates)
times = [time.perf_counter()]
for _ in range(3):
    query.run(events)
    times.append(time.perf_counter())
seconds = min(after - before for before, after in zip(times, times[1:]))
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


def fresh(script: str, *caches: Path, tier: str = "auto") -> tuple[float, float, float]:
    """Run `script` in a new process: its own seconds, those of the whole process, its peak MiB.

    The first one of `caches` is written to.
    """
    environment = {**os.environ, "WINDROW_TIER": tier}
    if caches:
        environment["WINDROW_CACHE_DIR"] = os.pathsep.join(map(str, caches))
    start = time.perf_counter()
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(done.stderr)
    inside, memory = json.loads(done.stdout)
    return inside, wall, memory


def best_of(repeats: int, script: str) -> tuple[float, float, float]:
    runs = [fresh(script) for _ in range(repeats)]
    return min(runs, key=lambda run: run[1])


def code_for_any_processor(folder: Path) -> None:
    """Fill a folder with all that is built in, compiled for any processor of this kind."""
    command = [sys.executable, "-m", "windrow.cli", "warm", "--all", "--portable", str(folder)]
    subprocess.run(command, capture_output=True, check=True)


def size_of(folder: Path) -> str:
    files = list(folder.rglob("*.bin"))
    return f"{len(files)} loops, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB"


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
    return tables if tiny else [*tables, *many_events(scale.events // 2, (names[0], names[-1]))]


def many_events(events: int, names: tuple[str, ...]) -> list[Table]:
    """Queries over so many events, cold, with code that was carried along, and warm; and what such code costs."""
    first, steady = [], []
    with tempfile.TemporaryDirectory() as folder:
        carried, own = Path(folder) / "carried", Path(folder) / "own"
        code_for_any_processor(carried)
        for name, most in zip(names, (2.5, 6), strict=True):
            windows, aggregates = QUERIES[name]
            script = EVENTS.format(events=events) + WINDROW.format(windows=windows, aggregates=aggregates)
            cold = started(name, events, 1, whole=False)
            empty = Path(folder) / str(len(first))
            with_code = {"seconds": fresh(script + DONE, empty, carried)[0], "warm": cold["warm"]}
            with_code["loops"] = float(len(list(empty.rglob("*.bin"))))
            for way, figures, bound in (
                ("nothing carried", {"seconds": cold.pop("cold"), **cold}, most),
                ("code carried", with_code, 0.5),
            ):
                figures["more than warm"] = figures["seconds"] - figures["warm"]  # type: ignore[operator]
                first.append(Line(f"{name}: {way}", figures, at_most("more than warm", bound)))
            fresh(script + DONE, own, tier="compiled")
            code = {"for this processor": own, "for any": carried}
            best = {kind: fresh(script + AGAIN, where, tier="compiled")[0] for kind, where in code.items()}
            steady.append(Line(name, {**best, "times": best["for any"] / best["for this processor"]}))
        size = size_of(carried)
    return [
        Table(
            f"Seconds to import windrow and answer over {events:,} events",
            tuple(first),
            ours="seconds",
            beside="warm",
            also=("warm",),
        ),
        Table(
            f"Seconds to answer {events:,} events once more, with code for this processor and for any",
            tuple(steady),
            ours="for any",
            beside="for this processor",
            note=f"The folder of `windrow warm --all --portable`: {size}.",
        ),
    ]

"""What is asked: each function gives tables, with the targets that the figures are held against."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import windrow as wr
from benchmarks.spark import first_window as fresh
from benchmarks.spark import price as micro
from benchmarks.spark import queries
from benchmarks.spark.data import Source, write
from benchmarks.spark.session import Run, batch, session, stream
from benchmarks.support.harness import Figure, Line, Table, Target, at_least, at_most
from windrow.spark import jvm_windows

RATE, SPARK, TIMES = "rows/s", "Spark's own, rows/s", "times Spark's"


@dataclass(frozen=True)
class Scale:
    """`files` of `rows` rows; Spark's own windows get `few` rows per file where they are slow by design."""

    name: str
    files: int
    rows: int
    few: int
    keys: int


SCALES = {
    scale.name: scale
    for scale in (
        Scale("tiny", files=2, rows=2_000, few=1_000, keys=500),
        Scale("small", files=3, rows=200_000, few=50_000, keys=20_000),
        Scale("full", files=10, rows=1_000_000, few=100_000, keys=100_000),
    )
}


class Bench:
    """One run: a Spark, a folder for its sources and checkpoints."""

    def __init__(self, spark: Any, folder: Path, scale: Scale) -> None:
        self.spark = spark
        self.folder = folder
        self.scale = scale
        self._number = itertools.count()
        self._sources: dict[Any, Source] = {}

    def source(
        self, *, keys: int, rows: int | None = None, files: int | None = None, span: float = 60
    ) -> Source:
        """A source of so many keys; `span` seconds in a file of full size, others in proportion."""
        rows, files = rows or self.scale.rows, files or self.scale.files
        wanted = keys, rows, files, span
        if wanted not in self._sources:
            folder = self.folder / f"source{len(self._sources)}"
            share = span * rows / self.scale.rows
            self._sources[wanted] = write(folder, files=files, rows=rows, keys=keys, span=share)
        return self._sources[wanted]

    def stream(self, source: Source, build: Any) -> Run:
        return stream(self.spark, source, build, self.checkpoint())

    def checkpoint(self) -> Path:
        """A folder of a name that is not taken."""
        return self.folder / f"checkpoint{next(self._number)}"

    def batch(self, source: Source, build: Any, *, repeats: int = 2) -> float:
        return batch(self.spark, source, build, repeats=repeats)


def line(name: str, ours: float, spark: float, target: Target | None, **more: float) -> Line:
    return Line(name, {RATE: ours, SPARK: spark, TIMES: ours / spark, **more}, target)


def sliding(bench: Bench) -> list[Table]:
    """A stream, sliding 60 s every 1 s, sum and count."""
    return [_beside(bench, "Stream: sliding 60 s every 1 s", (60, 1), targets=(5, 30), slow=True)]


def tumbling(bench: Bench) -> list[Table]:
    """A stream, tumbling 60 s, sum and count, on the general path."""
    return [_beside(bench, "Stream: tumbling 60 s", (60, 60), targets=(0.8, 1), slow=False)]


def pushed_down(bench: Bench) -> list[Table]:
    """The same in Spark's own state, which is the way that it takes by itself."""
    spec = (60, 60)
    ways = {RATE: queries.ours({"w": spec}).on_spark, SPARK: lambda events: queries.sparks(events, spec)}
    lines = []
    for keys, target in ((100, at_least(TIMES, 0.8)), (bench.scale.keys, None)):
        source = bench.source(keys=keys)
        runs = [{name: bench.stream(source, way).rate for name, way in ways.items()} for _ in range(2)]
        best = {name: max(run[name] for run in runs) for name in ways}
        lines.append(line(f"{keys:,} keys", best[RATE], best[SPARK], target))
    note = "The better of two runs each, in turns: the first one of a Spark is slow."
    return [Table("Stream: tumbling 60 s, pushed down", tuple(lines), ours=RATE, beside=SPARK, note=note)]


def _beside(
    bench: Bench, title: str, spec: tuple[float, ...], *, targets: tuple[float, float], slow: bool
) -> Table:
    lines = []
    query = queries.ours({"w": spec})
    for keys, bound in zip((100, bench.scale.keys), targets, strict=True):
        source = bench.source(keys=keys)
        few = bench.source(keys=keys, rows=bench.scale.few, files=3) if slow and keys > 100 else source
        ours = bench.stream(source, partial(query.on_spark, path="general"))
        spark = bench.stream(few, lambda events: queries.sparks(events, spec))
        megabytes = {
            "state written per micro-batch, MB": ours.written / 1e6,
            "Spark's, MB": spark.written / 1e6,
            "state in the end, MB": ours.held / 1e6,
            "Spark's in the end, MB": spark.held / 1e6,
        }
        lines.append(line(f"{keys:,} keys", ours.rate, spark.rate, at_least(TIMES, bound), **megabytes))
    note = (
        "Spark's own, with many keys, over micro-batches of fewer rows: its state grows with every row."
        if slow
        else ""
    )
    return Table(title, tuple(lines), ours=RATE, beside=SPARK, note=note)


def price(bench: Bench) -> list[Table]:
    """A micro-batch of few rows, and of many: where its time goes."""
    query, spec = queries.ours({"w": (60, 60)}), (60, 60)
    general = partial(query.on_spark, path="general")
    ways = {
        "a Python stage that does nothing": micro.nothing,
        "windrow, general path": general,
        "the same with 16 buckets": partial(general, buckets=16),
        "windrow, pushed down": partial(query.on_spark, path="pushdown"),
        "Spark's own window": lambda events: queries.sparks(events, spec),
    }
    tables = []
    sizes = ((1_000, 16), (bench.scale.rows, 9)) if bench.scale.name == "full" else ((bench.scale.rows, 6),)
    for rows, files in sizes:
        source = bench.source(keys=100, rows=rows, files=files, span=30 * bench.scale.rows / rows)
        runs = [
            {
                name: micro.micro_batches(bench.spark, source, way, bench.checkpoint())
                for name, way in ways.items()
            }
            for _ in range(2)
        ]
        # The first run of a job is slow.
        base = runs[1]["a Python stage that does nothing"]["all"]
        lines = [Line(name, {**figures, "times": figures["all"] / base}) for name, figures in runs[1].items()]
        note = (
            "Medians in ms. Spark runs two tasks at once: what tasks take is the sum of both. "
            "The last column is all, beside a stage that does nothing."
        )
        tables.append(
            Table(
                f"A micro-batch of {rows:,} rows, 100 keys, tumbling 60 s",
                tuple(lines),
                ours="all",
                note=note,
            )
        )
        clocks = bench.folder / f"clocks{rows}"
        micro.micro_batches(bench.spark, source, micro.watched(general, clocks), bench.checkpoint())
        spent = [
            Line(what, {"ms": ms, "calls": calls}) for what, (ms, calls) in micro.in_workers(clocks).items()
        ]
        tables.append(Table(f"A task of the stateful stage, {rows:,} rows", tuple(spent), ours="ms"))
    return tables


def without_python(bench: Bench) -> list[Table]:
    """Batch jobs whose windows the JVM can make alone: by itself, and through Python; few keys, and many."""
    lines = []
    for keys in (100, bench.scale.keys):
        source = bench.source(keys=keys, files=min(3, bench.scale.files))
        for name, spec in queries.SIMPLE.items():
            query = queries.ours({"w": spec})

            def through_python(events: Any, query: wr.Query = query) -> Any:
                with patch.object(jvm_windows, "obstacle", return_value="the other way is measured"):
                    return query.on_spark(events)

            def sparks(events: Any, spec: tuple[float, ...] = spec) -> Any:
                return queries.sparks(events, spec)

            ways = {"the JVM alone": query.on_spark, "through Python": through_python, SPARK: sparks}
            with patch.object(jvm_windows, "MOST_COPIES", 100):
                runs = [
                    {way: bench.batch(source, build, repeats=1) for way, build in ways.items()}
                    for _ in range(5)
                ]
            # The first run of a job is slow.
            rates = {way: median(run[way] for run in runs[1:]) for way in ways}
            figures = {way: rate / rates[SPARK] for way, rate in rates.items() if way != SPARK}
            lines.append(Line(f"{name}, {keys:,} keys", {SPARK: rates[SPARK], **figures}))
    note = "Ways take turns; medians of four runs, the first two columns as multiples of Spark's own windows."
    return [
        Table(
            "Batch: windows made by the JVM alone",
            tuple(lines),
            ours="the JVM alone",
            beside=SPARK,
            note=note,
        )
    ]


def ten_windows(bench: Bench) -> list[Table]:
    """A stream, ten windows at once: in one query, and as one query of Spark's for each."""
    source, fewer = bench.source(keys=100), bench.source(keys=100, files=min(3, bench.scale.files))
    windows = queries.ten(gap=0.05)  # a key has an event every 6 ms
    ours = bench.stream(source, queries.ours(windows).on_spark)
    seconds = 0.0
    for spec in windows.values():
        seconds += 1 / bench.stream(fewer, lambda events, spec=spec: queries.sparks(events, spec)).rate
    found = line("100 keys", ours.rate, 1 / seconds, at_least(TIMES, 10))
    return [Table("Stream: ten windows from 1 s to 1 h", (found,), ours=RATE, beside=SPARK)]


def batch_jobs(bench: Bench) -> list[Table]:
    """Batch jobs over a day of events."""
    day = 86_400 / bench.scale.files
    source = bench.source(keys=100, span=day)
    few = bench.source(keys=100, rows=bench.scale.few, files=3, span=day)
    spec = (3600, 10)
    one = queries.ours({"w": spec})
    ours = bench.batch(source, one.on_spark)
    spark = bench.batch(few, lambda events: queries.sparks(events, spec))
    lines = [line("sliding 1 h every 10 s", ours, spark, at_least(TIMES, 20))]
    windows = queries.ten(gap=5)  # a key has an event every 0.9 s
    ours = bench.batch(source, queries.ours(windows).on_spark)
    fewer = bench.source(keys=100, files=2, span=day)
    seconds = sum(
        1 / bench.batch(fewer, lambda events, spec=spec: queries.sparks(events, spec))
        for spec in windows.values()
    )
    lines.append(line("ten windows from 1 s to 1 h", ours, 1 / seconds, at_least(TIMES, 5)))
    note = "100 keys. Spark's own over fewer rows: it copies each row up to 360 times."
    return [Table("Batch", tuple(lines), ours=RATE, beside=SPARK, note=note)]


def events_that_last(bench: Bench) -> list[Table]:
    """Span events of up to a minute, 20 s on average, into windows of 60 s every 1 s."""
    spec, rows = (60.0, 1.0), bench.scale.rows
    source = bench.source(keys=100)
    fewer, few = (
        bench.source(keys=100, rows=rows // 2, files=2),
        bench.source(keys=100, rows=rows // 20, files=1),
    )
    query = queries.ours_that_last(spec)
    ours = bench.batch(source, query.on_spark, repeats=4)
    found = [
        line(f"batch, 100 keys, beside {name}", ours, bench.batch(rows, partial(build, spec=spec)), target)
        for name, rows, build, target in (
            (
                "an instant per second and window()",
                few,
                queries.sparks_that_last_by_window,
                at_least(TIMES, 10),
            ),
            ("a copy per window", fewer, queries.sparks_that_last, None),
        )
    ]
    # Starts come in order, so nothing that ends before the latest start is expected.
    rate = bench.stream(source, partial(query.on_spark, watermark="ts")).rate
    lines = *found, Line("stream, 100 keys", {RATE: rate, SPARK: None, TIMES: None})
    note = (
        "Spark has no such windows. In SQL, over fewer rows, explode(sequence(..)) makes an instant of each second of an event for window(), "
        "or, by hand, a copy for each of the some 80 windows that it overlaps."
    )
    return [Table("Span events, sliding 60 s every 1 s", lines, ours=RATE, beside=SPARK, note=note)]


def hot_key(bench: Bench) -> list[Table]:
    """A batch job of one single key, on one core and on two."""
    source = bench.source(keys=1, span=86_400 / bench.scale.files)
    query = queries.ours({"w": (3600, 10)})
    two = bench.batch(source, query.on_spark, repeats=3)
    bench.spark.stop()
    bench.spark = session(bench.folder, cores=1)
    one = bench.batch(source, query.on_spark, repeats=3)
    bench.spark.stop()
    bench.spark = session(bench.folder)
    times = "times one core"
    found = Line(
        "sliding 1 h every 10 s", {RATE: two, "one core, rows/s": one, times: two / one}, at_least(times, 1.7)
    )
    return [Table("Batch: one key, two cores", (found,), ours=RATE)]


def lift(x):  # type: ignore[no-untyped-def]
    return x * x, 1


def combine(a, b):  # type: ignore[no-untyped-def]
    return a[0] + b[0], a[1] + b[1]


def lower(a):  # type: ignore[no-untyped-def]
    return (a[0] / a[1]) ** 0.5


def filled(total, x):  # type: ignore[no-untyped-def]
    """A new window whenever the values of the last one have come to 10,000."""
    if total < 0 or total + x > 10_000:
        return x, 1, 0 if total < 0 else 1
    return total + x, 0, 0


def data_driven(bench: Bench) -> list[Table]:
    """A stream with windows that Spark does not have."""
    square = wr.aggregate(columns=["x"], identity=(0, 0), lift=lift, combine=combine, lower=lower)
    jobs = {
        "tumbling 100 rows": ({"w": wr.tumbling(rows=100)}, queries.SUMS),
        "root mean square (user-defined), sliding 60 s every 1 s": (
            {"w": wr.sliding("60 seconds", every="1 second")},
            {"rms": square},
        ),
        "a window for each 10,000 of x (user-defined)": (
            {"w": wr.deterministic(filled, state=-1)},
            queries.SUMS,
        ),
    }
    lines = []
    for keys, bound in ((100, 500_000), (bench.scale.keys, 150_000)):
        source = bench.source(keys=keys)
        for name, (windows, aggregates) in jobs.items():
            query = wr.query(time="ts", key="k", windows=windows, aggregates=aggregates)
            rate = bench.stream(source, query.on_spark).rate
            lines.append(Line(f"{name}, {keys:,} keys", {RATE: rate}, at_least(RATE, bound)))
    return [Table("Stream: windows that Spark does not have", tuple(lines), ours=RATE)]


def first_window(bench: Bench) -> list[Table]:
    """A process and a Spark of their own: tumbling 60 s over two small files, the second of which ends windows."""
    folder = bench.folder / "first"
    folder.mkdir()
    ways = {
        "windrow, nothing compiled": ("windrow", "empty"),
        "windrow, compiled before": ("windrow", "empty"),
        "Spark's own": ("spark", "none"),
    }
    best = {name: fresh.measured(folder, side, folder / cache) for name, (side, cache) in ways.items()}
    lines = []
    for name, (process, alone) in best.items():
        figures: dict[str, Figure] = {"s, whole process": process, "s, stream": alone}
        figures |= {TIMES: process / best["Spark's own"][0], "stream, times": alone / best["Spark's own"][1]}
        lines.append(Line(name, figures, at_most("stream, times", 1.5) if "nothing" in name else None))
    title = "Stream: seconds to the first window, from the start of a process and from that of the stream"
    return [Table(title, tuple(lines), ours="s, stream", beside="stream, times")]


QUESTIONS = {
    question.__name__: question
    for question in (
        sliding,
        tumbling,
        pushed_down,
        price,
        without_python,
        ten_windows,
        batch_jobs,
        events_that_last,
        hot_key,
        data_driven,
        first_window,
    )
}

"""`python -m benchmarks.pipelines [--minutes M] [--rate N] [--keys N ...] [--out FOLDER]`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.pipelines.measured import Sample, growth, latencies, plot, sampled
from benchmarks.support import report
from benchmarks.support.harness import Line, Table
from tools.broker import Broker

ENGINES = {"windrow": "windrow", "spark": "Spark's own window"}
NOTE = (
    "Sum and count over 60 s every 10 s per key, watermark delay 1 s, JSON in and out; broker, producer and pipeline on one machine. "
    "Latency: from a window's end until its message is written, the delay included; the first fifth of a run is left out. "
    "Held: read until the end / sent. Growth: memory in the last fifth of the run / in the third fifth."
)


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pipelines", description="Kafka to Kafka, end to end."
    )
    parser.add_argument("--minutes", type=float, default=5, help="how long each pipeline runs")
    parser.add_argument("--rate", type=int, default=20_000, help="events per second that are sent")
    parser.add_argument("--keys", type=int, nargs="+", default=[100, 100_000])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--out", type=Path, default=Path("out"), help="where the plot goes")
    return parser.parse_args(given)


def measure(
    broker: Broker, folder: Path, engine: str, keys: int, rate: int, seconds: float
) -> tuple[dict[str, float | int], list[Sample]]:
    """Run one pipeline while events are sent; its figures, and its memory over time."""
    source, target = f"events-{engine}-{keys}", f"windows-{engine}-{keys}"
    where = folder / f"{engine}-{keys}"
    job = [
        sys.executable,
        "-m",
        "benchmarks.pipelines.job",
        engine,
        broker.servers,
        source,
        target,
        str(where),
    ]
    sending = [sys.executable, "-m", "benchmarks.pipelines.producer", broker.servers, source]
    # A second of events first, so that both topics are there, and the job has started when the clock does.
    subprocess.run([*sending, str(rate), str(keys), "1"], check=True, capture_output=True)
    with subprocess.Popen(job, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n", "the pipeline did not start"
        begin = time.time()
        with sampled(process.pid) as samples:
            sent = subprocess.run(
                [*sending, str(rate), str(keys), str(seconds)], check=True, capture_output=True, text=True
            )
            end = time.time()
        process.stdin.close()
        batches = json.loads(process.stdout.read())
    read = sum(rows for stamp, rows in batches if begin <= datetime.fromisoformat(stamp).timestamp() <= end)
    ages = latencies(broker.servers, target, since=begin + (end - begin) / 5)
    p50, p99 = np.percentile(ages, [50, 99]) if len(ages) else (float("nan"),) * 2
    figures = {
        "sent/s": int(sent.stdout) / (end - begin),
        "read/s": read / (end - begin),
        "held": read / int(sent.stdout),
        "p50 s": float(p50),
        "p99 s": float(p99),
        "windows": len(ages),
        "MB": sum(samples[-1][1].values()),
        "growth": growth(samples),
    }
    return figures, samples


def main(given: list[str] | None = None) -> int:
    asked = arguments(given)
    console = Console(width=None if sys.stdout.isatty() else 160)
    lines, memory = [], {}
    with tempfile.TemporaryDirectory() as folder, Broker(Path(folder, "broker")) as broker:
        for keys in asked.keys:
            for engine in asked.engines:
                name = f"{ENGINES[engine]}, {keys:,} keys"
                console.print(f"{name}: {asked.minutes:g} minutes", style="dim", highlight=False)
                figures, memory[name] = measure(
                    broker, Path(folder), engine, keys, asked.rate, 60 * asked.minutes
                )
                lines.append(Line(name, figures))
    report.show(console, Table("Kafka to Kafka", tuple(lines), ours="read/s", note=NOTE))
    plot(memory, asked.out / "pipelines-memory.png")
    console.print(f"memory over time: {asked.out / 'pipelines-memory.png'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

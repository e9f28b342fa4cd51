"""`python -m benchmarks.spark [name ...] [--scale tiny|small|full] [--write]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from benchmarks.spark.questions import QUESTIONS, SCALES, Bench
from benchmarks.spark.session import session
from benchmarks.support import machine, report

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark.md"


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark", description="Measure windrow on Spark."
    )
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"which of {', '.join(QUESTIONS)}; all if none"
    )
    parser.add_argument("--scale", choices=SCALES, default="full", help="how much work to do")
    parser.add_argument("--write", action="store_true", help="write the tables to docs/spark.md")
    options = parser.parse_args(given)
    if unknown := [name for name in options.names if name not in QUESTIONS]:
        parser.error(f"no benchmark is called {unknown[0]!r}: choose from {', '.join(QUESTIONS)}")
    if options.write and (options.names or options.scale != "full"):
        parser.error("--write publishes the figures, so it needs all benchmarks at full scale")
    options.names = options.names or list(QUESTIONS)
    return options


def main(given: list[str] | None = None) -> int:
    options = arguments(given)
    console = Console(width=None if sys.stdout.isatty() else 160)
    facts = machine.describe()
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(session(Path(folder)), Path(folder), SCALES[options.scale])
        try:
            for name in options.names:
                begin = time.perf_counter()
                for table in QUESTIONS[name](bench):
                    report.show(console, table)
                    rows = [report.cells(table, line) for line in table.lines]
                    parts += [
                        f"### {table.title}",
                        report.markdown_table(report.heading(table), rows),
                        table.note,
                    ]
                console.print(
                    f"{name} took {time.perf_counter() - begin:.0f} s\n", style="dim", highlight=False
                )
        finally:
            bench.spark.stop()
    if options.write:
        made = f"`make bench-spark` on {facts['CPU']}, {facts['Date']}."
        report.embed(PAGE, "\n\n".join(part for part in [*parts, made] if part))
    return 0


if __name__ == "__main__":
    sys.exit(main())

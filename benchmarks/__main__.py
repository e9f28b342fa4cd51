"""`python -m benchmarks [name ...] [--scale tiny|small|full] [--out DIR] [--write]`."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from pathlib import Path

from rich.console import Console

from benchmarks.support import machine, report
from benchmarks.support.harness import SCALES, Table

QUESTIONS = ("windows", "small_batches", "aggregates", "keyed", "median", "sessions", "rivals", "startup")
ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure windrow.")
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"which of {', '.join(QUESTIONS)}; all if none"
    )
    parser.add_argument("--scale", choices=SCALES, default="full", help="how much work to do")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the results to DIR/benchmarks.md")
    parser.add_argument(
        "--write", action="store_true", help="write docs/benchmarks.md and the README's summary"
    )
    options = parser.parse_args(given)
    if unknown := [name for name in options.names if name not in QUESTIONS]:
        parser.error(f"no benchmark is called {unknown[0]!r}: choose from {', '.join(QUESTIONS)}")
    if options.write and (options.names or options.scale != "full"):
        parser.error("--write publishes the figures, so it needs all benchmarks at full scale")
    if options.write:
        report.halves(README)  # an error now, not after ten minutes
    options.names = options.names or list(QUESTIONS)
    return options


def command(options: argparse.Namespace) -> str:
    names = [] if options.names == list(QUESTIONS) else options.names
    return " ".join(["python -m benchmarks", *names, "--scale", options.scale])


def main(given: list[str] | None = None) -> int:
    options = arguments(given)
    console = Console(width=None if sys.stdout.isatty() else 140)
    facts = machine.describe()
    console.print("\n".join(f"{fact}: {value}" for fact, value in facts.items()) + "\n", highlight=False)
    results: dict[str, list[Table]] = {}
    introductions: dict[str, str] = {}
    for name in options.names:
        start = time.perf_counter()
        try:
            module = importlib.import_module(f"benchmarks.{name}")
            results[name] = module.measure(SCALES[options.scale])
        except Exception:
            traceback.print_exc()
            console.print(f"[red]{name} failed[/]\n")
            continue
        introductions[name] = str(module.__doc__).strip()
        for table in results[name]:
            report.show(console, table)
        console.print(f"{name} took {time.perf_counter() - start:.0f} s\n", style="dim", highlight=False)
    failed = [name for name in options.names if name not in results]
    if failed:
        console.print(f"[red]failed: {', '.join(failed)}[/]")
        return 1
    folder = ROOT / "docs" if options.write else options.out
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        text = report.page(results, facts, command(options), introductions)
        (folder / "benchmarks.md").write_text(text)
    if options.write:
        report.embed(README, report.summary(results, facts, command(options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

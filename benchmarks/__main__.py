"""`python -m benchmarks [name ...] [--scale tiny|small|full] [--out DIR] [--json FILE] [--write]`."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.support import machine, report
from benchmarks.support.harness import SCALES, Table

QUESTIONS = (
    "windows",
    "small_batches",
    "growth",
    "adding",
    "early",
    "aggregates",
    "overflow",
    "keyed",
    "median",
    "at",
    "sessions",
    "counts",
    "data_driven",
    "spans",
    "policies",
    "slices",
    "rivals",
    "threads",
    "files",
    "outputs",
    "expressions",
    "choice",
    "stores",
    "startup",
)
ROOT = Path(__file__).resolve().parents[1]
SUMMARY = "Summary"


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure windrow.")
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"which of {', '.join(QUESTIONS)}; all if none"
    )
    parser.add_argument("--scale", choices=SCALES, default="full", help="how much work to do")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write to DIR/benchmarks.md, where benchmarks that do not run now keep what they have",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE, for programs")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md, its summary included")
    options = parser.parse_args(given)
    if unknown := [name for name in options.names if name not in QUESTIONS]:
        parser.error(f"no benchmark is called {unknown[0]!r}: choose from {', '.join(QUESTIONS)}")
    if options.write and (options.names or options.scale != "full"):
        parser.error("--write publishes the figures, so it needs all benchmarks at full scale")
    options.names = options.names or list(QUESTIONS)
    return options


def command(names: Sequence[str], scale: str) -> str:
    given = [] if tuple(names) == QUESTIONS else names
    return " ".join(["python -m benchmarks", *given, "--scale", scale])


def publish(path: Path, fresh: Mapping[str, str], facts: Mapping[str, str]) -> None:
    """Put these sections into the page at `path`, and leave the others there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = report.sections_of(path.read_text()) if path.exists() else {}
    known |= fresh
    path.write_text(report.page([known[name] for name in (SUMMARY, *QUESTIONS) if name in known], facts))


def main(given: list[str] | None = None) -> int:
    options = arguments(given)
    console = Console(width=None if sys.stdout.isatty() else 140)
    facts = machine.describe()
    console.print("\n".join(f"{fact}: {value}" for fact, value in facts.items()) + "\n", highlight=False)
    results: dict[str, list[Table]] = {}
    sections: dict[str, str] = {}
    for name in options.names:
        start = time.perf_counter()
        try:
            module = importlib.import_module(f"benchmarks.{name}")
            results[name] = module.measure(SCALES[options.scale])
        except Exception:
            traceback.print_exc()
            console.print(f"[red]{name} failed[/]\n")
            continue
        made = command([name], options.scale)
        introduction = str(module.__doc__).strip()
        sections[name] = report.section(name, results[name], made, facts["Date"], introduction)
        for table in results[name]:
            report.show(console, table)
        console.print(f"{name} took {time.perf_counter() - start:.0f} s\n", style="dim", highlight=False)
    if options.json is not None:
        options.json.write_text(report.for_programs(results, options.scale))
    failed = [name for name in options.names if name not in results]
    if failed:
        console.print(f"[red]failed: {', '.join(failed)}[/]")
        return 1
    if options.write:
        told = report.summary(results, facts, command(options.names, options.scale))
        sections[SUMMARY] = f"## {SUMMARY}\n\n{told}\n"
    folder = ROOT / "docs" if options.write else options.out
    if folder is not None:
        publish(folder / "benchmarks.md", sections, facts)
    return 0


if __name__ == "__main__":
    sys.exit(main())

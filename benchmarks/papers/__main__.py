"""`python -m benchmarks.papers list | all | name ... [--scale tiny|small|full] [--out DIR] [--data FILE]`."""

from __future__ import annotations

import argparse
import gc
import importlib
import sys
import time
import traceback
from pathlib import Path

from rich.console import Console

from benchmarks.papers import page
from benchmarks.papers.experiment import SCALES, Experiment, Setting
from benchmarks.papers.findings import verdict
from benchmarks.support import machine, report

# The module of each experiment, in the order of the page.
MODULES = {
    "scotty-13": "scotty.figure_13",
    "scotty-14": "scotty.figure_14",
    "scotty-15": "scotty.figure_15",
    "scotty-16": "scotty.figure_16",
    "scotty-17": "scotty.figure_17",
    "scotty-18": "scotty.figure_18",
    "scotty-19": "scotty.figure_19",
    "scotty-20": "scotty.figure_20",
    "scotty-21": "scotty.figure_21",
    "scotty-22": "scotty.figure_22",
    "cutty-table-1": "cutty.table_1",
    "cutty-8": "cutty.figure_8",
    "cutty-9": "cutty.figure_9",
    "pba-4": "pba.figure_4",
    "pba-5": "pba.figure_5",
    "pba-6": "pba.figure_6",
    "pba-7": "pba.figure_7",
    "spanning-10": "spanning.figure_10",
    "spanning-11": "spanning.figure_11",
    "spanning-12": "spanning.figure_12",
    "spanning-13": "spanning.figure_13",
    "spanning-14": "spanning.figure_14",
    "spanning-15": "spanning.figure_15",
    "windowing-3": "windowing_library.figure_3",
    "windowing-4": "windowing_library.figure_4",
}


def experiment(name: str) -> Experiment:
    return importlib.import_module(f"benchmarks.papers.{MODULES[name]}").EXPERIMENT


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers", description="Run experiments of the papers again."
    )
    parser.add_argument(
        "names", nargs="+", metavar="name", help="experiments, or one panel of them (scotty-15a); all; list"
    )
    parser.add_argument("--scale", choices=SCALES, default="small", help="how much work to do")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write DIR/papers.md and DIR/papers/, where experiments that do not run now keep what they have",
    )
    parser.add_argument(
        "--data", type=Path, metavar="FILE", help="a file of the DEBS grand challenge of 2012 or 2013"
    )
    options = parser.parse_args(given)
    if options.data is not None and not options.data.is_file():
        parser.error(f"there is no file {options.data}")
    if options.names in (["all"], ["list"]):
        options.listing = options.names == ["list"]
        options.names = list(MODULES)
        return options
    options.listing = False
    found = [known(name) for name in options.names]
    if None in found:
        unknown = options.names[found.index(None)]
        parser.error(f"no experiment is called {unknown!r}: `list` shows what there is")
    options.names = list(dict.fromkeys(found))
    return options


def known(name: str) -> str | None:
    """The experiment of that name, or the one that the panel belongs to: 15a is a part of 15."""
    if name in MODULES:
        return name
    return name[:-1] if name[:-1] in MODULES and name[-1:].isalpha() else None


def command(names: list[str], options: argparse.Namespace) -> str:
    data = [] if options.data is None else ["--data", options.data.name]
    return " ".join(["python -m benchmarks.papers", *names, "--scale", options.scale, *data])


def main(given: list[str] | None = None) -> int:
    options = arguments(given)
    console = Console(width=None if sys.stdout.isatty() else 160)
    if options.listing:
        for name in options.names:
            console.print(f"{name:15}{experiment(name).title}", highlight=False)
        return 0
    facts = machine.describe()
    setting = Setting(SCALES[options.scale], options.data)
    sections: dict[str, str] = {}
    begin = time.perf_counter()
    for name in options.names:
        start = time.perf_counter()
        try:
            found = experiment(name)
            gc.freeze()  # garbage is collected before each measurement: what is loaded by now is left out
            outcome = found.measure(setting)
        except Exception:
            traceback.print_exc()
            console.print(f"[red]{name} failed[/]\n")
            continue
        sections[name] = page.section(found, outcome, command([name], options), facts["Date"])
        if options.out is not None:
            page.files(name, outcome, options.out / page.FOLDER)
            page.publish(options.out / "papers.md", sections, list(MODULES), facts)
        for table in [*(panel.table() for panel in outcome.panels if panel.tabled), *outcome.tables]:
            report.show(console, table)
        console.print(verdict(outcome.findings), highlight=False, soft_wrap=True)
        console.print(f"{name} took {time.perf_counter() - start:.0f} s\n", style="dim", highlight=False)
    console.print(f"{len(sections)} experiments in {time.perf_counter() - begin:.0f} s", highlight=False)
    return 0 if len(sections) == len(options.names) else 1


if __name__ == "__main__":
    sys.exit(main())

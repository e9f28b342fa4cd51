"""`python -m benchmarks.before COMMIT [name ...] [--scale tiny|small|full] [--rounds N]`: faster or slower than then?

The commit is checked out into a temporary folder, and each question is put to both sources in turns, each time in a
process of its own:

    round 1     then  now
    round 2     then  now       best of each row
    round 3     then  now

A row is a line of a table in windrow's own columns. Its speed is that of now over that of then, whether the figures
are rates or times, and rows below 0.95 are marked. Where the commit does not have a question, or cannot write
figures as JSON, today's question is put to its source, and its own referee in `tests` checks the answers.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from benchmarks.__main__ import QUESTIONS, ROOT
from benchmarks.support.harness import SCALES, is_speed
from benchmarks.support.report import number

SLOWER = 0.95
NOW = "now"
FASTER = "faster by"
# Title of the table, name of the line, column.
Row = tuple[str, str, str]
Figures = dict[Row, float]


class CannotRun(Exception):
    """A question that a source, perhaps that of `today`, cannot answer; says why in the words of its last error."""

    def __init__(self, why: str, *, today: bool = False) -> None:
        super().__init__(why)
        self.today = today


@dataclass(frozen=True)
class Tree:
    """A source, and the benchmarks that are put to it."""

    source: Path
    benchmarks: Path

    def figures(self, question: str, scale: str) -> Figures:
        """The figures of a question, by a process that imports windrow from this source and nowhere else."""
        with tempfile.TemporaryDirectory() as folder:
            # Today's `benchmarks` beside the source's own `tests`, whose referee knows that source.
            here = Path(folder)
            (here / "benchmarks").symlink_to(self.benchmarks / "benchmarks")
            path = here / "figures.json"
            command = [sys.executable, "-m", "benchmarks", question, "--scale", scale, "--json", str(path)]
            places = os.pathsep.join(str(place) for place in (self.source / "src", here, self.source))
            done = subprocess.run(
                command,
                cwd=here,
                env={**os.environ, "PYTHONPATH": places},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise CannotRun((done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1])
            measured = json.loads(path.read_text())
        if not Path(measured["windrow"]).is_relative_to(self.source):
            raise CannotRun(f"it has measured {measured['windrow']}, which is not below {self.source}")
        return figures_of(measured["questions"][question])


def own_columns(table: dict[str, Any], line: dict[str, Any]) -> list[str]:
    """The columns of a line that are windrow's own; where rivals have lines too, theirs has none."""
    if table["ours"] != FASTER:
        return [table["ours"], *table.get("also", ())]
    return [table["beside"]] if line["name"].startswith("windrow") else []


def figures_of(tables: list[dict[str, Any]]) -> Figures:
    """The figures in windrow's own columns of all tables of a question."""
    return {
        (table["title"], line["name"], column): line["figures"][column]
        for table in tables
        for line in table["lines"]
        for column in own_columns(table, line)
        if isinstance(line["figures"].get(column), (int, float))
    }


def better(one: Figures, other: Figures) -> Figures:
    """The better figure of each row; a row that one of them lacks is the other's."""
    return {
        row: (max if is_speed(row[2]) else min)(figures[row] for figures in (one, other) if row in figures)
        for row in one | other
    }


def speeds(then: Figures, now: Figures) -> Iterator[tuple[Row, float, float, float]]:
    """Each row that both have: its figures then and now, and how many times as fast it is now."""
    for row in then:
        if row in now and then[row] > 0 and now[row] > 0:
            ratio = now[row] / then[row]
            yield row, then[row], now[row], ratio if is_speed(row[2]) else 1 / ratio


@contextmanager
def checked_out(commit: str, repository: Path = ROOT) -> Iterator[Path]:
    """The commit in a folder that is there as long as it is needed, and gone after that whatever happens."""

    def git(*arguments: str, check: bool = True) -> None:
        done = subprocess.run(
            ["git", "-C", str(repository), *arguments], capture_output=True, text=True, check=False
        )
        if check and done.returncode:
            raise SystemExit(f"{commit} cannot be checked out: {done.stderr.strip()}")

    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "then"
        try:
            git("worktree", "add", "--detach", str(tree), commit)
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree), check=False)


def tree_of(then: Path, question: str) -> Tree:
    """The benchmarks of the commit if they have the question and write JSON, else those of today."""
    command = then / "benchmarks" / "__main__.py"
    knows = (then / "benchmarks" / f"{question}.py").exists() and command.exists()
    return Tree(then, then if knows and '"--json"' in command.read_text() else ROOT)


def compare(trees: Mapping[str, Tree], question: str, scale: str, rounds: int) -> dict[str, Figures]:
    """The best figures of each source, which take turns."""
    best: dict[str, Figures] = {name: {} for name in trees}
    for _ in range(rounds):
        for name, tree in trees.items():
            try:
                best[name] = better(best[name], tree.figures(question, scale))
            except CannotRun as error:
                whose = "today's source" if name == NOW else f"the source of {name}"
                raise CannotRun(f"{whose} cannot run it: {error}", today=name == NOW) from None
    return best


def show(console: Console, question: str, commit: str, found: Mapping[str, Figures]) -> int:
    """Print the rows of a question; how many are slower."""
    then, now = found.values()
    shown = RichTable(title=question, title_justify="left")
    for position, column in enumerate(("", "column", commit, NOW, "speed", "")):
        shown.add_column(column, justify="right" if position > 1 else "left")
    slower = 0
    for (title, line, column), before, after, speed in speeds(then, now):
        slower += speed < SLOWER
        mark = "[red]slower[/]" if speed < SLOWER else ""
        shown.add_row(f"{title}: {line}", column, number(before), number(after), f"{speed:.2f}", mark)
    console.print(shown)
    if lone := len(then.keys() ^ now.keys()):
        console.print(f"{lone} rows are in one of the two only, and are left out")
    return slower


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.before", description="Compare with a commit.")
    parser.add_argument("commit", help="what git knows it by")
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"which of {', '.join(QUESTIONS)}; all if none"
    )
    parser.add_argument(
        "--scale", choices=SCALES, default="small", help="how much work to do; small if not said"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often each source has its turn; 3 if not said"
    )
    options = parser.parse_args(given)
    if unknown := [name for name in options.names if name not in QUESTIONS]:
        parser.error(f"no benchmark is called {unknown[0]!r}: choose from {', '.join(QUESTIONS)}")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def main(given: list[str] | None = None) -> int:
    options = arguments(given)
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    slower, status = 0, 0
    with checked_out(options.commit) as then:
        for question in options.names or QUESTIONS:
            trees = {options.commit: tree_of(then, question), NOW: Tree(ROOT, ROOT)}
            try:
                found = compare(trees, question, options.scale, options.rounds)
            except CannotRun as error:
                console.print(f"{question} is skipped: {error}", markup=False, soft_wrap=True)
                status = max(status, int(error.today))
                continue
            slower += show(console, question, options.commit, found)
    console.print(f"rows with a speed below {SLOWER}: {slower}")
    return status


if __name__ == "__main__":
    # Termination as an exception, so that the folder is removed then too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    sys.exit(main())

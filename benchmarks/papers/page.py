"""Results to files: a page in Markdown, and beside it a folder of plots (SVG) and tables (CSV).

DIR/papers.md             a section for each experiment; those that do not run now keep what they have
DIR/papers/NAME.svg .csv  the panels by the number that they have in the paper
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.papers import plots
from benchmarks.papers.experiment import Experiment, Outcome
from benchmarks.papers.findings import verdict
from benchmarks.support import report
from benchmarks.support.harness import Table

FOLDER = "papers"
PAPERS = {
    "scotty": (
        "Traub, Grulich, Rodriguez Cuellar, Bress, Katsifodimos, Rabl and Markl: Scotty: General and "
        "Efficient Open-Source Window Aggregation for Stream Processing Systems, ACM TODS 2021"
    ),
    "cutty": (
        "Carbone, Traub, Katsifodimos, Haridi and Markl: Cutty: Aggregate Sharing for User-Defined Windows, "
        "CIKM 2016"
    ),
    "pba": (
        "Zhang, Akbarinia and Toumani: Efficient Incremental Computation of Aggregations over Sliding "
        "Windows, KDD 2021"
    ),
    "spanning": (
        "Suzanne, Raschia, Martinez and Tassetti: Slicing Techniques for Temporal Aggregation in Spanning Event "
        "Streams, Information and Computation 2021"
    ),
    "windowing": (
        "Gedik: Generic windowing support for extensible stream processing systems, Software: Practice and Experience 2013"
    ),
}
INTRODUCTION = """\
Experiments of five papers, run again with windrow. Each section has what the paper claims, what is run here, the
plot, the figures, and a verdict that is computed from the figures. All techniques and stores are windrow's own
compiled ones, measured in the same run, in turns, on one thread unless a section says otherwise; a technique that
cannot run a workload says so in its place. The original data (DEBS grand challenges 2012 and 2013) is not available
here: streams are made in the shape that the papers describe, and `--data FILE` takes an original file. Departures
from New York in 2013 are a real stream beside them. Slow techniques are measured on fewer events; all figures are
per event, per window or per call."""


def files(name: str, outcome: Outcome, folder: Path) -> None:
    """The plots and tables of an experiment."""
    folder.mkdir(parents=True, exist_ok=True)
    for panel in outcome.panels:
        plots.draw(panel, folder / f"{panel.name}.svg")
        write_csv(panel.table(), folder / f"{panel.name}.csv")
    for i, table in enumerate(outcome.tables):
        write_csv(table, folder / f"{name}{f'-{i + 1}' if i else ''}-table.csv")


def write_csv(table: Table, path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["", *table.columns])
        for line in table.lines:
            figures = [line.figures.get(column) for column in table.columns]
            rounded = [f"{figure:.6g}" if isinstance(figure, float) else figure for figure in figures]
            writer.writerow([line.name, *rounded])


def section(experiment: Experiment, outcome: Outcome, command: str, date: str) -> str:
    """An experiment in Markdown."""
    parts = [f"## {experiment.name}", f"*{experiment.title}.* `{command}`, {date}"]
    parts += [f"**Claim.** {experiment.claim}", f"**Here.** {experiment.workload}"]
    parts += [f"**Verdict.** {verdict(outcome.findings)}"]
    for panel in outcome.panels:
        parts += [f"![{panel.title}]({FOLDER}/{panel.name}.svg)"]
        parts += [markdown(panel.table())] if panel.tabled else []
    parts += [markdown(table) for table in outcome.tables]
    return "\n\n".join(parts) + "\n"


def markdown(table: Table) -> str:
    """A table with its title and note; columns for targets only where there are some."""
    header = report.heading(table)
    rows = [report.cells(table, line) for line in table.lines]
    if not any(line.target for line in table.lines):
        header, rows = header[:-2], [row[:-2] for row in rows]
    parts = [f"{table.title}", report.markdown_table(header, rows)]
    return "\n\n".join([*parts, table.note] if table.note else parts)


def page(sections: Mapping[str, str], names: Sequence[str], facts: Mapping[str, str]) -> str:
    """All sections in the order of `names`, behind the facts that they share and a table of verdicts."""
    head = [
        "# The papers' experiments",
        "Made by `python -m benchmarks.papers`; do not edit by hand.",
        INTRODUCTION,
    ]
    head.append("\n".join(f"- {paper}: {title}" for paper, title in PAPERS.items()))
    head.append("\n".join(f"- {fact}: {value}" for fact, value in facts.items() if fact != "Date"))
    present = [name for name in names if name in sections]
    return "\n".join([*(f"{part}\n" for part in head), *(sections[name] for name in present)])


def publish(path: Path, fresh: Mapping[str, str], names: Sequence[str], facts: Mapping[str, str]) -> None:
    """Put these sections into the page at `path`, and leave the others there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = report.sections_of(path.read_text()) if path.exists() else {}
    path.write_text(page({**known, **fresh}, names, facts))

"""Results: tables in the terminal, a page for the docs with a summary in front, and JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

import windrow
from benchmarks.support.harness import Figure, Line, Table

OPEN, CLOSE = "<!-- benchmarks -->", "<!-- /benchmarks -->"
VERDICT = {True: "yes", False: "no", None: ""}

Results = Mapping[str, list[Table]]


def number(figure: Figure) -> str:
    """Three significant digits, without exponents; a whole number as it is."""
    if figure is None:
        return ""
    if isinstance(figure, str):
        return figure
    if isinstance(figure, int):
        return f"{figure:,}"
    if abs(figure) >= 100:
        return f"{figure:,.0f}"
    return f"{figure:.1f}" if abs(figure) >= 10 else f"{figure:.2f}"


def cells(table: Table, line: Line) -> list[str]:
    figures = [number(line.figures.get(column)) for column in table.columns]
    return [line.name, *figures, str(line.target or ""), VERDICT[line.met]]


def heading(table: Table) -> list[str]:
    return ["", *table.columns, "target", "met"]


def show(console: Console, table: Table) -> None:
    """Print one table."""
    shown = RichTable(title=table.title, title_justify="left", caption=table.note, caption_justify="left")
    for position, column in enumerate(heading(table)):
        shown.add_column(column, justify="right" if position else "left")
    for line in table.lines:
        style = {True: "green", False: "red", None: None}[line.met]
        *plain, verdict = cells(table, line)
        shown.add_row(*plain, f"[{style}]{verdict}[/]" if style else verdict)
    console.print(shown)
    console.print()


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows))


def section(name: str, tables: list[Table], command: str, date: str, introduction: str) -> str:
    """The result of one benchmark in Markdown, and how it was made."""
    parts = [f"## {name}", f"`{command}`, {date}", introduction]
    for table in tables:
        parts += [f"### {table.title}"]
        parts += [markdown_table(heading(table), [cells(table, line) for line in table.lines])]
        parts += [table.note] if table.note else []
    return "\n\n".join(parts) + "\n"


def sections_of(page: str) -> dict[str, str]:
    """The sections of a page by name, so that some can be made anew and the others kept."""
    texts = ("\n" + page).split("\n## ")[1:]
    return {text.partition("\n")[0]: f"## {text.rstrip()}\n" for text in texts}


def page(sections: Iterable[str], machine: Mapping[str, str]) -> str:
    """The sections as a Markdown page, below the facts that all of them share."""
    head = ["# Benchmarks", "Made by the commands that stand below; do not edit by hand."]
    head.append("\n".join(f"- {fact}: {value}" for fact, value in machine.items() if fact != "Date"))
    head.append(
        "windrow runs on one thread unless said. Contenders take turns in one run and each keeps its best "
        "time; compilation is left out except under *startup*. The *limit* is one pass of `numpy.sum` "
        "over the same columns."
    )
    return "\n".join([*(f"{part}\n" for part in head), *sections])


def summary(results: Results, machine: Mapping[str, str], command: str) -> str:
    """The headlines of all tables as one small Markdown table."""
    rows = []
    for table in (table for tables in results.values() for table in tables):
        for line in (line for line in table.lines if line.headline):
            beside = line.figures.get(table.beside) if table.beside else None
            compared = f"{number(beside)} ({table.beside})" if beside is not None else ""
            ours = f"{number(line.figures[table.ours])} {table.ours}"
            rows.append(
                [f"{table.title}: {line.name}", ours, compared, str(line.target or ""), VERDICT[line.met]]
            )
    header = ["", "windrow", "beside", "target", "met"]
    return f"{markdown_table(header, rows)}\n\n`{command}` on {machine['CPU']}, {machine['Date']}."


def for_programs(results: Results, scale: str) -> str:
    """All tables by question as JSON, and the file of the windrow that was measured."""
    tables = {name: [asdict(table) for table in tables] for name, tables in results.items()}
    measured = {"windrow": windrow.__file__, "scale": scale, "questions": tables}
    return json.dumps(measured, indent=1, default=lambda figure: figure.item())  # NumPy's numbers


def halves(path: Path) -> tuple[str, str]:
    """What stands before and after the two marker comments in a page."""
    before, opened, rest = path.read_text().partition(OPEN)
    _, closed, after = rest.partition(CLOSE)
    if not (opened and closed):
        raise ValueError(f"{path} needs the comments {OPEN} and {CLOSE}, in this order, around its figures")
    return before, after


def embed(path: Path, text: str) -> None:
    """Replace what stands between the two marker comments in a page."""
    before, after = halves(path)
    path.write_text(f"{before}{OPEN}\n\n{text}\n\n{CLOSE}{after}")

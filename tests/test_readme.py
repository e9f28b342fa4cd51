"""The examples of the README run, and give what it says they give."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parents[1] / "README.md"
# Where the benchmarks have written the figures of the README: the page, and the beginning of the row there.
FIGURES = {
    "20 windows over one stream, events per second": ("benchmarks.md", "20 windows, in order"),
    "60 s every 1 s over 100 keys, one thread": (
        "benchmarks.md",
        "batch job, 100 keys, sliding 60 s every 1 s",
    ),
    "the same as a Spark stream, 100,000 keys, rows per second": (
        "spark.md",
        "stream, sliding 60 s every 1 s, 100,000 keys",
    ),
}
# An example, and the table that it ends with if it shows one.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n((?:^\|[^\n]*\n)+))?", re.MULTILINE | re.DOTALL)


def rendered(rows: list[dict[str, Any]]) -> str:
    """Rows as a table of Markdown, floats to one digit."""
    shown = [[f"{v:.1f}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows]
    lines = [list(rows[0]), ["---"] * len(rows[0]), *shown]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def test_the_examples_of_the_readme_give_the_tables_that_follow_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(README.parent)
    namespace: dict[str, Any] = {}
    shown = []
    for source, table in BLOCK.findall(README.read_text("utf-8")):
        exec(compile(source, str(README), "exec"), namespace)
        if table:
            assert table == rendered(namespace["worst"].to_pylist())
            shown.append(table)
    assert len(shown) == 1, "one example of the README shows its result"


def first_number(cell: str) -> float:
    """The number with which a cell begins, as it is written: 889 for "889 M"."""
    found = re.match(r" *([\d,.]+)", cell)
    assert found is not None, cell
    return float(found[1].replace(",", ""))


def test_the_figures_of_the_readme_are_those_of_the_benchmarks() -> None:
    table = README.read_text("utf-8").partition("## Three figures\n")[2].partition("\n## ")[0]
    shown = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")][1:]
    assert {name.strip() for name, *_ in shown} == set(FIGURES)
    for name, ours, rival, command in shown:
        page, begin = FIGURES[name.strip()]
        text = (README.parent / "docs" / page).read_text("utf-8")
        _, measured, beside, *_ = next(
            line.strip("|").split("|") for line in text.splitlines() if line.startswith(f"| {begin}")
        )
        assert first_number(ours) == first_number(measured), name
        assert first_number(rival) == first_number(beside), name
        assert command.strip(" `") in text, f"{page} has figures of another command"


def test_the_files_that_the_readme_links_to_exist() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README.read_text("utf-8"))
    assert targets
    assert [target for target in targets if not (README.parent / target).exists()] == []

"""The examples of the README run, and give what it says they give."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).parents[1] / "README.md"
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


def test_the_files_that_the_readme_links_to_exist() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README.read_text("utf-8"))
    assert targets
    assert [target for target in targets if not (README.parent / target).exists()] == []

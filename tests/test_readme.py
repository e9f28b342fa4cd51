"""The examples of the README run, and print what it says they print."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


def test_the_python_blocks_of_the_readme_print_what_follows_them():
    namespace: dict[str, object] = {}
    compared = 0
    for source, expected in BLOCK.findall(README.read_text("utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, str(README), "exec"), namespace)
        if expected:
            assert printed.getvalue() == expected
            compared += 1
    assert compared >= 1, "no example of the README shows its output"


def test_the_files_that_the_readme_links_to_exist():
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README.read_text("utf-8"))
    assert targets
    assert [target for target in targets if not (README.parent / target).exists()] == []

"""The documentation is a site that can be built without a warning, and its reference knows every public name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import windrow as wr

ROOT = Path(__file__).parents[1]


def test_the_site_is_built_without_a_warning_and_all_of_its_links_lead_somewhere(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr + built.stdout
    page = (tmp_path / "reference" / "windows" / "index.html").read_text("utf-8")
    assert 'id="windrow.windows.tumbling.tumbling"' in page
    assert "Parameters:" in page


def test_the_reference_has_every_public_function():
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    described = set(re.findall(r"^::: (\S+)$", pages, re.MULTILINE))
    functions = {name: getattr(wr, name) for name in wr.__all__ if name.islower()}
    assert [n for n, f in functions.items() if f"{f.__module__}.{f.__qualname__}" not in described] == []

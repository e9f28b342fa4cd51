"""What is said of the distribution is true: its name, its version, and the versions that it runs on.

The name `windrow` belongs to somebody else where packages are published: who is told to install it gets something else.
"""

from __future__ import annotations

import ast
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import windrow as wr
from windrow.spark.compatibility import SUPPORTED

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAME = PROJECT["name"]
EXTRAS = PROJECT["optional-dependencies"]
PYTHONS = [found[1] for name in PROJECT["classifiers"] if (found := re.fullmatch(r".*:: (3\.\d+)", name))]
# What a command that installs something calls it, up to the end of the command.
INSTALL = re.compile(r"\b(?:pip3?|pipx|uv|poetry|conda|mamba) (?:pip )?(?:install|add)\b([^`#;|&\n]*)")
# Somebody else's distribution, with extras of ours.
FOREIGN = re.compile(r"(?<![\w.-])windrow\[[a-z, ]+\]")


def texts() -> Iterator[tuple[str, str]]:
    """Everything that people read: docs, messages, metadata."""
    folders = ("src", "docs", "examples", "benchmarks", "tests", "tools", ".ci")
    paths = [path for path in ROOT.iterdir() if path.is_file()]
    paths += [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in paths:
        if path.suffix in (".py", ".md", ".toml", ".txt", ".yaml", ".sh", "") and path != Path(__file__):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8", errors="ignore")


def requirements(told: str) -> list[str]:
    """What is to be installed, of the rest of a line."""
    try:
        words = shlex.split(told)
    except ValueError:  # a quote that the text around the command has opened
        words = told.replace("'", " ").replace('"', " ").split()
    found = []
    for word in words:
        word = word.rstrip(",.:)}")
        if word in ("or", "and", "in", "with"):
            break
        if word and not word.startswith("-") and not word.startswith("$(") and word != "constraints.txt":
            found.append(word)
    return found


def is_ours(requirement: str) -> bool:
    found = re.fullmatch(rf"(\.|{re.escape(NAME)})?(?:\[([\w,]+)\])?", requirement or ".")
    return found is not None and set((found[2] or "").split(",")) - {""} <= set(EXTRAS)


def test_no_line_installs_what_is_not_ours() -> None:
    lines = [(path, found[1]) for path, text in texts() for found in INSTALL.finditer(text)]
    assert len(lines) >= 5, "the lines that install windrow are not found any more"
    wrong = [(path, told) for path, told in lines if not all(map(is_ours, requirements(told)))]
    assert not wrong


def test_no_requirement_is_of_somebody_elses_distribution() -> None:
    assert not [(path, found[0]) for path, text in texts() for found in FOREIGN.finditer(text)]


@pytest.mark.parametrize(
    ("told", "ours"),
    [
        (" windrow", False),
        (" 'windrow[cli]'", False),
        (" -U windrow==0.2.0", False),
        (" .", True),
        (' ".[spark]"', True),
        (" 'windrow-stream[cli]', or '.[cli]' in a clone", True),
        (" 'windrow-stream[nothing]'", False),
    ],
)
def test_lines_that_install_are_told_apart(told: str, ours: bool) -> None:
    assert all(map(is_ours, requirements(told))) is ours


def test_extras_that_need_others_name_this_distribution() -> None:
    needed = [need for needs in EXTRAS.values() for need in needs if need.startswith("windrow")]
    assert needed
    assert all(map(is_ours, needed))


def test_the_version_is_that_of_the_newest_section_of_the_changelog() -> None:
    heading = re.search(r"^## \[(.+?)\] - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert heading is not None
    assert heading[1] == wr.__version__
    assert "version" in PROJECT["dynamic"]


def test_the_metadata_says_who_and_invents_no_address() -> None:
    assert all(author["name"] for author in PROJECT["authors"])
    assert "urls" not in PROJECT


def test_classifiers_and_requires_python_name_the_same_versions() -> None:
    least, limit = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", PROJECT["requires-python"]).groups()  # type: ignore[union-attr]
    assert [f"3.{minor}" for minor in range(int(least), int(limit))] == PYTHONS
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in PYTHONS
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert tools["mypy"]["python_version"] == PYTHONS[0]
    assert tools["ruff"]["target-version"] == PYTHONS[0].replace("3.", "py3")
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]}" in (ROOT / "Makefile").read_text()


def test_the_spark_extra_takes_the_versions_that_are_supported() -> None:
    (spark,) = [need for need in EXTRAS["spark"] if need.startswith("pyspark")]
    major, last = SUPPORTED[-1].split(".")
    assert spark == f"pyspark[connect]>={SUPPORTED[0]},<{major}.{int(last) + 1}"


def test_docs_name_the_versions_that_are_supported() -> None:
    told = (ROOT / "docs" / "spark.md").read_text()
    assert f"PySpark {', '.join(SUPPORTED[:-1])} and {SUPPORTED[-1]}" in told
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]}" in told


def test_each_version_that_is_claimed_is_tested() -> None:
    tree = ast.parse((ROOT / "tests" / "versions" / "environments.py").read_text())
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("SPARK", "ENVIRONMENTS")
    }
    assert {python for python, _ in values["ENVIRONMENTS"]} == set(PYTHONS)
    assert {spark for _, spark in values["ENVIRONMENTS"]} == set(SUPPORTED) == set(values["SPARK"])

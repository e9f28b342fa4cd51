"""What is shipped is the product: the wheel has the package and nothing else, and works by itself.

It is built from a copy of what a wheel is made of, so that nothing stays beside the sources, and installed, with what it
needs and no extras, into a virtual environment that has nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.test_readme import BLOCK, README, rendered

ROOT = Path(__file__).parents[1]
# Rivals of the papers, the referee, and a server for tests.
NOT_SHIPPED = {"techniques", "benchmarks", "tests", "tools", "referee", "oracle", "strategies", "broker"}


def run(*command: object, cwd: Path) -> str:
    """What a command prints that finds no package but those of its own environment."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, source, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_has_the_package_and_its_types_and_nothing_that_tests_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"windrow", wheel.name.split("-")[0]}
    assert "windrow/py.typed" in names
    assert "windrow/testing/windows.py" in names
    assert [name for name in names if NOT_SHIPPED & set(re.split(r"[/_.]", name))] == []


def test_docs_call_the_wheel_by_its_name(wheel: Path) -> None:
    texts = [
        path.read_text("utf-8") for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "Makefile")
    ]
    patterns = [found for text in texts for found in re.findall(r"[\w.*-]+\.whl\b", text)]
    assert patterns
    assert [pattern for pattern in patterns if not fnmatch(wheel.name, pattern)] == []


def test_the_first_example_of_the_readme_runs_where_only_the_wheel_is_installed(
    wheel: Path, tmp_path: Path
) -> None:
    source, table = BLOCK.findall(README.read_text("utf-8"))[0]
    told = "\nimport json\nprint(json.dumps(worst.to_pylist(), default=str))\n"
    (tmp_path / "example.py").write_text(source + told, "utf-8")
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "storm.csv", tmp_path / "examples")
    venv.create(tmp_path / "empty", with_pip=False)
    python = tmp_path / "empty" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile"]
    run(*pip, "-c", ROOT / "constraints.txt", wheel, cwd=tmp_path)
    packages = run(
        python, "-c", "import pkgutil; print(*(m.name for m in pkgutil.iter_modules()))", cwd=tmp_path
    )
    assert not {"pyspark", "pandas", "yaml", "hypothesis"} & set(packages.split())
    assert rendered(json.loads(run(python, "-W", "error", "example.py", cwd=tmp_path))) == table

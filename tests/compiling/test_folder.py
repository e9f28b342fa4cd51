"""Compiled code is kept where it can be; where it cannot, windrow runs all the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "windrow"
BEGIN = """
import sys
sys.path.insert(0, sys.argv[1])
import windrow as wr
from windrow.compiling.folder import cache_directory
print(wr.__file__)
"""
QUERY = (
    BEGIN
    + """
import pyarrow as pa
from windrow.engine.aligned.cutting import in_order
query = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
print(query.run(pa.table({"ts": [1, 2, 7]}))["n"].to_pylist())
print(cache_directory())
print(sum(in_order.native.stats.cache_hits.values()))
"""
)
CHANGED = (
    BEGIN
    + """
from windrow.engine.loop_of_a_test import shown
print(shown(2))
"""
)
LOOP = """
from windrow.compiling.tiers import jit
from windrow.engine.constant_of_a_test import FACTOR, plus

@jit
def shown(x):
    return plus(x) * FACTOR
"""
CALLED = """
from windrow.compiling.tiers import jit
FACTOR = {factor}

@jit
def plus(x):
    return x + {more}
"""


def lines(script, package, home):
    """What a script prints, with windrow from this place and as a user with this home."""
    chosen = ("WINDROW_CACHE_DIR", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in chosen}
    environment |= {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", "WINDROW_TIER": "compiled"}
    command = [sys.executable, "-c", script, str(package)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    where, *printed = done.stdout.splitlines()
    assert where.startswith(str(package))
    return printed


def run(package, home):
    """A small query; the folder in which loops are kept, and how often one was found in the cache."""
    answer, directory, hits = lines(QUERY, package, home)
    assert answer == "[2, 1]"
    return directory, int(hits)


@pytest.fixture
def nowhere(tmp_path):
    """A home that cannot be made, not even by an administrator: there is a file in its place."""
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    return blocked / "home"


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("sent") / "windrow.zip"
    with zipfile.ZipFile(path, "w") as file:
        for module in sorted(SOURCE.rglob("*.py")):
            file.write(module, module.relative_to(SOURCE.parent))
    return path


@pytest.fixture
def package(tmp_path):
    """The package in a folder of its own."""
    copy = tmp_path / "package"
    shutil.copytree(SOURCE, copy / "windrow", ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture
def read_only(package):
    """The package in a folder in which no `__pycache__` can be made."""
    for folder in [package / "windrow", *(p for p in (package / "windrow").rglob("*") if p.is_dir())]:
        (folder / "__pycache__").write_text("")
    return package


def test_an_archive_runs_and_keeps_what_it_compiled(archive, tmp_path):
    directory, hits = run(archive, tmp_path)
    assert directory.startswith(str(tmp_path / ".cache" / "windrow"))
    assert list(Path(directory).glob("in_order-*.bin"))
    assert hits == 0
    assert run(archive, tmp_path) == (directory, 1)


def test_all_compiled_code_lies_in_one_folder(package, tmp_path):
    directory, _ = run(package, tmp_path)
    kept = {path.suffix for path in tmp_path.rglob("*") if path.is_file() and package not in path.parents}
    assert kept == {".bin", ""}
    assert [
        path.name
        for path in tmp_path.rglob("*")
        if path.is_file() and not path.suffix and package not in path.parents
    ] == ["locks"]
    assert all(path.parent == Path(directory) for path in tmp_path.rglob("*.bin"))
    assert not [path for path in package.rglob("*") if path.suffix in (".nbi", ".nbc", ".bin")]


def test_an_archive_runs_where_nothing_can_be_kept(archive, nowhere):
    assert run(archive, nowhere) == ("None", 0)


def test_a_read_only_package_runs_where_nothing_can_be_kept(read_only, nowhere):
    assert run(read_only, nowhere) == ("None", 0)


def test_what_another_file_gives_to_a_loop_is_not_taken_from_the_cache_once_it_changes(package, tmp_path):
    engine = package / "windrow" / "engine"
    (engine / "loop_of_a_test.py").write_text(LOOP)
    seen = []
    for factor, more in [(10, 1), (20, 1), (20, 5), (10, 1)]:
        (engine / "constant_of_a_test.py").write_text(CALLED.format(factor=factor, more=more))
        seen += lines(CHANGED, package, tmp_path / "home")
    assert seen == ["30", "60", "140", "30"]

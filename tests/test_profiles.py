"""What Hypothesis tries: the same in every run of `make test`, something new in each of `make test-nightly`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import profiles

DRAWS = """
import json
from profiles import examples
from hypothesis import given, strategies as st
drawn = []

@examples(7)
@given(st.integers())
def draw(number):
    drawn.append(number)

draw()
print(json.dumps(drawn))
"""
FAILS = """
import profiles
from hypothesis import given, strategies as st

@given(st.integers())
def fail(number):
    assert number < 100

fail()
"""


def ran(program: str, folder: Path, *, nightly: bool) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, with what it keeps in the folder."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(profiles.__file__).parent),
        "WINDROW_NIGHTLY": "1" if nightly else "0",
    }
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_examples_are_the_same_in_every_run(tmp_path: Path) -> None:
    first, second = (ran(DRAWS, tmp_path, nightly=False).stdout for _ in range(2))
    assert first == second
    assert len(json.loads(first)) == 7


def test_nightly_runs_try_more_examples_and_others_each_time(tmp_path: Path) -> None:
    first, second = (ran(DRAWS, tmp_path, nightly=True).stdout for _ in range(2))
    assert first != second
    assert len(json.loads(first)) == 70


def test_what_a_nightly_run_has_found_can_be_repeated_anywhere(tmp_path: Path) -> None:
    failed = ran(FAILS, tmp_path, nightly=True)
    assert failed.returncode != 0
    assert "@reproduce_failure(" in failed.stderr
    assert any((tmp_path / ".hypothesis" / "examples").rglob("*"))

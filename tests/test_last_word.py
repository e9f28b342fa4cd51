"""The output of a test run ends with the summary of the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# An object that is referred to for ever, as some are in a long run.
PROGRAM = """
import ctypes, duckdb, sys
sys.path.insert(0, sys.argv[1])
import conftest
ctypes.pythonapi.Py_IncRef(ctypes.py_object(duckdb.connect()))
print("5740 passed", file=sys.stderr)
"""


def test_what_duckdb_lists_when_the_interpreter_ends_is_not_printed() -> None:
    command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stderr == "5740 passed\n"

"""A bar is shown to who sits at a terminal and waits, and to nobody else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pty = pytest.importorskip("pty", reason="terminals are opened as Unix has them")

RUN = """
import pyarrow as pa
import windrow as wr
from windrow.inputs import progress, run

progress.PATIENCE = 0  # as if a second had gone by
query = wr.query(time="t", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
print(query.run(pa.table({"t": [1, 2, 7]}))["n"].to_pylist())
"""


def said(terminal: bool, **environment: str) -> str:
    """What is written to stderr, which is a terminal or is not."""
    here, there = pty.openpty()
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=there if terminal else subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", **environment},
        check=True,
    )
    assert done.stdout.split() == b"[2, 1]".split()
    os.close(there)
    if not terminal:
        os.close(here)
        return done.stderr.decode()
    written = b""
    try:
        while part := os.read(here, 1 << 16):
            written += part
    except OSError:  # nothing more, and nobody writes
        pass
    os.close(here)
    return written.decode()


def test_a_terminal_shows_what_is_done():
    assert "rows answered" in said(True)


def test_a_file_a_pipe_and_a_quiet_terminal_show_nothing():
    assert said(False) == ""
    assert said(True, WINDROW_QUIET="1") == ""

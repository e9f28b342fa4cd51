"""Jobs that are killed in the middle of what they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


@contextmanager
def killed_at_last(command: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The job in a process group of its own, its JVM included, which is killed in the end."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def reach(process: subprocess.Popen[bytes], happened: Callable[[], bool]) -> None:
    """Come back as soon as it has happened; looking takes the place of waiting."""
    while not happened():
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.002)
            pytest.fail(f"the job ended with {process.returncode} before it could be killed")

"""The cache of compiled loops: with several processes, without a place, in a folder that is read-only, full or damaged."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from contextlib import suppress

import pytest
from patience import PATIENCE

PROGRAM = """
import pyarrow as pa, pyarrow.compute as pc, windrow as wr
table = pa.table({"t": range(50), "k": [i % 3 for i in range(50)], "x": [i % 7 for i in range(50)]})
windows = {"s": wr.session(5), "h": wr.threshold(pc.field("x") > 2)}
q = wr.query(time="t", key="k", windows=windows, aggregates={"n": wr.count()})
print(sorted(map(str, q.run(table).to_pylist())))
"""


ONE_LOOP = """
import numpy as np
from windrow.engine.aligned.cutting import in_order
print(in_order(np.arange(5)))
"""
# To the administrator nothing is read-only, and no test fills a disk: so files that cannot be written are imitated.
CANNOT_WRITE = """
import errno, pathlib
def write_bytes(self, data):
    raise OSError(errno.{error}, "no")
pathlib.Path.write_bytes = write_bytes
"""


def started(directory, program=PROGRAM):
    """A process of its own with this cache."""
    environment = {**os.environ, "WINDROW_CACHE_DIR": str(directory), "WINDROW_TIER": "compiled"}
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def output_of(process):
    out, problems = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, problems[-500:]
    return out


def test_processes_share_a_cache_of_kernels_whatever_happens_to_one_of_them(tmp_path):
    killed = started(tmp_path / "shared")
    while not any((tmp_path / "shared").rglob("*.bin")):  # it has compiled a loop, and is at the next
        with suppress(subprocess.TimeoutExpired):
            assert killed.wait(0.01) is None, "it ended before it could be killed"
    killed.kill()
    killed.communicate()
    both = [started(tmp_path / "shared"), started(tmp_path / "shared")]
    first, second = map(output_of, both)
    assert first == second == output_of(started(tmp_path / "shared"))


def test_a_cache_that_cannot_be_made_is_done_without(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert "'window': 's'" in output_of(started(tmp_path / "file"))


@pytest.mark.parametrize("error", ["EROFS", "ENOSPC"])
def test_a_folder_that_takes_no_files_is_done_without(tmp_path, error):
    assert output_of(started(tmp_path, CANNOT_WRITE.format(error=error) + ONE_LOOP)) == "True\n"
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"locks"}


def foreign(_: bytes) -> bytes:
    """A file that is whole, and no code."""
    return hashlib.sha256(b"no code").digest() + b"no code"


@pytest.mark.parametrize(
    "damage", [lambda b: b"", lambda b: b[:-9], lambda b: b[:99] + b"?" + b[100:], foreign]
)
def test_what_is_damaged_is_compiled_anew(tmp_path, damage):
    first = output_of(started(tmp_path, ONE_LOOP))
    (kept,) = tmp_path.rglob("*.bin")
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    assert output_of(started(tmp_path, ONE_LOOP)) == first == "True\n"
    assert len(kept.read_bytes()) == len(whole)

"""The cache of compiled loops, with several processes or without a place."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

from patience import PATIENCE

PROGRAM = """
import pyarrow as pa, pyarrow.compute as pc, windrow as wr
table = pa.table({"t": range(50), "k": [i % 3 for i in range(50)], "x": [i % 7 for i in range(50)]})
windows = {"s": wr.session(5), "h": wr.threshold(pc.field("x") > 2)}
q = wr.query(time="t", key="k", windows=windows, aggregates={"n": wr.count()})
print(sorted(map(str, q.run(table).to_pylist())))
"""


def started(directory):
    """A process of its own with this cache."""
    environment = {**os.environ, "WINDROW_CACHE_DIR": str(directory)}
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def output_of(process):
    out, problems = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, problems[-500:]
    return out


def test_processes_share_a_cache_of_kernels_whatever_happens_to_one_of_them(tmp_path):
    killed = started(tmp_path / "shared")
    while not any((tmp_path / "shared").rglob("*.nbi")):  # it has compiled a loop, and is at the next
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

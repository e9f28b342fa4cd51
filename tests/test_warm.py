"""`windrow warm`: who runs the query afterwards compiles nothing, also with code for any processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from windrow.cli.main import main

PIPELINE = """\
source: {files: events, schema: "ts timestamp, user string, amount double"}
watermark: 10 seconds
query:
  time: ts
  key: user
  windows: {10s: {tumbling: 10 seconds}}
  aggregates: {n: count, total: {sum: amount}}
sink: {console: {}}
"""
RUN = """
import gc, numpy as np, pyarrow as pa, windrow as wr
from windrow.compiling.tiers import Kernel
times = pa.array(np.arange(3_000) * 10**6, pa.timestamp("us", "UTC"))
table = pa.table({"ts": times, "user": ["a", "b", "c"] * 1_000, "amount": np.arange(3_000.0)})
aggregates = {"n": wr.count(), "total": wr.sum("amount")}
op = wr.query(time="ts", key="user", windows={"w": wr.tumbling("10 seconds")}, aggregates=aggregates).operator()
op.process(table)
op.finish()
loops = [k.native for k in gc.get_objects() if isinstance(k, Kernel) and "native" in vars(k)]
print(sum(len(loop.stats.cache_hits) for loop in loops) > 5, sum(sum(loop.stats.cache_misses.values()) for loop in loops))
"""


@pytest.mark.parametrize("portable", [False, True])
def test_a_query_that_was_warmed_compiles_nothing(tmp_path, monkeypatch, portable):
    (tmp_path / "query.yaml").write_text(PIPELINE)
    command = [sys.executable, "-W", "error", "-m", "windrow", "warm", str(tmp_path / "query.yaml")]
    carried, own = tmp_path / "carried", tmp_path / "own"
    where = {"WINDROW_CACHE_DIR": str(own if portable else carried), "WINDROW_TIER": "auto"}
    more = ["--portable", str(carried)] if portable else []
    warmed = subprocess.run(
        command + more, env=os.environ | where, capture_output=True, text=True, check=True
    )
    assert f"loops in {carried}" in warmed.stdout
    assert not list(own.rglob("*.bin"))
    folders = {"WINDROW_CACHE_DIR": f"{own}{os.pathsep}{carried}", "WINDROW_TIER": "compiled"}
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=os.environ | folders, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "0"]


def test_warm_takes_a_file_or_all(capsys):
    assert main(["warm"]) == 2
    assert main(["warm", str(Path("q.yaml")), "--all"]) == 2
    assert capsys.readouterr().err.count("takes the file of a pipeline, or --all") == 2

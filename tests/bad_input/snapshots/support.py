"""Snapshots taken apart and put together again, as a forger would; and processes that may crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from patience import PATIENCE

from windrow.engine.snapshot import format as frame
from windrow.engine.snapshot.parts import BODY
from windrow.engine.snapshot.plan import plan_hash


def parts_of(state):
    table = pa.ipc.open_stream(state[frame.HEADER.size :]).read_all()
    return {row["name"]: (row["dtype"], row["data"]) for row in table.to_pylist()}


def stream_of(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def sealed(body, query, version=frame.VERSION):
    """A body with a header that fits it: what only a forger, or another program, would write."""
    plan = plan_hash(query)
    checksum = frame.checksum(version, plan, body)
    header = frame.HEADER.pack(frame.MAGIC, version, plan, len(body), checksum)
    return header + body


def bound(parts, query):
    """Parts as the snapshot of a query."""
    names = list(parts)
    columns = [names, [parts[n][0] for n in names], [parts[n][1] for n in names]]
    return sealed(stream_of(pa.table(columns, schema=BODY)), query)


def changed(at, value):
    """A change of one entry."""

    def change(array):
        array = array.copy()
        array[at] = value
        return array

    return change


def backwards(array):
    return array[::-1].copy()


def in_a_process(call, file):
    """Make a call of the `module` in a file, in a process of its own: what gets through may crash it.

    What it prints last says how far it came.
    """
    program = f"""
import importlib.util, sys
sys.path[:0] = {list(map(str, Path(__file__).parents[2:4]))!r}
spec = importlib.util.spec_from_file_location("forged", {file!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
{call}
"""
    ended = subprocess.run([sys.executable, "-c", program], timeout=PATIENCE, capture_output=True, text=True)
    where = ended.stdout.splitlines()[-1:]
    assert ended.returncode == 0, f"ended with {ended.returncode} at {where}: {ended.stderr[-300:]}"

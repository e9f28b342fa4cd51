"""Snapshots of earlier formats, as files that windrow wrote then: they are read, or refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

import windrow as wr

GOLDEN = Path(__file__).parents[1] / "golden"
AGGREGATES = {"n": wr.count(), "x": wr.sum("v"), "m": wr.median("v"), "s": wr.first("s")}


def query(**windows: wr.Window) -> wr.Query:
    return wr.query(time="t", key="k", windows=windows, aggregates=AGGREGATES)


def test_windows_of_time_of_version_3_go_on():
    """Six events of keys x and y at 1, 2, 7, 12, 13 and 21, and two more at 12 and 13; update mode, watermark 14."""
    windows = query(a=wr.tumbling(5), b=wr.sliding(9, every=2))
    operator = windows.restore((GOLDEN / "version-3-windows-of-time.snapshot").read_bytes())
    rows = operator.finish().to_pylist()
    found = {(r["k"], r["start"]): (r["n"], r["x"], r["m"], r["s"]) for r in rows if r["window"] == "a"}
    assert found == {("x", 10): (2, 8, 4.0, "d"), ("y", 10): (2, 10, 5.0, "e"), ("x", 20): (1, 6, 6.0, "f")}


def test_sessions_of_version_3_are_refused():
    with pytest.raises(
        wr.StateError, match="sessions, or windows that depend on the order of events, in format version 3"
    ):
        query(a=wr.session(5)).restore((GOLDEN / "version-3-session.snapshot").read_bytes())

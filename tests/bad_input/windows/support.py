"""The queries of these tests, which list the events of each window, and events for them."""

from __future__ import annotations

import pyarrow as pa

import windrow as wr

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
FOUR = [0, 10, 20, 30]
# Windows of each way to keep slices, for tests of the life of an operator.
LIVES = [wr.session(5), wr.session("g"), wr.tumbling(rows=2), wr.snapshot(), wr.latest(rows=2, every=5)]


def query(window, *, aggregates=None, **parts):
    """A query over `t` with one window, or several by name, that counts events and lists their `i`."""
    windows = window if isinstance(window, dict) else {"w": window}
    computed = aggregates or {"n": wr.count(), "ids": wr.collect("i")}
    return wr.query(time="t", windows=windows, aggregates=computed, **parts)


def events(t, **columns):
    """Events at these times; `i` numbers them from 0 unless it is given."""
    return pa.table({"t": t, "i": list(range(len(t))), **columns})


def content(table):
    """(start, end, events) of each row, sorted."""
    return sorted((row["start"], row["end"], tuple(row["ids"])) for row in table.to_pylist())


def signals(times):
    """Six events of two keys with all columns that `SEQUENCES` read."""
    return pa.table(
        {
            "time": times,
            "key0": [1, 1, 2, 1, 1, 2],
            "i": range(6),
            "gap": [2, 4, 4, 3, 2, 5],
            "km": [0, 3, 1, 5, 9, 9],
            "mark": [True, False, None, True, False, True],
            "level": [1.0, -1.0, 0.0, 3.0, None, 2.0],
            "v": [1, 0, -1, 2, 1, 1],
        }
    )


def stay(state, i):
    """A step that never begins a window."""
    return state, 0, 0


def own(step, state=0):
    return wr.deterministic(step, state=state)

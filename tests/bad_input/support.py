"""The queries of these tests: a tumbling window over `ts`."""

from __future__ import annotations

import pyarrow as pa

import windrow as wr


def query(**parts):
    """A query over `ts` with one tumbling window of 10 and a count, unless said otherwise."""
    usual = {"time": "ts", "windows": {"w": wr.tumbling(10)}, "aggregates": {"n": wr.count()}}
    return wr.query(**{**usual, **parts})


def stream(**parts):
    return query(**parts).operator()


def times(values, type_=None):
    return pa.table({"ts": pa.array(values, type_ or pa.int64())})


def counts(table):
    return {(row["start"], row["end"]): row["n"] for row in table.to_pylist()}

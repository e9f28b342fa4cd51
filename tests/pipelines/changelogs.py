"""Random changelogs of windows, as a sink of tables gets them."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyspark.sql.types import DoubleType, LongType, StringType

from windrow.pipelines.spec import IDENTITY
from windrow.pipelines.upsert import Changes

TYPES = {
    "k": StringType(),
    "window": StringType(),
    "start": LongType(),
    "end": LongType(),
    "x": DoubleType(),
    "op": StringType(),
    "revision": LongType(),
}
NAMES = [name for name in TYPES if name != "op"]
KEYS = [None, "", "a", '"quoted", \\N and\nbroken']
VALUES = [None, 0.1, -0.0, 1e300, float("inf")]

Row = dict[str, Any]


@st.composite
def changelogs(draw: st.DrawFn) -> list[Row]:
    """Changes of a few rows, as an operator gives them out: what is there is updated or deleted, what is not inserted."""
    luck = random.Random(draw(st.integers(0, 10_000)))
    there: dict[tuple[Any, ...], int] = {}
    revisions: dict[tuple[Any, ...], int] = {}
    log: list[Row] = []
    for _ in range(draw(st.integers(1, 25))):
        identity = (luck.choice(KEYS), "w", luck.randrange(2), 5)
        copies = there.get(identity, 0)
        op = luck.choice(["update", "delete"][copies != 1 :]) if copies else "insert"
        together = luck.choice([1, 1, 2]) if op == "insert" else 1
        revisions[identity] = revisions.get(identity, -1) + 1
        for _ in range(together):
            value = None if op == "delete" else luck.choice(VALUES)
            row = dict(zip(("k", "window", "start", "end"), identity, strict=True))
            log.append({**row, "x": value, "op": op, "revision": revisions[identity]})
        there[identity] = {"insert": together, "update": 1, "delete": 0}[op]
    return log


def changes(rows: list[Row]) -> Changes:
    types = {"x": pa.float64(), "start": pa.int64(), "end": pa.int64(), "revision": pa.int64()}
    table = pa.table(
        {name: pa.array([r[name] for r in rows], types.get(name, pa.string())) for name in TYPES}
    )
    identity = [f"{hash((r['k'], r['window'], r['start'], r['end'])) % 2**128:032x}" for r in rows]
    return Changes(table.append_column(IDENTITY, pa.array(identity, pa.string())), None, TYPES)

"""How fast do rows for empty windows, an order and labels come, beside a copy of as many rows?

*fill* makes the rows between those of tumbling windows over 100 keys, of which one in ten is there. *label* gives each event its tumbling window and its session.
*sort* puts rows in order. The copy is NumPy's, of as many rows of as many columns as come out.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

import windrow as wr
from benchmarks.support.harness import Figure, Line, Scale, Table, clocked, race
from windrow.outputs.fill import filled
from windrow.outputs.rows import in_order

KEYS, SPARSE = 100, 10


def rows_per_second(name: str, work: object, rows: int, columns: int, scale: Scale) -> Line:
    column = np.arange(rows)
    copy = clocked(lambda: [column.copy() for _ in range(columns)])
    best = race({"ours": clocked(work), "copy": copy}, scale)  # type: ignore[arg-type]
    figures: dict[str, Figure] = {
        "M rows/s": rows / best["ours"] / 1e6,
        "copy, M rows/s": rows / best["copy"] / 1e6,
        "copies": best["ours"] / best["copy"],
    }
    return Line(name, figures, headline=True)


def measure(scale: Scale) -> list[Table]:
    count = scale.events // 4
    random = np.random.default_rng(31)
    times = np.sort(random.integers(0, SPARSE * count // KEYS, count))
    events = pa.table({"t": times, "k": random.integers(0, KEYS, count), "x": random.integers(0, 9, count)})
    query = wr.query(
        time="t", key="k", windows={"w": wr.tumbling(1)}, aggregates={"n": wr.count(), "total": wr.sum("x")}
    )
    sparse = query.run(events)
    lines = []
    for value in (None, 0, "previous"):
        work = partial(filled, query, sparse, value)
        lines.append(rows_per_second(f"fill={value!r}", work, len(work()), len(sparse.column_names), scale))
    work = partial(in_order, query, sparse)
    lines.append(rows_per_second("sort", work, len(sparse), len(sparse.column_names), scale))
    for name, window in {"tumbling": wr.tumbling(50), "session": wr.session(15)}.items():
        labels = wr.query(time="t", key="k", windows={"w": window}, aggregates={"n": wr.count()})
        lines.append(rows_per_second(f"label, {name}", partial(labels.label, events), count, 3, scale))
    return [Table("Rows out", tuple(lines), ours="M rows/s", beside="copy, M rows/s")]

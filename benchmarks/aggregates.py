"""What do other aggregates cost?

The stream of *windows* with 20 windows in order, under one aggregate after another. The ratio is the
time against that of the aggregate named beside it, in the same run.
"""

from __future__ import annotations

from functools import partial

import numpy as np

import windrow as wr
from benchmarks.support.harness import Figure, Line, Scale, Table, at_most, clocked, race, rate
from benchmarks.support.streams import Stream, drain, drive, one_key
from benchmarks.windows import windows_query

OWN_MEAN = wr.aggregate(
    lift=lambda value: (value, 1),
    combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    lower=lambda a: a[0] / a[1],
    identity=(0, 0),
    name="mean of my own",
)
# What is timed, what it is compared with, and how many times as long it may take.
COMPARED = (
    ("mean", wr.mean("value"), "sum", 3.0),
    ("min", wr.min("value"), "sum", 3.0),
    ("max", wr.max("value"), "sum", 3.0),
    ("variance", wr.variance("value"), "sum", 3.0),
    ("M4", wr.m4("value"), "sum", 3.0),
    ("user-defined mean", OWN_MEAN, "mean", 1.3),
    ("float sum (compensated)", wr.sum("value"), "sum", 3.0),
)


def answers(query: wr.Query, stream: Stream) -> np.ndarray:
    return np.concatenate([table["a"].to_numpy(zero_copy_only=False) for table in drive(query, stream)])


def measure(scale: Scale) -> list[Table]:
    integers = one_key(scale.events, scale.batch)
    floats = one_key(scale.events, scale.batch, floating=True)
    queries = {"sum": (windows_query(20, {"a": wr.sum("value")}), integers)}
    for name, aggregate, _, _ in COMPARED:
        queries[name] = (windows_query(20, {"a": aggregate}), floats if "float" in name else integers)
    first = {name: answers(query, stream) for name, (query, stream) in queries.items()}
    np.testing.assert_array_equal(first["user-defined mean"], first["mean"])
    np.testing.assert_array_equal(first["float sum (compensated)"], first["sum"])

    contenders = {name: clocked(partial(drain, *job)) for name, job in queries.items()}
    best = race(contenders | {"limit": clocked(integers.limit)}, scale)
    lines = []
    for name, _, against, bound in (("sum", None, "sum", None), *COMPARED):
        figures: dict[str, Figure] = {
            "M events/s": rate(scale.events, best[name]),
            "limit, M/s": rate(scale.events, best["limit"]),
            "compared with": against,
            "time, ratio": best[name] / best[against],
        }
        target = at_most("time, ratio", bound) if bound else None
        lines.append(Line(name, figures, target, headline=target is not None))
    return [Table("Aggregates over 20 windows", tuple(lines), ours="M events/s", beside="time, ratio")]

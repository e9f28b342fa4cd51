"""The queries of section 10: so many concurrent windows of 1 to 20 seconds, and a session if asked for."""

from __future__ import annotations

import windrow as wr
from benchmarks.papers.experiment import Scale

NON_SLICING = ["aggregate buckets", "tuple buffer", "aggregate tree"]
LENGTHS = 20
GAP = "1 second"
LATE_SHARE, LONGEST_DELAY = 0.2, 2.0
THROUGHPUT = "events/s"
CONCURRENT = "concurrent windows"


def counts(scale: Scale) -> tuple[int, ...]:
    """How many windows run at once."""
    return scale.pick(tiny=(1, 20), small=(1, 10, 100, 1_000), full=(1, 5, 10, 20, 50, 100, 200, 500, 1_000))


def tumbling(count: int, unit: str = "second") -> dict[str, wr.Window]:
    """Windows of whole seconds, equally distributed between 1 and 20: each query has a window of its own."""
    lengths = [i % LENGTHS + 1 for i in range(count)]
    return {f"{i}: {n} {unit}s": wr.tumbling(f"{n} {unit}s") for i, n in enumerate(lengths)}


def counted(count: int, rows_per_second: int) -> dict[str, wr.Window]:
    """The same in rows: so many rows as there are in 1 to 20 seconds."""
    lengths = [(i % LENGTHS + 1) * rows_per_second for i in range(count)]
    return {f"{i}: {n} rows": wr.tumbling(rows=n) for i, n in enumerate(lengths)}


def query(windows: dict[str, wr.Window], aggregate: wr.Aggregate | None = None) -> wr.Query:
    """These windows with one aggregate, a sum if nothing else is said."""
    return wr.query(time="ts", windows=windows, aggregates={"answer": aggregate or wr.sum("value")})


def with_session(windows: dict[str, wr.Window], gap: str = GAP) -> dict[str, wr.Window]:
    return {**windows, "session": wr.session(gap)}

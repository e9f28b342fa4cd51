"""What does one more window cost?

One key, integer sum, events 1 ms apart, a watermark after each batch of a million events, every
window emitted: first with all events in order, then with 20 % of them 1 to 2,000 ms late. The lengths
of 100 and 1,000 windows are random milliseconds, so that hardly any two windows share an edge.
"""

from __future__ import annotations

from functools import partial

import numpy as np

import windrow as wr
from benchmarks.support.harness import Line, Scale, Table, at_least, clocked, race, rate
from benchmarks.support.streams import Stream, drain, drive, one_key

SCOTTY = "Scotty (Java; cited), M/s"
# Million events per second of the Scotty project's own operator, and the target for ours.
FIGURES = {
    "in order": {1: (36.0, 300), 20: (35.0, 300), 100: (12.0, 150), 1000: (0.22, 40)},
    "20 % late": {1: (17.0, 100), 20: (17.0, 100), 100: (8.6, 60), 1000: (0.20, 20)},
}
NOTE = (
    "The figures of Scotty's Java operator were measured separately on this kind of machine and "
    "are not rerun here. Limit: one pass of numpy.sum over the time and value columns."
)


def window_lengths(count: int) -> list[int]:
    """Milliseconds: whole seconds for up to 20 windows, distinct random lengths for more."""
    if count <= 20:
        return [1_000 * (i + 1) for i in range(count)]
    return np.random.default_rng(3).choice(np.arange(1_000, 20_001), count, replace=False).tolist()


def windows_query(count: int, aggregates: dict[str, wr.Aggregate] | None = None) -> wr.Query:
    windows = {f"{length} ms": wr.tumbling(f"{length} ms") for length in window_lengths(count)}
    return wr.query(time="ts", windows=windows, aggregates=aggregates or {"total": wr.sum("value")})


def check(query: wr.Query, stream: Stream) -> None:
    """Every event is in exactly one window of each length."""
    totals = sum(sum(table["total"].to_numpy().tolist()) for table in drive(query, stream))
    expected = len(query.windows) * int(stream.columns[1].sum())
    assert totals == expected, f"the windows add up to {totals}, not to {expected}"


def measure(scale: Scale) -> list[Table]:
    lines = []
    for order, figures in FIGURES.items():
        stream = one_key(scale.events, scale.batch, late=order != "in order")
        for count, (scotty, target) in figures.items():
            query = windows_query(count)
            check(query, stream)
            contenders = {"ours": clocked(partial(drain, query, stream)), "limit": clocked(stream.limit)}
            best = race(contenders, scale)
            ours = rate(scale.events, best["ours"])
            columns = {
                "M events/s": ours,
                SCOTTY: scotty,
                "times Scotty": ours / scotty,
                "limit, M/s": rate(scale.events, best["limit"]),
            }
            name = f"{count:,} window{'s' if count > 1 else ''}, {order}"
            lines.append(Line(name, columns, at_least("M events/s", target), headline=True))
    return [Table("Windows of one key", tuple(lines), ours="M events/s", beside=SCOTTY, note=NOTE)]

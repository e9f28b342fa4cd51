"""What does it cost to count events instead of time?

The stream of *windows*: one key, events 1 ms apart, so that 20 windows of 1,000 to 20,000 events hold the
same events as 20 windows of 1 to 20 s, which stand beside them and give the same answers. A late event
moves all count windows behind it: events wait until none can come before them. A sum could be corrected by
an inverse, a maximum could not.
"""

from __future__ import annotations

import numpy as np

import windrow as wr
from benchmarks.support.beside import NOTE, RATIO, Case, answer, line
from benchmarks.support.harness import Scale, Table, Target, at_least, at_most
from benchmarks.support.streams import Stream, one_key
from benchmarks.windows import window_lengths, windows_query

WINDOWS = 20
# Aggregate, whether every fifth event is late, and what to reach.
CASES: tuple[tuple[str, bool, Target], ...] = (
    ("sum", False, at_most(RATIO, 2)),
    ("max", False, at_most(RATIO, 2)),
    ("sum", True, at_least("M events/s", 10)),
    ("max", True, at_least("M events/s", 3)),
)
AGGREGATES = {"sum": wr.sum("value"), "max": wr.max("value")}


def counting(aggregates: dict[str, wr.Aggregate]) -> wr.Query:
    windows = {f"{length} rows": wr.tumbling(rows=length) for length in window_lengths(WINDOWS)}
    return wr.query(time="ts", windows=windows, aggregates=aggregates)


def check(query: wr.Query, context_free: wr.Query, stream: Stream) -> None:
    """Windows of so many events and of so many milliseconds have the same starts and answers."""
    counted, timed = answer(query, stream), answer(context_free, stream)
    for name in ("window", "start", "answer"):
        np.testing.assert_array_equal(vars(counted)[name], vars(timed)[name], f"count windows: {name}")
    # The last window of a length need not be full: it then ends with its last event.
    stop = stream.columns[0].max() + 1
    np.testing.assert_array_equal(counted.end, np.minimum(timed.end, stop), "count windows: end")


def measure(scale: Scale) -> list[Table]:
    streams = {late: one_key(scale.events, scale.batch, late=late) for late in (False, True)}
    lines = []
    for name, late, target in CASES:
        aggregates = {"a": AGGREGATES[name]}
        query, timed = counting(aggregates), windows_query(WINDOWS, aggregates)
        check(query, timed, streams[late])
        title = f"{WINDOWS} count windows, {name}, {'20 % late' if late else 'in order'}"
        lines.append(line(Case(title, query, timed, streams[late], target), scale))
    return [Table("Windows of so many events", tuple(lines), ours="M events/s", beside=RATIO, note=NOTE)]

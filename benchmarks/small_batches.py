"""What do small batches cost?

The stream of *windows* with 20 windows, but 1,000 events at a time and a watermark after each. The
latency is the time from `process` to the emitted rows of the same batch.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.support.harness import Line, Scale, Table, at_least, clocked, race, rate
from benchmarks.support.streams import Stream, one_key
from benchmarks.windows import check, windows_query

BATCH = 1_000
MOST_EVENTS = 4_000_000


def latencies(stream: Stream) -> np.ndarray:
    """Seconds from `process` to the rows of each batch, for one run over the stream."""
    operator = windows_query(20).operator(mode="append")
    ticks = np.empty((len(stream.batches), 2))
    for i, (batch, watermark) in enumerate(zip(stream.batches, stream.watermarks, strict=True)):
        ticks[i, 0] = time.perf_counter()
        operator.process(batch)
        operator.advance(watermark)
        ticks[i, 1] = time.perf_counter()
    operator.finish()
    return ticks[:, 1] - ticks[:, 0]


def measure(scale: Scale) -> list[Table]:
    events = min(scale.events, MOST_EVENTS)
    stream = one_key(events, BATCH)
    check(windows_query(20), stream)
    runs: list[np.ndarray] = []

    def limit() -> None:
        for batch in stream.batches:
            batch.column(0).to_numpy().view(np.int64).sum()
            batch.column(1).to_numpy().sum()

    contenders = {"ours": clocked(lambda: runs.append(latencies(stream))), "limit": clocked(limit)}
    best = race(contenders, scale)
    calmest = min(runs, key=np.sum) * 1e6
    figures = {
        "M events/s": rate(events, best["ours"]),
        "limit, M/s": rate(events, best["limit"]),
        "latency p50, µs": float(np.percentile(calmest, 50)),
        "latency p99, µs": float(np.percentile(calmest, 99)),
    }
    line = Line("20 windows, 1,000 events a batch", figures, at_least("M events/s", 3), headline=True)
    note = "Limit: numpy.sum over the time and value columns, batch by batch. Latencies of the best run."
    return [Table("Small batches", (line,), ours="M events/s", beside="latency p50, µs", note=note)]

"""What does an exact median cost?

The median of 20 windows at once, one key, events 1 ms apart: over tumbling windows of 1 to 20 s, and
over sliding windows of 1 to 20 s every second. Sorted slices keep equal values once, so few distinct
values are the easy case and all-distinct values the hard one. Beside it: `numpy.median` of each
tumbling window.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import windrow as wr
from benchmarks.support.harness import Line, Scale, Table, at_least, clocked, race, rate
from benchmarks.support.streams import START, TIME, Stream, cut, drain, drive

SECONDS = range(1, 21)
SHAPES: dict[str, dict[str, wr.Window]] = {
    "tumbling": {f"{s} s": wr.tumbling(f"{s} seconds") for s in SECONDS},
    "sliding": {f"{s} s": wr.sliding(f"{s} seconds", every="1 second") for s in SECONDS},
}
MOST_EVENTS = 10_000_000


def stream_of(values: np.ndarray, batch: int) -> Stream:
    times = START + np.arange(len(values), dtype=np.int64)
    return cut(pa.table({"ts": pa.array(times).cast(TIME), "value": values}), times, batch)


def numpy_medians(values: np.ndarray) -> dict[int, np.ndarray]:
    """The same medians, window by window; the last window of a length may be shorter."""
    medians = {}
    for seconds in SECONDS:
        length = seconds * 1_000
        whole = len(values) // length * length
        full = np.median(values[:whole].reshape(-1, length), axis=1)
        rest = [np.median(values[whole:])] if whole < len(values) else []
        medians[seconds] = np.concatenate([full, rest])
    return medians


def check(query: wr.Query, stream: Stream) -> None:
    """Each tumbling window has the median that numpy gives it."""
    table = pa.concat_tables(drive(query, stream)).sort_by("start")
    for seconds, expected in numpy_medians(stream.columns[1]).items():
        ours = table.filter(pc.equal(table["window"], f"{seconds} s"))
        np.testing.assert_array_equal(ours["median"].to_numpy(), expected)


def measure(scale: Scale) -> list[Table]:
    events = min(scale.events, MOST_EVENTS)
    random = np.random.default_rng(5)
    columns = {
        "1,000 distinct values": random.integers(0, 1_000, events),
        "all values distinct": random.permutation(events),
    }
    lines = []
    for kind, values in columns.items():
        stream = stream_of(values, min(scale.batch, events))
        contenders = {"numpy": clocked(partial(numpy_medians, values)), "limit": clocked(stream.limit)}
        for shape, windows in SHAPES.items():
            query = wr.query(time="ts", windows=windows, aggregates={"median": wr.median("value")})
            if shape == "tumbling":
                check(query, stream)
            contenders[shape] = clocked(partial(drain, query, stream))
        best = race(contenders, scale)
        for shape in SHAPES:
            figures = {
                "M events/s": rate(events, best[shape]),
                "numpy.median, M/s": rate(events, best["numpy"]) if shape == "tumbling" else None,
                "limit, M/s": rate(events, best["limit"]),
            }
            name = f"20 {shape} windows, {kind}"
            lines.append(Line(name, figures, at_least("M events/s", 5), headline=True))
    return [Table("Exact median", tuple(lines), ours="M events/s", beside="numpy.median, M/s")]

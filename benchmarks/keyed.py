"""What do keys cost, in time and in memory?

Tumbling 60 s and sliding 60 s every 10 s in one query, integer sum; events spread evenly over 200 s
of stream time and over the keys, in time order. With a million keys more rows leave than enter. The memory of
an operator is taken when half of the stream has been processed and set against the partials it must hold.
"""

from __future__ import annotations

from functools import partial

import windrow as wr
from benchmarks.support.harness import (
    FULL_EVENTS,
    Figure,
    Line,
    Scale,
    Table,
    at_least,
    at_most,
    clocked,
    race,
    rate,
)
from benchmarks.support.streams import Stream, drain, drive, keyed
from windrow.aggregates.sum import INTEGER_SUM

QUERY = wr.query(
    time="ts",
    key=["key"],
    windows={"tumbling": wr.tumbling("60 seconds"), "sliding": wr.sliding("60 seconds", every="10 seconds")},
    aggregates={"total": wr.sum("value")},
)
WINDOWS_PER_EVENT = 1 + 6
SECONDS = 200
TARGETS = {1_000: 60, 100_000: 20, 1_000_000: 5}
# What a slice cannot do without: the fields that the sum declares, and how many values it holds. Said
# here and not taken from the operator, so that the ratio does not depend on what the engine calls a partial.
PARTIAL_BYTES = 8 * (len(INTEGER_SUM.fields) + 1)


def check(stream: Stream) -> int:
    """Every event is in seven windows; gives the number of rows."""
    rows = total = 0
    for table in drive(QUERY, stream):
        rows += table.num_rows
        total += int(table["total"].to_numpy().sum())
    expected = WINDOWS_PER_EVENT * int(stream.columns[1].sum())
    assert total == expected, f"the windows add up to {total}, not to {expected}"
    return rows


def memory(stream: Stream) -> dict[str, Figure]:
    """Bytes per live slice and key, halfway through the stream."""
    operator = QUERY.operator(mode="append")
    half = len(stream.batches) // 2
    for batch, watermark in zip(stream.batches[:half], stream.watermarks, strict=False):
        operator.process(batch)
        operator.advance(watermark)
    metrics = operator.metrics()
    cells = metrics.live_slices * metrics.keys
    return {
        "bytes": metrics.bytes / cells,
        "bytes of its partials": PARTIAL_BYTES,
        "ratio": metrics.bytes / cells / PARTIAL_BYTES,
        "live slices": metrics.live_slices,
        "MB in all": metrics.bytes / 1e6,
    }


def measure(scale: Scale) -> list[Table]:
    lines, sizes = [], []
    for nominal, target in TARGETS.items():
        keys = max(10, nominal * scale.events // FULL_EVENTS)
        numbered, named = keyed(scale.events, keys, scale.batch, seconds=SECONDS)
        rows = check(numbered)
        assert check(named) == rows
        contenders = {"integer": clocked(partial(drain, QUERY, numbered))}
        contenders["string"] = clocked(partial(drain, QUERY, named))
        best = race(contenders | {"limit": clocked(numbered.limit)}, scale)
        limit = rate(scale.events, best["limit"])
        for kind in ("integer", "string"):
            figures: dict[str, Figure] = {
                "M events/s": rate(scale.events, best[kind]),
                "M rows out/s": rate(rows, best[kind]),
                "time beside integer keys": best[kind] / best["integer"],
                "limit, M/s": limit,
            }
            aim = at_least("M events/s", target)
            if kind == "string":
                aim = at_most("time beside integer keys", 2)
            lines.append(Line(f"{keys:,} {kind} keys", figures, aim, headline=True))
            held = memory(numbered if kind == "integer" else named)
            sizes.append(Line(f"{keys:,} {kind} keys", held, headline=kind == "integer"))
    note = "Limit: numpy.sum over the time and value columns."
    return [
        Table("Keys", tuple(lines), ours="M events/s", beside="time beside integer keys", note=note),
        Table("Memory per live slice and key", tuple(sizes), ours="bytes", beside="bytes of its partials"),
    ]

"""What do early rows cost?

A call brings one second of events in order, of 100 keys with ten each, and advances the watermark, which stays 1,000 seconds behind: so a
key always has 1,000 windows or more that are not final. With `every("1 second")` each call looks at them all, and gives out those that have
changed. What that costs is set beside the same operator that gives windows out at their ends. In the first line a second of
events changes one window of each key; in the second, two of which one is long; in the third, all 1,000 of them, each of which is
then a row: there it is the time for a row that can be compared. The rows of a short stream, replayed, are the answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import windrow as wr
from benchmarks.support.harness import Line, Scale, Table, at_most, race

KEYS, EACH, BEHIND = 100, 10, 1_000
SECOND = 1_000
WINDOWS = {
    "1 s": ({"short": wr.tumbling(SECOND)}, at_most("time, ratio", 1.5)),
    "1 s and 1,000 s": (
        {"short": wr.tumbling(SECOND), "long": wr.tumbling(1_000 * SECOND)},
        at_most("time, ratio", 1.5),
    ),
    "1,000 s every 1 s": (
        {"sliding": wr.sliding(1_000 * SECOND, every=SECOND)},
        at_most("time for a row, ratio", 1.5),
    ),
}


def seconds(count: int) -> Iterator[pa.RecordBatch]:
    """Seconds of events in order."""
    keys = np.tile(np.arange(KEYS), EACH)
    spread = np.arange(KEYS * EACH) * SECOND // (KEYS * EACH)
    for second in range(count):
        columns = {"ts": second * SECOND + spread, "key": keys, "value": keys + second}
        yield pa.record_batch(columns)


def run(query: wr.Query, count: int, filled: int, **options: object) -> tuple[float, int, list[pa.Table]]:
    """The time that all but the first `filled` calls take, and the rows that they give out."""
    operator = query.operator(mode="update", **options)
    batches, spent = list(seconds(count)), 0.0
    found = [operator.process(pa.Table.from_batches(batches[:filled]))] if filled else []
    before = sum(map(len, found))
    for second, batch in enumerate(batches[filled:], filled):
        start = time.process_time()
        rows = [operator.process(batch), operator.advance((second - BEHIND) * SECOND)]
        spent += time.process_time() - start
        found += rows
    return spent, sum(map(len, found)) - before, [*found, operator.finish()]


def timed(query: wr.Query, count: int, filled: int, emit: object, label: str, rows: dict[str, int]) -> float:
    """The time of `run`; how many rows there were is noted."""
    spent, rows[label], _ = run(query, count, filled, emit=emit)
    return spent


def require_same(query: wr.Query) -> None:
    """An error unless the rows that are final are the answer."""
    *_, rows = run(query, 30, 0, emit=wr.every(SECOND))
    found = pa.concat_tables(rows)
    final = found.filter(found["final"]).drop_columns(["op", "revision", "final"])
    answer, told = (
        rows.set_column(rows.column_names.index("window"), "window", rows["window"].cast(pa.string()))
        .sort_by([("window", "ascending"), ("start", "ascending"), ("key", "ascending")])
        .combine_chunks()
        for rows in (query.run(pa.Table.from_batches(list(seconds(30)))), final)
    )
    assert answer.equals(told)
    assert not pc.all(found["final"]).as_py()


def measure(scale: Scale) -> list[Table]:
    calls = {"tiny": 5, "small": 100, "full": 500}[scale.name]
    filled = 10 if scale.name == "tiny" else BEHIND + 10
    lines = []
    for name, (windows, target) in WINDOWS.items():
        query = wr.query(time="ts", key="key", windows=windows, aggregates={"total": wr.sum("value")})
        require_same(query)
        few = max(5, calls // 20) if name == "1,000 s every 1 s" else calls
        rows: dict[str, int] = {}

        emits = {"end": "close", "early": wr.every(SECOND)}
        best = race(
            {
                label: partial(timed, query, filled + few, filled, emit, label, rows)
                for label, emit in emits.items()
            },
            scale,
        )
        each = {label: best[label] / max(1, rows[label]) for label in best}
        figures = {
            "a call, ms": 1e3 * best["early"] / few,
            "at the end, ms": 1e3 * best["end"] / few,
            "rows in a call": rows["early"] / few,
            "at the end, rows": rows["end"] / few,
            "time, ratio": best["early"] / best["end"],
            "time for a row, ratio": each["early"] / each["end"],
        }
        lines.append(Line(name, figures, target))
    return [Table("Early rows", tuple(lines), ours="a call, ms", beside="time, ratio")]

"""What does it cost to look at each row, or at the points of another table?

*Rolling*: `q.at(events)`, an answer for each row, beside pandas and polars, which roll over one key; with many keys polars alone
is fast enough to be waited for. *Points*: `q.at(points, events)`, trailing windows at times of another table, beside the join by ranges that DuckDB
makes of the same question, over a part of the points, as the rates of both are compared. *Running*: `op.at` of one key
over 90 days of slices of a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import windrow as wr
from benchmarks.support.harness import FULL_EVENTS, Line, Scale, Table, at_least, at_most, clocked, race

TIME = pa.timestamp("us")
MILLISECOND, MINUTE, DAY = 1_000, 60_000_000, 86_400_000_000
AGGREGATES: dict[str, Callable[[str], wr.Aggregate]] = {
    "max": wr.max,
    "mean": wr.mean,
    "std": wr.stddev,
    "median": wr.median,
    "sum": wr.sum,
}
ROWS = {"100 rows": 100, "10,000 rows": 10_000}
# Of how many points the join answers one.
SAMPLE = 20
LOOKS = 400


def events_of(rows: int, keys: int, span: int, seed: int = 7) -> pa.Table:
    """Events spread evenly over `span` microseconds, in order of time."""
    luck = np.random.default_rng(seed)
    times = np.arange(rows, dtype=np.int64) * max(1, span // rows)
    columns = {"ts": pa.array(times).cast(TIME), "x": luck.normal(size=rows)}
    return pa.table(columns | ({"key": luck.integers(0, keys, rows)} if keys > 1 else {}))


def polars_of(frame: pl.DataFrame, name: str, window: str, keys: int) -> Any:
    column = pl.col("x")
    if window in ROWS:
        rolled = getattr(column, f"rolling_{name}")(ROWS[window])
    else:
        rolled = getattr(column, f"rolling_{name}_by")("ts", window_size="10s", closed="right")
    return frame.select(rolled.over("key") if keys > 1 else rolled)


def pandas_of(series: pd.Series, name: str, window: str) -> Any:
    return getattr(series.rolling(ROWS.get(window, "10s")), name)()


def rolling(rows: int, keys: int, scale: Scale) -> list[Line]:
    lines = []
    # A window of 10 s holds 10,000 events of all keys.
    table = events_of(rows, keys, rows * MILLISECOND)
    frame = pl.DataFrame(pl.from_arrow(table))
    series = table.select(["ts", "x"]).to_pandas().set_index("ts")["x"]
    for window in (*ROWS, "10 s"):
        size = ROWS.get(window)
        asked = (
            wr.trailing("10 seconds", closed="right")
            if size is None
            else wr.trailing(rows=size, closed="right")
        )
        for name, make in AGGREGATES.items():
            query = wr.query(
                time="ts",
                key="key" if keys > 1 else None,
                windows={"w": asked},
                aggregates={"answer": make("x")},
            )
            theirs = polars_of(frame, name, window, keys).to_series().to_numpy()
            ours = query.at(table)["answer"].to_numpy()
            there = np.isfinite(theirs)
            np.testing.assert_allclose(ours[there], theirs[there], rtol=1e-6, atol=1e-6)
            contenders = {"ours": clocked(partial(query.at, table))}
            contenders["polars"] = clocked(partial(polars_of, frame, name, window, keys))
            if keys == 1:
                contenders["pandas"] = clocked(partial(pandas_of, series, name, window))
            best = race(contenders, scale)
            other = min(seconds for who, seconds in best.items() if who != "ours")
            figures = {"ns a row": best["ours"] / rows * 1e9}
            figures |= {f"{who}, ns": seconds / rows * 1e9 for who, seconds in best.items() if who != "ours"}
            figures["ratio"] = other / best["ours"]
            title = f"{name} of {window}, {rows:,} rows, {keys:,} key{'s' if keys > 1 else ''}"
            lines.append(Line(title, figures, at_least("ratio", 1), headline=name in ("mean", "median")))
    return lines


def joined(events: pa.Table, points: pa.Table, days: float) -> list[Any]:
    """The same answers by a join of ranges."""
    connection = duckdb.connect()
    connection.register("e", events)
    connection.register("p", points)
    return connection.sql(
        f"""
        select p.id, sum(e.x), max(e.x), count(distinct e.x)
        from p left join e on e.key = p.key and e.ts < p.ts and e.ts >= p.ts - interval {round(days * 24)} hours
        group by p.id order by p.id
        """
    ).fetchall()


def at_points(scale: Scale) -> list[Line]:
    count = scale.events // 2
    keys = max(10, 10_000 * scale.events // FULL_EVENTS)
    luck = np.random.default_rng(11)
    events = events_of(count, keys, 60 * DAY)
    events = events.set_column(1, "x", pa.array(luck.integers(0, 1_000, count)))
    times = luck.integers(0, 60 * DAY, count // 10)
    points = pa.table(
        {"id": range(len(times)), "ts": pa.array(times).cast(TIME), "key": luck.integers(0, keys, len(times))}
    )
    few = points.slice(0, len(points) // SAMPLE)
    lines = []
    for name, days in {"1 hour": 1 / 24, "1 day": 1, "30 days": 30}.items():
        aggregates = {"total": wr.sum("x"), "high": wr.max("x"), "different": wr.distinct("x")}
        query = wr.query(time="ts", key="key", windows={"w": wr.trailing(name)}, aggregates=aggregates)
        found = query.at(few, events).select(["id", *aggregates]).to_pylist()
        assert [tuple(row.values()) for row in found] == joined(events, few, days), "error 0"
        best = race(
            {
                "ours": clocked(partial(query.at, points, events)),
                "join": clocked(partial(joined, events, few, days)),
            },
            scale,
        )
        ours, theirs = len(points) / best["ours"], len(few) / best["join"]
        figures = {"points/s": ours, "duckdb, points/s": theirs, "ratio": ours / theirs}
        title = f"{len(points):,} points, {count:,} events, {keys:,} keys, {name}"
        lines.append(Line(title, figures, at_least("ratio", 20), headline=True))
    return lines


def running(scale: Scale) -> Line:
    """What one look costs while events come in: 10,000 a second, ten looks a second."""
    minutes = max(100, 90 * 24 * 60 * scale.events // FULL_EVENTS)
    query = wr.query(
        time="ts",
        windows={"90 days": wr.sliding(f"{minutes} minutes", every="1 minute")},
        aggregates={"n": wr.count(), "total": wr.sum("x"), "high": wr.max("x")},
    )
    operator = query.operator()
    times = np.arange(minutes, dtype=np.int64) * MINUTE
    operator.process(pa.table({"ts": pa.array(times).cast(TIME), "x": np.arange(minutes)}))
    now = int(times[-1])
    seconds = []
    for _ in range(LOOKS):
        batch = now + np.arange(1_000, dtype=np.int64) * 100
        operator.process(pa.table({"ts": pa.array(batch).cast(TIME), "x": np.arange(1_000)}))
        now = int(batch[-1]) + 1
        points = pa.table({"ts": pa.array([now]).cast(TIME)})
        start = time.perf_counter()
        operator.at(points)
        seconds.append(time.perf_counter() - start)
    held = np.array(seconds[LOOKS // 4 :]) * 1e3
    figures = {"median ms": float(np.median(held)), "p99 ms": float(np.quantile(held, 0.99))}
    return Line(f"op.at, one key, {minutes:,} slices", figures, at_most("p99 ms", 1), headline=True)


def measure(scale: Scale) -> list[Table]:
    rows = max(20_000, scale.events // 20)
    lines = rolling(rows, 1, scale) + rolling(rows, max(10, 10_000 * scale.events // FULL_EVENTS), scale)
    return [
        Table("At each row", tuple(lines), ours="ns a row", beside="polars, ns"),
        Table("At points", tuple(at_points(scale)), ours="points/s", beside="duckdb, points/s"),
        Table("At points, of a running operator", (running(scale),), ours="p99 ms"),
    ]

"""The same windows twice: for windrow, and as Spark has them."""

from __future__ import annotations

from typing import Any

import windrow as wr

SUMS = {"n": wr.count(), "total": wr.sum("x")}
# Each is a length and a slide in seconds, for Spark's `window`; a session is its gap alone.
NINE: dict[str, tuple[float, ...]] = {
    "1s": (1, 1),
    "10s": (10, 10),
    "1m": (60, 60),
    "1h": (3600, 3600),
    "10s every 1s": (10, 1),
    "30s every 5s": (30, 5),
    "1m every 10s": (60, 10),
    "5m every 30s": (300, 30),
    "1h every 1m": (3600, 60),
}


# Windows that the JVM makes alone, or could.
SIMPLE: dict[str, tuple[float, ...]] = {
    "tumbling 60 s": (60, 60),
    **{f"sliding {length} s every 1 s": (length, 1) for length in (2, 3, 4)},
}


def ten(gap: float) -> dict[str, tuple[float, ...]]:
    """Nine windows of time and sessions, whose gap must fit how often events come."""
    return {**NINE, "session": (gap,)}


def seconds(number: float) -> str:
    return f"{round(number * 1000)} milliseconds"


def ours(windows: dict[str, tuple[float, ...]], *, key: str = "k") -> wr.Query:
    """A query of windrow with all of these windows."""
    return wr.query(
        time="ts", key=key, windows={name: _window(spec) for name, spec in windows.items()}, aggregates=SUMS
    )


def ours_that_last(spec: tuple[float, float]) -> wr.Query:
    """One window, for span events from `ts` until `ended`."""
    return wr.query(time=wr.span("ts", "ended"), key="k", windows={"w": _window(spec)}, aggregates=SUMS)


def _window(spec: tuple[float, ...]) -> Any:
    if len(spec) == 1:
        return wr.session(seconds(spec[0]))
    length, every = spec
    return (
        wr.tumbling(seconds(length)) if length == every else wr.sliding(seconds(length), every=seconds(every))
    )


def sparks(events: Any, spec: tuple[float, ...]) -> Any:
    """One of these windows, the way Spark does it."""
    from pyspark.sql import functions as sf

    if len(spec) == 1:
        window = sf.session_window("ts", seconds(spec[0]))
    else:
        window = sf.window("ts", *map(seconds, spec))
    return events.groupBy("k", window.alias("w")).agg(sf.count("*").alias("n"), sf.sum("x").alias("total"))


def sparks_that_last(events: Any, spec: tuple[float, float]) -> Any:
    """The same in SQL: a copy of each event for each window that it overlaps. Spark has no windows for such events."""
    from pyspark.sql import functions as sf

    length, every = (round(part * 1e6) for part in spec)
    first, last = sf.unix_micros("ts") - sf.lit(length), sf.unix_micros("ended") - sf.lit(1)
    starts = [point - sf.pmod(point, sf.lit(every)) for point in (first, last)]
    copies = sf.explode(sf.sequence(starts[0] + sf.lit(every), starts[1], sf.lit(every)))
    summed = events.select("k", "x", copies.alias("at")).groupBy("k", "at")
    start, end = (sf.timestamp_micros(sf.col("at") + sf.lit(more)) for more in (0, length))
    sums = summed.agg(sf.count("*").alias("n"), sf.sum("x").alias("total"))
    return sums.select("k", sf.struct(start.alias("start"), end.alias("end")).alias("w"), "n", "total")


def sparks_that_last_by_window(events: Any, spec: tuple[float, float]) -> Any:
    """The same with Spark's own `window`: an instant of each step of an event, and of its copies one in each window."""
    from pyspark.sql import functions as sf

    length, every = map(seconds, spec)
    first = sf.date_trunc("second", "ts")
    instants = sf.explode(
        sf.sequence(first, sf.expr("ended - INTERVAL 1 MICROSECOND"), sf.expr(f"INTERVAL {every}"))
    )
    known = events.withColumn("id", sf.monotonically_increasing_id()).select(
        "id", "k", "x", instants.alias("at")
    )
    copies = known.select("id", "k", "x", sf.window("at", length, every).alias("w")).dropDuplicates(
        ["id", "w"]
    )
    return copies.groupBy("k", "w").agg(sf.count("*").alias("n"), sf.sum("x").alias("total"))

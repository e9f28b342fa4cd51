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

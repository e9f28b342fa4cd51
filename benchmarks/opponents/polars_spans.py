"""Flights over sliding hours in Polars.

`group_by_dynamic` and `rolling` take rows at one instant. So a flight meets each of its windows, by a join on two
inequalities with a frame of windows, or by a list of the windows that it overlaps.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from benchmarks.opponents import IN_THE_AIR, Form
from benchmarks.opponents.polars_job import to_arrow

__all__ = ["FORMS", "load", "to_arrow"]

HOUR, QUARTER = 3_600_000, 900_000
ROWS = (
    pl.len().alias("flights"),
    pl.col("minutes").sum(),
    pl.col("minutes").max().alias("longest"),
)


def load(events: pa.Table, threads: int) -> pl.LazyFrame:
    """The flights as a frame; `threads` was set before Polars was imported."""
    assert pl.thread_pool_size() == threads
    frame = pl.from_arrow(events)
    assert isinstance(frame, pl.DataFrame)
    return frame.rechunk().lazy()


def exploded(flights: pl.LazyFrame) -> pl.LazyFrame:
    first = (pl.col("departed").to_physical() - HOUR).floordiv(QUARTER) + 1
    last = (pl.col("landed").to_physical() - 1).floordiv(QUARTER)
    start = (QUARTER * pl.col("number")).cast(pl.Datetime("ms")).alias("start")
    listed = flights.select("origin", "minutes", pl.int_ranges(first, last + 1).alias("number"))
    return listed.explode("number").group_by("origin", start).agg(ROWS)


def joined(flights: pl.LazyFrame) -> pl.LazyFrame:
    earliest = pl.col("departed").min().dt.truncate("15m").dt.offset_by("-1h")
    low, high = flights.select(earliest, pl.col("landed").max()).collect().row(0)
    starts = pl.datetime_range(low, high, "15m", time_unit="ms", eager=True)
    windows = pl.LazyFrame({"start": starts}).with_columns(end=pl.col("start").dt.offset_by("1h"))
    meets = pl.col("departed") < pl.col("end"), pl.col("landed") > pl.col("start")
    return flights.join_where(windows, *meets).group_by("origin", "start").agg(ROWS)


FORMS = (
    Form(IN_THE_AIR, "join_where, group_by", lambda f: [joined(f).collect()]),
    Form(IN_THE_AIR, "int_ranges, explode, group_by", lambda f: [exploded(f).collect()]),
    Form(
        IN_THE_AIR,
        "int_ranges, explode, group_by, streaming",
        lambda f: [exploded(f).collect(engine="streaming")],
    ),
)

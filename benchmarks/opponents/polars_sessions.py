"""A session in Polars.

Neither `group_by_dynamic` nor `rolling` knows gaps, so sessions are numbered by a running sum over
the events that come too long after the one before. It trusts the order of the table.
"""

from __future__ import annotations

import polars as pl

from benchmarks.opponents import SESSION, Form
from benchmarks.opponents.polars_job import load, to_arrow

__all__ = ["FORMS", "load", "to_arrow"]

GAP = pl.duration(seconds=1)
NUMBER = (pl.col("ts").diff() > GAP).fill_null(False).cum_sum().alias("session")
ROWS = (
    pl.col("ts").min().alias("start"),
    (pl.col("ts").max() + GAP).alias("end"),
    pl.col("value").sum().alias("total"),
)


def sessions(events: pl.LazyFrame) -> pl.DataFrame:
    return events.group_by(NUMBER).agg(ROWS).collect()


def sessions_streaming(events: pl.LazyFrame) -> pl.DataFrame:
    return events.group_by(NUMBER).agg(ROWS).collect(engine="streaming")


FORMS = (
    Form(SESSION, "cum_sum, group_by", lambda events: [sessions(events)]),
    Form(SESSION, "cum_sum, group_by, streaming", lambda events: [sessions_streaming(events)]),
)

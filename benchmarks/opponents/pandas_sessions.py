"""A session in pandas: numbered by a running sum over the events that come too long after the one before."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from benchmarks.opponents import SESSION, Form

GAP = pd.Timedelta(seconds=1)


def load(events: pa.Table, threads: int) -> pd.DataFrame:
    """The events as a frame of NumPy columns; pandas has one thread."""
    assert threads == 1
    return events.to_pandas()


def to_arrow(result: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(result, preserve_index=False)


def sessions(events: pd.DataFrame) -> pd.DataFrame:
    number = events["ts"].diff().gt(GAP).cumsum()
    found = events.groupby(number, sort=False).agg(
        start=("ts", "min"), end=("ts", "max"), total=("value", "sum")
    )
    found["end"] += GAP
    return found


FORMS = (Form(SESSION, "diff, cumsum, groupby", lambda events: [sessions(events)]),)

"""The batch job in Polars.

What the documentation leads to: `truncate` and `group_by` for tumbling windows, `group_by_dynamic` for
sliding ones. `offset="-59s"` makes it begin with the first window that holds an event; without it,
windows that start before the first event are left out.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from benchmarks.opponents import BOTH, SLIDING, TUMBLING, Form

SUM_AND_MAX = (pl.col("value").sum().alias("total"), pl.col("value").max().alias("top"))
MERGED = (pl.col("total").sum(), pl.col("top").max())
KEY_AND_MINUTE = ("key", pl.col("ts").dt.truncate("60s").alias("start"))
KEY_AND_SECOND = ("key", pl.col("ts").dt.truncate("1s"))


def load(events: pa.Table, threads: int) -> pl.LazyFrame:
    """The events as a frame that knows it is sorted; `threads` was set before Polars was imported."""
    assert pl.thread_pool_size() == threads
    frame = pl.from_arrow(events)
    assert isinstance(frame, pl.DataFrame)
    return frame.rechunk().with_columns(pl.col("ts").set_sorted()).lazy()


def to_arrow(result: pl.DataFrame) -> pa.Table:
    return result.to_arrow()


def tumble(events: pl.LazyFrame) -> pl.DataFrame:
    return events.group_by(KEY_AND_MINUTE).agg(SUM_AND_MAX).collect()


def tumble_streaming(events: pl.LazyFrame) -> pl.DataFrame:
    return events.group_by(KEY_AND_MINUTE).agg(SUM_AND_MAX).collect(engine="streaming")


def slide(events: pl.LazyFrame) -> pl.DataFrame:
    windows = events.group_by_dynamic("ts", every="1s", period="60s", offset="-59s", group_by="key")
    return windows.agg(SUM_AND_MAX).rename({"ts": "start"}).collect()


def slide_sorted(events: pl.LazyFrame) -> pl.DataFrame:
    return slide(events.sort("key", "ts"))


def slices(events: pl.LazyFrame) -> pl.LazyFrame:
    seconds = events.group_by(KEY_AND_SECOND).agg(SUM_AND_MAX).sort("key", "ts")
    return seconds.collect(engine="streaming").lazy()


def tumble_slices(seconds: pl.LazyFrame) -> pl.DataFrame:
    return seconds.group_by(KEY_AND_MINUTE).agg(MERGED).collect()


def slide_slices(seconds: pl.LazyFrame) -> pl.DataFrame:
    windows = seconds.group_by_dynamic("ts", every="1s", period="60s", offset="-59s", group_by="key")
    return windows.agg(MERGED).rename({"ts": "start"}).collect()


def both_from_slices(events: pl.LazyFrame) -> list[pl.DataFrame]:
    seconds = slices(events)
    return [tumble_slices(seconds), slide_slices(seconds)]


FORMS = (
    Form(TUMBLING, "truncate, group_by", lambda events: [tumble(events)]),
    Form(TUMBLING, "truncate, group_by, streaming", lambda events: [tumble_streaming(events)]),
    Form(SLIDING, "group_by_dynamic", lambda events: [slide(events)]),
    Form(SLIDING, "sort, group_by_dynamic", lambda events: [slide_sorted(events)]),
    Form(
        SLIDING,
        "hand-sliced, group_by_dynamic",
        lambda events: [slide_slices(slices(events))],
        hand_sliced=True,
    ),
    Form(BOTH, "hand-sliced once", both_from_slices, hand_sliced=True),
)

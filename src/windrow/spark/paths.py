"""Which way a query takes on Spark, and why.

pushdown   the JVM makes windows, see `jvm_windows`                                  batch and streams
           or slices, of which Python makes windows                                  batch
general    events go to buckets, combined where that pays; one operator per bucket   batch and streams
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.engine import exchange
from windrow.errors import QueryError
from windrow.options import OperatorOptions
from windrow.span import Span
from windrow.spark import jvm_windows, pushdown
from windrow.spark.schema import watermarked
from windrow.spec import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Path:
    """`push_down` says which way; `without_python` whether it leads through the JVM alone; `combine` whether events may be made
    into slices before the shuffle.

    The reasons are phrases: why not pushed down, why not by the JVM alone, why not combined; None where it is.
    """

    streaming: bool
    not_pushed: str | None
    python: str | None
    not_combined: str | None

    @property
    def push_down(self) -> bool:
        return self.not_pushed is None

    @property
    def without_python(self) -> bool:
        return self.push_down and self.python is None

    @property
    def combine(self) -> bool:
        return self.not_combined is None


def choose(
    query: QuerySpec,
    settings: OperatorOptions,
    schema: pa.Schema,
    df: DataFrame,
    *,
    path: str,
    side_rows: bool,
    watermark: str,
) -> Path:
    """The path of the options, or the best one that is possible; `watermark` is on the column of that name."""
    not_pushed = _not_pushed(query, settings, schema, df, side_rows=side_rows)
    if not_pushed is None and df.isStreaming:
        not_pushed = _not_pushed_in_a_stream(query, settings, schema, df, watermark)
    if path == "pushdown" and not_pushed is not None:
        raise QueryError(f"this query cannot be pushed down: {not_pushed}")
    if path == "general":
        not_pushed = "the general path was asked for"
    not_combined = _not_combined(query, settings, schema, streaming=df.isStreaming, side_rows=side_rows)
    python = jvm_windows.obstacle(query, schema) if not_pushed is None else None
    return Path(df.isStreaming, not_pushed, python, not_combined)


def _not_pushed(
    query: QuerySpec, settings: OperatorOptions, schema: pa.Schema, df: DataFrame, *, side_rows: bool
) -> str | None:
    if settings.mode != "append":
        return "a changelog needs the events in order of arrival"
    if settings.trigger is not None:
        return "windows that are open are given out early"
    if side_rows or settings.on_bad != "raise":
        return "bad rows are wanted as rows, and slices have none"
    return pushdown.obstacle(query, schema, df.schema)


def _not_pushed_in_a_stream(
    query: QuerySpec, settings: OperatorOptions, schema: pa.Schema, df: DataFrame, watermark: str
) -> str | None:
    if isinstance(query.time, Span):
        return f"events of {query.time} end in another slice than they begin, and Spark's state drops slices one by one"
    if watermark != query.time:
        return f"the watermark is on column {watermark!r}, and Spark needs it on the time"
    for name in set(watermarked(df)).intersection(query.key):
        return f"Spark would call events late by key column {name!r}, as it has a watermark"
    if settings.max_ahead is not None:
        return "max_ahead is judged event by event"
    for name, window in query.windows.items():
        if window.gap is not None:
            return f"Spark drops each late event, and window {name!r} ({window}) takes those whose session is not final"
    return jvm_windows.obstacle(query, schema)


def _not_combined(
    query: QuerySpec, settings: OperatorOptions, schema: pa.Schema, *, streaming: bool, side_rows: bool
) -> str | None:
    if not streaming and settings.on_bad != "raise":
        return "bad rows are set aside one by one"
    if streaming and isinstance(query.time, Span):
        return f"whether an event of {query.time} is late depends on its end, and slices do not tell which end is whose"
    if streaming and side_rows:
        return "late rows are wanted as rows, and slices have none"
    if streaming and settings.max_ahead is not None:
        return "max_ahead is judged event by event"
    if streaming and not all(w.layout == "aligned" for w in query.windows.values()):
        return "in a stream, only slices of context-free windows are late as a whole or not at all"
    return exchange.obstacle(query, schema)

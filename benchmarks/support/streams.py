"""The streams that are measured, and the loop that feeds one to an operator.

All streams are made from fixed seeds. Time is a `timestamp[ms]` column with ticks as large as real
ones; it starts where windows of every length from 1 to 20 s start.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.query import Query

START = 7 * 232_792_560_000  # in August 2021; 232,792,560 s are a whole number of 1 s, 2 s, ... and 20 s
LATEST = 2_000
BURST, SHORTEST_SILENCE, LONGEST_SILENCE = 10_000, 1_001, 3_000
TIME = pa.timestamp("ms")


@dataclass(frozen=True)
class Stream:
    """Batches with a watermark after each, and the columns they were cut from."""

    batches: tuple[pa.RecordBatch, ...]
    watermarks: tuple[Any, ...]
    columns: tuple[np.ndarray, ...]

    def __len__(self) -> int:
        return sum(batch.num_rows for batch in self.batches)

    def limit(self) -> None:
        """The least that anyone can do: one pass of `numpy.sum` over each column."""
        for column in self.columns:
            column.sum()


def drive(query: Query, stream: Stream) -> Iterator[pa.Table]:
    """Feed the whole stream, a watermark after each batch, and hand on what comes out."""
    operator = query.operator(mode="append")
    for batch, watermark in zip(stream.batches, stream.watermarks, strict=True):
        operator.process(batch)
        yield operator.advance(watermark)
    yield operator.finish()


def on_one_thread(query: Query) -> Callable[[pa.Table], pa.Table]:
    """`query.run` with one thread, also of a windrow that knows no other."""
    knows_threads = "threads" in inspect.signature(query.run).parameters
    return partial(query.run, threads=1) if knows_threads else query.run


def drain(query: Query, stream: Stream) -> int:
    """`drive`, keeping nothing but the number of rows."""
    return sum(table.num_rows for table in drive(query, stream))


def cut(table: pa.Table, times: np.ndarray, batch: int, *, slack: int = 0, time: str = "ts") -> Stream:
    """`table` in batches; the watermark after each is the highest time so far less `slack`, of the type of `time`."""
    batches = tuple(table.combine_chunks().to_batches(max_chunksize=batch))
    highest = np.maximum.accumulate([times[i : i + batch].max() for i in range(0, len(times), batch)])
    columns = tuple(table[name].to_numpy() for name in table.column_names if name != "key")
    columns = tuple(c.view(np.int64) if c.dtype.kind == "M" else c for c in columns)
    ticks = [int(h) - slack for h in highest]
    type_ = table.schema.field(time).type if time in table.column_names else pa.int64()
    return Stream(batches, tuple(pa.array(ticks, type_)), columns)


def arrival(times: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The order in which events arrive if every fifth of them comes 1 to 2,000 ms after its time."""
    delays = random.integers(1, LATEST + 1, len(times)) * (random.random(len(times)) < 0.2)
    return np.argsort(times + delays, kind="stable")


def one_key(events: int, batch: int, *, late: bool = False, floating: bool = False) -> Stream:
    """Events 1 ms apart; with `late`, every fifth of them arrives 1 to 2,000 ms after its time."""
    random = np.random.default_rng(7)
    times = START + np.arange(events, dtype=np.int64)
    values = random.integers(0, 1_000, events)
    if late:
        order = arrival(times, random)
        times, values = times[order], values[order]
    table = pa.table({"ts": pa.array(times).cast(TIME), "value": values * 1.0 if floating else values})
    return cut(table, times, batch, slack=LATEST if late else 0)


def bursts(events: int, batch: int, *, late: bool = False) -> Stream:
    """The events of `session_job`; with `late`, every fifth arrives 1 to 2,000 ms after its time."""
    table = session_job(events)
    times = table["ts"].cast(pa.int64()).to_numpy()
    if late:
        order = arrival(times, np.random.default_rng(19))
        table, times = table.take(pa.array(order)), times[order]
    return cut(table, times, batch, slack=LATEST if late else 0)


def readings(events: int, batch: int) -> Stream:
    """Events 1 ms apart that say themselves where windows lie.

    The price swings between 8 and 12 every 2 s, with noise, and `high` says that it is above 10; one
    event in a thousand has a `mark`.
    """
    random = np.random.default_rng(23)
    steps = np.arange(events, dtype=np.int64)
    times = START + steps
    price = 10 + 2 * np.sin(steps * (2 * np.pi / 2_000)) + random.normal(0, 0.01, events)
    columns = {"ts": pa.array(times).cast(TIME), "value": random.integers(0, 1_000, events)}
    columns |= {"price": price, "high": price > 10, "mark": random.random(events) < 0.001}
    return cut(pa.table(columns), times, batch)


def keyed(events: int, keys: int, batch: int, *, seconds: int) -> tuple[Stream, Stream]:
    """Events spread evenly over `seconds` and over the keys: with integer and with string keys."""
    random = np.random.default_rng(11)
    times = START + np.arange(events, dtype=np.int64) * (seconds * 1_000) // events
    key = random.integers(0, keys, events)
    names = pa.array([f"user-{number:06d}" for number in range(keys)])
    columns = {"ts": pa.array(times).cast(TIME), "key": pa.array(key)}
    columns["value"] = pa.array(random.integers(0, 1_000, events))
    numbered = pa.table(columns)
    named = pa.table(columns | {"key": names.take(columns["key"])})
    return cut(numbered, times, batch), cut(named, times, batch)


def batch_job(events: int) -> pa.Table:
    """The table of the batch job: 100 keys, events 1 ms apart."""
    random = np.random.default_rng(13)
    times = START + np.arange(events, dtype=np.int64)
    key, value = random.integers(0, 100, events), random.integers(0, 1_000, events)
    return pa.table({"ts": pa.array(times).cast(TIME), "key": key, "value": value})


def session_job(events: int) -> pa.Table:
    """Sessions of one key: after every 10 s of events, 1 ms apart, a silence of 1,001 to 3,000 ms.

    That makes five silences a minute.
    """
    random = np.random.default_rng(17)
    silences = random.integers(SHORTEST_SILENCE, LONGEST_SILENCE + 1, events // BURST)
    before = np.concatenate([[0], np.cumsum(silences)])
    times = START + np.arange(events, dtype=np.int64) + np.repeat(before, BURST)[:events]
    return pa.table({"ts": pa.array(times).cast(TIME), "value": random.integers(0, 1_000, events)})

"""Code that is compiled ahead: the loops of queries found by rehearsals, and compiled by several processes at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

import windrow.aggregates as wa
import windrow.windows as ww
from windrow.compiling.ahead import Child
from windrow.compiling.jobs import Job
from windrow.compiling.tiers import noting
from windrow.engine.bounded import run
from windrow.engine.operator import Operator
from windrow.engine.rehearsal import step_of, without_functions
from windrow.errors import WindrowError
from windrow.measure import Measure
from windrow.options import OperatorOptions
from windrow.spec import QuerySpec

# Events of a rehearsal, and how many times as many a large table may have.
ROWS, MANY = 120, 1 << 17
# Code for any processor of this kind.
PORTABLE = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}


def jobs_of(query: QuerySpec, schema: pa.Schema) -> list[Job]:
    """What a query over these columns compiles: over bounded data, as a stream in either mode, and after a restart."""
    own = without_functions(query)
    if own is None:
        return []
    found: dict[Any, None] = {}
    for nulls in (0.0, 0.1):  # columns without nulls have loops of their own
        table = events(own, schema, nulls)
        for stands_for in (1, MANY):
            with noting(stands_for) as notes:
                run(own, table, on_bad="divert", threads=1)
            found |= dict.fromkeys(notes)
        with noting() as notes:
            for mode in ("append", "update"):
                _stream(own, table, mode)
        found |= dict.fromkeys(notes)
    return [kernel.job(types) for kernel, types in found]


def _stream(query: QuerySpec, table: pa.Table, mode: str) -> None:
    """In four batches, each with events that are late, and with a restart between them."""
    time, size = query.time_columns[0], ROWS // 4
    operator = Operator(query, OperatorOptions(mode=mode, on_bad="divert"))
    shuffled = np.random.default_rng(3).permutation(size)
    for begin in range(0, ROWS, size):
        batch = table.slice(begin, size)
        operator.process(batch.take(pa.array(shuffled)))
        operator.advance(batch[time][size // 2])
        operator = Operator.restored(query, operator.snapshot())
    operator.finish()


def events(query: QuerySpec, schema: pa.Schema, nulls: float) -> pa.Table:
    """Events with these columns, in order of time, that fall into a few windows; this share of values is null."""
    random = np.random.default_rng(7)
    first = query.time_columns[0]
    step = max(1, int(step_of(query, Measure(first, schema.field(first).type)) or 1))
    columns = {}
    for field in schema:
        in_time = field.name in query.time_columns
        numbers = np.arange(ROWS) * step if in_time else random.integers(0, 5, ROWS)
        missing = None if in_time or not nulls else random.random(ROWS) < nulls
        columns[field.name] = _cast(pa.array(numbers, pa.int64(), mask=missing), field.type)
    return pa.table(columns)


def _cast(numbers: pa.Array, type_: pa.DataType) -> pa.Array:
    """Numbers as values of a type; nulls where they cannot be."""
    try:
        if pa.types.is_date32(type_):
            return numbers.cast(pa.int32()).cast(type_)
        if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
            return numbers.cast(pa.string()).cast(type_)
        return numbers.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(numbers), type_)


def built_in() -> Iterator[tuple[QuerySpec, pa.Schema]]:
    """Queries that between them meet what is built in: each aggregate over integers and floats, each kind of window."""
    stamp = pa.timestamp("us", "UTC")
    columns = {"t": stamp, "x": pa.float64(), "i": pa.int64(), "s": pa.string(), "b": pa.bool_()}
    schema = pa.schema(columns)
    windows: dict[str, Any] = {
        "tumbling": ww.tumbling("9 seconds"),
        "sliding": ww.sliding("40 seconds", every="3 seconds"),
        "session": ww.session("3 seconds"),
    }
    for aggregate in aggregates():
        for key in ((), ("s",), ("i",)) if isinstance(aggregate, type(wa.count())) else (("s",),):
            yield QuerySpec.checked("t", key, windows, {"a": aggregate}), schema
    ordered = {
        "rows": ww.tumbling(rows=3),
        "every rows": ww.sliding(rows=5, every_rows=2),
        "marks": ww.punctuated(where="b"),
        "delta": ww.delta("x", by=1),
        "on": ww.tumbling(3, on="i"),
        "by rows": ww.slide_by_rows("6 seconds", every_rows=2),
        "latest": ww.latest(rows=3, every="5 seconds"),
        "snapshot": ww.snapshot(),
        "cumulate": ww.cumulate("12 seconds", step="3 seconds"),
        "day": ww.calendar("1 day"),
    }
    for name, window in ordered.items():
        for key in ((), ("s",)):
            several = {"n": wa.count(), "m": wa.mean("x"), "h": wa.max("i"), "l": wa.last("s")}
            yield QuerySpec.checked("t", key, {name: window}, several), schema


def aggregates() -> Iterator[Any]:
    """Each built-in aggregate, over floats and over integers where both have code of their own."""
    yield wa.count()
    for column in ("x", "i"):
        for make in (wa.sum, wa.mean, wa.min, wa.max, wa.first, wa.last, wa.median, wa.variance, wa.stddev):
            yield make(column)
        yield wa.argmin(column, by="x")
        yield wa.argmax(column, by="i")
        yield wa.min_count(column)
        yield wa.max_count(column)
        yield wa.quantile(column, 0.9)
        yield wa.approx_distinct(column)
        yield wa.distinct(column)
        yield wa.collect(column)
        yield wa.histogram(column, low=0, high=10, bins=5)
        yield wa.weighted_mean(column, weight="x")
    yield from (wa.geometric_mean("x"), wa.kll_quantile("x", 0.5), wa.tdigest_quantile("x", 0.9))
    yield from (wa.moments("x", k=3), wa.m4("x"), wa.covariance("x", "x"), wa.correlation("x", "x"))
    yield from (wa.slope("x", "x"), wa.ith_smallest("x", 2), wa.ith_youngest("x", 2), wa.top_k("s", 2))
    yield from (wa.bloom_filter("i"), wa.count("s"), wa.collect("s"), wa.first("s"))


def compiled(jobs: Sequence[Job], environment: dict[str, str]) -> Iterator[bool]:
    """Compile jobs by as many processes as there are processors; for each that is done, whether it is on disk."""
    waiting = list(reversed(jobs))
    children = [Child(alone=False, environment=environment) for _ in range(os.cpu_count() or 1)]
    busy: dict[Child, int] = {}
    try:
        while waiting or busy:
            for child in children:
                if child not in busy and waiting:
                    busy[child] = child.send(waiting.pop())
            for child in list(busy):
                child.wait()
                alive = child.is_alive()
                if len(child.outcomes) > busy[child]:
                    yield child.outcomes[busy.pop(child)]
                elif not alive:
                    raise WindrowError("a process that compiles has ended")
    finally:
        for child in children:
            child.close()

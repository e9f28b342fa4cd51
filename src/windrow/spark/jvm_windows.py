"""Windows that the JVM makes alone, so that no Python runs.

    events          a row each, as `pushdown` reads them
      | a copy for each window that holds it; none where there is one
    windows         groupBy(key, start), combined before the shuffle
      | sums that fit, means, extremes in the user's types
    results

`obstacle` says what Python computes otherwise than Spark, or for less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from windrow.aggregates.base import Aggregate, scale_of
from windrow.aggregates.count import Count
from windrow.aggregates.extremes import Extreme
from windrow.aggregates.mean import Mean
from windrow.aggregates.sum import Sum
from windrow.aggregates.truth import Truth
from windrow.engine.binding import PRESENCE
from windrow.span import Span
from windrow.spark.compatibility import spark_schema
from windrow.spark.pushdown import LIMB, Events, engine_of, events, latest, words
from windrow.spark.schema import named
from windrow.spark.task import Task
from windrow.spec import QuerySpec

# Up to so many copies of an event cost the JVM about as much as slices and Python do, or less. Time of the JVM alone over that through Python, by
# `python -m benchmarks.spark without_python`:
#
#     copies               1      2      3      4
#     100 keys            0.91   1.16   1.38   1.42
#     100,000 keys        0.69   0.82   1.12   1.44
MOST_COPIES = 2
# 2**64, as the engine multiplies by it.
WORD = 2.0**64
FOREIGN = (
    "the checkpoint belongs to another query, or one with other options: start with a new checkpoint, or with the query as it was; "
    "with path='general' a query can change"
)


def obstacle(query: QuerySpec, schema: pa.Schema) -> str | None:
    """Why Python makes the windows of slices that the JVM has made, as a phrase; None if the JVM makes windows."""
    if isinstance(query.time, Span):
        return f"what events of {query.time} carry over from slice to slice is added up there"
    for name, aggregate in query.aggregates.items():
        if not isinstance(aggregate, (Count, Sum, Mean, Extreme, Truth)):
            return f"aggregate {name!r} ({aggregate}) is computed there"
    for name, window in query.windows.items():
        if window.gap is not None:
            return f"window {name!r} ({window}) costs less to make of slices there than in Spark, which sorts them"
    copies = _copies(query, schema)
    if copies > MOST_COPIES:
        return f"an event is in up to {copies:,} windows, and more than {MOST_COPIES} copies of it cost more"
    return None


def reason(query: QuerySpec, schema: pa.Schema) -> str:
    """Why the JVM makes windows without an `obstacle`, as a phrase."""
    copies = _copies(query, schema)
    return "an event is in one window" if copies == 1 else f"an event is in no more than {copies} windows"


def _copies(query: QuerySpec, schema: pa.Schema) -> int:
    """How many windows hold an event, at most."""
    return int(engine_of(query, schema).windows.windows_per_event)


def windows(task: Task, df: DataFrame) -> DataFrame:
    """The windows of all events of `df`, in the columns of the task's result, for queries without an `obstacle`."""
    found = events(task.query, task.schema, df, task.settings)
    rows = _of_time(found, _State.of(task, df) if df.isStreaming else None)
    return _results(task.query, found, task.result, rows)


@dataclass(frozen=True)
class _State:
    """What Spark's state of a stream needs: the metadata by which it knows the column of the watermark, and a number for the plan."""

    metadata: dict[str, Any]
    plan: int

    @classmethod
    def of(cls, task: Task, df: DataFrame) -> _State:
        plan = int(replace(task, buckets=1, by_partition=False).identity()[:15], 16) + 1
        return cls(df.schema[task.query.time_columns[0]].metadata, plan)


def _of_time(found: Events, state: _State | None) -> DataFrame:
    """A row for each window of time, from "#start" to "#stop"; "#placement" is its place in the `WindowSet`, if there are more."""
    placed = found.engine.windows
    lengths = (placed.whole * placed.every + placed.rest).tolist()
    placements = zip(placed.every.tolist(), placed.offset.tolist(), lengths, strict=True)
    # Of each placement an event is in the last window to begin, the one before, and so on.
    copies = [
        (place, every, offset, length, length - back)
        for place, (every, offset, length) in enumerate(placements)
        for back in range(0, length, every)
    ]
    place, every, offset, _, more = (_one_of(values, "#copy") for values in zip(*copies, strict=True))
    rows, by = found.rows, [sf.col("#placement")] if len(lengths) > 1 else []
    if len(copies) > 1:
        rows = rows.select("*", sf.explode(sf.array(*map(sf.lit, range(len(copies))))).alias("#copy"))
    stop = latest(sf.col("#time"), every, offset) + more
    rows = rows.select("*", place.alias("#placement"), stop.alias("#stop"))
    # Where a length is no multiple of its slide, the first of its windows may be over, and where there are gaps the last.
    if any(length % every for _, every, _, length, _ in copies):
        rows = rows.where(sf.col("#time") < sf.col("#stop"))
    if state is None:
        rows = found.fold(rows, [*by, sf.col("#stop")])
    else:
        rows = _of_stream(found, rows, by, state)
    return rows.select("*", (sf.col("#stop") - _one_of(lengths, "#placement")).alias("#start"))


def _of_stream(found: Events, rows: DataFrame, by: Sequence[Column], state: _State) -> DataFrame:
    """The same in Spark's state, which tells late events, and windows that are final, by a column with such metadata.

    What is in this column at or before the watermark is late, or final. A watermark of 0 is none yet, so windows that are final
    by 1970 are so as soon as there is one, and have their time in a second column. In that of all others is the number of
    the plan: to Spark, a state of other windows would be as good.
    """
    lateness = sf.lit(int(found.engine.lateness))
    final, one = sf.col("#stop") + lateness, sf.lit(1)
    moment = sf.timestamp_micros(sf.greatest(final, one)).alias("#final", metadata=state.metadata)
    other = sf.when(final < one, final).otherwise(sf.lit(state.plan)).alias("#other")
    rows = found.fold(rows.select("*", moment, other), [*by, sf.col("#final"), sf.col("#other")])
    other = sf.col("#other")
    final = sf.when(other < one, other).otherwise(sf.unix_micros(sf.col("#final")))
    foreign = sf.raise_error(sf.lit(FOREIGN)).cast("bigint")
    final = sf.when((other > sf.lit(0)) & (other != sf.lit(state.plan)), foreign).otherwise(final)
    return rows.select("*", (final - lateness).alias("#stop"))


def _one_of(values: Sequence[int | str], at: str) -> Column:
    """The value whose number is in the column `at`. Arrays of constants are made once."""
    constants = [sf.lit(value).cast("string" if isinstance(value, str) else "bigint") for value in values]
    return constants[0] if len(set(values)) == 1 else sf.array(*constants)[sf.col(at).cast("int")]


# -- results -------------------------------------------------------------------------------------


def _results(query: QuerySpec, found: Events, result: pa.Schema, rows: DataFrame) -> DataFrame:
    """Windows in the columns and types of the result."""
    types = {field.name: field.dataType for field in spark_schema(result).fields}
    names = found.engine.windows.names
    label = _one_of([names[owner] for owner in found.engine.windows.owner.tolist()], "#placement")
    start, end = (_decoded(sf.col(name), types["start"]) for name in ("#start", "#stop"))
    made = {name: sf.col(alias) for name, alias in found.keys.items()}
    made |= {"window": label, "start": start, "end": end}
    for name, aggregate in query.aggregates.items():
        key = found.engine.binding.answers[name].key
        # Partials are counted from 1: before them is the number of events.
        i = 0 if key == PRESENCE else found.partials.index(key) + 1
        parts = [named(part) for part in found.parts(rows, i)]
        n = named(f"#{i}.n" if i else "#n")
        made[name] = _answer(aggregate, n, parts, types[name], found.engine.binding.types)
        if isinstance(aggregate, Sum) and isinstance(types[name], st.LongType):
            # A condition, and not a part of the sum: whoever does not read the sum gets the error, too.
            rows = rows.where(_fits(name, _sum(parts), label, start, end))
    # All columns may be null, as far as Spark is told of those that Python makes.
    there = sf.col("#n") > sf.lit(0)
    return rows.select(*(sf.when(there, made[name].cast(type_)).alias(name) for name, type_ in types.items()))


def _answer(
    aggregate: Aggregate, n: Column, parts: list[Column], type_: st.DataType, schema: pa.Schema
) -> Column:
    """What an aggregate of `n` values answers, read from a column of `schema`; null where there is no value."""
    if isinstance(aggregate, Count):
        return n
    if isinstance(aggregate, Extreme | Truth):
        return _decoded(parts[0], type_)
    if isinstance(aggregate, Mean):
        scale = scale_of(schema.field(aggregate.columns[0]).type)
        answer = _wide_to_float(*_sum(parts)) / n.cast("double") / sf.lit(scale)
    elif isinstance(type_, st.DecimalType):
        answer = _decimal(parts, type_.scale)
    else:
        answer, _ = _sum(parts)
    return sf.when(n > sf.lit(0), answer)


def _sum(limbs: list[Column]) -> tuple[Column, Column]:
    """The low and the high 64 bits of a sum; 0 where there is no value."""
    low, high = words([sf.coalesce(limb, sf.lit(0).cast("bigint")) for limb in limbs])
    return low, high


def _fits(name: str, total: tuple[Column, Column], label: Column, start: Column, end: Column) -> Column:
    """True, or the error that a sum does not fit in 64 bits."""
    low, high = total
    value = high.cast("decimal(20, 0)") * sf.lit(Decimal(WORD)) + low.cast("decimal(20, 0)")
    value = value + sf.when(low < sf.lit(0), sf.lit(Decimal(WORD))).otherwise(sf.lit(Decimal(0)))
    window = sf.concat(
        sf.lit("window '"), label, sf.lit("' ["), start.cast("string"), sf.lit(", "), end.cast("string")
    )
    column = sf.concat(sf.lit(f"column {name!r}, value "), value.cast("string"))
    error = sf.raise_error(sf.concat(column, sf.lit(": the sum of "), window, sf.lit(") overflows int64")))
    return sf.when(high == sf.shiftright(low, 63), sf.lit(True)).otherwise(error.cast("boolean"))


def _wide_to_float(low: Column, high: Column) -> Column:
    """As `windrow.aggregates.numerics.wide_to_float`, operation by operation."""
    unsigned = low.cast("double") + sf.when(low < sf.lit(0), sf.lit(WORD)).otherwise(sf.lit(0.0))
    wide = high.cast("double") * sf.lit(WORD) + unsigned
    return sf.when(high == sf.shiftright(low, 63), low.cast("double")).otherwise(wide)


def _decimal(limbs: list[Column], scale: int) -> Column:
    """The sum of limbs as a decimal. With 37 digits a sum of two keeps its scale."""
    type_ = f"decimal(37, {scale})"
    units = (Decimal(2 ** (LIMB * i)).scaleb(-scale) for i in range(len(limbs)))
    parts = [
        (limb.cast("decimal(19, 0)") * sf.lit(unit)).cast(type_)
        for limb, unit in zip(limbs, units, strict=True)
    ]
    return reduce(lambda total, part: (total + part).cast(type_), parts)


def _decoded(code: Column, type_: st.DataType) -> Column:
    """The value of a number that the engine works with, see `pushdown`."""
    if isinstance(type_, st.TimestampType):
        return sf.timestamp_micros(code)
    if isinstance(type_, st.DateType):
        return sf.date_from_unix_date(code.cast("int"))
    if isinstance(type_, st.DecimalType):
        return code.cast("decimal(19, 0)") * sf.lit(Decimal(1).scaleb(-type_.scale))
    # Of equal zeros Spark takes the one it met first: the sum makes each of them positive.
    return code + sf.lit(0.0) if isinstance(type_, (st.FloatType, st.DoubleType)) else code

"""Slices that Spark makes itself, in code that it generates.

    events          a row each                    read, cut and folded in the JVM, before the shuffle
      | groupBy(key, slice).agg(...)
    slices          a row per key and slice       the only thing that Python ever sees

Where every window repeats with a period, or is a session with a fixed gap, and every partial is a count,
an exact sum of integers or an extreme, a slice is an ordinary group. The columns are those of
`windrow.engine.exchange`, and the numbers in them are exactly those that the engine would have made: what
Spark rounds or orders otherwise is not pushed down, and `obstacle` says why.

Span events are cut in two where they cross a slice (see `windrow.engine.spanning.partial_batches`), and each half is a row of its slice.

A slice begins at the latest edge at or before the event, as in the engine:

    edges of one window       |         |         |         |
    edges of another          |              |              |
    slices                    |---------|----|----|---------|

Python makes windows of them. Where the JVM can do that itself, there need be no slices: see `jvm_windows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from windrow.aggregates.base import Scalars
from windrow.aggregates.count import COUNT
from windrow.aggregates.extremes import PLAIN
from windrow.aggregates.sum import INTEGER_SUM
from windrow.engine import exchange
from windrow.engine.engine import Engine
from windrow.engine.intake.bad_rows import NO_EDGES, NO_TIME
from windrow.engine.intake.batches import BEGINS, ENDS, INSIDE
from windrow.engine.operator import Operator
from windrow.options import OperatorOptions
from windrow.planner.window_set import WindowSet
from windrow.span import Span
from windrow.spark.schema import named
from windrow.spec import QuerySpec

# Integers are summed in limbs of this many bits, each in a column of its own: no sum can overflow before
# there are 2**41 events in a slice.
LIMB = 22
BITS: dict[type[st.DataType], int] = {st.ByteType: 8, st.ShortType: 16, st.IntegerType: 32, st.LongType: 64}
# Decimals of more digits may not fit in 64 bits.
MOST_DIGITS = 18
# More progressions of edges than this are not compared one by one: slices are cut on their common grid.
FEW_PROGRESSIONS = 8
NO_OPTIONS = OperatorOptions()

Partial = tuple[Scalars, tuple[str, ...]]


def obstacle(query: QuerySpec, schema: pa.Schema, df_schema: st.StructType) -> str | None:
    """Why the JVM cannot make the slices of this query, as a phrase; None if it can.

    `schema` is the Arrow schema of the events, `df_schema` that of the DataFrame they are in.
    """
    found = exchange.obstacle(query, schema)
    if found is not None:
        return found
    engine = engine_of(query, schema)
    types = _types(df_schema)
    return (
        _obstacle_of_time(query, engine, types[query.time_columns[0]])
        or _obstacle_of_keys(query, types)
        or _obstacle_of_aggregates(query, engine, types)
    )


def _obstacle_of_time(query: QuerySpec, engine: Engine, type_: st.DataType) -> str | None:
    if not isinstance(type_, (*BITS, st.DateType, st.TimestampType)):
        return f"the JVM does not count time column {query.time!r} ({_name(type_)}) in the engine's ticks"
    for name, window in query.windows.items():
        if window.layout == "aligned" and WindowSet.of({name: window}, engine.measure).irregular:
            return f"window {name!r} ({window}) does not repeat with a fixed period"
    return None


def _obstacle_of_keys(query: QuerySpec, types: dict[str, st.DataType]) -> str | None:
    for name in query.key:
        type_ = types[name]
        if isinstance(type_, st.StringType) and not type_.isUTF8BinaryCollation():
            return f"the JVM does not compare key column {name!r} ({_name(type_)}) by its bytes"
    return None


def _obstacle_of_aggregates(query: QuerySpec, engine: Engine, types: dict[str, st.DataType]) -> str | None:
    for name, answer in engine.binding.answers.items():
        partial = answer.bound.partial
        assert isinstance(partial, Scalars)
        if partial is COUNT:
            continue
        what = f"aggregate {name!r} ({query.aggregates[name]})"
        if partial is not INTEGER_SUM and _extreme(partial) is None:
            return f"{what} keeps {partial.name}, which the JVM does not make exactly as the engine does"
        type_ = types[answer.columns[0]]
        if not _has_code(type_):
            return (
                f"{what} reads values of type {_name(type_)}, which the JVM does not see as the engine does"
            )
    return None


@dataclass(frozen=True)
class Events:
    """Events as rows of the JVM: "#time" in ticks, and own names for all columns, as those of the user's could clash with ours.

    `keys` are the names of key columns, by those that users know, and `values` the name of the column that each partial reads.
    """

    rows: DataFrame
    engine: Engine
    keys: Mapping[str, str]
    partials: Sequence[Partial]
    values: Sequence[str]
    types: Sequence[st.DataType]

    def fold(self, rows: DataFrame, by: Sequence[Column], *more: Column) -> DataFrame:
        """One row for all events of a key that agree in the columns `by`.

        "#n" is the number of events, "#2.n" that of the values of partial 2, and the `parts` are what it is made of.
        """
        folded = [sf.count(sf.lit(1)).alias("#n"), *more]
        for i, (partial, _) in enumerate(self.partials, 1):
            value = sf.col(self.values[i - 1])
            folded.append(sf.count(value).alias(f"#{i}.n"))
            made = _parts(partial, value, self.types[i - 1])
            folded += [part.alias(f"#part{i}.{j}") for j, part in enumerate(made)]
        return rows.groupBy(*map(sf.col, self.keys.values()), *by).agg(*folded)

    def parts(self, rows: DataFrame, i: int) -> list[str]:
        """The columns of partial `i`, counted from 1, in what `fold` made."""
        return [name for name in rows.columns if name.startswith(f"#part{i}.")]


def events(query: QuerySpec, schema: pa.Schema, df: DataFrame, settings: OperatorOptions) -> Events:
    """The events of `df`, for queries without an `obstacle`.

    One without a time, or with one whose windows cannot be expressed, is an error once Spark comes to it.
    """
    engine = engine_of(query, schema, settings)
    types = _types(df.schema)
    partials = _partials(engine)
    columns = [next(iter(columns)) for _, columns in partials]
    keys = {name: f"#key{i}" for i, name in enumerate(query.key)}
    values = {name: f"#value{i}" for i, name in enumerate(dict.fromkeys(columns))}
    rows = df.select(
        *_instants(query, engine, types[query.time_columns[0]]),
        *(named(name).alias(alias) for name, alias in (*keys.items(), *values.items())),
    )
    return Events(rows, engine, keys, partials, [values[c] for c in columns], [types[c] for c in columns])


def slices(query: QuerySpec, schema: pa.Schema, df: DataFrame) -> DataFrame:
    """The slices of all events of `df`, in the columns of `exchange.slice_schema`."""
    found = events(query, schema, df, NO_OPTIONS)
    time = sf.col("#time")
    rows, by = found.rows, _cuts(query, found.engine, time)
    if isinstance(query.time, Span):
        rows = _in_halves(found.engine, rows)
        by.append(sf.col("#role"))
    rows = found.fold(rows, by, sf.min(time).alias("#first"), sf.max(time).alias("#last"))
    columns = [sf.col(alias).alias(name) for name, alias in found.keys.items()]
    if isinstance(query.time, Span):
        columns.append(sf.col("#role"))
    columns += [sf.col("#first"), sf.col("#last"), sf.col("#n")]
    for i, (partial, _) in enumerate(found.partials, 1):
        columns.append(named(f"#{i}.n"))
        fields = _fields(partial, [named(part) for part in found.parts(rows, i)])
        columns += [field.alias(f"#{i}.f{j}") for j, field in enumerate(fields)]
    return rows.select(*columns)


def engine_of(query: QuerySpec, schema: pa.Schema, settings: OperatorOptions = NO_OPTIONS) -> Engine:
    """An engine that takes nothing in, but knows the stores, the windows and how far time reaches."""
    operator = Operator(query, settings)
    operator.prepare(schema)
    return operator.engines[0]


def _types(schema: st.StructType) -> dict[str, st.DataType]:
    return {field.name: field.dataType for field in schema.fields}


def _name(type_: st.DataType) -> str:
    return type_.simpleString()


def _partials(engine: Engine) -> list[Partial]:
    """What a slice keeps besides the number of its events, with the columns it is made of."""
    binding = engine.binding
    found = {id(store): key for key, store in binding.stores.items()}
    return [found[id(store)] for store in binding.in_order[1:]]


# -- time ----------------------------------------------------------------------------------------


def _checked(engine: Engine, name: str, type_: st.DataType) -> Column:
    """The time of an event in ticks; an error that names the column and the value if it has none."""
    value = named(name)
    ticks = _code(value, type_)
    said = sf.concat(sf.lit(f"column {name!r}, value "), value.cast("string"), sf.lit(f": {NO_EDGES}"))
    return (
        sf.when(value.isNull(), sf.raise_error(sf.lit(f"column {name!r}, value None: {NO_TIME}")))
        .when(~ticks.between(int(engine.lowest), int(engine.highest)), sf.raise_error(said))
        .otherwise(ticks)
    )


def _cuts(query: QuerySpec, engine: Engine, time: Column) -> list[Column]:
    """What tells the slices of a key apart: no two events of a slice have an edge between them, or a gap."""
    cuts = [_edge(engine, time).alias("#slice")] if len(engine.windows.periods) else []
    gaps = [engine.measure.ticks(w.gap, what="gap") for w in query.windows.values() if w.gap is not None]
    if gaps:
        cuts.append(latest(time, int(min(gaps)), 0).alias("#cell"))
    return cuts


def _edge(engine: Engine, time: Column) -> Column:
    """The latest edge of a window of time that is not after `time`."""
    windows = engine.windows
    progressions = list(zip(windows.periods.tolist(), windows.phases.tolist(), strict=True))
    if len(progressions) > FEW_PROGRESSIONS:
        progressions = [(windows.grid, progressions[0][1])]
    edges = [latest(time, period, phase) for period, phase in progressions]
    return edges[0] if len(edges) == 1 else sf.greatest(*edges)


def _instants(query: QuerySpec, engine: Engine, type_: st.DataType) -> list[Column]:
    """The time of an event in ticks, or its first and its last instant."""
    start = _checked(engine, query.time_columns[0], type_)
    if not isinstance(query.time, Span):
        return [start.alias("#time")]
    return [start.alias("#time"), _last(engine, query.time, type_).alias("#last")]


def _last(engine: Engine, span: Span, type_: st.DataType) -> Column:
    """The last instant of a span event, in ticks; an error if there is none."""
    value, start = named(span.end), _code(named(span.start), type_)
    end, tick = _code(value, type_), sf.lit(1).cast("bigint")

    def refused(problem: str) -> Column:
        shown = sf.coalesce(value.cast("string"), sf.lit("None"))
        return sf.raise_error(
            sf.concat(sf.lit(f"column {span.end!r}, value "), shown, sf.lit(f": {problem}"))
        )

    found = sf.when(value.isNull(), refused("an event needs an end, and this one has none")).when(
        end < start, refused(f"the event ends before it starts ({span.start!r})")
    )
    if span.on_zero == "raise":
        none = f"the event ends where it starts ({span.start!r}), and so lasts for no time at all; "
        found = found.when(end == start, refused(none + 'on_zero="point" takes it as one tick long'))
    if span.longest is not None:
        longest = int(engine.measure.ticks(span.longest, what="longest"))
        length = end.cast("decimal(20, 0)") - start.cast("decimal(20, 0)")
        found = found.when(length > sf.lit(longest), refused(f"the event lasts longer than {span.longest}"))
    found = found.when(end - tick > sf.lit(int(engine.highest)), refused(NO_EDGES))
    return found.otherwise(sf.greatest(end - tick, start))


def _in_halves(engine: Engine, events: DataFrame) -> DataFrame:
    """A row for each end of an event that ends after the slice in which it begins, one for each other event."""
    first, last = sf.col("#time"), sf.col("#last")
    # Arrays of constants are made once. One of structs would be made anew for each event.
    inside, both = (
        sf.array(*(sf.lit(role).cast("bigint") for role in roles)) for roles in ([INSIDE], [BEGINS, ENDS])
    )
    role = sf.explode(sf.when(_edge(engine, last) <= first, inside).otherwise(both)).alias("#role")
    rest = [sf.col(name) for name in events.columns if name not in ("#time", "#last")]
    halves = events.select(role, "#time", "#last", *rest)
    return halves.select(
        "#role", sf.when(sf.col("#role") == ENDS, last).otherwise(first).alias("#time"), *rest
    )


def latest(time: Column, period: int | Column, phase: int | Column) -> Column:
    """The latest of the instants `phase + k*period` that is not after `time`, also before 1970."""
    return time - sf.pmod(time - sf.lit(phase), sf.lit(period))


# -- values --------------------------------------------------------------------------------------


def _has_code(type_: st.DataType) -> bool:
    if isinstance(type_, st.DecimalType):
        return type_.precision <= MOST_DIGITS
    known: tuple[type[st.DataType], ...] = (
        *BITS,
        st.BooleanType,
        st.DateType,
        st.TimestampType,
        st.FloatType,
        st.DoubleType,
    )
    return isinstance(type_, known)


def _code(value: Column, type_: st.DataType) -> Column:
    """A value as the number that the engine works with."""
    if isinstance(type_, st.TimestampType):
        return sf.unix_micros(value)
    if isinstance(type_, st.DateType):
        return sf.unix_date(value).cast("bigint")
    if isinstance(type_, st.DecimalType):
        return (value * sf.lit(Decimal(10**type_.scale))).cast("bigint")
    return value.cast("double" if isinstance(type_, (st.FloatType, st.DoubleType)) else "bigint")


def _extreme(partial: Scalars) -> str | None:
    """Whether a partial is a "min" or a "max"."""
    return next((which for (which, _), known in PLAIN.items() if known is partial), None)


def _parts(partial: Scalars, value: Column, type_: st.DataType) -> list[Column]:
    """What Spark aggregates for a partial."""
    if partial is COUNT:
        return []
    code = _code(value, type_)
    if partial is INTEGER_SUM:
        return [sf.sum(limb) for limb in _limbs(code, BITS.get(type(type_), 64))]
    return [(sf.min if _extreme(partial) == "min" else sf.max)(code)]


def _fields(partial: Scalars, parts: list[Column]) -> list[Column]:
    """The fields of a partial, from what Spark has aggregated; neutral where there was no value."""
    if partial is INTEGER_SUM:
        return words([sf.coalesce(part, sf.lit(0).cast("bigint")) for part in parts])
    # Of equal zeros Spark takes the one it met first: the sum makes each of them positive.
    return [
        sf.coalesce(part + sf.lit(0.0) if field.dtype == "f" else part, sf.lit(field.identity))
        for field, part in zip(partial.fields, parts, strict=True)
    ]


def _limbs(x: Column, bits: int) -> list[Column]:
    """A number of `bits` bits as limbs, the lowest first; the highest has the sign."""
    limbs = [sf.shiftright(x, shift) for shift in range(0, bits, LIMB)]
    return [limb.bitwiseAND(sf.lit(2**LIMB - 1)) for limb in limbs[:-1]] + limbs[-1:]


def words(limbs: list[Column]) -> list[Column]:
    """The low and the high 64 bits of a sum, from the sums of its limbs."""
    low, carry = sf.lit(0).cast("bigint"), sf.lit(0).cast("bigint")
    for i, limb in enumerate(limbs[:-1]):
        limb = limb + carry
        low = low.bitwiseOR(sf.shiftleft(limb.bitwiseAND(sf.lit(2**LIMB - 1)), i * LIMB))
        carry = sf.shiftright(limb, LIMB)
    top, shift = limbs[-1] + carry, (len(limbs) - 1) * LIMB
    # Java takes shifts modulo 64.
    return [low.bitwiseOR(sf.shiftleft(top, shift)), sf.shiftright(top, min(64 - shift, 63))]

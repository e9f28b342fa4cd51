"""Whether a pipeline fits the columns that its source declares, found in the file alone and without Spark.

Each window, aggregate and key is tried by itself: an operator of the engine is prepared for the declared columns with
it, and with sound ones otherwise. So the engine's own words say what is wrong, and no problem hides another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from windrow.aggregates.count import count
from windrow.engine.operator import Operator
from windrow.engine.results import with_selected
from windrow.errors import QueryError
from windrow.expressions.building import column_name, sources_of
from windrow.measure import Measure
from windrow.options import SparkOptions
from windrow.pipelines.columns import MOMENT, avro_columns, sql_columns
from windrow.pipelines.document import SpecError, Value
from windrow.pipelines.spec import AHEAD, IN_KAFKA, IN_TABLE, SIDE, SOURCES, TABLES, PostgresSink
from windrow.schema import no_such_column
from windrow.span import ZERO, Span, require_one_learner
from windrow.spec import QuerySpec
from windrow.windows.tumbling import Tumbling

# The name of the time, the window and the aggregate with which others are tried.
_SOUND = "windrow tries"


def misfits(
    found: Mapping[str, Value], parts: Mapping[str, Any], query_parts: Mapping[str, Any]
) -> list[str]:
    """All that does not fit, with its place.

    `found` are the fields of the file; `parts` what could be read of them, and `query_parts` of those of the query.
    """
    problems: list[str] = []
    try:
        source = _fields(found["source"])
        place = source["schema"]
        schema, unread = _declared(place, source, problems)
        query_fields = found["query"].fields(problems=[])
    except (KeyError, SpecError):  # nothing is declared, or what was wrong with it was reported
        return problems
    if schema is not None:
        fitting = _Fitting(found, parts, query_parts, query_fields, schema, unread, place, problems)
        fitting.check(in_kafka="kafka" in source)
    return problems


def query_misfits(
    spec: QuerySpec, place: Value, query_parts: Mapping[str, Any], schema: pa.Schema
) -> list[str]:
    """All that does not fit of a query over events with these columns; `place` is where the query stands in its file."""
    problems: list[str] = []
    found, parts, fields = {"query": place}, {"query": spec}, place.fields(problems=[])
    _Fitting(found, parts, query_parts, fields, schema, [], place, problems, streaming=False).check_query()
    return problems


def _fields(source: Value) -> dict[str, Value]:
    """The fields of a source, also where they stand behind its name."""
    fields = source.fields(problems=[])
    inner = [
        value.fields(problems=[]) for name, value in fields.items() if name in SOURCES and value.is_mapping
    ]
    return {**fields, **(inner[0] if inner else {})}


def _declared(
    place: Value, source: Mapping[str, Value], problems: list[str]
) -> tuple[pa.Schema | None, list[str]]:
    """The columns of a source, None if they cannot be read; and the names of those that have no type that can."""
    is_avro = "format" in source and source["format"].scalar() == "avro"
    if place.is_mapping and not is_avro:
        columns = {name: _tried(v, problems, partial(_type, v)) for name, v in place.fields().items()}
        unread = [name for name, type_ in columns.items() if type_ is None]
        return pa.schema({name: type_ for name, type_ in columns.items() if type_ is not None}), unread
    read = avro_columns if is_avro else sql_columns
    return _tried(place, problems, lambda: read("" if place.is_mapping else place.text("a schema"))), []


def _type(value: Value) -> pa.DataType:
    return sql_columns(f"c {value.text('a type')}").field(0).type


def _tried(place: Value, problems: list[str], attempt: Callable[[], Any]) -> Any:
    """What the attempt gives; None if it fails, which is then a problem at this place."""
    try:
        return attempt()
    except SpecError:  # reported where the field was read
        return None
    except QueryError as problem:
        problems += place.problem(str(problem)).problems
        return None


@dataclass
class _Fitting:
    """One file and the columns that it declares."""

    found: Mapping[str, Value]
    parts: Mapping[str, Any]
    query_parts: Mapping[str, Any]
    query: Mapping[str, Value]
    schema: pa.Schema
    unread: list[str]
    declared: Value
    problems: list[str]
    streaming: bool = True

    def check(self, *, in_kafka: bool) -> None:
        self._check_names(IN_KAFKA if in_kafka else ())
        self.check_query()
        dedupe = self.parts.get("dedupe")
        if dedupe is not None:
            self._has(self.found["dedupe"].mention(dedupe.id), (dedupe.id,))
        if not self.problems and not self.unread and "query" in self.parts:
            spec, place = self.parts["query"], self.found["query"]
            buckets = self.query_parts.get("buckets")
            _tried(place, self.problems, lambda: require_one_learner(spec.time, spec.key, buckets))

    def check_query(self) -> None:
        """The fields of the query, each by itself, and then all of it."""
        self._check_time()
        self._check_keys()
        if "where" in self.query_parts:
            condition = column_name(self.query_parts["where"])
            self._check_part(self.query["where"], (condition,), "where", where=condition)
        for name, window in self.query_parts.get("windows", {}).items():
            place = self.query["windows"].fields()[name]
            self._check_part(place, window.columns, f"window {name!r}", windows={name: window})
        for name, aggregate in self.query_parts.get("aggregates", {}).items():
            place = self.query["aggregates"].fields()[name]
            self._check_part(place, aggregate.columns, f"aggregate {name!r}", aggregates={name: aggregate})
        if "lateness" in self.query_parts:
            self._prepared(self.query["lateness"], options={"lateness": self.query_parts["lateness"]})
        if not self.problems and not self.unread and "query" in self.parts:
            spec, place = self.parts["query"], self.found["query"]
            key = {name: spec.key_expressions.get(name, name) for name in spec.key}
            key = key if spec.key_expressions else spec.key
            parts = {"windows": spec.windows, "aggregates": spec.aggregates}
            emits = {name: self.query_parts[name] for name in ("emit", "mode") if name in self.query_parts}
            fits = self._prepared(place, key=key, where=spec.where, select=spec.select, **parts)
            if fits and "emit" in emits:
                self._prepared(self.query["emit"], key=key, **parts, options=emits)

    def _check_keys(self) -> None:
        keys, place = self.query_parts.get("key", ()), self.query.get("key")
        if isinstance(keys, Mapping):
            assert place is not None
            for name, value in keys.items():
                self._check_part(place.fields()[name], (column_name(value),), "key", key={name: value})
            return
        for each, column in zip(_items(place), keys, strict=False):
            self._check_part(each, (column,), "key", key=column)

    def _wrong(self, place: Value, sentence: str) -> None:
        self.problems += place.problem(sentence).problems

    def _check_names(self, taken: tuple[str, ...]) -> None:
        """Names that a source, Spark or the sink needs for itself; Spark does not tell capitals from small letters."""
        taken += (AHEAD,) if self.query_parts.get("on_bad") == "divert" else ()
        self._refuse(self.declared, self.schema.names, taken, "a column")
        key, aggregates = self.query_parts.get("key", ()), self.query_parts.get("aggregates", {})
        taken = SIDE if self.query_parts.get("side_rows") else ()
        taken += IN_TABLE if isinstance(self.parts.get("sink"), TABLES) else ()
        self._refuse(self.found["query"], [*key, *aggregates], taken, "a column of the result")

    def _refuse(self, place: Value, names: list[str], taken: tuple[str, ...], what: str) -> None:
        seen = {name.lower() for name in taken}
        for name in names:
            if name.lower() in seen:
                self._wrong(
                    place.mention(name),
                    f"{what} cannot be called {name!r}: that name, in capitals or small letters, is taken",
                )
            seen.add(name.lower())

    def _check_time(self) -> None:
        """The time and the watermark; where one is wrong, the rest is tried with a sound one."""
        self.time: str | Span = self.query_parts.get("time", _SOUND)
        start, end = (
            (self.time.start, self.time.end) if isinstance(self.time, Span) else (self.time, self.time)
        )
        mark, on = self.parts.get("watermark"), end
        if mark is not None and mark.on is not None:
            on = mark.on
            if self._has(self.found["watermark"], (on,)):
                self._needs_moment(self.found["watermark"], on)
        sound = False
        if "time" in self.query_parts:
            place = self.query["time"]
            sound = self._has(place, (start,) if start == end else self.time.columns)
            sound = sound and self._is_measure(place.mention(start), start)
            sound = sound and (on != end or not self.streaming or self._needs_moment(place, end))
            sound = sound and self._prepared(place)
        if not sound:
            self.time = _SOUND
            self.schema = self.schema.append(pa.field(_SOUND, MOMENT))

    def _is_measure(self, place: Value, name: str) -> bool:
        type_ = self.schema.field(name).type
        return _tried(place, self.problems, lambda: Measure(name, type_)) is not None

    def _needs_moment(self, place: Value, name: str) -> bool:
        type_ = self.schema.field(name).type
        if type_ != MOMENT:
            sentence = f"a watermark needs a column of type timestamp, and {name!r} is {type_}"
            self._wrong(place.mention(name), sentence)
        return type_ == MOMENT

    def _check_part(self, place: Value, columns: tuple[str, ...], named: str, **parts: Any) -> None:
        if self._has(place, columns):
            read = {source for name in columns for source in sources_of(name)}
            self._prepared(place.mention(read.pop()) if len(read) == 1 else place, named, **parts)

    def _has(self, place: Value, columns: tuple[str, ...]) -> bool:
        columns = tuple(dict.fromkeys(source for name in columns for source in sources_of(name)))
        names = [*self.schema.names, *self.unread]
        for name in columns:
            if name not in names:
                self._wrong(place.mention(name), no_such_column(name, names))
        return set(columns) <= set(self.schema.names)

    def _prepared(
        self,
        place: Value,
        named: str = "",
        *,
        key: Any = (),
        windows: Any = None,
        aggregates: Any = None,
        options: Any = None,
        where: Any = None,
        select: Any = None,
    ) -> bool:
        """Whether an operator with these parts can be prepared for the columns."""
        first = self.time.start if isinstance(self.time, Span) else self.time
        unit = Measure(first, self.schema.field(first).type).duration(1)
        try:
            spec = QuerySpec.checked(
                self.time,
                key,
                windows or {_SOUND: Tumbling(unit, ZERO)},
                aggregates or {_SOUND: count()},
                where=where,
                select=select,
            )
            operator = Operator(spec, SparkOptions(**(options or {})).for_operators)
            operator.prepare(self.schema)
            result = with_selected(spec.select, operator.engines[0].result_schema.empty_table()).schema
        except QueryError as problem:
            self._wrong(place, str(problem).removeprefix(f"{named}: "))
            return False
        unfit = [f for f in result if self._is_unfit(f.type)]
        if unfit:
            shown = ", ".join(f"{field.name!r} ({field.type})" for field in unfit)
            where = (
                "PostgreSQL" if isinstance(self.parts.get("sink"), PostgresSink) else "a table of a lakehouse"
            )
            self._wrong(place, f"{where} has no type for {shown}")
        return not unfit

    def _is_unfit(self, type_: pa.DataType) -> bool:
        """Whether the sink cannot keep values of this type."""
        kinds = (pa.types.is_duration, pa.types.is_time, pa.types.is_null, pa.types.is_interval)
        return isinstance(self.parts.get("sink"), TABLES) and any(is_kind(type_) for is_kind in kinds)


def _items(value: Value | None) -> list[Value]:
    if value is None:
        return []
    return value.items() if value.is_list else [value]

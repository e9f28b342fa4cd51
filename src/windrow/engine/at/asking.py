"""A query asked at points in time, over bounded data.

    events, points   ->  keys as numbers, rows by key and time        once
    each window      ->  the rows that each point sees                (see `ranges`)
    each aggregate   ->  its answers over these rows                  (see `answers`)

Everything is columns, and nothing is kept for later: the answer is that of looking at all events for each point, and costs a sort and a few steps for
each event and each point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.aggregates.base import is_text, text_type, whole_number
from windrow.engine import rehearsal
from windrow.engine.aligned.cutting import in_order, scan_times
from windrow.engine.at.answers import Answering, Asked, Column
from windrow.engine.at.ranges import InOrder, Ranges, require_askable
from windrow.engine.binding import Binding
from windrow.engine.intake.bad_rows import Bounds, Intake
from windrow.engine.intake.columns import as_table, settled, shown, ticks_of, whole
from windrow.engine.intake.keys import Keys
from windrow.engine.intake.projection import projected, projection_of, rows_of
from windrow.engine.ordered.sorting import by_key_and_time
from windrow.errors import DataError, QueryError
from windrow.measure import INT64_MAX, INT64_MIN, Measure
from windrow.options import OperatorOptions, threads_of
from windrow.planner.plan import Part
from windrow.planner.window_set import WindowSet
from windrow.schema import require_columns
from windrow.span import Span
from windrow.spec import QuerySpec

Names = dict[tuple[str, str], str]

NO_TIME = "a point needs a time, and this one has none"
TOO_FAR = "the edges of its windows would overflow the column's type, or leave the calendar"


def at(
    query: QuerySpec, points: Any, events: Any, *, min_rows: int, on_bad: str, threads: int | None
) -> pa.Table:
    """As `Query.at`; `points` are None where they are the events."""
    names = result_names(query)
    least = whole_number(min_rows, what="min_rows", least=0)
    table = as_table(events)
    if rehearsal.is_worth_it(len(table)):
        rehearsal.begin(query, table, lambda q, t: at(q, None, t, min_rows=0, on_bad="divert", threads=1))
    batch, rows = _computed(query, table, on_bad)
    if rows is not None:
        table = table.take(pa.array(rows))
    with rows_of(rows):
        return _over(projected(query), points, table, batch, names, least, on_bad, threads_of(threads))


def _computed(query: QuerySpec, table: pa.Table, on_bad: str) -> tuple[pa.RecordBatch, np.ndarray | None]:
    """The events with all columns that are computed of them, and which rows of the table they are (None: all)."""
    projection, batch = projection_of(query), whole(table)
    if projection is None or projection.is_done(table.schema):
        return batch, None
    projection.require_new_names(table.schema)
    made = projection(batch, on_bad=on_bad)
    return made.batch, made.rows


def _over(
    query: QuerySpec,
    points: Any,
    table: pa.Table,
    batch: pa.RecordBatch,
    names: Names,
    least: int,
    on_bad: str,
    threads: int,
) -> pa.Table:
    """As `at`, of events of which everything is computed; `table` has their rows as they came."""
    part = Part("points", query, batch.schema, OperatorOptions(on_bad=on_bad))
    binding = Binding(part)
    bounds = _bounds(query, binding.measure)
    batch, times, good = _good_events(binding, query, part.options, bounds, batch)
    keys = Keys(binding.key_schema)
    ordered = _in_order(times, keys.numbers(batch), keys.count)
    if points is None:
        shown_rows = table if good is None else table.filter(pa.array(good))
        asked_at = ordered
    else:
        shown_rows = as_table(points)
        asked_times, numbers = read_points(binding.measure, bounds, keys, whole(shown_rows))
        asked_at = _in_order(asked_times, numbers, keys.count + 1)
    whose = "events" if points is None else "points"
    refuse_taken(shown_rows, names, whose)
    columns = _Columns(binding, batch, ordered)
    ranges = Ranges(ordered, asked_at, binding.measure, is_each=points is None)
    answered: dict[tuple[str, str], pa.Array] = {}
    for window_name, window in query.windows.items():
        low, high = ranges.of(window)
        few = _too_few(least, Asked(low, high, asked_at.places, 1))
        for name in query.aggregates:
            answering, values = columns.answering(name)
            asked = Asked(*values.ranges(low, high), asked_at.places, threads)
            found = answering.of(asked)
            if few is not None:
                found = pc.if_else(few, pa.scalar(None, found.type), found)
            answered[window_name, name] = found
    return with_answers(shown_rows, names, answered, whose=whose)


def refuse_taken(table: pa.Table, names: Names, whose: str) -> None:
    """An error if a column of an answer is there already."""
    taken = [name for name in names.values() if name in table.column_names]
    if taken:
        raise QueryError(
            f"the {whose} have a column {taken[0]!r}, which an answer is called: rename one of the two"
        )


def with_answers(
    table: pa.Table, names: Names, answered: dict[tuple[str, str], pa.Array], *, whose: str
) -> pa.Table:
    """The rows with a column for each answer."""
    refuse_taken(table, names, whose)
    for pair, name in names.items():
        table = table.append_column(name, answered[pair])
    return table


def result_names(query: QuerySpec) -> Names:
    """The column of each window and aggregate; an error if a window cannot be asked at points, or two columns have one name."""
    if isinstance(query.time, Span):
        raise QueryError(
            "events with a duration cannot be asked at points in time: give the query one time column"
        )
    if not isinstance(query.time, str):
        raise QueryError("processing time is no time that points could have: give the query a time column")
    if query.select:
        raise QueryError(
            f"the selected column {next(iter(query.select))!r} is computed of windows that are emitted: compute it of the answers at points"
        )
    for name, window in query.windows.items():
        require_askable(name, window)
    alone = len(query.windows) == 1
    names = {(w, a): a if alone else f"{a}_{w}" for w in query.windows for a in query.aggregates}
    seen: dict[str, tuple[str, str]] = {}
    for pair, name in names.items():
        if name in seen:
            one, other = (f"{a!r} over {w!r}" for w, a in (seen[name], pair))
            raise QueryError(
                f"{one} and {other} would both be called {name!r}: rename a window or an aggregate"
            )
        seen[name] = pair
    return names


def _bounds(query: QuerySpec, measure: Measure) -> Bounds:
    """Times at which all edges of windows can be expressed."""
    placed = {name: window for name, window in query.windows.items() if window.layout == "aligned"}
    low, high = WindowSet.of(placed, measure).reach if placed else (measure.lowest, measure.highest)
    if not measure.floating:
        low, high = max(low, INT64_MIN + 1), min(high, INT64_MAX - 1)
    return Bounds(low, high, None, None)


def _good_events(
    binding: Binding, query: QuerySpec, options: OperatorOptions, bounds: Bounds, batch: pa.RecordBatch
) -> tuple[pa.RecordBatch, np.ndarray, np.ndarray | None]:
    """The events that can be taken in, their times, and a mask of them if not all can."""
    times, missing = ticks_of(batch.column(query.time_columns[0]), binding.measure)
    if not len(times):
        return batch, times, None
    intake = Intake(query.time_columns[0], options, ordered=query.ordered)
    judged = intake.judged([], bounds, batch, times, scan_times(times), missing, binding.bad_values(batch))
    refused = intake.refuse(batch, *judged)
    if refused is None:
        return batch, times, None
    return batch.filter(pa.array(refused[0])), times[refused[0]], refused[0]


def _in_order(times: np.ndarray, numbers: np.ndarray | None, count: int) -> InOrder:
    """Rows by key and time; numbers of keys are below `count`."""
    order, present, bounds = by_key_and_time(times, numbers, count, ordered=bool(in_order(times)))
    if not len(times):
        present, bounds = np.zeros(1, np.int64), np.zeros(2, np.int64)
    return InOrder(times if order is None else times[order], order, present.astype(np.int64), bounds)


def read_points(
    measure: Measure, bounds: Bounds, keys: Keys, batch: pa.RecordBatch
) -> tuple[np.ndarray, np.ndarray | None]:
    """Times and key numbers of points; an error for the first one that has no time, or is not of the types of the events.

    A key that no event can have, as it is too large for their type, has the number behind all others.
    """
    require_columns(batch.schema, (measure.column, *keys.schema.names))
    column = batch.column(measure.column)
    held, too_large = _as(column, measure.type, measure.column)
    times, missing = ticks_of(held, measure)
    wrong = too_large | (times < bounds.lowest) | (times > bounds.highest)
    for mask, problem in ((missing, NO_TIME), (wrong, TOO_FAR)):
        if mask is not None and mask.any():
            row = int(np.argmax(mask))
            raise DataError(measure.column, row, shown(column[row]), problem)
    if not len(keys.schema):
        return times, None
    columns, strange = zip(*(_as(batch.column(f.name), f.type, f.name) for f in keys.schema), strict=True)
    numbers = keys.numbers(pa.RecordBatch.from_arrays(list(columns), schema=keys.schema))
    assert numbers is not None
    unknown = np.logical_or.reduce(strange)
    return times, np.where(unknown, keys.count, numbers) if unknown.any() else numbers


def _as(column: pa.Array, type_: pa.DataType, name: str) -> tuple[pa.Array, np.ndarray]:
    """A column of the points in the type that the events have it in, if it says the same; and a mask of the integers that this type cannot hold."""
    fits = np.zeros(len(column), bool)
    if column.type == type_:
        return column, fits
    plain = column.cast(text_type(column.type))
    if _are_times(plain.type, type_) and _is_instant(plain.type) != _is_instant(type_):
        raise QueryError(
            f"column {name!r} of the points is {column.type}, and of the events {type_}: one of them has a zone"
        )
    differ = (
        f"column {name!r} of the points is {column.type}, which cannot be compared with {type_} of the events"
    )
    if not _says_the_same(plain.type, type_):
        raise QueryError(f"{differ}: cast one of the two")
    if pa.types.is_integer(plain.type) and pa.types.is_integer(type_):
        return _held(plain, type_)
    try:
        return plain.cast(type_), fits
    except pa.ArrowInvalid as problem:
        raise QueryError(f"{differ}: {problem}") from problem


def _held(column: pa.Array, type_: pa.DataType) -> tuple[pa.Array, np.ndarray]:
    """Integers in another type, and a mask of those that it cannot hold, in the place of which anything stands."""
    held = column.cast(type_, safe=False)
    wrapped = pc.not_equal(held.cast(column.type, safe=False), column)
    turned = pc.not_equal(pc.less(held, pa.scalar(0, type_)), pc.less(column, pa.scalar(0, column.type)))
    return held, pc.or_(wrapped, turned).fill_null(False).to_numpy(zero_copy_only=False)


def _are_times(one: pa.DataType, other: pa.DataType) -> bool:
    return all(pa.types.is_timestamp(type_) or pa.types.is_date(type_) for type_ in (one, other))


def _is_instant(type_: pa.DataType) -> bool:
    """Whether times of this type have a zone."""
    return bool(pa.types.is_timestamp(type_) and type_.tz is not None)


def _says_the_same(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether equal values of two types mean the same, and the first can be cast to the second."""
    numbers = pa.types.is_integer(one) or pa.types.is_floating(one)
    kinds = (pa.types.is_integer, is_text, pa.types.is_duration, pa.types.is_time)
    alike = any(kind(one) and kind(other) for kind in kinds) or _are_times(one, other)
    return bool(alike or pa.types.is_null(one) or (numbers and pa.types.is_float64(other)))


def _too_few(least: int, asked: Asked) -> pa.Array | None:
    """Which windows have fewer rows; None if none has."""
    few = asked.counts < least if least else np.zeros(0, bool)
    return pa.array(few) if few.any() else None


@dataclass
class _Values:
    """The rows that have a value in some columns: all of them, or as many as are counted up to each row."""

    column: Column
    upto: np.ndarray | None

    def ranges(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ranges of all rows as ranges of these."""
        return (low, high) if self.upto is None else (self.upto[low], self.upto[high])


class _Columns:
    """The columns that aggregates read, in order; each is read once."""

    def __init__(self, binding: Binding, batch: pa.RecordBatch, events: InOrder) -> None:
        self._binding, self._events = binding, events
        self._codes: dict[str, np.ndarray] = {}
        self._present: dict[str, np.ndarray | None] = {}
        self._values: dict[tuple[str, ...], _Values] = {}
        self._answering: dict[Any, Answering] = {}
        for name, coder in binding.coders.items():
            codes, _, _ = coder.encode(batch.column(name))
            self._codes[name] = events.sorted(codes)
        for name in dict.fromkeys(c for answer in binding.answers.values() for c in answer.columns):
            array = settled(batch.column(name))
            valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
            self._present[name] = None if valid is None else events.sorted(valid)

    def answering(self, name: str) -> tuple[Answering, _Values]:
        """What answers an aggregate, and the rows that it reads."""
        answer = self._binding.answers[name]
        values = self._values_of(answer.columns)
        if name not in self._answering:
            read = answer.columns[0] if answer.columns else ""
            self._answering[name] = Answering(answer.bound, answer.decoders, values.column, name=read)
        return self._answering[name], values

    def _values_of(self, columns: tuple[str, ...]) -> _Values:
        if columns not in self._values:
            masks = [mask for c in columns if (mask := self._present[c]) is not None]
            codes = [self._codes[c] for c in columns if c in self._codes]
            stamps = self._events.times, self._events.places
            upto = None
            if masks:
                mask = np.logical_and.reduce(masks)
                upto = np.concatenate([[0], np.cumsum(mask)])
                codes = [column[mask] for column in codes]
                stamps = stamps[0][mask], stamps[1][mask]
            self._values[columns] = _Values(Column(tuple(codes), stamps), upto)
        return self._values[columns]

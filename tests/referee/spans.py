"""Rows of events that last, read one by one in order of arrival: events, ends of open ones, and bad rows.

    start  end   id
    3      9     -      complete: the event [3, 9)
    4      -     a      opening: an event that goes on from 4, and is called a
    -      7     a      closing: ... and has ended at 7
    5      -     -      bad: nobody could ever end it

What an event gives at one instant only ("start", "end") is an event at that instant, as if it had never lasted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tests.referee.events import Event, Key, Source, require_columns
from tests.referee.placement import after, before
from tests.referee.places import places_of, problem_in
from tests.referee.prorated import is_prorated, prorated_reference
from windrow.errors import DataError, QueryError
from windrow.measure import Measure, Tick
from windrow.span import Span
from windrow.spec import QuerySpec
from windrow.testing.compare import canonical, plain_values
from windrow.windows.session import Session

Bad = tuple[int, str, Any, str]
Name = tuple[Key, Any]


@dataclass(frozen=True)
class Closing:
    """A row that ends an open event: which one (its arrival number), and when."""

    arrival: int
    end: Tick
    row: int


@dataclass
class Reading:
    """The rows of a batch, each in its place, and the events that are open after it by key and id.

    `lengths` tells how long the events have lasted that have come to be known whole.
    """

    open: dict[Name, Event]
    events: list[Event] = field(default_factory=list)
    closings: list[Closing] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    lengths: list[Fraction] = field(default_factory=list)


def measure_of(query: QuerySpec, schema: pa.Schema) -> Measure:
    """The measure of a query over this table; an error if its spans do not fit the table."""
    require_columns(query, schema)
    column = query.time_columns[0]
    measure = Measure(column, schema.field(column).type)
    if isinstance(query.time, str):
        return measure
    start, end = (schema.field(name).type for name in (query.time.start, query.time.end))
    if start != end:
        raise QueryError(f"the start is {start} and the end {end}: both ends of a span have one type")
    if measure.floating and query.time.id is not None:
        raise QueryError(f"events that are not over need a time of whole ticks, not {measure.describe()}")
    if not query.time.is_point and measure.floating:
        for name, window in query.windows.items():
            if isinstance(window, Session):
                raise QueryError(f"session {name!r} of events that last cannot be on a float measure")
    if is_prorated(query):
        for aggregate in query.aggregates.values():
            prorated_reference(aggregate)
    return measure


def read_spans(
    query: QuerySpec,
    table: pa.Table,
    *,
    open_events: dict[Name, Event] | None = None,
    first_arrival: int = 0,
    horizon: Tick = -math.inf,
) -> Reading:
    """All rows in order of arrival; `open_events` are those that went on before, by key and id."""
    assert isinstance(query.time, Span)
    measure = measure_of(query, table.schema)
    reader = _Reader(query, query.time, measure, Reading(dict(open_events or {})))
    columns = {name: plain_values(table[name]) for name in table.column_names}
    source = Source(table)
    for row in range(table.num_rows):
        values = {name: column[row] for name, column in columns.items()}
        key = tuple(canonical(values[name]) for name in query.key)
        reader.read(Event(0, first_arrival + row, key, values, row, source, horizon))
    return reader.reading


class _Reader:
    """Puts one row after the other in its place."""

    def __init__(self, query: QuerySpec, span: Span, measure: Measure, reading: Reading) -> None:
        self.query = query
        self.span = span
        self.measure = measure
        self.reading = reading

    def read(self, raw: Event) -> None:
        """Take in one row, whose times have not been looked at yet."""
        try:
            self._take(raw)
        except DataError as problem:
            self.reading.bad.append((raw.row, problem.column, problem.value, problem.problem))

    def _take(self, raw: Event) -> None:
        span = self.span
        start, end = self._time(raw, span.start), self._time(raw, span.end)
        if span.id is None or (start is None and end is None):
            self._require(start is not None, raw, span.start, "an event needs a start")
            self._require(end is not None, raw, span.end, "an event needs an end")
        elif None in (start, end):
            named = raw.values[span.id] is not None
            self._require(named, raw, span.id, "an event that comes in two rows needs an id")
        if start is None:
            self._close(raw, end)
            return
        if span.id is not None:
            free = self._name(raw) not in self.reading.open
            self._require(free, raw, span.id, "an event of this key and id goes on")
        if end is None:
            self._begin(raw, start)
            return
        end = self._checked(raw, start, end)
        event = self._at(raw, start, end)
        self._require_fit(event)
        self.reading.events.append(event)
        self.reading.lengths.append(Fraction(end) - Fraction(start))

    def _begin(self, raw: Event, start: Tick) -> None:
        self._require_fit(replace(raw, tick=start))
        event = replace(raw, tick=start, end=math.inf)
        self.reading.events.append(event)
        self.reading.open[self._name(raw)] = event

    def _close(self, raw: Event, end: Tick | None) -> None:
        assert self.span.id is not None
        assert end is not None
        event = self.reading.open.get(self._name(raw))
        self._require(event is not None, raw, self.span.id, "closes nothing")
        assert event is not None
        end = self._checked(raw, event.tick, end)
        self._require_fit(replace(event, end=end))
        self.reading.closings.append(Closing(event.arrival, end, raw.row))
        self.reading.lengths.append(Fraction(end) - Fraction(event.tick))
        del self.reading.open[self._name(raw)]

    def _at(self, raw: Event, start: Tick, end: Tick) -> Event:
        if self.span.contributes == "start":
            return replace(raw, tick=start)
        if self.span.contributes == "end":
            return replace(raw, tick=before(self.measure, end))
        return replace(raw, tick=start, end=end)

    def _checked(self, raw: Event, start: Tick, end: Tick) -> Tick:
        """The end of `[start, end)`, which must be one."""
        if end == start and self.span.on_zero == "point":
            end = after(self.measure, start)
        self._require(start < end, raw, self.span.end, "an event ends after it starts")
        longest = self.span.longest
        if longest is not None:
            short = end - start <= self.measure.ticks(longest, what="longest")
            self._require(short, raw, self.span.end, f"the event lasts longer than {longest}")
        return end

    def _require_fit(self, event: Event) -> None:
        """Every window that holds the event fits the measure."""
        places_of(self.query, self.measure, event)
        if problem := problem_in(self.query, self.measure, event):
            column, value, reason = problem
            raise DataError(column, event.row, value, reason)

    def _require(self, true: bool, raw: Event, column: str, reason: str) -> None:
        if not true:
            raise DataError(column, raw.row, raw.values[column], reason)

    def _time(self, raw: Event, column: str) -> Tick | None:
        """A tick; None where there is none. NaN is none."""
        tick: Tick | None = raw.values[column]
        if tick is None:
            return tick
        if not self.measure.floating:
            self._require(tick <= self.measure.highest, raw, column, "is more than a tick can be")
            return tick
        self._require(not math.isinf(tick), raw, column, "is not a finite number")
        return None if math.isnan(tick) else float(tick)

    def _name(self, raw: Event) -> Name:
        assert self.span.id is not None
        return raw.key, canonical(raw.values[self.span.id])


def learned_delay(lengths: list[Fraction], quantile: float, measure: Measure) -> Tick:
    """The length that this share of the events has at most, rounded up: in sixteenths of the power of two below.

    >>> import pyarrow as pa
    >>> from windrow.measure import Measure
    >>> [learned_delay([Fraction(n)], 1.0, Measure("t", pa.int64())) for n in (1, 32, 33, 100)]
    [1, 32, 34, 100]
    """
    if not lengths:
        return 0
    length = sorted(lengths)[math.ceil(quantile * len(lengths)) - 1]
    power = Fraction(1)
    while power > length:
        power /= 2
    while 2 * power <= length:
        power *= 2
    delay = math.ceil(length / (power / 16)) * (power / 16)
    return float(delay) if measure.floating else math.ceil(delay)


def last_moment(measure: Measure, events: Iterable[Event], ends: Iterable[Tick]) -> Tick:
    """When events that still go on are taken to end: nothing has been heard of any later instant."""
    begun = [after(measure, event.tick) for event in events]
    return max([*begun, *ends])


def closed(events: Iterable[Event], closings: Iterable[Closing]) -> list[Event]:
    """The events, with the ends that have come to be known."""
    ends = {closing.arrival: closing.end for closing in closings}
    return [replace(event, end=ends.get(event.arrival, event.end)) for event in events]


def bounded_spans(query: QuerySpec, table: pa.Table) -> tuple[Measure, list[Event]]:
    """All events of bounded data, the open ones with an end; a bad row raises `DataError`."""
    reading = read_spans(query, table)
    measure = measure_of(query, table.schema)
    for row, column, value, reason in reading.bad:
        raise DataError(column, row, value, reason)
    events = closed(reading.events, reading.closings)
    finite = [event.end for event in events if event.end is not None and event.end != math.inf]
    if not any(event.end == math.inf for event in events):
        return measure, events
    last = last_moment(measure, events, finite)
    return measure, [replace(event, end=last) if event.end == math.inf else event for event in events]

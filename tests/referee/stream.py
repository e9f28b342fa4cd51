"""The reference operator: watermarks, lateness, revisions and late rows, by definition.

    process   each event goes into every window that holds it and is not final yet;
              if all of them are final, it is late
    advance   windows whose end the watermark has reached are emitted

A window is final once `end <= watermark - lateness` (with times of floating point, the difference is what is rounded). In append mode it is emitted then, once. In
update mode it is emitted (`insert`, revision 0) once `watermark >= end`, and again (`update`) by each
later advance before which a late event was added to it.

Windows that depend on the events (see `sequences`) are found anew at each advance, from every event
that counts, and compared with what was emitted (see `changes`). A session still takes an event at its
very end, so it is emitted, and final, when the watermark has passed its end. An event is late for a
session if it would be a final one on its own, and for an order-based window if it lies before the horizon,
the watermark less the lateness: each window judges by itself, and an event that all of them refuse is late.

Events that last are kept by `span_memory`. The watermark is then the one that was given less the release delay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from numbers import Real
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from tests.referee.answers import Answer, Answers, compute
from tests.referee.changes import Change, Identity, Sequences, finality
from tests.referee.events import Event, bad_reason, read_events, require_columns
from tests.referee.places import Place, places_of, problem_in
from tests.referee.sequences import is_order_based, is_sequential
from tests.referee.span_memory import SpanMemory
from tests.referee.spans import Reading, learned_delay, measure_of, read_spans
from windrow.aggregates.base import Aggregate
from windrow.durations import DurationLike, parse_duration
from windrow.errors import DataError, QueryError
from windrow.measure import Measure, PointLike, Tick
from windrow.span import Learned, Span
from windrow.spec import QuerySpec
from windrow.testing.compare import plain_values
from windrow.windows import Window


@dataclass
class Pane:
    """One window of one key: its events, the last revision that was emitted, whether it changed since."""

    events: list[Event] = field(default_factory=list)
    revision: int = -1
    changed: bool = False


def _place(identity: Identity) -> Place:
    key, name, start, end = identity
    return key, name, (start, end)


class ReferenceOperator:
    """A streaming operator in plain Python; the methods are those of `Query.operator()`.

    >>> import windrow as wr, pyarrow as pa
    >>> q = wr.query(time="ts", windows={"w": wr.tumbling(5)}, aggregates={"n": wr.count()})
    >>> op = ReferenceOperator(q, mode="update", lateness=2)
    >>> op.process(pa.table({"ts": [1, 2, 7]}))
    >>> op.advance(5).to_pylist()
    [{'window': 'w', 'start': 0, 'end': 5, 'n': 2, 'op': 'insert', 'revision': 0}]
    """

    def __init__(
        self, query: QuerySpec, mode: str = "append", lateness: DurationLike = 0, on_bad: str = "raise"
    ) -> None:
        self.query = query
        self.mode = mode
        self.on_bad = on_bad
        self.answers: Answers | None = None
        self._lateness = parse_duration(lateness, what="lateness")
        self._measure: Measure | None = None
        self._schema: pa.Schema | None = None
        self._told: Tick = -math.inf
        self._watermark: Tick = -math.inf
        # The watermark and the horizon when the lateness became another one.
        self._final_until: tuple[Tick, Tick] = (-math.inf, -math.inf)
        self._waiting: PointLike | None = None
        self._latest: Tick = -math.inf
        self._arrivals = 0
        self._panes: dict[Place, Pane] = {}
        self._sequences = Sequences()
        self._lasting = SpanMemory()
        self._log: list[Event] = []
        self._lengths: list[Fraction] = []
        self._complete_from: dict[str, Tick] = {}
        self._known_from: dict[str, Tick] = {}
        self._late: list[pa.Table] = []
        self._bad: list[pa.Table] = []

    def process(self, table: pa.Table) -> None:
        """Take in a batch; a bad row raises (nothing of the batch is kept) or is set aside."""
        self._open(table.schema)
        reading, rows = self._read(table)
        if reading.bad and self.on_bad != "divert":
            row, column, value, reason = reading.bad[0]
            raise DataError(column, row, value, reason)
        places = [
            places_of(self.query, self._known(), event) for event in reading.events if event.end is None
        ]
        if reading.bad:
            bad = table.take(pa.array([row for row, *_ in reading.bad], pa.int64()))
            reasons = pa.array([reason for *_, reason in reading.bad], pa.string())
            self._bad.append(bad.append_column("bad_reason", reasons))
        self._arrivals += table.num_rows
        self._lengths += reading.lengths
        late = self._take_lasting(reading) if self._lasts else self._take(reading.events, places)
        if late:
            self._late.append(table.take(pa.array([rows[row] for row in late], pa.int64())))

    def _read(self, table: pa.Table) -> tuple[Reading, Sequence[int]]:
        """What the rows say, and at which place in the table each of the rows that were read stands."""
        first, horizon = self._arrivals, self._horizon()
        if isinstance(self.query.time, Span):
            opened = self._lasting.open
            reading = read_spans(self.query, table, open_events=opened, first_arrival=first, horizon=horizon)
            return reading, range(table.num_rows)
        good, bad = self._sort_out(table)
        _, events = read_events(self.query, table.take(good), first_arrival=first, horizon=horizon)
        return Reading({}, events, bad=bad), good.to_pylist()

    def _take(self, events: list[Event], placed: list[list[Place]]) -> list[int]:
        """Put events at an instant where they belong; gives the rows that are late."""
        measure, horizon = self._known(), self._horizon()
        late = []
        for event, places in zip(events, placed, strict=True):
            self._latest = max(self._latest, event.tick)
            self._log.append(event)
            places = [place for place in places if not self._before(place)]
            finals = [self._final(p) for p in places]
            self._add(event, [p for p, final in zip(places, finals, strict=True) if not final])
            if self._is_late(event, finals, measure, horizon):
                late.append(event.row)
        return late

    def _take_lasting(self, reading: Reading) -> list[int]:
        """Keep events that last; gives the rows that are late. One that goes on is not."""
        measure, horizon = self._known(), self._horizon()

        def finals(event: Event) -> list[bool]:
            places = places_of(self.query, measure, event)
            return [self._final(place) for place in places if not self._before(place)]

        late = self._lasting.take(reading, measure, lambda event: bool(finals(event)) and all(finals(event)))
        for event in reading.events:
            if event.end == math.inf:
                continue
            if self._is_late(event, finals(event), measure, horizon):
                late.append(event.row)
        return sorted(late)

    def _is_late(self, event: Event, finals: list[bool], measure: Measure, horizon: Tick) -> bool:
        """Let windows that depend on the events take this one; whether all windows find it late."""
        for name, window in self._sequential().items():
            judged = finality(window, measure, event, horizon)
            if self._misses(name, window, event):
                judged = [True]
            finals += judged
            if judged and not all(judged):
                self._sequences.add(name, event)
        return bool(finals) and all(finals)

    def advance(self, watermark: PointLike) -> pa.Table:
        """Move the watermark and take what became ready."""
        if self._measure is None:
            self._waiting = watermark
            return pa.table({})
        tick = self._measure.point(watermark, what="watermark")
        if tick < self._told:
            raise QueryError(
                f"the watermark cannot go back from {self._measure.scalar(self._told)} "
                f"to {self._measure.scalar(tick)}"
            )
        self._told = tick
        # What is learned may make a window wait longer, but not take it back.
        return self._emit(max(self._watermark, tick - self._release()))

    def finish(self) -> pa.Table:
        """No event is expected any more: take everything that is left."""
        if self._measure is None:
            return pa.table({})
        self._told = math.inf
        self._lasting.finish(self._measure, self._watermark)
        return self._emit(math.inf)

    def late(self) -> pa.Table:
        """The late rows since the last call, in order of arrival."""
        return self._drain(self._late, ())

    def bad(self) -> pa.Table:
        """The bad rows since the last call, each with a reason."""
        return self._drain(self._bad, (pa.field("bad_reason", pa.string()),))

    def add_window(self, name: str, window: Window, *, complete_from: PointLike | None = None) -> Any:
        """Answer one more window, from its first one that starts at or after `complete_from`.

        Windows that have ended already come with the next advance. This operator keeps every event,
        so it is complete from wherever it is told to be; an engine keeps slices, and says itself.
        """
        measure = self._known()
        windows = MappingProxyType({**self.query.windows, name: window})
        self.query = replace(self.query, windows=windows)
        if complete_from is not None:
            self._complete_from[name] = _tick(measure, complete_from)
        only = replace(self.query, windows=MappingProxyType({name: window}))
        for event in self._log:
            self._add(event, places_of(only, measure, event))
            if is_sequential(window) and not self._misses(name, window, event):
                self._sequences.add(name, event)
        return complete_from

    def _misses(self, name: str, window: Window, event: Event) -> bool:
        """Whether an order-based window that was added later does not count the event."""
        return is_order_based(window) and event.tick < self._complete_from.get(name, -math.inf)

    def remove_window(self, name: str) -> None:
        """Forget a window and everything that it still holds."""
        windows = {n: w for n, w in self.query.windows.items() if n != name}
        self.query = replace(self.query, windows=MappingProxyType(windows))
        self._panes = {place: pane for place, pane in self._panes.items() if place[1] != name}
        self._sequences.remove(name)

    def change_lateness(self, lateness: DurationLike) -> None:
        """Wait for late events for another time from the next watermark on."""
        self._final_until = self._watermark, self._horizon()
        self._lateness = parse_duration(lateness, what="lateness")

    def add_aggregate(
        self, name: str, aggregate: Aggregate, *, complete_from: PointLike | None = None
    ) -> Any:
        """Compute one more aggregate; it is null in windows that start before `complete_from`."""
        aggregates = MappingProxyType({**self.query.aggregates, name: aggregate})
        self.query = replace(self.query, aggregates=aggregates)
        if complete_from is not None:
            self._known_from[name] = _tick(self._known(), complete_from)
        return complete_from

    def remove_aggregate(self, name: str) -> None:
        """Compute one aggregate less."""
        aggregates = {n: a for n, a in self.query.aggregates.items() if n != name}
        self.query = replace(self.query, aggregates=MappingProxyType(aggregates))

    def _open(self, schema: pa.Schema) -> None:
        require_columns(self.query, schema)
        if self._measure is None:
            self._schema = schema
            self._measure = measure_of(self.query, schema)
            if self._waiting is not None:
                self._told = self._measure.point(self._waiting, what="watermark")
                self._watermark = self._told - self._release()

    def _known(self) -> Measure:
        if self._measure is None:
            raise QueryError("no batch was processed yet: the type of the time column is not known")
        return self._measure

    @property
    def _lasts(self) -> bool:
        """Whether events belong to windows by their lifespan, and not by an instant."""
        return isinstance(self.query.time, Span) and not self.query.time.is_point

    def _release(self) -> Tick:
        """By how much the watermark that counts lies behind the one that is told."""
        if isinstance(self.query.time, str):
            return 0
        release, measure = self.query.time.release, self._known()
        if isinstance(release, Learned):
            return learned_delay(self._lengths, release.quantile, measure)
        return measure.ticks(release, what="release")

    def _sort_out(self, table: pa.Table) -> tuple[pa.Array, list[tuple[int, str, Any, str]]]:
        """Positions of good rows, and (row, column, value, reason) of bad ones."""
        column = self._known().column
        ticks = plain_values(table[column])
        timed = [row for row, tick in enumerate(ticks) if bad_reason(tick) is None]
        measure, events = read_events(self.query, table.take(pa.array(timed, pa.int64())))
        problems = {
            row: problem_in(self.query, measure, event) for row, event in zip(timed, events, strict=True)
        }
        good, bad = [], []
        latest = self._latest
        for row, tick in enumerate(ticks):
            reason = bad_reason(tick)
            if reason is None and self.query.ordered and tick < latest:
                reason = "the event is out of order, and the query promises order"
            problem = problems.get(row) if reason is None else (column, tick, reason)
            if problem is None:
                good.append(row)
                latest = max(latest, tick)
            else:
                bad.append((row, *problem))
        return pa.array(good, pa.int64()), bad

    def _sequential(self) -> dict[str, Window]:
        """The windows that depend on the events."""
        return {name: window for name, window in self.query.windows.items() if is_sequential(window)}

    def _horizon(self) -> Tick:
        """Windows that end here or before are final, and stay so whatever the lateness becomes."""
        horizon = self._watermark - self._known().ticks(self._lateness, what="lateness")
        before, final = self._final_until
        return final if self._watermark <= before else max(final, horizon)

    def _final(self, place: Place) -> bool:
        _, _, (_, end) = place
        return end <= self._horizon()

    def _add(self, event: Event, places: list[Place]) -> None:
        for place in places:
            if not self._before(place):
                pane = self._panes.setdefault(place, Pane())
                pane.events.append(event)
                pane.changed = True

    def _before(self, place: Place) -> bool:
        """Whether the window began before its spec was added."""
        _, name, (start, _) = place
        return start < self._complete_from.get(name, -math.inf)

    def _emit(self, watermark: Tick) -> pa.Table:
        self._watermark = watermark
        rows = (self._emit_lasting() if self._lasts else self._emit_places()) + self._emit_sequences()
        assert self._schema is not None
        self.answers = Answers(self.query, self._known(), self._schema, rows, self.mode == "update")
        return self.answers.table()

    def _emit_places(self) -> list[Answer]:
        """Windows that depend on time alone."""
        update = self.mode == "update"
        rows = []
        for place, pane in list(self._panes.items()):
            key, name, (start, end) = place
            if self._watermark >= end if update else self._final(place):
                if pane.changed:
                    pane.revision += 1
                    pane.changed = False
                    change = Change((key, name, start, end), tuple(pane.events))
                    if update:
                        op = "update" if pane.revision else "insert"
                        change = replace(change, op=op, revision=pane.revision)
                    rows.append(self._row(change))
                if self._final(place):
                    del self._panes[place]
        return rows

    def _emit_lasting(self) -> list[Answer]:
        """Windows of time over events that last."""
        update = self.mode == "update"
        bound = self._watermark if update else self._horizon()
        changes = self._lasting.changes(
            self.query.windows,
            self._known(),
            bound,
            update=update,
            is_there=lambda identity: not self._before(_place(identity)),
        )
        return [self._row(change) for change in changes]

    def _emit_sequences(self) -> list[Answer]:
        """Windows that depend on the events."""
        windows, measure, horizon = self._sequential(), self._known(), self._horizon()
        if self.mode == "update":
            changes = self._sequences.changes(windows, measure, self._watermark, horizon)
        else:
            changes = self._sequences.final(windows, measure, horizon)
        return [self._row(change) for change in changes if not self._before(_place(change.identity))]

    def _row(self, change: Change) -> Answer:
        key, name, start, end = change.identity
        values, inputs = compute(self.query, change.events, start, end)
        for added, since in self._known_from.items():
            if start < since and added in values:
                values[added] = None
        if change.op == "delete":
            values = dict.fromkeys(values)
        return Answer(key, name, start, end, values, inputs, change.op, change.revision)

    def _drain(self, tables: list[pa.Table], more: tuple[pa.Field, ...]) -> pa.Table:
        taken = list(tables)
        tables.clear()
        if taken:
            return pa.concat_tables(taken)
        if self._schema is None:
            return pa.table({})
        return pa.schema([*self._schema, *more]).empty_table()


def _tick(measure: Measure, moment: Any) -> Tick:
    """A moment in ticks; an engine tells one that is beyond `datetime` as ticks already."""
    if isinstance(moment, Real):
        return measure.dtype.type(moment).item()
    return measure.point(moment, what="complete_from")

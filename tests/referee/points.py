"""Queries asked at points, by definition: for each point, each event is looked at, and each aggregate is computed from scratch.

trailing       the events whose distance before the point is within the length, or the last few of them
around         the events whose distance is within before and after
of time        of the windows that hold the point, the one that ends first: its events before the point
sessions       the last session of the events before the point, if it has not ended
rows           the events before the point that make up no whole window
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from tests.referee.answers import compute, reference_in
from tests.referee.events import Event, arrow_array, read_events
from tests.referee.placement import windows_of
from windrow.measure import Measure, Tick
from windrow.spec import QuerySpec
from windrow.testing.compare import plain_values, rows_of
from windrow.windows import Window
from windrow.windows.around import Around
from windrow.windows.landmark import Landmark
from windrow.windows.rows import Rows
from windrow.windows.session import Session
from windrow.windows.trailing import Trailing


def is_within(distance: Tick, low: Tick, high: Tick, closed: str) -> bool:
    """Whether a distance lies from `low` to `high`, with the edges that `closed` names."""
    after = distance >= low if closed in ("left", "both") else distance > low
    return after and (distance <= high if closed in ("right", "both") else distance < high)


def seen(window: Window, measure: Measure, events: list[Event], tick: Tick, own: Event | None) -> list[Event]:
    """The events of a key, in order, that a window holds at a point; `own` is the event that is the point."""
    before = [e for e in events if e.tick < tick]
    earlier = before if own is None else [e for e in events if (e.tick, e.arrival) < (tick, own.arrival)]
    if isinstance(window, Around):
        low, high = measure.ticks(window.before, what="before"), measure.ticks(window.after, what="after")
        return [e for e in events if is_within(e.tick - tick, -low, high, window.closed)]
    if isinstance(window, Trailing):
        lag = measure.ticks(window.lag, what="lag")
        if window.rows is None:
            assert window.length is not None
            low = lag + measure.ticks(window.length, what="length")
            return [e for e in events if is_within(e.tick - tick, -low, -lag, window.closed)]
        if own is not None and not lag:
            known = earlier + [own] * (window.closed == "right")
        else:
            known = [
                e
                for e in events
                if e.tick < tick - lag or (window.closed == "right" and e.tick == tick - lag)
            ]
        return known[-window.rows :]
    if isinstance(window, Session):
        assert window.gap is not None
        gap = measure.ticks(window.gap, what="gap")
        held: list[Event] = []
        for event in before:
            held = [*(held if held and event.tick - held[-1].tick <= gap else []), event]
        return held if held and tick - held[-1].tick <= gap else []
    if isinstance(window, Rows):
        return earlier[len(earlier) // window.length * window.length :]
    if isinstance(window, Landmark):
        since = measure.point(window.since, what="since")
        return [e for e in before if e.tick >= since]
    holding = windows_of(window, measure, tick)
    if not holding:
        return []
    start, _ = min(holding, key=lambda each: each[1])
    return [e for e in before if e.tick >= start]


def assert_answers(
    query: QuerySpec, points: pa.Table | None, events: pa.Table, actual: pa.Table, *, min_rows: int = 0
) -> None:
    """Check an answer, row by row, each value as exactly as its aggregate promises."""
    measure, known = read_events(query, events)
    asked = read_events(query, events)[1]
    if points is not None:
        types = {name: events.schema.field(name).type for name in (measure.column, *query.key)}
        named = pa.table({name: points[name].cast(type_) for name, type_ in types.items()})
        asked = read_events(replace(query, aggregates={}), named)[1]
    given = events if points is None else points
    assert repr(rows_of(actual.select(given.column_names))) == repr(rows_of(given))
    answered = {name: plain_values(actual[name]) for name in actual.column_names[given.num_columns :]}
    for row, point in enumerate(asked):
        mine = sorted((e for e in known if e.key == point.key), key=lambda e: (e.tick, e.arrival))
        for name, window in query.windows.items():
            held = seen(window, measure, mine, point.tick, point if points is None else None)
            values, inputs = compute(query, held, point.tick, point.tick)
            for each, aggregate in query.aggregates.items():
                column = each if len(query.windows) == 1 else f"{each}_{name}"
                got: Any = answered[column][row]
                if len(held) < min_rows:
                    assert got is None, f"row {row}, {column}: {got!r} of {len(held)} rows"
                    continue
                (want,) = plain_values(arrow_array([values[each]], actual.schema.field(column).type))
                fine = reference_in(query, aggregate).accepts(aggregate, inputs[each], want, got)
                assert fine, (
                    f"row {row} at {point.tick}, {column}: {got!r}, expected {want!r} of {inputs[each]}"
                )

"""Which windows hold an event, of those that depend on time alone; and whether an event fits at all.

    lifespan          |---------------|
    windows     |---------|---------|---------|      all three, once each

An event at an instant is held by the windows that hold the instant. A window whose edge the time column
cannot hold makes its event a bad one.
"""

from __future__ import annotations

from typing import Any

from tests.referee.events import Event, Key
from tests.referee.placement import Interval, after, windows_over
from tests.referee.sequences import is_sequential, problem_of
from windrow.errors import DataError
from windrow.measure import Measure
from windrow.spec import QuerySpec

Place = tuple[Key, str, Interval]


def places_of(query: QuerySpec, measure: Measure, event: Event) -> list[Place]:
    """Every (key, window name, edges) that holds the event, of windows that depend on time alone.

    A window whose edge the time column cannot hold is an error that names the row.
    """
    until = after(measure, event.tick) if event.end is None else event.end
    places: list[Place] = []
    for name, window in query.windows.items():
        if is_sequential(window):
            continue
        for start, end in windows_over(window, measure, event.tick, until):
            if start < measure.lowest or end > measure.highest:
                shown = measure.scalar(event.tick)
                raise DataError(measure.column, event.row, shown, f"a window of {name!r} does not fit")
            places.append((event.key, name, (start, end)))
    return places


def problem_in(query: QuerySpec, measure: Measure, event: Event) -> tuple[str, Any, str] | None:
    """Why a window that depends on the events cannot take this one (column, value, reason), or None."""
    windows = [window for window in query.windows.values() if is_sequential(window)]
    problems = (problem_of(window, measure, event) for window in windows)
    return next((problem for problem in problems if problem), None)

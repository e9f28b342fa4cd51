"""The reference operator's memory of events that last: found anew at every advance, then compared.

    windows     |---------|---------|---------|
    event            |-------------- ...             open: in each window that has its turn
    watermark                       ^                the first two are given out, with the event in them
    end               ^                              a row that says it was over by then is late

A window `[a, b)` holds the events with `start < b` and `a < end` that came before it was final. At each advance
all windows that have their turn are made from all events, and those whose content differs from what was given out
are given out (again). What an event has counted in is never taken back: a late end is moved into the last of
those windows. An end that tells of an event which has counted nowhere, and no more can, is late, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from tests.referee.changes import Change, Identity
from tests.referee.events import Event
from tests.referee.placement import after, windows_over
from tests.referee.sequences import is_sequential
from tests.referee.spans import Closing, Name, Reading, last_moment
from windrow.measure import Measure, Tick
from windrow.windows import Window


class SpanMemory:
    """Every event, which of them are open, and what was given out of their windows of time."""

    def __init__(self) -> None:
        self.open: dict[Name, Event] = {}
        self._events: dict[int, Event] = {}
        self._shown: dict[Identity, tuple[int, ...]] = {}
        self._revisions: dict[Identity, int] = {}
        self._ends: list[Tick] = []

    def take(self, reading: Reading, measure: Measure, is_missed: Callable[[Event], bool]) -> list[int]:
        """Take in a batch; gives the rows of ends that are late.

        `is_missed` says of an event whether all windows that it overlaps are final.
        """
        self.open = reading.open
        for event in reading.events:
            self._events[event.arrival] = event
            if event.end is not None and event.end != math.inf:
                self._ends.append(event.end)
        return [closing.row for closing in reading.closings if self._close(closing, measure, is_missed)]

    def _close(self, closing: Closing, measure: Measure, is_missed: Callable[[Event], bool]) -> bool:
        """End an open event; whether that is late."""
        self._ends.append(closing.end)
        counted = [start for (_, _, start, _), content in self._shown.items() if closing.arrival in content]
        late = bool(counted) and closing.end <= max(counted)
        end = after(measure, max(counted)) if late else closing.end
        event = replace(self._events[closing.arrival], end=end)
        self._events[closing.arrival] = event
        return late or (not counted and is_missed(event))

    def finish(self, measure: Measure, watermark: Tick) -> None:
        """Nothing more will come: what is still open ends at the last moment that was heard of."""
        if self.open:
            last = last_moment(measure, self._events.values(), [*self._ends, watermark])
            for event in self.open.values():
                self._events[event.arrival] = replace(event, end=last)
            self.open = {}

    def changes(
        self,
        windows: Mapping[str, Window],
        measure: Measure,
        bound: Tick,
        *,
        update: bool,
        is_there: Callable[[Identity], bool],
    ) -> list[Change]:
        """The windows that end by `bound` and differ from what was given out, or never were.

        `is_there` says whether a window is given out at all, or began before its kind was asked for.
        """
        changes = []
        for identity, events in self._due(windows, measure, bound).items():
            content = tuple(event.arrival for event in events)
            if self._shown.get(identity) == content or not is_there(identity):
                continue
            self._shown[identity] = content
            self._revisions[identity] = revision = self._revisions.get(identity, -1) + 1
            change = Change(identity, tuple(events))
            if update:
                change = replace(change, op="update" if revision else "insert", revision=revision)
            changes.append(change)
        return changes

    def _due(
        self, windows: Mapping[str, Window], measure: Measure, bound: Tick
    ) -> dict[Identity, list[Event]]:
        """All windows that end by `bound`, with the events that came before they were final."""
        due: dict[Identity, list[Event]] = {}
        for name, window in windows.items():
            if is_sequential(window):
                continue
            for event in self._events.values():
                assert event.end is not None
                for start, end in windows_over(window, measure, event.tick, min(event.end, bound)):
                    if end <= bound and event.horizon < end:
                        due.setdefault((event.key, name, start, end), []).append(event)
        return due

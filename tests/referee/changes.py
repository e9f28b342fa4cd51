"""What has changed among windows that depend on the events: found anew at every advance, then compared.

    before    |----- a b -----|   |-- c --|             emitted, not final
    now       |----- a b d c -------------|             d came late and joined the two
    changes   delete  delete  insert

A row is known by its identity (key, window, start, end) and its content by the arrival numbers of
the events in it. Over equal times several windows can share an identity; then they are replaced
together: one `delete`, and an `insert` for each. What is final is never looked at again, and its
identity is forgotten.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.referee.events import Event, Key
from tests.referee.sequences import Stretch, end_of_session, in_sequence, is_order_based, windows_in
from windrow.measure import Measure, Tick
from windrow.windows import Window
from windrow.windows.landmark import Landmark
from windrow.windows.session import Session

Identity = tuple[Key, str, Tick, Tick]
Contents = Counter[tuple[int, ...]]


@dataclass(frozen=True)
class Change:
    """One row of output: whose, of what events, and in update mode what it does to the rows before."""

    identity: Identity
    events: tuple[Event, ...]
    op: str | None = None
    revision: int | None = None


def has_passed(window: Window, end: Tick, tick: Tick) -> bool:
    """Whether a window that ends at `end` takes no event at or after `tick`.

    At its very end a session still takes an event, so it has to have passed; for all others it is
    enough to be reached.
    """
    return end < tick if isinstance(window, Session) else end <= tick


def finality(window: Window, measure: Measure, event: Event, horizon: Tick) -> list[bool]:
    """Whether the windows that could hold the event are final; none, if there is no such window.

    A session ends `gap` after the event at the earliest. Landmark windows never run out. What is
    order-based takes every event at or after the horizon.
    """
    if isinstance(window, Session):
        return [has_passed(window, end_of_session(window, measure, event), horizon)]
    if isinstance(window, Landmark):
        before = event.tick < measure.point(window.since, what="since")
        return [] if before else [horizon == math.inf]
    return [event.tick < horizon]


class Sequences:
    """The events that count, by window and key, and what was emitted of their windows."""

    def __init__(self) -> None:
        self._events: dict[str, dict[Key, list[Event]]] = {}
        self._shown: dict[Identity, list[Stretch]] = {}
        self._revisions: dict[Identity, int] = {}
        self._final: dict[Identity, Contents] = {}

    def add(self, name: str, event: Event) -> None:
        """An event that counts in the windows of this name."""
        self._events.setdefault(name, {}).setdefault(event.key, []).append(event)

    def remove(self, name: str) -> None:
        """Forget a window and everything about it."""
        self._events.pop(name, None)
        for kept in (self._shown, self._revisions, self._final):
            for identity in [i for i in kept if i[1] == name]:
                del kept[identity]

    def final(self, windows: Mapping[str, Window], measure: Measure, horizon: Tick) -> list[Change]:
        """Append mode: the windows that became final."""
        fresh = self._fresh(windows, measure, horizon, horizon)
        for identity, stretches in fresh.items():
            self._settle(identity, stretches)
        self._retire_sessions(windows, measure, horizon)
        return [Change(i, stretch.events) for i, stretches in fresh.items() for stretch in stretches]

    def changes(
        self, windows: Mapping[str, Window], measure: Measure, watermark: Tick, horizon: Tick
    ) -> list[Change]:
        """Update mode: how the windows that have ended differ from those emitted before."""
        fresh = self._fresh(windows, measure, watermark, horizon)
        changes: list[Change] = []
        for identity in {**self._shown, **fresh}:
            changes += self._change(identity, fresh.get(identity, []))
        for identity in [i for i in self._revisions if has_passed(windows[i[1]], i[3], horizon)]:
            self._settle(identity, self._shown.pop(identity, []))
            del self._revisions[identity]
        self._retire_sessions(windows, measure, horizon)
        return changes

    def _change(self, identity: Identity, now: list[Stretch]) -> Iterator[Change]:
        before = self._shown.get(identity, [])
        if _contents(before) == _contents(now):
            return
        revision = self._revisions.get(identity, -1)
        if len(before) == len(now) == 1:
            revision += 1
            yield Change(identity, now[0].events, "update", revision)
        else:
            if before:
                revision += 1
                yield Change(identity, (), "delete", revision)
            if now:
                revision += 1
            for stretch in now:
                yield Change(identity, stretch.events, "insert", revision)
        self._revisions[identity] = revision
        self._shown[identity] = now

    def _fresh(
        self, windows: Mapping[str, Window], measure: Measure, bound: Tick, horizon: Tick
    ) -> dict[Identity, list[Stretch]]:
        """The windows that end by `bound` and were not final before, found from scratch."""
        fresh: dict[Identity, list[Stretch]] = {}
        finals = {identity: contents.copy() for identity, contents in self._final.items()}
        for name, window in windows.items():
            for key, events in self._events.get(name, {}).items():
                for stretch in windows_in(window, measure, in_sequence(events)):
                    ended = has_passed(window, stretch.end, bound)
                    if not ended or (stretch.open and horizon != math.inf):
                        continue
                    identity = (key, name, stretch.start, stretch.end)
                    known, content = finals.get(identity, Counter()), _content(stretch)
                    if known[content]:
                        known[content] -= 1
                    else:
                        fresh.setdefault(identity, []).append(stretch)
        for (_, name, _, _), left in finals.items():
            assert not (name in windows and is_order_based(windows[name]) and left.total()), (
                f"a final window of {name!r} changed"
            )
        return fresh

    def _settle(self, identity: Identity, stretches: list[Stretch]) -> None:
        self._final.setdefault(identity, Counter()).update(_contents(stretches))

    def _retire_sessions(self, windows: Mapping[str, Window], measure: Measure, horizon: Tick) -> None:
        """Events of final sessions are joined by no other."""
        for name, window in windows.items():
            if isinstance(window, Session):
                for key, events in self._events.get(name, {}).items():
                    for stretch in windows_in(window, measure, in_sequence(events)):
                        if has_passed(window, stretch.end, horizon):
                            retired = set(_content(stretch))
                            self._events[name][key] = [
                                e for e in self._events[name][key] if e.arrival not in retired
                            ]


def _content(stretch: Stretch) -> tuple[int, ...]:
    return tuple(event.arrival for event in stretch.events)


def _contents(stretches: list[Stretch]) -> Contents:
    return Counter(_content(stretch) for stretch in stretches)

"""Who wants to know what happens in a window, and the loops that stop to tell them.

A loop runs until an event that has a handler; handlers are called, and it continues from there. Where a
handler raises, what was begun is finished `alone`: without handlers, and without the user's selection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from windrow.errors import QueryError, UserFunctionError
from windrow.policies import events, layout
from windrow.policies.contents import Contents
from windrow.policies.layout import of
from windrow.policies.spec import Sliding, Spec, Tumbling
from windrow.policies.tape import Event, Tape

Handler = Callable[[Event], Any]


class Handled(Contents):
    """The part of a window that calls handlers."""

    kind: ClassVar[type[Tumbling] | type[Sliding]]
    events: ClassVar[frozenset[str]]
    spec: Spec
    _handlers: dict[int, list[Handler]]
    _consumers: list[Callable[[Tape], None]]

    # -- who wants to know -------------------------------------------------------------------------

    def on(self, name: str, handler: Handler) -> None:
        """Have `handler(event)` called at each event of this name."""
        self._require_event(name)
        if not callable(handler):
            raise QueryError(f"a handler of {name!r} is a function of an event, not {handler!r}")
        self._machine.want(name, of.STOP)
        self._handlers.setdefault(events.code_of(name), []).append(handler)

    def on_before_insert(self, handler: Handler) -> None:
        """Have `handler(event)` called before a row comes into the window."""
        self.on("before_insert", handler)

    def on_after_insert(self, handler: Handler) -> None:
        """Have `handler(event)` called when a row has come into the window."""
        self.on("after_insert", handler)

    def on_partition_eviction(self, handler: Handler) -> None:
        """Have `handler(event)` called before a subwindow is evicted."""
        self.on("partition_eviction", handler)

    def on_partition_selection(self, handler: Handler) -> None:
        """Have `handler(event)` called when the user's function is about to select partitions to evict."""
        self.on("partition_selection", handler)

    def record(self, *names: str) -> None:
        """Have the events of these names in the tapes that calls give back."""
        for name in names:
            self._require_event(name)
        for name in names:
            self._machine.want(name, of.RECORD)

    def on_tape(self, consumer: Callable[[Tape], None]) -> None:
        """Have `consumer(tape)` called with what the clock makes happen between calls."""
        if not callable(consumer):
            raise QueryError(f"a consumer of tapes is a function of a tape, not {consumer!r}")
        self._consumers.append(consumer)

    def _require_event(self, name: str) -> None:
        events.code_of(name)
        if name not in self.events:
            raise QueryError(f"{name!r} is no event of a {self.kind.__name__.lower()} window")

    # -- loops -------------------------------------------------------------------------------------

    def _drive(self, step: Callable[[], int], choose: Callable[[Event], np.ndarray]) -> None:
        """Run a loop to its end; `choose` selects partitions to evict where the user has a function for that."""
        machine = self._machine
        while (status := step()) != layout.DONE:
            if status == layout.STOPPED:
                self._tell(self._event())
            elif status == layout.NEEDS_CHOICE:
                machine.chosen = choose(self._event())
                machine.counters[[of.CHOSEN, of.CHOSEN_AT]] = len(machine.chosen), 0
            else:
                machine.grow(status)

    def _finish(self, step: Callable[[], int]) -> None:
        """Run a loop to its end alone."""
        settings = self._machine.settings
        stop, settings[of.STOP] = int(settings[of.STOP]), 0
        try:
            self._drive(step, self._least_recent)
        finally:
            settings[of.STOP] = stop

    def _event(self) -> Event:
        return Event(self, *(int(value) for value in self._machine.last_event()))

    def _tell(self, event: Event) -> None:
        for handler in self._handlers.get(event.code, []):
            handler(event)

    # -- the selection of partitions ---------------------------------------------------------------

    def _candidates(self, event: Event) -> np.ndarray:
        """The partitions that may be evicted: all but that of the row."""
        live = self._machine.partitions.live()
        return live[live != event.number]

    def _least_recent(self, event: Event) -> np.ndarray:
        candidates = self._candidates(event)
        return candidates[[np.argmin(self._machine.partitions.table[candidates, of.UPDATED])]]

    def _told_and_selected(self, event: Event) -> np.ndarray:
        self._tell(event)
        return self._selected(event)

    def _selected(self, event: Event) -> np.ndarray:
        """What the user's function selects."""
        select, candidates = self.spec.selection, self._candidates(event)
        assert callable(select)
        answer = np.atleast_1d(np.asarray(select(self.described(candidates))))
        if answer.dtype == np.bool_ and len(answer) == len(candidates):
            answer = np.flatnonzero(answer)
        fine = answer.ndim == 1 and len(answer) and answer.dtype.kind in "iu"
        if not fine or answer.min() < 0 or answer.max() >= len(candidates):
            name = getattr(select, "__name__", "selection")
            raise UserFunctionError(
                f"the selection {name!r} must return rows of the table that it gets, one at least, "
                f"and has returned {answer.tolist()!r} for {len(candidates)} partitions",
                event.row_number,
            )
        return candidates[np.unique(answer)]

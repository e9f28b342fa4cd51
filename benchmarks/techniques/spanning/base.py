"""What the techniques for span events share: events have a first and a last instant, and lie in many windows.

    event                |-------------|                    known when it ends
    windows    |---A---|---B---|---C---|---D---|            B and C hold all of it
    released           A + release ..                       the paper's time to postpone, the span's `release`

The engine's operator drives these methods as it drives those for events at an instant: it reads the span, finds bad
rows, and holds the watermark back by the release delay. An event that comes after windows of its own were
released counts in those that are still open, and is late if there is none.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.techniques.base import Method, Running, Technique, read_only
from benchmarks.techniques.partials import Partials
from benchmarks.techniques.rows import Rows
from benchmarks.techniques.spanning.places import NO_FLOOR, windows_over
from windrow.engine.binding import Answer
from windrow.engine.intake.batches import EventBatch
from windrow.options import OperatorOptions
from windrow.span import Span

# Of each placement, the first and the last number of the slices or windows that each event lies in.
Places = list[tuple[np.ndarray, np.ndarray]]


def extent(places: Places) -> tuple[np.ndarray, np.ndarray]:
    """Of each placement, the first and the last number that any event needs."""
    low = np.array([first.min() for first, _ in places])
    return low, np.maximum([last.max() for _, last in places], low)


class Spanning(Method):
    """A method for span events."""

    @property
    def groups(self) -> tuple[Partials, ...]:
        """The partials that are kept, each for some of the aggregates."""
        return (self.partials,)

    def insert_spans(
        self,
        starts: np.ndarray,
        lasts: np.ndarray,
        keys: np.ndarray | None,
        inputs: tuple[tuple[np.ndarray, ...], ...],
    ) -> None:
        """Take events in, by first and last instant; `inputs` are what `lift` of each group reads."""
        raise NotImplementedError

    # -- events in -------------------------------------------------------------------------------

    def too_late(self, load: EventBatch) -> tuple[np.ndarray, np.ndarray] | None:
        """Masks of the events that no window takes any more, and of those among them that had one."""
        assert load.lasts is not None
        gone = load.lasts < self.threshold
        if not gone.any():
            return None
        late = gone.copy()
        if self.windows.may_leave_gaps:
            floor = np.full(len(self.windows.every), NO_FLOOR)
            places = self.windows_of(load.times[gone], load.lasts[gone], floor)
            late[gone] = np.logical_or.reduce([first <= last for first, last in places])
        return gone, late

    def windows_of(self, starts: np.ndarray, lasts: np.ndarray, floor: np.ndarray) -> Places:
        """The windows of each placement that each event shares an instant with, none before `floor`."""
        w, places = self.windows, []
        for i in range(len(w.every)):
            found = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
            windows_over(starts, lasts, w.every[i], w.offset[i], w.whole[i], w.rest[i], floor[i], *found)
            places.append(found)
        return places

    def take(self, events: EventBatch) -> None:
        assert events.lasts is not None
        starts, lasts = read_only(events.times), read_only(events.lasts)
        encoded = self.encode(events.batch)
        if not self.partials.masked and any(p is not None for p in encoded[1].values()):
            for group in {self.partials, *self.groups}:
                group.masked = True
            self.widen()
        keys = None if events.numbers is None else events.numbers.astype(np.int64)
        arrival = events.arrival + np.arange(len(starts) if self.partials.timed else 0)
        inputs = tuple(tuple(map(read_only, group.inputs(encoded, starts, arrival))) for group in self.groups)
        self.insert_spans(starts, lasts, keys, inputs)

    # -- windows out -----------------------------------------------------------------------------

    def answers(self, name: str, answer: Answer, rows: Rows) -> pa.Array:
        """The column of an aggregate; the cells of all groups stand in `rows` one after another."""
        at = 0
        for group in self.groups:
            count = len(group.operations.dtypes)
            if answer.key in group.parts:
                return group.lowered(name, answer, rows.cells[at : at + count])
            at += count
        return super().answers(name, answer, rows)


class SpanTechnique(Technique):
    """A query over span events, answered with one technique."""

    restores_order = False

    @property
    def options(self) -> dict[str, Any]:
        """What the method is told besides the query."""
        return {}

    def _running(self, settings: OperatorOptions) -> Running:
        span = self.query.time
        if not isinstance(span, Span):
            self._refuse(
                f"time column {span!r}", "it takes span events, which last from one column to another"
            )
        elif span.contributes != "whole":
            why = f'events contribute {span.contributes!r} to a window, and it takes all of an event: "whole"'
            self._refuse(f"the span {span}", why)
        elif span.id is not None:
            self._refuse(f"the span {span}", "it takes events that have ended, and none that are open")
        return Running(self.query, settings, partial(self.method, **self.options))

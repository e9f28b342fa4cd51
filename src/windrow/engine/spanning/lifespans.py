"""When events began and ended: two columns read as ticks, and the rows that make no sense.

An event `[start, end)` is kept by its first and its last instant: `start`, and the tick before `end`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow.compiling.tiers import jit
from windrow.engine.intake.bad_rows import NO_EDGES, Bounds
from windrow.engine.intake.batches import EventBatch
from windrow.engine.intake.columns import ticks_of
from windrow.engine.spanning.open_events import CLOSES, COMPLETE, OPENS
from windrow.errors import QueryError
from windrow.measure import Measure, Tick
from windrow.span import Span

BadRowReasons = list[tuple[str, np.ndarray, str]]
# Longer than any event whose ends are 64-bit numbers.
ENDLESS = 2**64 - 1


@jit
def look_over(starts, ends):  # type: ignore[no-untyped-def]
    """Whether all events end after they start, and the latest end."""
    fine = True
    latest = ends[0]
    for i in range(ends.shape[0]):
        fine &= ends[i] > starts[i]
        latest = max(latest, ends[i])
    return fine, latest


@dataclass
class Lives:
    """First and last instants of events, rows without a start, and what is wrong with others.

    `roles` says of each row whether it opens an event, closes one, or is complete; None: all are.
    """

    starts: np.ndarray
    lasts: np.ndarray
    missing: np.ndarray | None
    culprits: BadRowReasons
    roles: np.ndarray | None


class Lifespans:
    """Reads the lifespans of events of one query."""

    def __init__(self, span: Span, measure: Measure, schema: pa.Schema) -> None:
        self._span = span
        self._measure = measure
        other = schema.field(span.end).type
        if other != measure.type:
            raise QueryError(
                f"a span needs two columns of one type, and {span.start!r} is {measure.type}, but {span.end!r} is {other}"
            )
        if span.id is not None and measure.floating:
            raise QueryError(f"events that are not over need a time of whole ticks, not {measure.describe()}")
        self.longest: Tick = math.inf if measure.floating else ENDLESS
        if span.longest is not None:
            self.longest = min(self.longest, measure.ticks(span.longest, what="longest"))

    def read(self, batch: pa.RecordBatch, bounds: Bounds) -> Lives:
        """The lifespans of a batch; an end out of bounds cannot be expressed, or is too far ahead."""
        starts, missing = ticks_of(batch.column(self._span.start), self._measure)
        ends, endless = ticks_of(batch.column(self._span.end), self._measure)
        furthest = bounds.highest if bounds.ahead is None else min(bounds.highest, bounds.ahead)
        complete = missing is None and endless is None and self._span.id is None
        if complete and self._span.longest is None and len(ends):
            positive, latest = look_over(starts, ends)
            if positive and latest <= furthest:
                return Lives(starts, self.before(ends), None, [], None)
        culprits: BadRowReasons = []
        roles = None
        if self._span.id is not None:
            roles, nameless = self._roles(batch, missing, endless)
            missing = None if missing is None or endless is None else missing & endless
            if nameless.any():
                culprits.append((self._span.id, nameless, "an event that opens or closes needs an id"))
        elif endless is not None:
            culprits.append((self._span.end, endless, "an event needs an end, and this one has none"))
        whole = np.ones(len(starts), bool) if roles is None else roles == COMPLETE
        for gap in (missing, endless):
            whole &= True if gap is None else ~gap
        # A row that closes has its end alone, and one that opens its start.
        closes = np.zeros(len(starts), bool) if roles is None else roles == CLOSES
        lasts = np.maximum(self.before(ends), starts, where=~closes, out=self.before(ends))
        culprits += self._problems(whole, starts, ends)
        culprits += self._out_of_bounds(whole, closes, lasts, bounds)
        starts = np.where(closes, lasts, starts)
        if endless is not None:
            lasts = np.where(endless, starts, lasts)
        return Lives(starts, lasts, missing, culprits, roles)

    def _roles(
        self, batch: pa.RecordBatch, missing: np.ndarray | None, endless: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Whether each row opens an event, closes one, or is complete; and a mask of those that lack an id."""
        assert self._span.id is not None
        roles = np.full(batch.num_rows, COMPLETE)
        if endless is not None:
            roles[endless] = OPENS
        if missing is not None:
            roles[missing if endless is None else missing & ~endless] = CLOSES
        nameless = batch.column(self._span.id).is_null().to_numpy(zero_copy_only=False)
        return roles, nameless & (roles != COMPLETE)

    def _problems(self, whole: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> BadRowReasons:
        """What is wrong with events that have a start and an end."""
        span = self._span
        # A number that ticks cannot hold comes as one below all that the column's type has.
        unfit = np.isinf(ends) if self._measure.floating else ends < self._measure.lowest
        found = [(unfit, NO_EDGES), (ends < starts, f"the event ends before it starts ({span.start!r})")]
        if span.on_zero == "raise":
            reason = f"the event ends where it starts ({span.start!r}), and so lasts for no time at all; "
            found.append((ends == starts, reason + 'on_zero="point" takes it as one tick long'))
        if span.longest is not None:
            wrong = too_long(starts, ends, self.longest)
            found.append((wrong, f"the event lasts longer than {span.longest}"))
        return _blamed(span.end, [(whole & wrong, reason) for wrong, reason in found])

    def _out_of_bounds(
        self, whole: np.ndarray, closes: np.ndarray, lasts: np.ndarray, bounds: Bounds
    ) -> BadRowReasons:
        """Ends that no window can have, or that are too far ahead, of events that count there."""
        ended = whole | closes
        alone = whole if self._span.contributes == "end" else closes
        found = [(alone & (lasts < bounds.lowest), NO_EDGES)]
        if self._span.contributes != "start":
            found.append((ended & (lasts > bounds.highest), NO_EDGES))
        if bounds.ahead is not None:
            found.append((ended & (lasts > bounds.ahead), "lies too far ahead of the watermark"))
        return _blamed(self._span.end, found)

    def placed(self, events: EventBatch) -> EventBatch:
        """The events where they contribute: as long as they last, or at one instant."""
        if self._span.contributes == "start":
            return replace(events, lasts=None)
        if self._span.contributes == "end":
            assert events.lasts is not None
            return replace(events, times=events.lasts, lasts=None)
        return events

    def before(self, ends: np.ndarray) -> np.ndarray:
        """The last instant before each end."""
        if self._measure.floating:
            return np.nextafter(ends, -np.inf)
        return ends - (ends > self._measure.lowest)


def _blamed(column: str, found: list[tuple[np.ndarray, str]]) -> BadRowReasons:
    """What was found wrong with some rows, as the fault of one column."""
    return [(column, wrong, reason) for wrong, reason in found if wrong.any()]


def too_long(starts: np.ndarray, ends: np.ndarray, longest: Tick) -> np.ndarray:
    """Whether events last longer than this; exact, even where their length is no int64."""
    if starts.dtype.kind == "f":
        return ends - starts > longest
    length = ends.astype(np.uint64) - starts.astype(np.uint64)
    return (ends > starts) & (length > np.uint64(longest))

"""Events that have begun and are not over: each is known by its key and its id until a second row ends it.

    row      start   end    id
    opens      3      -      a        goes on from 3
    opens      5      -      b
    closes     -      9      a        was [3, 9), with the values of the row that opened it

While it goes on, an event is carried over up to `upto`, the latest start of a window that was given out with it; before more
of them are, it is carried on. So nothing that was folded has to be taken back when it ends: a row that closes an
event before that instant is late, and the event ends there. Windows that were final when the event came (they ended at
the `horizon` of that time, or before) were given out without it, and do not count.

An open event keeps every column that an aggregate could read, because one may be added before it ends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from windrow.compiling.tiers import jit
from windrow.engine.intake.batches import CarryOver, EventBatch
from windrow.engine.intake.columns import kept_as, whole
from windrow.engine.intake.keys import Keys
from windrow.measure import Tick
from windrow.span import Span

Missed = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
OPENS, CLOSES, COMPLETE = range(3)
ARRAYS = ("starts", "arrival", "horizon", "upto", "counted")
FINE, NOT_OPEN, OPEN_ALREADY, NOT_ENDED, BACKWARDS, NO_LENGTH, TOO_LONG = range(7)
# By these numbers: the column that is to blame, as a field of a span, and what is wrong with the row.
PROBLEMS = (
    ("id", ""),
    ("id", "closes nothing: no event of this key and id is open"),
    ("id", "an event of this key and id is open already"),
    ("id", "an event of this key and id is open, and the row that ends it has no start"),
    ("end", "the event ends before it starts"),
    (
        "end",
        "the event ends where it starts, and so lasts for no time at all; "
        'on_zero="point" takes it as one tick long',
    ),
    ("end", "the event lasts longer than it may"),
)


@jit
def follow(kind, number, ends, since, holder, point, longest, status, source):  # type: ignore[no-untyped-def]
    """Go through rows in order of arrival: which of them are in order, and which event each of them ends.

    holder[n]: the event of identity n that is open, or -1. since[e]: the start of event e; events are those known
    before, then one for each row. status[i] is a number of PROBLEMS, source[i] the event that row i ends, or -1.
    Lengths are compared without a sign: they need not be an int64.
    """
    known = since.shape[0] - kind.shape[0]
    for i in range(kind.shape[0]):
        n = number[i]
        source[i] = -1
        status[i] = FINE
        if n < 0:
            continue
        e = holder[n]
        if kind[i] == OPENS:
            if e >= 0:
                status[i] = OPEN_ALREADY
            else:
                holder[n] = known + i
        elif kind[i] == COMPLETE:
            if e >= 0:
                status[i] = NOT_ENDED
        elif e < 0:
            status[i] = NOT_OPEN
        elif ends[i] < since[e]:
            status[i] = BACKWARDS
        elif ends[i] == since[e] and not point:
            status[i] = NO_LENGTH
        elif np.uint64(ends[i]) - np.uint64(since[e]) > longest:
            status[i] = TOO_LONG
        else:
            source[i] = e
            holder[n] = -1


class OpenEvents:
    """The open events of an operator: their rows, starts and arrival numbers, the horizon when they came, up to when
    they are folded, and whether any window has counted them. `columns` are those that are kept of them, `identity` the
    names of those that tell one from the other."""

    def __init__(self, span: Span, columns: pa.Schema, identity: tuple[str, ...], longest: Tick) -> None:
        self._span = span
        self._identity = identity
        self._longest = longest
        self.rows = kept_as(columns, whole(columns.empty_table()))
        self.starts, self.arrival, self.horizon, self.upto = (np.empty(0, np.int64) for _ in range(4))
        self.counted = np.empty(0, bool)

    def __len__(self) -> int:
        return len(self.starts)

    def having(self, rows: pa.RecordBatch, arrays: dict[str, np.ndarray]) -> OpenEvents:
        """Other open events of the same operator."""
        found = OpenEvents(self._span, self.rows.schema, self._identity, self._longest)
        found.rows = rows
        for name in ARRAYS:
            setattr(found, name, arrays[name])
        return found

    def look_at(self, events: EventBatch, bad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each row, a number of PROBLEMS and the event that it ends (see `follow`); nothing changes.

        Rows that are `bad` for another reason open and close nothing.
        """
        assert events.roles is not None
        assert events.lasts is not None
        identity = pa.schema([self.rows.schema.field(name) for name in self._identity])
        here = kept_as(identity, events.batch)
        both = pa.Table.from_batches([self.rows.select(identity.names), here])
        number = Keys(identity).numbers(whole(both))
        assert number is not None
        known = len(self)
        # A complete event need not have an id.
        nameless = here.column(self._span.id).is_null().to_numpy(zero_copy_only=False)
        fresh = np.where(nameless | bad, -1, number[known:])
        holder = np.full(len(number), -1, np.int64)
        holder[number[:known]] = np.arange(known)
        status, source = np.empty(len(events), np.int64), np.empty(len(events), np.int64)
        since = np.concatenate([self.starts, events.times])
        point = self._span.on_zero == "point"
        limit = np.uint64(self._longest)
        follow(events.roles, fresh, events.lasts + 1, since, holder, point, limit, status, source)
        return status, source

    def ended(self, events: EventBatch, source: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and last instants of the events that good rows tell all of, or end."""
        assert events.lasts is not None
        over = events.roles != OPENS
        since = np.concatenate([self.starts, events.times])
        starts = np.where(source >= 0, since[source], events.times)[over]
        return starts, np.maximum(events.lasts[over], starts)

    def apply(
        self, events: EventBatch, source: np.ndarray, horizon: Tick, missed: Missed
    ) -> tuple[EventBatch, OpenEvents, np.ndarray]:
        """The pieces of events that good rows tell of, the open events from then on, and a mask of the rows that are late.

        Rows that open are folded where they begin; of events that end, what lies behind the instant up to which they
        were folded. `missed` says of lifespans whether all of their windows are final, and whether there are such windows;
        windows that end at `horizon` are.
        """
        assert events.lasts is not None
        assert events.roles is not None
        known, arrival = len(self), events.arrivals
        lasts, kind = events.lasts.copy(), events.roles.copy()
        # A row that is ended by another of the same batch is a complete event.
        inner = np.flatnonzero(source >= known)
        opened = source[inner] - known
        lasts[opened] = np.maximum(events.lasts[inner], events.times[opened])
        kind[opened] = COMPLETE
        # The row that tells of each event, should it be late.
        told = np.arange(len(kind))
        told[opened] = inner
        ended = np.flatnonzero((source >= 0) & (source < known))
        which = source[ended]
        last = np.maximum(events.lasts[ended], self.starts[which])
        late = np.zeros(len(kind), bool)
        late[ended] = (last < self.upto[which]) | (~self.counted[which] & missed(self.starts[which], last)[1])
        opens, complete = np.flatnonzero(kind == OPENS), np.flatnonzero(kind == COMPLETE)
        gone, without = missed(events.times[complete], lasts[complete])
        late[told[complete[without]]] = True
        complete = complete[~gone]
        taken = np.concatenate([complete, opens])
        needed = kept_as(self.rows.schema, events.batch)
        table = pa.Table.from_batches([needed.take(pa.array(taken)), self.rows.take(pa.array(which))])
        pieces = EventBatch(
            whole(table),
            np.concatenate([events.times[taken], self.starts[which]]),
            events.arrival,
            None,
            np.concatenate([lasts[taken], np.maximum(last, self.upto[which])]),
            CarryOver(
                np.concatenate([arrival[taken], self.arrival[which]]),
                np.concatenate([events.times[taken] - 1, self.upto[which]]),
                np.repeat([False, True, False], [len(complete), len(opens), len(which)]),
            ),
        )
        rest = np.ones(known, bool)
        rest[which] = False
        begun = {
            "starts": events.times[opens],
            "arrival": arrival[opens],
            "horizon": np.full(len(opens), horizon, np.int64),
            "upto": lasts[opens],
            "counted": np.zeros(len(opens), bool),
        }
        rows = pa.Table.from_batches([self.rows.filter(pa.array(rest)), needed.take(pa.array(opens))])
        arrays = {name: np.concatenate([getattr(self, name)[rest], begun[name]]) for name in ARRAYS}
        return pieces, self.having(whole(rows), arrays), late

    def going_on(self) -> EventBatch:
        """All open events, as they would be folded for the first time."""
        going = CarryOver(self.arrival, self.starts - 1, np.ones(len(self), bool))
        return EventBatch(self.rows, self.starts, 0, None, self.starts, going)

    def counted_in(self, starts: np.ndarray, ends: np.ndarray) -> OpenEvents:
        """The open events once windows like these have been given out: those that begin last, by falling starts."""
        since, upto, counted = np.maximum(self.horizon, self.starts), self.upto, self.counted
        for start, end in zip(starts, ends, strict=True):
            holds = since < end
            upto, counted = np.where(holds, np.maximum(upto, start), upto), counted | holds
        return self.having(self.rows, self._arrays() | {"upto": upto, "counted": counted})

    def ended_at(self, point: Tick) -> OpenEvents:
        """The open events once nothing more comes, and all of them are over behind `point`."""
        return self.having(self.rows, self._arrays() | {"upto": np.maximum(self.upto, point)})

    def _arrays(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in ARRAYS}

    def up_to(self, after: OpenEvents) -> EventBatch | None:
        """The pieces of the same events from here to where they are `after`."""
        which = np.flatnonzero(self.upto < after.upto)
        if not len(which):
            return None
        going = CarryOver(self.arrival[which], self.upto[which], np.ones(len(which), bool))
        return EventBatch(
            self.rows.take(pa.array(which)), self.starts[which], 0, None, after.upto[which], going
        )

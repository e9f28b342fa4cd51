"""Events that have begun and are not over: each is known by its key and its id until a second row ends it.

    row      start   end    id
    opens      3      -      a        goes on from 3
    opens      5      -      b
    closes     -      9      a        was [3, 9), with the values of the row that opened it

While it goes on, an event is noted up to `upto`, the latest start of a window that was given out; before more of
them are, it is noted further. So nothing that was noted has to be taken back when it ends: a row that closes an event
before that instant is late, and the event ends there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from windrow.engine.cache import jit
from windrow.engine.columns import takeable, whole
from windrow.engine.keys import Keys
from windrow.engine.loads import Events, Going
from windrow.measure import Tick
from windrow.span import Span

Missed = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
OPENS, CLOSES, COMPLETE = 0, 1, 2
ARRAYS = ("starts", "arrival", "upto", "counted")
PROBLEMS = (
    "",
    "closes nothing: no event of this key and id is open",
    "an event of this key and id is open already",
    "the event ends before it starts",
    'the event ends where it starts, and so lasts for no time at all; on_zero="point" takes it as one tick long',
    "an event of this key and id is open, and the row that ends it has no start",
    "the event lasts longer than it may",
)


@jit
def follow(kind, number, ends, since, holder, point, longest, status, source):  # type: ignore[no-untyped-def]
    """Go through rows in order of arrival: which of them are in order, and which event each of them ends.

    holder[n]: the event of identity n that is open, or -1. since[e]: the start of event e; events are those known
    before, then one for each row. status[i] is a number of PROBLEMS, source[i] the event that row i ends, or -1.
    """
    known = since.shape[0] - kind.shape[0]
    for i in range(kind.shape[0]):
        n = number[i]
        source[i] = -1
        status[i] = 0
        if n < 0:
            continue
        e = holder[n]
        if kind[i] == 0:
            if e >= 0:
                status[i] = 2
            else:
                holder[n] = known + i
        elif kind[i] == 2:
            if e >= 0:
                status[i] = 5
        elif e < 0:
            status[i] = 1
        elif ends[i] < since[e]:
            status[i] = 3
        elif ends[i] == since[e] and not point:
            status[i] = 4
        elif ends[i] - since[e] > longest:
            status[i] = 6
        else:
            source[i] = e
            holder[n] = -1


class Opened:
    """The open events of an operator: their rows, starts and arrival numbers, up to when they are noted, and whether
    any window has counted them."""

    def __init__(self, span: Span, columns: pa.Schema, identity: pa.Schema, longest: Tick) -> None:
        self._span = span
        self._longest = longest
        self._columns = columns
        self._identity = identity
        self.rows = takeable(whole(columns.empty_table()), columns.names)
        self.starts, self.arrival, self.upto = (np.empty(0, np.int64) for _ in range(3))
        self.counted = np.empty(0, bool)

    def __len__(self) -> int:
        return len(self.starts)

    def look_at(self, events: Events, bad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each row, a number of PROBLEMS and the event that it ends (see `follow`); nothing changes.

        Rows that are `bad` for another reason open and close nothing.
        """
        assert events.roles is not None
        assert events.lasts is not None
        names = self._identity.names
        here = takeable(events.batch, names)
        number = Keys(self._identity).numbers(whole(pa.Table.from_batches([self.rows.select(names), here])))
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
        follow(events.roles, fresh, events.lasts + 1, since, holder, point, self._longest, status, source)
        return status, source

    def apply(self, events: Events, source: np.ndarray, missed: Missed) -> tuple[Events, Opened, np.ndarray]:
        """What there is to note of good rows, the open events from then on, and a mask of the rows that are late.

        Rows that open are noted where they begin; of events that end, what lies behind the instant up to which they
        were noted. `missed` says of lifespans whether all of their windows are final, and whether there are such windows.
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
        needed = takeable(events.batch, self._columns.names)
        table = pa.Table.from_batches([needed.take(pa.array(taken)), self.rows.take(pa.array(which))])
        noted = Events(
            whole(table),
            np.concatenate([events.times[taken], self.starts[which]]),
            events.arrival,
            None,
            np.concatenate([lasts[taken], np.maximum(last, self.upto[which])]),
            Going(
                np.concatenate([arrival[taken], self.arrival[which]]),
                np.concatenate([events.times[taken] - 1, self.upto[which]]),
                np.repeat([False, True, False], [len(complete), len(opens), len(which)]),
            ),
        )
        rest = np.ones(known, bool)
        rest[which] = False
        begun = Opened(self._span, self._columns, self._identity, self._longest)
        begun.rows = needed.take(pa.array(opens))
        begun.starts, begun.arrival, begun.upto = events.times[opens], arrival[opens], lasts[opens]
        begun.counted = ~missed(begun.starts, begun.upto)[0]
        return noted, self._where(rest)._and(begun), late

    def _where(self, keep: np.ndarray) -> Opened:
        """Those of the open events for which `keep` holds."""
        found = Opened(self._span, self._columns, self._identity, self._longest)
        found.rows = self.rows.filter(pa.array(keep))
        for name in ARRAYS:
            setattr(found, name, getattr(self, name)[keep])
        return found

    def _and(self, others: Opened) -> Opened:
        """All open events of both."""
        found = Opened(self._span, self._columns, self._identity, self._longest)
        found.rows = whole(pa.Table.from_batches([self.rows, others.rows]))
        for name in ARRAYS:
            setattr(found, name, np.concatenate([getattr(self, name), getattr(others, name)]))
        return found

    def further(self, point: Tick) -> Events | None:
        """What there is to note before windows that end up to `point` are given out."""
        which = np.flatnonzero(self.upto < point)
        if not len(which):
            return None
        rows = self.rows.take(pa.array(which))
        lasts = np.full(len(which), point, self.starts.dtype)
        going = Going(self.arrival[which], self.upto[which], np.ones(len(which), bool))
        return Events(rows, self.starts[which], 0, None, lasts, going)

    def noted_up_to(self, point: Tick, *, counted: bool) -> None:
        """All open events are noted up to `point`, and `counted` by a window there if they were not before."""
        self.counted = self.counted | ((self.upto < point) & counted)
        self.upto = np.maximum(self.upto, point)

"""Update mode: what was given out and is not final, and which rows make it true again.

A window that exists has an *identity* (key, window, start, end) and a *content*: how many events it
holds and the arrival numbers of its first and last one. Events are never taken back, so two contents
with the same three numbers are the same events. Comparing what was given out with what is true now
gives the changes:

    given out   now        rows
    -           x          insert
    x           -          delete
    x           y          update, or a delete and inserts where several windows share the identity

A deleted identity is remembered until it is final, so that its revisions go on counting. Rows are kept by key, in order
of their ends: an advance looks at those of keys with late events, and evicts what has become final.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from windrow.compiling.tiers import jit
from windrow.engine.arrays import ascending
from windrow.engine.emission import Emission
from windrow.engine.ordered.timers import Timers
from windrow.engine.sequence.queues import KeyQueues
from windrow.engine.staging import Staged
from windrow.engine.windows import ClosedWindows
from windrow.measure import Tick

if TYPE_CHECKING:
    from windrow.engine.ordered.track import WindowRanges

INSERT, UPDATE, DELETE = 1, 2, 3


@dataclass
class EmittedWindows:
    """Windows that were given out; `count` is -1 where the row was deleted since."""

    key: np.ndarray
    spec: np.ndarray
    start: np.ndarray
    end: np.ndarray
    count: np.ndarray
    opening: np.ndarray
    closing: np.ndarray
    revision: np.ndarray

    @classmethod
    def of(cls, key: np.ndarray, numbers: np.ndarray, ticks: np.ndarray) -> EmittedWindows:
        """Rows of the queues that they are kept in."""
        spec, count, opening, closing, revision = numbers
        start, end = ticks
        return cls(key, spec, start, end, count, opening, closing, revision)

    @classmethod
    def holding(cls, found: WindowRanges, due: ClosedWindows) -> EmittedWindows:
        """Windows that were found, of which none was given out before."""
        assert due.order is not None
        events = found.end - found.begin, due.order[1], due.order[3] - 1
        return cls(found.key, found.spec, due.start, due.end, *events, np.zeros(len(found), np.int64))

    def __len__(self) -> int:
        return len(self.key)

    def where(self, keep: np.ndarray) -> EmittedWindows:
        return EmittedWindows(*(getattr(self, f.name)[keep] for f in fields(self)))

    def with_more(self, other: EmittedWindows) -> EmittedWindows:
        return EmittedWindows(
            *(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self))
        )


@dataclass
class Changes:
    """What to do: rows to delete (of what was given out), and to update or insert (of what is now).

    `emitted` and `now` are the revisions of the two lists, `kept` is what is on record afterwards.
    """

    deleted: np.ndarray
    updated: np.ndarray
    inserted: np.ndarray
    emitted: np.ndarray
    now: np.ndarray
    kept: EmittedWindows


@jit
def compare(  # type: ignore[no-untyped-def]
    order, emitted, key, spec, start, end, count, opening, closing, revision, final, action
):
    """Decide, identity by identity, what changes; fills `action`, and `revision` of what is now.

    order: all rows sorted by identity, in each identity what was given out before what is now, each of
    them sorted by content; rows below `emitted` were given out. A row that is given out again without a
    change takes over its revision and gets no action, unless it is `final`; a row that stays on record as
    deleted gets DELETE with count -1.
    """
    total = order.shape[0]
    i = 0
    while i < total:
        head = order[i]
        j = i
        alive = 0
        dead = 0
        highest = np.int64(-1)
        while j < total:
            r = order[j]
            if key[r] != key[head] or spec[r] != spec[head] or start[r] != start[head] or end[r] != end[head]:
                break
            if r < emitted:
                highest = max(highest, revision[r])
                if count[r] >= 0:
                    alive += 1
                else:
                    dead += 1
            j += 1
        before = alive + dead
        now = j - i - before
        same = alive == now
        k = 0
        while same and k < now:
            # Deleted rows sort before live ones: their count is -1.
            a, b = order[i + dead + k], order[i + before + k]
            same = count[a] == count[b] and opening[a] == opening[b] and closing[a] == closing[b]
            same = same and not final[b]
            k += 1
        if same:
            for k in range(now):
                revision[order[i + before + k]] = revision[order[i + dead + k]]
        elif alive == 0 or (alive == 1 and now == 1):
            for k in range(now):
                action[order[i + before + k]] = INSERT if alive == 0 else UPDATE
                revision[order[i + before + k]] = highest + 1
        else:
            action[order[i + dead]] = DELETE
            revision[order[i + dead]] = highest + 1
            for k in range(now):
                action[order[i + before + k]] = INSERT
                revision[order[i + before + k]] = highest + 2
        i = j


def changes(emitted: EmittedWindows, now: EmittedWindows, final: np.ndarray | None) -> Changes:
    """What turns the rows that were given out into those that are true now, of which some are `final` and come in any case."""
    both = emitted.with_more(now)
    tag = np.repeat([0, 1], [len(emitted), len(now)])
    keys = (both.closing, both.opening, both.count, tag, both.end, both.start, both.spec, both.key)
    order = np.lexsort(keys)
    action = np.zeros(len(both), np.int8)
    columns = [getattr(both, f.name) for f in fields(both)]
    settled = np.zeros(len(both), bool)
    settled[len(emitted) :] = False if final is None else final
    compare(order, len(emitted), *columns, settled, action)
    deleted = np.flatnonzero(action[: len(emitted)] == DELETE)
    mine = action[len(emitted) :]
    # On record: everything that is now, and what was deleted (now or before) and did not come back.
    number = _identities(both, order)
    back = np.isin(number[: len(emitted)], number[len(emitted) :])
    gone = (both.count[: len(emitted)] < 0) | (action[: len(emitted)] == DELETE)
    both.count[: len(emitted)][gone] = -1
    keep = np.append(gone & ~back, np.ones(len(now), bool))
    updated, inserted = np.flatnonzero(mine == UPDATE), np.flatnonzero(mine == INSERT)
    before, after = np.split(both.revision, [len(emitted)])
    return Changes(deleted, updated, inserted, before, after, both.where(keep))


def _identities(rows: EmittedWindows, order: np.ndarray) -> np.ndarray:
    """A number for the identity of each row; `order` sorts rows by identity."""
    number = np.empty(len(rows), np.int64)
    number[order] = np.cumsum(_differs(rows, order)) - 1
    return number


def shares_identity(rows: EmittedWindows, others: EmittedWindows) -> np.ndarray:
    """Whether each row has the identity of one of the others."""
    both = rows.with_more(others)
    number = _identities(both, np.lexsort((both.end, both.start, both.spec, both.key)))
    return np.isin(number[: len(rows)], number[len(rows) :])


def _differs(rows: EmittedWindows, order: np.ndarray) -> np.ndarray:
    """Whether each row, in this order, has another identity than the one before."""
    new = np.zeros(len(order), bool)
    new[:1] = True
    for column in (rows.key, rows.spec, rows.start, rows.end):
        new[1:] |= column[order][1:] != column[order][:-1]
    return new


@jit
def count_final(keys, begin, end, ends, horizon, count):  # type: ignore[no-untyped-def]
    """How many rows at the front of each key are final."""
    for s in range(keys.shape[0]):
        i = begin[keys[s]]
        while i < end[keys[s]] and ends[i] <= horizon:
            i += 1
        count[s] = i - begin[keys[s]]


class Changelog:
    """Rows that were emitted and are not final, by key, and what late events change in them."""

    def __init__(self, tick: np.dtype) -> None:
        self.rows = KeyQueues(5, 2, tick)
        self._final = Timers(tick)

    def __len__(self) -> int:
        return len(self.rows)

    def grow(self, keys: int) -> None:
        self.rows.grow(keys)
        self._final.grow(keys)

    def revise(
        self, emission: Emission, keys: np.ndarray, due: ClosedWindows, now: EmittedWindows
    ) -> EmittedWindows:
        """Emit what turns the rows of these keys into those of now; what is on record of them then."""
        at = self.rows.places(keys)
        key = np.repeat(keys, self.rows.counts(keys))
        emitted = EmittedWindows.of(key, self.rows.numbers[:, at], self.rows.ticks[:, at])
        emitted = emitted.where(emitted.revision >= 0)
        found = changes(emitted, now, due.final)
        gone = emitted.where(found.deleted)
        none = np.zeros(len(gone), np.int64)
        vanished = ClosedWindows(gone.spec, gone.start, gone.end, none, none, gone.key)
        vanished.final = None if due.final is None else none.astype(bool)
        emission.change(vanished, "delete", found.emitted[found.deleted])
        for which, op in ((found.updated, "update"), (found.inserted, "insert")):
            emission.change(due.where(which), op, found.now[which])
        return found.kept

    def settle(
        self,
        emission: Emission,
        keys: np.ndarray,
        due: ClosedWindows,
        now: EmittedWindows,
        horizon: Tick,
        staged: Staged,
    ) -> None:
        """As `revise`, where windows that have not ended are given out, too; on commit, what is on record is that.

        A window that is open is not given out while it has the identity of a final one: over equal times two windows of a
        key may lie in one instant. Such a final row stays on record, with a revision below zero.
        """
        assert due.final is not None
        at = self.rows.places(keys)
        key = np.repeat(keys, self.rows.counts(keys))
        final = EmittedWindows.of(key, self.rows.numbers[:, at], self.rows.ticks[:, at])
        final = final.where(final.revision < 0).with_more(now.where(due.final))
        hidden = shares_identity(now, final) & ~due.final
        final = final.where(shares_identity(final, now.where(hidden)))
        final.revision = np.full(len(final), -1)
        shown = ~hidden
        kept = self.revise(emission, keys, due.where(shown), now.where(shown))
        over = np.append(np.zeros(len(kept) - int(shown.sum()), bool), due.final[shown])
        kept = kept.where(~over & ((kept.count >= 0) | (kept.end > horizon))).with_more(final)
        staged.on_commit(partial(self._replace, keys, kept))

    def _replace(self, keys: np.ndarray, rows: EmittedWindows) -> None:
        self.rows.clear(keys)
        self.put(rows)
        self.rows.settle()

    def record(self, keys: np.ndarray, rows: EmittedWindows | None, horizon: Tick, staged: Staged) -> None:
        """On commit, forget what was on record of these keys, note rows if there are any, and evict those that are final."""
        staged.on_commit(partial(self._record, keys, rows, horizon))

    def _record(self, keys: np.ndarray, rows: EmittedWindows | None, horizon: Tick) -> None:
        if rows is not None:
            self.rows.clear(keys)
            self.put(rows)
        keys = self._final.due(horizon)
        if len(keys):
            count = np.empty(len(keys), np.int64)
            queues = self.rows
            count_final(
                keys,
                queues.begin,
                queues.end,
                queues.ticks[1],
                self._final.armed.dtype.type(horizon),
                count,
            )
            queues.pop(keys, count)
            self._arm(keys)
        self.rows.settle()

    def put(self, rows: EmittedWindows) -> None:
        """Note rows that end no earlier than those that are on record of their keys."""
        if not len(rows):
            return
        order = np.lexsort((rows.end, rows.key))
        rows = rows.where(order)
        numbers = np.array([rows.spec, rows.count, rows.opening, rows.closing, rows.revision])
        self.rows.fill(rows.key, numbers, np.array([rows.start, rows.end]))
        self._arm(ascending(rows.key))

    def _arm(self, keys: np.ndarray) -> None:
        """Know when the first row of each of these keys is final."""
        begin = self.rows.begin[keys]
        some = begin < self.rows.end[keys]
        self._final.arm(keys[some], self.rows.ticks[1, begin[some]])

    def emitted(self) -> EmittedWindows:
        """All rows on record, key after key."""
        return EmittedWindows.of(*self.rows.all())

    def remove(self, spec: int) -> None:
        """Forget the rows of a window; the windows behind it move up."""
        emitted = self.emitted()
        emitted = emitted.where(emitted.spec != spec)
        emitted.spec = emitted.spec - (emitted.spec > spec)
        self.rows.clear(np.arange(self.rows.edges.shape[1]))
        self.put(emitted)
        self.rows.settle()

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self._final.nbytes

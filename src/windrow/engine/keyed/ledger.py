"""What was given out and is not final: what a changelog needs to know (update mode).

A window that exists has an *identity* (key, window, start, end) and a *content*: how many events it
holds and the arrival numbers of its first and last one. Events are never taken back, so two contents
with the same three numbers are the same events. Comparing what was given out with what is true now
gives the changes:

    given out   now        rows
    -           x          insert
    x           -          delete
    x           y          update, or a delete and inserts where several windows share the identity

A deleted identity is remembered until it is final, so that its revisions go on counting.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from windrow.engine.cache import jit
from windrow.measure import Tick

INSERT, UPDATE, DELETE = 1, 2, 3


@dataclass
class Given:
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
    def empty(cls, tick: np.dtype) -> Given:
        whole, ticks = np.empty(0, np.int64), np.empty(0, tick)
        return cls(whole, whole, ticks, ticks, whole, whole, whole, whole)

    def __len__(self) -> int:
        return len(self.key)

    def where(self, keep: np.ndarray) -> Given:
        return Given(*(getattr(self, f.name)[keep] for f in fields(self)))

    def with_more(self, other: Given) -> Given:
        return Given(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))

    @property
    def nbytes(self) -> int:
        return int(sum(getattr(self, f.name).nbytes for f in fields(self)))


@dataclass
class Changes:
    """What to do: rows to delete (of what was given out), and to update or insert (of what is now).

    `given` and `now` are the revisions of the two lists, `kept` is what is on record afterwards.
    """

    deleted: np.ndarray
    updated: np.ndarray
    inserted: np.ndarray
    given: np.ndarray
    now: np.ndarray
    kept: Given


@jit
def compare(  # type: ignore[no-untyped-def]
    order, given, key, spec, start, end, count, opening, closing, revision, action
):
    """Decide, identity by identity, what changes; fills `action`, and `revision` of what is now.

    order: all rows sorted by identity, in each identity what was given out before what is now, each of
    them sorted by content; rows below `given` were given out. A row that is given out again without a
    change takes over its revision and gets no action; a row that stays on record as deleted gets DELETE
    with count -1.
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
            if r < given:
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


def changes(given: Given, now: Given) -> Changes:
    """What turns the rows that were given out into those that are true now."""
    both = given.with_more(now)
    tag = np.repeat([0, 1], [len(given), len(now)])
    keys = (both.closing, both.opening, both.count, tag, both.end, both.start, both.spec, both.key)
    order = np.lexsort(keys)
    action = np.zeros(len(both), np.int8)
    columns = [getattr(both, f.name) for f in fields(both)]
    compare(order, len(given), *columns, action)
    deleted = np.flatnonzero(action[: len(given)] == DELETE)
    mine = action[len(given) :]
    # On record: everything that is now, and what was deleted (now or before) and did not come back.
    identity = np.cumsum(_differs(both, order)) - 1
    number = np.empty(len(both), np.int64)
    number[order] = identity
    back = np.isin(number[: len(given)], number[len(given) :])
    gone = (both.count[: len(given)] < 0) | (action[: len(given)] == DELETE)
    both.count[: len(given)][gone] = -1
    keep = np.append(gone & ~back, np.ones(len(now), bool))
    updated, inserted = np.flatnonzero(mine == UPDATE), np.flatnonzero(mine == INSERT)
    before, after = np.split(both.revision, [len(given)])
    return Changes(deleted, updated, inserted, before, after, both.where(keep))


def _differs(rows: Given, order: np.ndarray) -> np.ndarray:
    """Whether each row, in this order, has another identity than the one before."""
    new = np.zeros(len(order), bool)
    new[:1] = True
    for column in (rows.key, rows.spec, rows.start, rows.end):
        new[1:] |= column[order][1:] != column[order][:-1]
    return new


def reached(end: np.ndarray, inclusive: np.ndarray, point: Tick) -> np.ndarray:
    """Whether time has come to `point` or further for windows with these ends."""
    return np.where(inclusive, end < point, end <= point)

"""Update mode: which rows to give out so that all that was given out becomes true again."""

from __future__ import annotations

import numpy as np

from windrow.engine.emission import Emission
from windrow.engine.keyed import ledger
from windrow.engine.keyed.slices import KeyedSlices
from windrow.engine.partials import Numbers
from windrow.engine.windows import Due
from windrow.measure import Tick


class Changelog:
    """What was given out and is not final, and which keys have had late events since."""

    def __init__(self, tick: np.dtype) -> None:
        self.given = ledger.Given.empty(tick)
        self.dirty = np.zeros(0, bool)

    def note_late(self, times: np.ndarray, numbers: np.ndarray | None, watermark: Tick, keys: int) -> None:
        """Events at or before the watermark may revise what was given out of their keys."""
        self.grow(keys)
        self.dirty[0 if numbers is None else numbers[times <= watermark]] = True

    def grow(self, keys: int) -> None:
        if len(self.dirty) < keys:
            self.dirty = np.append(self.dirty, np.zeros(keys - len(self.dirty), bool))

    def revise(self, emission: Emission, now: Due, slices: KeyedSlices, presence: Numbers) -> ledger.Given:
        """Emit what turns the rows of keys with late events into those of now; what is on record then."""
        assert now.key is not None
        now = now.where(self.dirty[now.key])
        late = self.dirty[self.given.key]
        given = self.given.where(late)
        found = ledger.changes(given, on_record(now, slices, presence))
        gone = given.where(found.deleted)
        none = np.zeros(len(gone), np.int64)
        vanished = Due(gone.spec, gone.start, gone.end, none, none, gone.key)
        emission.change(vanished, "delete", found.given[found.deleted])
        for which, op in ((found.updated, "update"), (found.inserted, "insert")):
            emission.change(now.where(which), op, found.now[which])
        return found.kept.with_more(self.given.where(~late))

    def forget(self, inclusive: np.ndarray, horizon: Tick) -> None:
        """Rows whose windows are final do not change any more."""
        self.given = self.given.where(~ledger.reached(self.given.end, inclusive[self.given.spec], horizon))

    def remove(self, spec: int) -> None:
        """Forget the rows of a window; the windows behind it move up."""
        self.given = self.given.where(self.given.spec != spec)
        self.given.spec = self.given.spec - (self.given.spec > spec)

    def forget_order(self) -> None:
        """Know a content by its number of events alone, as where no window depends on order."""
        zero = np.zeros(len(self.given), np.int64)
        self.given.opening = self.given.closing = zero

    def renumber(self, live: np.ndarray) -> None:
        """Key live[i] becomes key i; the others have no rows."""
        self.given.key = np.searchsorted(live, self.given.key)
        self.dirty = np.zeros(len(live), bool)


def on_record(due: Due, slices: KeyedSlices, presence: Numbers) -> ledger.Given:
    """What the ledger keeps of windows."""
    zero = np.zeros(len(due), np.int64)
    count = opening = closing = zero
    if len(due):
        count = presence.merge(due, slices.slot, 1)[1].copy()
        if len(slices.ranked):
            opening, closing = slices.opening[due.first], slices.closing[due.last - 1]
    assert due.key is not None
    return ledger.Given(due.key, due.spec, due.start, due.end, count, opening, closing, zero)

"""Input batches, which an operator hands to its engines: events, or slices that were made of events elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windrow.engine.aligned.cutting import scan_times
from windrow.engine.staging import Staged
from windrow.measure import Tick

if TYPE_CHECKING:
    from windrow.engine.intake.keys import Keys

INSIDE, BEGINS, ENDS = range(3)
Partial = tuple[np.ndarray, list[np.ndarray]]


@dataclass
class InputBatch:
    """Rows with a time each: events, or slices by the time of their first event."""

    batch: pa.RecordBatch
    times: np.ndarray
    # The key number of each row, once it is `numbered`; None where there are no keys.
    numbers: np.ndarray | None = field(default=None, kw_only=True)
    numbered: bool = field(default=False, kw_only=True)
    _scan: tuple[Tick, Tick, bool] | None = field(default=None, init=False)

    def number(self, keys: Keys, staged: Staged) -> None:
        """Number the keys of all rows; a rollback forgets those that are new."""
        known = keys.count
        self.numbers, self.numbered = keys.numbers(self.batch), True
        if keys.count > known:
            staged.on_rollback(lambda: keys.keep(np.arange(known)))

    def numbers_of(self, rows: np.ndarray) -> dict[str, Any]:
        """What is known of the keys of these rows, as arguments for a batch of them."""
        return {
            "numbers": None if self.numbers is None else self.numbers[rows],
            "numbered": self.numbered,
        }

    def __len__(self) -> int:
        return len(self.times)

    @property
    def scan(self) -> tuple[Tick, Tick, bool]:
        """The smallest and the largest time, and whether the times are in order; there must be some."""
        if self._scan is None:
            self._scan = scan_times(self.times)
        return self._scan


@dataclass
class CarryOver:
    """Of events that are noted piece by piece: the arrival number of each, and the instant up to which it was noted
    before (one before its start: it was not), and whether it goes on behind this piece."""

    arrival: np.ndarray
    since: np.ndarray
    on: np.ndarray

    def where(self, keep: np.ndarray) -> CarryOver:
        return CarryOver(self.arrival[keep], self.since[keep], self.on[keep])


@dataclass
class EventBatch(InputBatch):
    """Events; `rows` are their places in the batch that the user gave, if anybody wants to know.

    The arrival number of the first one is `arrival`, and the others follow it one by one. Events that last have
    `lasts`: the last instant of each, where `times` are the first ones; `roles`, if a row may open or close one; and
    `lengths`, if it is to be learned how long they last.
    """

    arrival: int
    rows: np.ndarray | None
    lasts: np.ndarray | None = None
    going: CarryOver | None = None
    roles: np.ndarray | None = None
    lengths: np.ndarray | None = None

    def where(self, keep: np.ndarray) -> EventBatch:
        several = (self.rows, self.lasts, self.roles, self.lengths)
        rows, lasts, roles, lengths = (None if part is None else part[keep] for part in several)
        going = None if self.going is None else self.going.where(keep)
        batch = self.batch.filter(pa.array(keep))
        keys = self.numbers_of(keep)
        return EventBatch(batch, self.times[keep], self.arrival, rows, lasts, going, roles, lengths, **keys)

    @property
    def arrivals(self) -> np.ndarray:
        """The arrival number of each event."""
        return self.arrival + np.arange(len(self)) if self.going is None else self.going.arrival

    def count(self, which: np.ndarray | None = None) -> int:
        """How many events these are, or those of them for which `which` holds."""
        return len(self) if which is None else int(np.count_nonzero(which))

    @cached_property
    def last_scan(self) -> tuple[Tick, Tick, bool]:
        """As `scan`, of the last instants."""
        assert self.lasts is not None
        return scan_times(self.lasts)

    @property
    def high(self) -> Tick:
        return self.scan[1] if self.lasts is None else self.last_scan[1]


@dataclass
class PartialBatch(InputBatch):
    """The rows of a slice batch; `partials` are the counts and the fields of each store, `roles` those of events that last."""

    last: np.ndarray
    sizes: np.ndarray
    partials: list[Partial]
    roles: np.ndarray | None = None

    def where(self, keep: np.ndarray) -> PartialBatch:
        """The rows at which the mask `keep` holds, or the rows that it names, in its order."""
        batch = self.batch.filter(pa.array(keep)) if keep.dtype == bool else self.batch.take(pa.array(keep))
        partials = [(n[keep], [field[keep] for field in fields]) for n, fields in self.partials]
        roles = None if self.roles is None else self.roles[keep]
        keys = self.numbers_of(keep)
        return PartialBatch(
            batch, self.times[keep], self.last[keep], self.sizes[keep], partials, roles, **keys
        )

    def count(self, which: np.ndarray | None = None) -> int:
        """How many events these stand for, or those of them for which `which` holds."""
        return int(self.sizes.sum() if which is None else self.sizes[which].sum())

    @property
    def high(self) -> Tick:
        return self.last.max().item()

"""A naive window of policies: one tuple at a time, lists of plain rows, Tables I and II as they stand in the
paper.

    Tumbling, Table I                          Sliding, Table II      trigger: count      delta       time
    count    insert, then flush                eviction: count                 E I T      T E I       E I | T
    delta    flush, then insert                          delta                 E I T      T E I       E I | T
    time     flush | insert                              time                  I T | E    T I | E     I | E | T
    punct    flush when a punctuation comes              `|`: independent; E evict, I insert, T trigger

Time is a number that `advance` moves. What happens is told to a listener, event by event, with what the
subwindow holds at that moment. Nothing here is fast, shared or clever: it is the definition that the
compiled windows are compared with (Gedik, "Generic windowing support for extensible stream processing
systems", 2013, sections 3.3 and 3.5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from windrow.policies.spec import (
    Count,
    Delta,
    PartitionAge,
    PartitionCount,
    Punct,
    Sliding,
    Time,
    Tumbling,
    TupleCount,
)

Row = dict[str, Any]
Partition = tuple[Any, ...]

ORDERS: dict[tuple[type, type], str] = {
    (Count, Count): "EIT",
    (Count, Delta): "TEI",
    (Count, Time): "EI",
    (Delta, Count): "EIT",
    (Delta, Delta): "TEI",
    (Delta, Time): "EI",
    (Time, Count): "IT",
    (Time, Delta): "TI",
    (Time, Time): "I",
}


@dataclass(frozen=True)
class Happened:
    """An event: its name, the subwindow's partition, the rows in the subwindow at that moment, and the row
    it is about.
    """

    name: str
    partition: Partition
    content: tuple[Row, ...]
    row: Row | None = None


@dataclass
class Subwindow:
    """The rows of one partition, oldest first, with the time each arrived, and what the policies remember."""

    partition: Partition
    created: int
    rows: list[Row] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    updated: int = 0
    updates: int = 0
    last: int = 0
    inserted: int = 0
    reference: Any = None
    is_full: bool = False
    deadline: int = 0


def exceeds(difference: Any, policy: Delta) -> bool:
    """Whether two values of the delta attribute lie farther apart than the policy allows."""
    if policy.nanoseconds is None:
        return bool(difference > policy.number)
    if isinstance(difference, timedelta):
        difference = (difference.days * 86_400 + difference.seconds) * 10**9 + difference.microseconds * 1_000
    return bool(difference > policy.nanoseconds)


class NaiveWindow:
    """See the module. `partial` says whether triggers before the initial full are told.

    >>> from windrow.policies import count, sliding
    >>> told = []
    >>> window = NaiveWindow(sliding(count(2), count(1)), told.append, partial=False)
    >>> for x in range(4):
    ...     window.insert({"x": x})
    >>> [[row["x"] for row in event.content] for event in told if event.name == "trigger"]
    [[0, 1], [1, 2], [2, 3]]
    """

    def __init__(
        self,
        spec: Tumbling | Sliding,
        listener: Callable[[Happened], None],
        *,
        partition_by: Sequence[str] = (),
        partial: bool = True,
        now: int = 0,
    ) -> None:
        self.spec = spec
        self.partial = partial
        self.now = now
        self.subwindows: dict[Partition, Subwindow] = {}
        self._listener = listener
        self._by = tuple(partition_by)
        self._moment = 0

    # -- what comes from outside -----------------------------------------------------------------

    def insert(self, row: Row) -> None:
        """Take in one tuple, at the time that it is now."""
        partition = tuple(row[name] for name in self._by)
        self._remove_aged()
        if partition not in self.subwindows:
            self._make_space()
            self.subwindows[partition] = self._created(partition)
        subwindow = self.subwindows[partition]
        if isinstance(self.spec, Tumbling):
            self._insert_tumbling(subwindow, row)
        else:
            self._insert_sliding(subwindow, row)

    def punctuate(self) -> None:
        """A punctuation: with that policy, every subwindow is flushed."""
        if isinstance(self.spec.eviction, Punct):
            for subwindow in list(self.subwindows.values()):
                self._flush(subwindow)
                del self.subwindows[subwindow.partition]

    def advance(self, to: int) -> None:
        """Let time pass until `to`: what falls due on the way happens in order; at one instant, first what
        leaves.
        """
        while True:
            due = [instant for instant in self.instants() if instant <= to]
            if not due:
                break
            self.now = min(due)
            self._pass()
        self.now = max(self.now, to)

    # -- Table I ---------------------------------------------------------------------------------

    def _insert_tumbling(self, subwindow: Subwindow, row: Row) -> None:
        policy = self.spec.eviction
        if isinstance(policy, Delta) and self._breaks(policy, subwindow, row):
            self._flush(subwindow)
        subwindow = self._fitting(subwindow)
        self._add(subwindow, row)
        if isinstance(policy, Count) and len(subwindow.rows) == policy.size:
            self._flush(subwindow)
            del self.subwindows[subwindow.partition]

    # -- Table II --------------------------------------------------------------------------------

    def _insert_sliding(self, subwindow: Subwindow, row: Row) -> None:
        assert isinstance(self.spec, Sliding)
        evict = self.spec.eviction
        if isinstance(evict, Delta) and self._breaks(evict, subwindow, row):
            self._now_full(subwindow)
        for step in ORDERS[type(self.spec.eviction), type(self.spec.trigger)]:
            if step == "E":
                self._evict_for(subwindow, row)
            elif step == "I":
                subwindow = self._add_sliding(subwindow, row)
            else:
                self._trigger_for(subwindow, row)

    def _evict_for(self, subwindow: Subwindow, row: Row) -> None:
        evict = self.spec.eviction
        if isinstance(evict, Count):
            while subwindow.rows and len(subwindow.rows) >= evict.size:
                self._evict_oldest(subwindow)
        elif isinstance(evict, Delta):
            while self._breaks(evict, subwindow, row):
                self._evict_oldest(subwindow)

    def _add_sliding(self, subwindow: Subwindow, row: Row) -> Subwindow:
        evict = self.spec.eviction
        if isinstance(evict, Count) and evict.size == 0:
            # Nothing is ever kept: the subwindow of a one-sided join is always empty, and always full.
            self._updated(subwindow)
            self._now_full(subwindow)
            return subwindow
        fitting = self._fitting(subwindow)
        if fitting is not subwindow and isinstance(self.spec.trigger, Delta):
            fitting.reference = row[self.spec.trigger.column]
        self._add(fitting, row)
        if isinstance(evict, Count) and len(fitting.rows) == evict.size:
            self._now_full(fitting)
        return fitting

    def _trigger_for(self, subwindow: Subwindow, row: Row) -> None:
        assert isinstance(self.spec, Sliding)
        trigger = self.spec.trigger
        if isinstance(trigger, Count):
            subwindow.inserted += 1
            if subwindow.inserted == trigger.size:
                subwindow.inserted = 0
                self._trigger(subwindow, row)
        elif isinstance(trigger, Delta):
            value = row[trigger.column]
            if subwindow.reference is None:
                subwindow.reference = value
            elif exceeds(value - subwindow.reference, trigger):
                subwindow.reference = value
                self._trigger(subwindow, row)

    # -- time ------------------------------------------------------------------------------------

    def instants(self) -> list[int]:
        """When something falls due, of each subwindow."""
        found = []
        for subwindow in self.subwindows.values():
            if isinstance(self.spec, Tumbling):
                if isinstance(self.spec.eviction, Time):
                    found.append(subwindow.deadline)
                continue
            if isinstance(self.spec.eviction, Time):
                if subwindow.rows:
                    found.append(subwindow.arrived[0] + self.spec.eviction.nanoseconds + 1)
                if not subwindow.is_full:
                    found.append(subwindow.created + self.spec.eviction.nanoseconds)
            if isinstance(self.spec.trigger, Time):
                found.append(subwindow.deadline)
        return found

    def _pass(self) -> None:
        """What is due now: who is full, what leaves, and then triggers or flushes; each in order of
        creation.
        """
        evict, trigger = self.spec.eviction, self.spec.trigger
        subwindows = list(self.subwindows.values())
        if isinstance(self.spec, Sliding):
            if isinstance(evict, Time):
                for subwindow in subwindows:
                    if self.now - subwindow.created >= evict.nanoseconds:
                        self._now_full(subwindow)
                for subwindow in subwindows:
                    while subwindow.rows and self.now - subwindow.arrived[0] > evict.nanoseconds:
                        self._evict_oldest(subwindow)
            if isinstance(trigger, Time):
                for subwindow in subwindows:
                    if subwindow.deadline <= self.now:
                        subwindow.deadline += trigger.nanoseconds
                        self._trigger(subwindow, None)
            return
        assert isinstance(evict, Time)
        for subwindow in subwindows:
            if subwindow.deadline > self.now:
                continue
            subwindow.deadline += evict.nanoseconds
            if subwindow.rows:
                self._flush(subwindow)
            else:
                del self.subwindows[subwindow.partition]

    # -- partition eviction ----------------------------------------------------------------------

    def _remove_aged(self) -> None:
        policy = self.spec.partition_eviction
        if isinstance(policy, PartitionAge):
            aged = [s for s in self.subwindows.values() if self.now - s.updated > policy.nanoseconds]
            for subwindow in sorted(aged, key=lambda s: s.last):
                self._remove(subwindow)

    def _make_space(self) -> None:
        policy = self.spec.partition_eviction
        if isinstance(policy, PartitionCount):
            while len(self.subwindows) >= policy.size:
                self._remove_selected(list(self.subwindows.values()))

    def _fitting(self, subwindow: Subwindow) -> Subwindow:
        """Make space for one more row; the row's own subwindow is removed last, and then begins anew."""
        policy = self.spec.partition_eviction
        if not isinstance(policy, TupleCount):
            return subwindow
        while sum(len(s.rows) for s in self.subwindows.values()) + 1 > policy.size:
            others = [s for s in self.subwindows.values() if s is not subwindow]
            self._remove_selected(others or [subwindow])
            if not others:
                subwindow = self.subwindows[subwindow.partition] = self._created(subwindow.partition)
        return subwindow

    def _remove_selected(self, among: list[Subwindow]) -> None:
        for partition in self._selected(among):
            self._remove(self.subwindows[partition])

    def _selected(self, among: list[Subwindow]) -> Sequence[Partition]:
        rule = self.spec.selection
        if callable(rule):
            return list(rule(among))
        measures: dict[str, Callable[[Subwindow], Any]] = {
            "least recently updated": lambda s: s.last,
            "least frequently updated": lambda s: (s.updates, s.last),
            "oldest": lambda s: 0,  # they stand in order of creation, and the first of equals is taken
        }
        return [min(among, key=measures[rule]).partition]

    def _remove(self, subwindow: Subwindow) -> None:
        self._tell("partition_eviction", subwindow)
        del self.subwindows[subwindow.partition]

    # -- the steps -------------------------------------------------------------------------------

    def _created(self, partition: Partition) -> Subwindow:
        made = Subwindow(partition, created=self.now, updated=self.now)
        timed = self.spec.eviction if isinstance(self.spec, Tumbling) else self.spec.trigger
        if isinstance(timed, Time):
            made.deadline = self.now + timed.nanoseconds
        return made

    def _updated(self, subwindow: Subwindow) -> None:
        self._moment += 1
        subwindow.updated = self.now
        subwindow.updates += 1
        subwindow.last = self._moment

    def _add(self, subwindow: Subwindow, row: Row) -> None:
        self._tell("before_insert", subwindow, row)
        subwindow.rows.append(row)
        subwindow.arrived.append(self.now)
        self._updated(subwindow)
        self._tell("after_insert", subwindow, row)

    def _evict_oldest(self, subwindow: Subwindow) -> None:
        row = subwindow.rows[0]
        self._tell("before_evict", subwindow, row)
        del subwindow.rows[0], subwindow.arrived[0]
        self._tell("after_evict", subwindow, row)

    def _flush(self, subwindow: Subwindow) -> None:
        self._tell("before_flush", subwindow)
        subwindow.rows.clear()
        subwindow.arrived.clear()
        self._tell("after_flush", subwindow)

    def _trigger(self, subwindow: Subwindow, row: Row | None) -> None:
        if self.partial or subwindow.is_full:
            self._tell("trigger", subwindow, row)

    def _now_full(self, subwindow: Subwindow) -> None:
        if not subwindow.is_full:
            subwindow.is_full = True
            self._tell("initial_full", subwindow)

    def _breaks(self, policy: Delta, subwindow: Subwindow, row: Row) -> bool:
        """Whether the row would break the delta invariant with the oldest row."""
        if not subwindow.rows:
            return False
        return exceeds(row[policy.column] - subwindow.rows[0][policy.column], policy)

    def _tell(self, name: str, subwindow: Subwindow, row: Row | None = None) -> None:
        self._listener(Happened(name, subwindow.partition, tuple(subwindow.rows), row))

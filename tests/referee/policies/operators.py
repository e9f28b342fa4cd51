"""The operators, naively: what Aggregate, Join, Sort and Deduplicate give out, row by row, over naive
windows.

What an operator gives out is a list of rows, with `PUNCTUATION` between them: one behind each set of rows
that one window event has led to. An outer join with ports of their own for rows without a match has a list
for each port.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from tests.referee.policies.window import Happened, NaiveWindow, Partition, Row
from tests.referee.registry import reference_of
from windrow.aggregates.base import Aggregate
from windrow.policies.spec import Sliding, Tumbling


class _Punctuation:
    def __repr__(self) -> str:
        return "PUNCTUATION"


PUNCTUATION = _Punctuation()


class NaiveOperator:
    """One input and one output: `given` is all that was given out."""

    def __init__(
        self, spec: Tumbling | Sliding, partition_by: Sequence[str] = (), *, partial: bool = True
    ) -> None:
        self.given: list[Any] = []
        self.window = NaiveWindow(spec, self.heard, partition_by=partition_by, partial=partial)

    def heard(self, event: Happened) -> None:
        """What to do at an event of the window."""
        raise NotImplementedError

    def give(self, rows: Sequence[Row]) -> None:
        """A set of rows, and a punctuation behind it."""
        if rows:
            self.given += [*rows, PUNCTUATION]

    def process(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self.window.insert(row)

    def finish(self) -> None:
        """The stream is over."""


class NaiveAggregate(NaiveOperator):
    """One row for each group of the window's rows, in order of first appearance; aggregates from scratch."""

    def __init__(
        self,
        spec: Tumbling | Sliding,
        aggregates: Mapping[str, Aggregate],
        *,
        partition_by: Sequence[str] = (),
        group_by: Sequence[str] = (),
        partial: bool = True,
    ) -> None:
        super().__init__(spec, partition_by, partial=partial)
        self._aggregates = aggregates
        self._partition_by, self._group_by = partition_by, group_by

    def heard(self, event: Happened) -> None:
        if event.name not in ("trigger", "before_flush"):
            return
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in event.content:
            groups.setdefault(tuple(row[name] for name in self._group_by), []).append(row)
        self.give([self._answer(event.partition, group, rows) for group, rows in groups.items()])

    def _answer(self, partition: Partition, group: tuple[Any, ...], rows: list[Row]) -> Row:
        answer = dict(zip(self._partition_by, partition, strict=True))
        answer |= zip(self._group_by, group, strict=True)
        for name, aggregate in self._aggregates.items():
            values = [tuple(row[column] for column in aggregate.columns) for row in rows]
            values = [value for value in values if None not in value]
            answer[name] = reference_of(aggregate).value(aggregate, values)
        return answer


class NaiveSort(NaiveOperator):
    """Batch: each flushed window in order. Progressive: for each row that leaves the window, the first in
    order.
    """

    def __init__(
        self,
        spec: Tumbling | Sliding,
        by: Sequence[tuple[str, str]],
        *,
        partition_by: Sequence[str] = (),
        partial: bool = True,
    ) -> None:
        super().__init__(spec, partition_by)
        self._by = by
        self._last = partial
        self._held: dict[Partition, list[Row]] = {}
        self._due: list[Row] = []
        self._rows = 0
        self._cause: Any = None

    def sorted(self, rows: Sequence[Row]) -> list[Row]:
        """In order of the columns; equal rows as they came; nulls last."""
        ordered = list(rows)
        for name, direction in reversed(self._by):
            down = direction == "descending"
            known = [row for row in ordered if row[name] is not None]
            known.sort(key=itemgetter(name), reverse=down)
            ordered = known + [row for row in ordered if row[name] is None]
        return ordered

    def heard(self, event: Happened) -> None:
        held = self._held.setdefault(event.partition, [])
        if event.name == "before_evict":
            # What one row, or one instant, makes leave of a partition is one set.
            cause = (self._rows, self.window.now, event.partition)
            if cause != self._cause:
                self.settle()
                self._cause = cause
            first = self.sorted(held)[0]
            held.remove(first)
            self._due.append(first)
        elif event.name == "after_insert":
            held.append(event.row or {})
        elif event.name in ("before_flush", "partition_eviction"):
            self.settle()
            self.give(self.sorted(held))
            held.clear()

    def process(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._rows += 1
            self.window.insert(row)
        self.settle()

    def settle(self) -> None:
        """Give out what one row, or one instant, has made due."""
        self.give(self._due)
        self._due = []

    def finish(self) -> None:
        self.settle()
        if self._last:
            for partition in self.window.subwindows:
                self.give(self.sorted(self._held[partition]))


class NaiveDeduplicate(NaiveOperator):
    """A row passes if no row with the same values is in its window when it comes."""

    def __init__(
        self, spec: Tumbling | Sliding, by: Sequence[str], *, partition_by: Sequence[str] = ()
    ) -> None:
        super().__init__(spec, partition_by)
        self._by = by

    def heard(self, event: Happened) -> None:
        if event.name == "before_insert" and event.row is not None:
            values = [event.row[name] for name in self._by]
            if all([row[name] for name in self._by] != values for row in event.content):
                self.given.append(event.row)


class NaiveJoin:
    """A row that comes meets all rows of the other side's window, oldest first.

    `outer` names the sides whose rows are given out when they leave without ever having had a match.
    """

    def __init__(
        self,
        left: Sliding,
        right: Sliding,
        match: Callable[[Row, Row], bool],
        *,
        outer: Sequence[str] = (),
        partition_by: tuple[Sequence[str], Sequence[str]] = ((), ()),
        separate: bool = False,
    ) -> None:
        self.given: dict[str, list[Any]] = {"matches": [], "left": [], "right": []}
        self._match, self._outer, self._separate = match, outer, separate
        self._matched: dict[int, Row] = {}
        self.windows = {
            "left": NaiveWindow(left, lambda e: self._heard("left", e), partition_by=partition_by[0]),
            "right": NaiveWindow(right, lambda e: self._heard("right", e), partition_by=partition_by[1]),
        }

    def process(self, rows: Sequence[Row], side: str) -> None:
        for row in rows:
            self.windows[side].insert(row)

    def advance(self, to: int) -> None:
        """Let time pass on both sides at once."""
        while True:
            due = [i for window in self.windows.values() for i in window.instants() if i <= to]
            for window in self.windows.values():
                window.advance(min(due, default=to))
            if not due:
                return

    def _heard(self, side: str, event: Happened) -> None:
        if event.name == "trigger" and event.row is not None:
            self._probe(side, event)
        elif event.name == "before_evict" and event.row is not None:
            self._left(side, [event.row])
        elif event.name == "partition_eviction":
            self._left(side, event.content)

    def _probe(self, side: str, event: Happened) -> None:
        row = event.row
        assert row is not None
        other = self.windows["right" if side == "left" else "left"].subwindows.get(event.partition)
        found = []
        for candidate in other.rows if other else []:
            pair = (row, candidate) if side == "left" else (candidate, row)
            if self._match(*pair):
                found.append(pair)
                self._matched |= {id(row): row, id(candidate): candidate}
        if found:
            self.given["matches"] += [*found, PUNCTUATION]
        if not event.content:
            # A window of no rows: what comes leaves at once.
            self._left(side, [row])

    def _left(self, side: str, rows: Sequence[Row]) -> None:
        alone = [row for row in rows if id(row) not in self._matched]
        if alone and side in self._outer:
            port = side if self._separate else "matches"
            self.given[port] += [(row, None) if side == "left" else (None, row) for row in alone]

"""What a call to a window gives back: its events as columns, and one event as a handler sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.policies.contents import Contents
from windrow.policies.events import NAMES, code_of
from windrow.policies.layout import TAPE_WIDTH


def _column(place: int) -> property:
    return property(lambda tape: tape.columns[place])


@dataclass(frozen=True)
class Tape:
    """The events of one call, in order, one array for each of their columns.

    kind       the number of the event (`windrow.policies.events`)
    row        the row of the batch that caused it; -1 for the clock and for punctuations
    partition  the number of the partition
    tuple      the row of the log that is inserted or evicted, or -1
    low, high  the content of the subwindow is `window.order[low:high]`, rows of the log
    at         the instant, on the window's clock

    Ranges and rows of the log hold until the next call. `answers` has a row for each trigger or flush where the
    window computes aggregates, and None where it does not.
    """

    window: Contents
    columns: np.ndarray
    answers: pa.Table | None = None
    kind, row, partition, tuple, low, high, at = map(_column, range(TAPE_WIDTH))

    def __len__(self) -> int:
        return self.columns.shape[1]

    def only(self, name: str) -> Tape:
        """The events of one kind."""
        return Tape(self.window, self.columns[:, self.kind == code_of(name)])

    def of_clock(self) -> Tape:
        """The events that no row has caused."""
        return Tape(self.window, self.columns[:, self.row < 0])

    def event(self, k: int) -> Event:
        """One event as a handler sees it."""
        return Event(self.window, *(int(v) for v in self.columns[:, k]))

    def content(self, k: int) -> pa.Table:
        """The rows of the subwindow at an event."""
        return self.event(k).content


@dataclass(frozen=True)
class Event:
    """An event as a handler sees it; valid while the handler runs."""

    window: Contents
    code: int
    row_number: int
    number: int
    log_row: int
    low: int
    high: int
    at: int

    @property
    def kind(self) -> str:
        """The name of the event."""
        return NAMES[self.code]

    @property
    def row(self) -> int | None:
        """The row of the batch that caused the event, or None: it was the clock, or a punctuation."""
        return None if self.row_number < 0 else self.row_number

    @property
    def partition(self) -> Any:
        """The key of the partition: a value, a tuple of several, or None in a window that is not partitioned."""
        return self.window.key_of(self.number)

    @property
    def size(self) -> int:
        """How many rows the subwindow holds."""
        return self.high - self.low

    @property
    def content(self) -> pa.Table:
        """The rows of the subwindow, oldest first."""
        return self.window.rows_between(self.low, self.high)

    @property
    def tuple(self) -> pa.Table | None:
        """The row that is inserted or evicted, as a table of one row; None for other events."""
        is_cell = self.code == code_of("before_flush")
        return None if self.log_row < 0 or is_cell else self.window.log.take(np.array([self.log_row]))

    @property
    def summary(self) -> Any:
        """What the summarizer of the subwindow has made of its rows."""
        return self.window.summary_of(self.number)

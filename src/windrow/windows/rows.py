"""Count windows: a fixed number of events, whatever time they take.

    rank      0    1    2    3    4    5    6
    events    o    o    o    o    o    o    o
              |--------------|--------------|          tumbling(rows=3)
              |------------------->                    sliding(rows=4, every_rows=2)
                        |------------------->

Window k holds the events of rank k*every to k*every + length - 1 in the key's sequence, sorted by
time and arrival. It starts at the time of its first event and ends right after its last. A late
event moves every edge behind it (Scotty, section 5.2). Forward context free, and Cutty's first
example of a deterministic window (section 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import QueryError
from windrow.windows.arguments import refuse_too_many, require_count
from windrow.windows.base import Window


@dataclass(frozen=True)
class Rows(Window):
    """Windows of `length` events, one more every `every` events."""

    length: int
    every: int

    context = "forward context free"
    layout = "ordered"
    counts = True

    @property
    def repeats_after(self) -> int | None:  # type: ignore[override]
        return self.length if self.length == self.every else None

    def __str__(self) -> str:
        if self.length == self.every:
            return f"tumbling {self.length} rows"
        return f"sliding {self.length} rows every {self.every} rows"


def rows_window(length: int, every: int) -> Rows:
    """Windows of `length` events, one more every `every` events.

    >>> str(rows_window(100, 10))
    'sliding 100 rows every 10 rows'
    """
    window = Rows(require_count(length, what="rows"), require_count(every, what="every_rows"))
    refuse_too_many(window.length / window.every, what=str(window))
    return window


def refuse_with_rows(*, length: object, offset: object, on: object, what: str) -> None:
    """What is counted in rows has no other length, offset or measure."""
    if length is not None:
        raise QueryError(f"{what} takes either a length ({length!r}) or rows, not both")
    if on is not None:
        raise QueryError(f"{what} is either counted in rows or measured on column {on!r}, not both")
    if offset != 0:
        raise QueryError(f"{what} over rows begins with the first event: it takes no offset, not {offset!r}")

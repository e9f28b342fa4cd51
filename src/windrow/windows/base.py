"""What every window type tells the planner and the engine.

A window spec is a frozen value. It names its class in the sense of Li et al. (*context free*,
*forward context free*, *forward context aware*; Scotty, section 4.4) and, for the context-free
types of this package, it can be *placed* on a measure: `place(measure)` turns human units into
ticks and gives a `Placement`, which is one of two shapes:

    Periodic    window k is [offset + k*every, offset + (k+whole)*every + rest), for every integer k
    Irregular   edges come from a calendar or from the user; asked for by range

The periodic form is what makes many windows cheap: a thousand of them are five arrays, and one
compiled loop walks them all.

The other classes are not placed: where their edges lie depends on the events. They say instead
which columns they read (`columns`), and the engine finds their edges as the events go by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from windrow.errors import QueryError
from windrow.measure import INT64_MAX, INT64_MIN, Measure, Tick

MOST_WINDOWS_PER_EVENT = 10_000_000
MOST_ROWS = 2**53


@dataclass(frozen=True)
class Periodic:
    """Window k is `[offset + k*every, offset + (k + whole)*every + rest)`.

    A length is kept as `whole` slides plus `rest` so that on a float measure the end of one window
    and the start of another are the same number, not two that differ in the last bit.
    """

    every: Tick
    offset: Tick
    whole: int
    rest: Tick

    @classmethod
    def of(cls, *, length: Tick, every: Tick, offset: Tick) -> Periodic:
        whole = int(length // every)
        rest = length - whole * every
        return cls(every=every, offset=offset % every, whole=whole, rest=rest)

    @property
    def length(self) -> Tick:
        return self.whole * self.every + self.rest


class Irregular(Protocol):
    """Windows that do not repeat with a fixed period; they never overlap one another."""

    @property
    def length(self) -> Tick:
        """The longest that one of its windows can be."""

    def windows(self, first: Tick, last: Tick) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends, ascending, of all windows that share an instant with [first, last]."""

    def windows_at(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends, ascending, of windows that hold one of `times`, and perhaps of others."""


class Window:
    """The base of all window specs."""

    context = "context free"
    # Columns that it reads besides the time column.
    columns: tuple[str, ...] = ()
    # Whether its edges are numbers of events, which nothing but their order can move.
    counts = False

    def place(self, measure: Measure) -> tuple[Periodic | Irregular, ...]:
        """This window in ticks of `measure`; several placements for a family such as cumulate."""
        raise TypeError(f"{type(self).__name__} does not say how it is placed on a measure")


def require_positive(size: object, *, what: str) -> None:
    magnitude = getattr(size, "magnitude", size)
    if not magnitude > 0:  # type: ignore[operator]
        raise QueryError(f"{what} must be longer than zero, not {str(size)!r}")


def require_count(value: object, *, what: str) -> int:
    """A whole number of events, at least one."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise QueryError(f"{what} must be a whole number, not {value!r}")
    if not 1 <= value <= MOST_ROWS:
        raise QueryError(f"{what} must be between 1 and {MOST_ROWS:,}, not {value}")
    return int(value)


def require_number(value: object, *, what: str) -> int | float:
    """A plain, finite number in a column's own unit."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise QueryError(f"{what} must be a plain number in the column's own unit, not {value!r}")
    if isinstance(value, (int, np.integer)):
        if not INT64_MIN <= value <= INT64_MAX:
            raise QueryError(f"{what} {value} is beyond 64-bit integers")
        return int(value)
    if not math.isfinite(value):
        raise QueryError(f"{what} must be finite, not {float(value)!r}")
    return float(value)


def require_column(name: object, *, what: str) -> str:
    """The name of a column."""
    if not isinstance(name, str) or not name:
        raise QueryError(f"{what} is given by the name of a column, not by {name!r}")
    return name


def refuse_too_many(windows_per_event: float, *, what: str) -> None:
    """Refuse a window that would hold each event more than ten million times."""
    if windows_per_event > MOST_WINDOWS_PER_EVENT:
        raise QueryError(
            f"{what} puts each event into {int(windows_per_event):,} windows "
            f"(at most {MOST_WINDOWS_PER_EVENT:,} are allowed): slide by more, or take a shorter window"
        )

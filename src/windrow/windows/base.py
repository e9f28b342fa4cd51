"""What every window type tells the planner and the engine.

A window spec is a frozen value. It names its class in the sense of Li et al. (*context free*,
*forward context free*, *forward context aware*; Scotty, section 4.4) and, for the context-free
types of this package, it can be *placed* on a measure: `place(measure)` turns human units into
ticks and gives a `Placement`, which is one of two shapes:

    Periodic    window k is [offset + k*every, offset + (k+whole)*every + rest), for every integer k
    Irregular   edges come from a calendar or from the user; asked for by range

The periodic form is what makes many windows cheap: a thousand of them are five arrays, and one
compiled loop walks them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from windrow.errors import QueryError
from windrow.measure import Measure, Tick

MOST_WINDOWS_PER_EVENT = 10_000_000


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

    def place(self, measure: Measure) -> tuple[Periodic | Irregular, ...]:
        """This window in ticks of `measure`; several placements for a family such as cumulate."""
        raise TypeError(f"{type(self).__name__} does not say how it is placed on a measure")


def require_positive(size: object, *, what: str) -> None:
    magnitude = getattr(size, "magnitude", size)
    if not magnitude > 0:  # type: ignore[operator]
        raise QueryError(f"{what} must be longer than zero, not {str(size)!r}")


def refuse_too_many(windows_per_event: float, *, what: str) -> None:
    """Refuse a window that would hold each event more than ten million times."""
    if windows_per_event > MOST_WINDOWS_PER_EVENT:
        raise QueryError(
            f"{what} puts each event into {int(windows_per_event):,} windows "
            f"(at most {MOST_WINDOWS_PER_EVENT:,} are allowed): slide by more, or take a shorter window"
        )

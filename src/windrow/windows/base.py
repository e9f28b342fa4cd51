"""What every window type tells the planner and the engine.

A window spec is a frozen value. It names its class in the sense of Li et al. (*context free*,
*forward context free*, *forward context aware*; Scotty, section 4.4) and, for the context-free
types of this package, it can be *placed* on a measure: `place(measure)` turns human units into
ticks and gives a `Placement`, which is one of two shapes:

    Periodic    window k is [offset + k*every, offset + (k+whole)*every + rest), for every integer k
    Irregular   edges come from a calendar or from the user, and are computed by range

The periodic form is what makes many windows cheap: a thousand of them are five arrays, and one
compiled loop walks them all.

The other classes are not placed: where their edges lie depends on the events. They say instead
which columns they read (`columns`), and the engine finds their edges as the events go by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa

from windrow.durations import Duration
from windrow.errors import QueryError
from windrow.measure import Measure, Point, Tick
from windrow.windows.arguments import refuse_too_many
from windrow.windows.predicate import Predicate
from windrow.windows.stepping import Stepping

# In the metadata of a field that came later: the version of snapshots from which on it is told, where it is set.
SINCE = "since"
# What a window of the user's own lacks, behind its name.
NOT_PLACED = (
    "does not place windows as windrow can follow them: its place must give one or more Periodic, or objects with all methods of Irregular; "
    "wr.deterministic and wr.nondeterministic make windows of your own that depend on the events"
)


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


@runtime_checkable
class Irregular(Protocol):
    """Windows that do not repeat with a fixed period; they never overlap one another."""

    @property
    def length(self) -> Tick:
        """The longest that one of its windows can be."""

    @property
    def slide(self) -> Tick:
        """The longest way from one start to the next; 0 if there is no next."""

    @property
    def gapless(self) -> bool:
        """Whether every instant lies in a window."""

    def windows(self, first: Tick, last: Tick) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends, ascending, of all windows that share an instant with [first, last]."""

    def windows_at(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends, ascending, of windows that hold one of `times`, and perhaps of others."""

    def edges(self, times: np.ndarray) -> np.ndarray:
        """Sorted edges, among them the last one up to each of `times` and the first one after it."""

    def within(self, lowest: Tick, highest: Tick) -> tuple[Tick, Tick]:
        """The first and the last time all of whose windows lie within [lowest, highest]."""

    def first_open(self, horizon: Tick, floor: Tick) -> Tick | None:
        """The first start, of windows that begin at `floor` or later, of one that ends after `horizon`."""

    def last_closed(self, point: Tick) -> tuple[Tick, Tick] | None:
        """Start and end of the last window that ends at or before `point`."""

    def first_start(self, point: Tick) -> Tick | None:
        """The first start at or after `point`."""


Placement: TypeAlias = Periodic | Irregular


class Window:
    """The base of all window specs: what a window declares, so that no other code needs to know its class."""

    context = "context free"
    # Which shape of state it asks for:
    #   aligned   all keys are cut at the same instants
    #   sessions  each key is cut in its own places, as its events come
    #   ordered   each key is cut in its own places, once the order of its events is known
    #   points    nothing is cut: it has no edges until somebody asks at a point
    layout: Literal["aligned", "sessions", "ordered", "points"] = "aligned"
    # Columns that it reads besides the time column.
    columns: tuple[str, ...] = ()
    # The conditions that it asks of events, by what it calls them.
    predicates: Mapping[str, Predicate] = MappingProxyType({})
    # Whether it hands its columns to functions of the user's own.
    calls_functions = False
    # Whether its edges are numbers of events, which nothing but their order can move.
    counts = False
    # Whether its windows lie side by side, each of them one slice.
    tiles = False
    # After how many events of a key it begins anew, as if none had come before.
    repeats_after: int | None = None
    # Whether events of different times must stay apart.
    pointwise = False
    # The silence that ends it: one for all events, or the column that has one for each.
    gap: Duration | None = None
    gap_column: str | None = None
    # Asked at a point: which of its edges belong to it, and of how many rows it is, if not of a stretch of time.
    closed: Literal["left", "right", "both", "neither"] = "left"
    last_rows: int | None = None
    # The point at which all of its windows begin.
    since: Point | None = None

    @property
    def sizes(self) -> Mapping[str, Duration]:
        """The lengths that must be whole ticks of the measure, of a window that is not placed on one."""
        return {}

    @property
    def begins_before(self) -> Duration | None:
        """How far before an event a window of it may begin, if that is not an event's time."""
        return None

    @property
    def ends_after(self) -> Duration | None:
        """How far behind an event a window of it may end, if that is not an event's time."""
        return None

    def place(self, measure: Measure) -> tuple[Placement, ...]:
        """This window in ticks of `measure`; several placements for a family such as cumulate."""
        raise QueryError(f"{type(self).__name__} {NOT_PLACED}")

    def stretch(self, measure: Measure) -> tuple[Tick, Tick]:
        """From where to where it reaches at a point, as distances from there, of a window without edges of its own."""
        raise QueryError(f"{type(self).__name__} {NOT_PLACED}")

    def progressions(self, measure: Measure) -> tuple[tuple[Tick, Tick, Tick], ...] | None:
        """All of its edges as (period, phase, rest), where that is simpler than the edges of each placement."""
        return None

    def column_problem(self, column: str, type_: pa.DataType, measure: Measure) -> str | None:
        """Why it cannot read a column of this type, as the rest of a sentence; None if it can."""
        return None

    def stepping(self, schema: pa.Schema) -> Stepping:
        """The step that places it, of an ordered window that has no discretizer of its own."""
        raise QueryError(f"{type(self).__name__} {NOT_PLACED}")


def placements(window: Window, measure: Measure) -> tuple[Placement, ...]:
    """The window in ticks of `measure`; an error if it is one of the user's own that the engine cannot work with."""
    placed = window.place(measure)
    parts = tuple(placed) if isinstance(placed, tuple | list) else (placed,)
    if not parts or not all(isinstance(part, Periodic | Irregular) for part in parts):
        raise QueryError(f"{type(window).__name__} {NOT_PLACED}")
    for part in parts:
        if isinstance(part, Periodic):
            _require_sound(part, window, measure)
    return parts


def _require_sound(part: Periodic, window: Window, measure: Measure) -> None:
    """An error unless the windows of a placement have a length, a slide, and ticks of the measure's kind."""
    numbers = (part.every, part.offset, part.whole, part.rest)
    kinds = (int, float, np.integer, np.floating) if measure.floating else (int, np.integer)
    if not all(isinstance(number, kinds) for number in numbers) or not (
        part.every > 0 and part.whole >= 0 and part.rest >= 0 and part.length > 0
    ):
        raise QueryError(
            f"{type(window).__name__} is placed by {part}, whose windows have no length or no slide"
        )
    refuse_too_many(part.length / part.every, what=str(window))
